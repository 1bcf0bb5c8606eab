"""The gradient of a sum of softmax losses, to a proven precision.

Rows are whole numbers in the unit ball and coefficients whole numbers of 2^-42, so margins are whole numbers of 2^-57,
exactly. Exponentials are products of a table, rounded correctly, and a short polynomial: only additions, products and
quotients of floats, which IEEE 754 rounds correctly, and no library function, of which nothing is proven. Residuals are
rounded to whole numbers of 2^-48, and their sums are exact.

**How far a residual may be off.** With u = 2^-53: a table entry and the polynomial are off by u each, relatively, their
product by another u (the polynomial's remainder is below 2^-61, and rounding within it is divided by 2^7). So is each
of the exponentials by 4 u, their sum by (classes + 3) u, and the quotient by (classes + 8) u; second order and margins
that are cut off at 47 stay below u. A probability is at most 1, so that it is off by (classes + 10) 2^-53 at most, and
rounding adds 2^-49.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from math import isqrt
from typing import Final, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.balls import ball, bounds, precision
from discreet.errors import InvalidParameter
from discreet.learn.convex.logistic_gradient import (
    FINE,
    LARGEST,
    RADIUS,
    ROW,
    WEIGHT,
    exact_products,
    margin_digits,
)
from discreet.learn.convex.objective_perturbation import RowLoss

__all__ = ["SoftmaxRows", "row_doubt", "softmax_row"]

Integers: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]

_MORE: Final = 6  # Residuals are whole numbers of 2^-(fine + 6).
_BLOCK: Final = 1 << 16  # Rows, as `exact_products` takes them.
_UNIT: Final = FINE + ROW  # Margins are whole numbers of 2^-57.
_STEP: Final = 7  # The table has a knot at every multiple of 2^-7.
_REST: Final = _UNIT - _STEP
_FAR: Final = 47  # Margins so far behind the largest count as 2^-67, and as nothing.
_DIGIT: Final = 21
_MASK: Final = (1 << _DIGIT) - 1


def softmax_row(classes: int) -> RowLoss:
    """Return what is known of the loss log(sum of e^(x theta_k)) - x theta_y of a row with |x| <= 1.

    Its gradient is x (p - e_y), class by class: p lies in the simplex, so that the corners are x (e_k - e_y), which is
    zero for k = y and of squared length 2 for the others. Its second derivative is x x^T times diag(p) - p p^T, which
    has a rank of classes - 1 and the trace 1 - |p|^2 <= 1 - 1 / classes.
    """
    return RowLoss(ends=classes - 1, squared_length=2, rank=classes - 1, trace=Fraction(classes - 1, classes))


def row_doubt(classes: int) -> Fraction:
    """Return how far, in l2, the computed gradient of one row may be off."""
    entry = Fraction(1, 1 << 49) + Fraction(classes + 10, 1 << 53)
    return entry * (isqrt(classes - 1) + 1)


@lru_cache(1)
def _table() -> Floats:
    """Return e^-z at the knots from 0 to 48, each as the nearest float: both ends of a ball around it round to that."""
    with precision(120):
        knots = [bounds(ball(Fraction(-knot, 1 << _STEP)).exp()) for knot in range((_FAR + 1) << _STEP)]
    if any(float(low) != float(high) for low, high in knots):
        raise InvalidParameter("the table of exponentials needs a higher precision")
    return np.array([float(low) for low, _ in knots])


def _exponentials(behind: Integers) -> Floats:
    """Return e^-z for z in whole numbers of 2^-57 from 0 to 47, off by 4 u at most."""
    rest = (behind & ((1 << _REST) - 1)) * 2.0**-_UNIT  # Exact: 50 bits.
    total = np.full_like(rest, 1 / 720)
    for factor in (-1 / 120, 1 / 24, -1 / 6, 1 / 2, -1.0, 1.0):
        total = total * rest + factor
    found: Floats = _table()[behind >> _REST] * total
    return found


@final
@dataclass(frozen=True, slots=True, eq=False)
class SoftmaxRows:
    """Rows in the unit ball, in steps of 2^-15, the class of each, and what each weighs. All private.

    Coefficients of the classes stand one after the other.
    """

    rows: Integers = field(repr=False)
    codes: Integers = field(repr=False)
    classes: int
    weights: Integers | None = field(default=None, repr=False)  # in units of 2^-20, at most 1; all 1 if there are none

    @property
    def shares(self) -> Floats:
        """What rows weigh, in floats."""
        whole = np.ones(len(self.rows))
        return whole if self.weights is None else np.asarray(self.weights * 2.0**-WEIGHT, dtype=np.float64)

    def gradient(self, place: list[int], fine: int) -> tuple[int, ...]:
        """Return the gradient at place * 2^-fine, in units of 2^-(fine + 62)."""
        quick = fine == FINE and max(map(abs, place), default=0) < LARGEST
        total = [0] * len(place)
        for start in range(0, len(self.rows), _BLOCK):
            some = slice(start, start + _BLOCK)
            rows, weights = self.rows[some], None if self.weights is None else self.weights[some]
            found = self._quick(rows, place) if quick else self._slow(rows, place, fine)
            wanted = self.codes[some, None] == np.arange(self.classes)
            residuals = found - wanted.astype(found.dtype) * (1 << (fine + _MORE))
            total = [a + b for a, b in zip(total, _added_up(rows, residuals, weights), strict=True)]
        return tuple(part << (FINE - _DIGIT) for part in total)

    def doubt(self, fine: int) -> int:
        """Return how far, in l2, the gradient may be off, in the same units; with finer steps it is less."""
        return -int(-len(self.rows) * row_doubt(self.classes) * (1 << (FINE + WEIGHT + FINE)) // 1)

    def _quick(self, rows: Integers, place: list[int]) -> Integers:
        """Return probabilities in units of 2^-48, each row by itself. This is private."""
        behind = self._behind(rows.astype(np.float64), np.array(place, dtype=np.int64).reshape(self.classes, -1))
        powers = np.where(behind < _FAR << _UNIT, _exponentials(np.minimum(behind, _FAR << _UNIT)), 0.0)
        found: Integers = np.rint(powers / powers.sum(axis=1, keepdims=True) * 2.0 ** (FINE + _MORE)).astype(np.int64)
        return found

    @staticmethod
    def _behind(rows: Floats, places: Integers) -> Integers:
        """Return how far each margin is behind the largest, in units of 2^-57, exactly up to 47. This is private."""
        high, middle, low = np.stack([np.stack(margin_digits(rows, at)) for at in places], axis=2)
        about = (high * 2.0**_DIGIT + middle) * 2.0**_DIGIT + low
        near = about.argmax(axis=1, keepdims=True)
        # Differences of digits are whole numbers below 2^53; far ones would not fit 64 bits, and are not needed.
        high, middle, low = (np.take_along_axis(part, near, axis=1) - part for part in (high, middle, low))
        far = np.take_along_axis(about, near, axis=1) - about > (_FAR + 0.5) * 2.0**_UNIT
        high, middle, low = (np.where(far, 0.0, part).astype(np.int64) for part in (high, middle, low))
        found = (((high << _DIGIT) + middle) << _DIGIT) + low
        found -= found.min(axis=1, keepdims=True)  # The largest is now the largest exactly.
        return np.where(far, (_FAR << _UNIT) + 1, found)

    def _slow(self, rows: Integers, place: list[int], fine: int) -> NDArray[np.object_]:
        """Return probabilities in units of 2^-(fine + 6), rounded to the nearest, with balls as precise as needed."""
        places = np.array(place, dtype=object).reshape(self.classes, -1)
        margins = rows.astype(object) @ places.T  # Python's integers.
        found = np.zeros(margins.shape, dtype=object)
        bits, scale = 2 * fine + 64, 1 << (fine + ROW)
        with precision(bits):
            for number, row in enumerate(margins.tolist()):
                # What is farther behind than so many units is nothing next to one unit of the result.
                powers = [ball(Fraction(max(margin - max(row), -bits * scale), scale)).exp() for margin in row]
                total = sum(powers, ball(0))
                found[number] = [round(bounds(power / total * (1 << (fine + _MORE)))[0]) for power in powers]
        return found

    def curvature(self, place: Integers) -> Floats:
        """Return the second derivative at place * 2^-42, in floats."""
        return self.smooth(np.asarray(place * 2.0**-FINE, dtype=np.float64))[2]

    def smooth(self, place: Floats) -> tuple[float, Floats, Floats]:
        """Return the loss, its first and its second derivative, in floats."""
        rows, shares, width = self.rows / RADIUS, self.shares, self.rows.shape[1]
        margins = rows @ place.reshape(self.classes, width).T
        behind = margins - margins.max(axis=1, keepdims=True, initial=-np.inf)
        powers = np.exp(behind)
        totals = powers.sum(axis=1, keepdims=True)
        chances, wanted = powers / totals, self.codes[:, None] == np.arange(self.classes)
        value = float((shares * (np.log(totals[:, 0]) - (behind * wanted).sum(axis=1))).sum())
        down = ((chances - wanted) * shares[:, None]).T @ rows
        curved = np.zeros((self.classes, width, self.classes, width))
        for k in range(self.classes):
            for other in range(k, self.classes):
                factors = shares * chances[:, k] * ((k == other) - chances[:, other])
                curved[k, :, other] = curved[other, :, k] = (rows * factors[:, None]).T @ rows
        return value, down.reshape(-1), curved.reshape(len(place), len(place))


def _added_up(rows: Integers, residuals: NDArray[np.object_] | Integers, weights: Integers | None) -> list[int]:
    """Return sum w r x, class by class, in units of a residual's divided by 2^35, exactly. This is private."""
    if residuals.dtype == object:
        each = [1 << WEIGHT] * len(rows) if weights is None else weights.tolist()
        return [
            sum(int(r) * w * x for r, w, x in zip(part, each, column, strict=True))
            for part in residuals.T.tolist()
            for column in rows.T.tolist()
        ]
    floats = rows.astype(np.float64)
    found: list[int] = []
    for part in residuals.T:
        digits = [part >> (2 * _DIGIT), (part >> _DIGIT) & _MASK, part & _MASK]
        found += exact_products(floats, digits, [2 * _DIGIT, _DIGIT, 0], weights)
    return found
