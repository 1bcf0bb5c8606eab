"""A logistic curve made of straight pieces, so that gradients are whole numbers.

The curve p(z) joins 1 / (1 + e^-z), rounded to a multiple of 2^-18, at the multiples of 2^-6 from -16 to 16 by straight
lines, and is 0 and 1 beyond. It rises, it is within 10^-5 of the logistic one, and its loss (the integral) is convex.
Everything proved about a fit is proved for this loss; no exponential is computed when rows are read.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["KNOTS", "PIECE", "STEEPEST", "TOP", "VALUES", "knot_values", "slopes_at"]

_WIDTH: Final = 16  # Where the curve ends: 1 - p is below 2^-19 long before.
PIECE: Final = 6  # A piece is 2^-6 wide.
TOP: Final = 18  # The value 1 is 2^18 units.
KNOTS: Final = 2 * _WIDTH << PIECE


def knot_values() -> NDArray[np.int64]:
    """Return the curve at the knots, in units of 2^-18; it is exactly symmetric."""
    half = [round((1 << TOP) / (1 + math.exp(-k / (1 << PIECE)))) for k in range(KNOTS // 2 + 1)]
    low = [(1 << TOP) - value for value in reversed(half[1:])]
    return np.array([*low, *half], dtype=np.int64)


VALUES: Final = knot_values()
_RISES: Final = np.diff(VALUES)
# The steepest slope there is, exactly: about 1/4. Proofs use this number, whatever the table says.
STEEPEST: Final = Fraction(int(_RISES.max()), 1 << (TOP - PIECE))


def slopes_at(pieces: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how much the curve rises over each piece, in units of 2^-18."""
    found: NDArray[np.int64] = _RISES[pieces]
    return found
