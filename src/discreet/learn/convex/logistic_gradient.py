"""The gradient of a sum of logistic losses, exactly.

Rows are whole numbers in steps of 2^-15 within the unit ball, coefficients whole numbers of a step 2^-42. Then margins
x theta, values of the curve and the sum of (p - y) x are whole numbers of public units, and the fast way here computes
them without rounding: numbers are cut into digits so short that floats hold every partial sum of products exactly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "FINE",
    "KNOTS",
    "PIECE",
    "RADIUS",
    "REST",
    "STEEPEST",
    "TOP",
    "VALUES",
    "Labelled",
    "gradient",
    "gradient_slowly",
    "knot_values",
    "pieces",
    "slopes_at",
]

# --- curve: A logistic curve made of straight pieces, so that gradients are whole numbers. ---
#
# The curve p(z) joins 1 / (1 + e^-z), rounded to a multiple of 2^-18, at the multiples of 2^-6 from -16 to 16 by
# straight
# lines, and is 0 and 1 beyond. It rises, it is within 10^-5 of the logistic one, and its loss (the integral) is convex.
# Everything proved about a fit is proved for this loss; no exponential is computed when rows are read.


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


Integers: TypeAlias = NDArray[np.int64]

ROW: Final = 15
RADIUS: Final = 1 << ROW  # Steps to the length of the longest row.
FINE: Final = 42  # Coefficients are multiples of 2^-42, unless said otherwise.
_DIGIT: Final = 21
_ENDS: Final = 1 << (FINE + ROW + 4)  # The margin 16 in units of 2^-57.
REST: Final = FINE + ROW - PIECE  # Bits of a margin within its piece.
_BLOCK: Final = 1 << 16  # Rows; 2^16 products of a digit and a step stay below 2^53.


@final
@dataclass(frozen=True, slots=True, eq=False)
class Labelled:
    """Rows in the unit ball, in steps of 2^-15, and whether each belongs to the class. All private."""

    rows: Integers = field(repr=False)
    labels: Integers = field(repr=False)  # 0 or 1


def gradient(data: Labelled, place: Integers) -> tuple[int, ...]:
    """Return sum (p(x theta) - y) x in units of 2^-84, for theta = place * 2^-42."""
    columns = data.rows.shape[1]
    total: list[int] = [0] * columns
    for start in range(0, len(data.rows), _BLOCK):
        rows = data.rows[start : start + _BLOCK].astype(np.float64)
        part = _block(rows, data.labels[start : start + _BLOCK], place)
        total = [a + b for a, b in zip(total, part, strict=True)]
    return tuple(total)


def _block(rows: NDArray[np.float64], labels: Integers, place: Integers) -> list[int]:
    piece, rest = pieces(rows, place)
    high, low = VALUES[piece] - (labels << TOP), slopes_at(piece) * rest
    parts = np.stack([high, *_digits(low)], axis=1).astype(np.float64)
    sums = (rows.T @ parts).tolist()
    shifts = (REST, 2 * _DIGIT, _DIGIT, 0)
    return [sum(int(value) << shift for value, shift in zip(row, shifts, strict=True)) for row in sums]


def pieces(rows: NDArray[np.float64], place: Integers) -> tuple[Integers, Integers]:
    """Return on which piece of the curve each margin lies, and how far into it, in units of 2^-57.

    By Cauchy and Schwarz no partial sum of products exceeds 2^15 * 2^21 * sqrt(columns), which floats hold exactly.
    """
    high, middle, low = (rows @ np.stack(_digits(place), axis=1).astype(np.float64)).T
    about = (high * 2.0**_DIGIT + middle) * 2.0**_DIGIT + low
    far = np.abs(about) >= 2.0 * _ENDS
    high, middle, low = (np.where(far, 0.0, part).astype(np.int64) for part in (high, middle, low))
    margins = (((high << _DIGIT) + middle) << _DIGIT) + low
    margins[far] = np.where(about[far] > 0, _ENDS - 1, -_ENDS)
    margins = np.clip(margins, -_ENDS, _ENDS - 1)
    return (margins >> REST) + KNOTS // 2, margins & ((1 << REST) - 1)


def _digits(values: Integers) -> tuple[Integers, Integers, Integers]:
    """Cut 63-bit numbers into three digits of base 2^21, the first of which has the sign."""
    mask = (1 << _DIGIT) - 1
    return values >> (2 * _DIGIT), (values >> _DIGIT) & mask, values & mask


def gradient_slowly(data: Labelled, place: list[int], fine: int = FINE) -> tuple[int, ...]:
    """Do the same with Python's numbers, for coefficients in steps of 2^-fine; in units of 2^-(fine + 42)."""
    rest, ends = fine + ROW - PIECE, 1 << (fine + ROW + 4)
    total: list[Any] = [0] * data.rows.shape[1]
    for row, label in zip(data.rows.tolist(), data.labels.tolist(), strict=True):
        margin = min(max(sum(a * b for a, b in zip(row, place, strict=True)), -ends), ends - 1)
        piece = (margin >> rest) + KNOTS // 2
        rise = int(VALUES[piece + 1] - VALUES[piece])
        score = ((int(VALUES[piece]) - (label << TOP)) << rest) + rise * (margin & ((1 << rest) - 1))
        total = [sum_ + score * x for sum_, x in zip(total, row, strict=True)]
    return tuple(total)
