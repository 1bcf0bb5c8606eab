"""Draws that are no privacy noise: where in its bin a number lies, which of a unit's rows are kept."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import noise

__all__ = ["below", "fractions"]

_BITS = 53


def fractions(count: int) -> NDArray[np.float64]:
    """Draw numbers from [0, 1), multiples of 2^-53, all alike."""
    return noise.uniform(1 << _BITS, count).astype(np.float64) * 2.0**-_BITS


def below(limits: NDArray[Any]) -> NDArray[np.int64]:
    """Draw for each limit one of 0, …, limit - 1."""
    drawn = np.floor(fractions(len(limits)) * limits).astype(np.int64)
    inside: NDArray[np.int64] = np.minimum(drawn, limits - 1)
    return inside
