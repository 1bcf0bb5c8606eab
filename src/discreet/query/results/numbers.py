"""Exact numbers by the column: whole numbers in an array, and fractions only when somebody asks."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

__all__ = ["ExactNumbers", "compact", "wide"]

_SAFE = 1 << 61  # Sums and differences of two such numbers fit 64 bits.


@final
@dataclass(frozen=True, slots=True, eq=False)
class ExactNumbers:
    """offset + step * over / under, row by row."""

    over: NDArray[Any]  # int64, or Python integers where they do not fit
    under: NDArray[Any] | None = None  # above zero; None for one
    step: Fraction = Fraction(1)
    offset: Fraction = Fraction(0)

    def __len__(self) -> int:
        return len(self.over)

    def __getitem__(self, row: int) -> Fraction:
        under = 1 if self.under is None else int(self.under[row])
        return self.offset + self.step * Fraction(int(self.over[row]), under)

    @property
    def is_whole(self) -> bool:
        """Whether all numbers are whole by how they are made."""
        return self.under is None and self.step.denominator == 1 and self.offset.denominator == 1

    def take(self, rows: NDArray[np.int64]) -> ExactNumbers:
        """Return some of the rows, in their order."""
        under = None if self.under is None else self.under[rows]
        return ExactNumbers(self.over[rows], under, self.step, self.offset)

    def plus(self, offset: Fraction) -> ExactNumbers:
        """Move all numbers by the same."""
        return ExactNumbers(self.over, self.under, self.step, self.offset + offset)

    def floats(self) -> NDArray[np.float64]:
        """Return the nearest floats, or next to them: for charts and data frames, after the fact."""
        step, offset = float(self.step), float(self.offset)
        over = self.over.astype(np.float64)
        return offset + step * (over if self.under is None else over / self.under.astype(np.float64))

    def integers(self) -> NDArray[np.int64] | None:
        """Return whole numbers of 64 bits, None where they are no such."""
        if not self.is_whole:
            return None
        exact = compact(wide(self.over) * int(self.step) + int(self.offset))
        return exact if exact.dtype == np.int64 else None


def wide(array: NDArray[Any]) -> NDArray[np.object_]:
    """Return the same numbers as Python integers, which never overflow."""
    return array.astype(object)


def compact(array: NDArray[Any]) -> NDArray[Any]:
    """Return whole numbers in 64 bits if they are far from the limit, else as they are."""
    if array.dtype == np.int64 or not array.size:
        return array.astype(np.int64)
    fits = max(abs(int(array.max())), abs(int(array.min()))) < _SAFE
    return array.astype(np.int64) if fits else array
