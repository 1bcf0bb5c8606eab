"""Rows that keep public bounds, and say so: how a step of a pipeline tells the next one what to expect.

A pipeline hands an array from step to step and nothing else, so the bounds travel on the array. They are public: made
from declared bounds and from released numbers only. Whoever reads them clamps to them as to bounds that a person
declared, so they decide how exact an answer is and never how private.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter

__all__ = ["BoundedArray", "bounded", "bounds_of"]

Pairs: TypeAlias = tuple[tuple[Fraction, Fraction], ...]


class BoundedArray(np.ndarray):  # type: ignore[type-arg]
    """A table of private numbers whose columns keep public bounds. What is made from it has none."""

    bounds: Pairs | None

    def __array_finalize__(self, origin: object) -> None:
        # A slice has other columns and a product other bounds: nothing is handed on that was not said anew.
        self.bounds = None


def bounded(values: NDArray[Any], pairs: Sequence[tuple[float, float]]) -> BoundedArray:
    """Clamp each column to its pair (low, high) of public numbers, and put the pairs on the array."""
    if values.ndim != 2 or values.shape[1] != len(pairs):
        raise InvalidParameter("there must be one pair of bounds for each column")
    lows, highs = (np.array(side, dtype=np.float64) for side in zip(*pairs, strict=True))
    clamped = np.clip(np.asarray(values, dtype=np.float64), lows, highs).view(BoundedArray)
    clamped.bounds = tuple((Fraction(float(low)), Fraction(float(high))) for low, high in zip(lows, highs, strict=True))
    return clamped


def bounds_of(table: object) -> Pairs | None:
    """Return the public bounds that an earlier step put on a table, if it did."""
    return table.bounds if isinstance(table, BoundedArray) else None
