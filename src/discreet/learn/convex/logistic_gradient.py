"""The gradient of a sum of losses of a rising curve, logistic or exponential, exactly.

Rows are whole numbers in steps of 2^-15 within the unit ball, coefficients whole numbers of a step 2^-42, and weights
of rows whole numbers of 2^-20. Then margins x theta, values of the curve and the sum of w (p - y) x are whole numbers
of public units, and the fast way here computes them without rounding: numbers are cut into digits so short that floats
hold every partial sum of products exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet import noise
from discreet.errors import InvalidParameter
from discreet.exact import positive, positive_integer
from discreet.mechanisms.parameters import settle
from discreet.mechanisms.vector_mean import clip_to_ball
from discreet.noise.limits import check_noise_variance
from discreet.privacy import events
from discreet.privacy.relation import Relation, read_relation

__all__ = [
    "FINE",
    "KNOTS",
    "LARGEST",
    "LOGISTIC",
    "PIECE",
    "RADIUS",
    "REST",
    "STEEPEST",
    "TOP",
    "VALUES",
    "WEIGHT",
    "Labelled",
    "LogisticCurvature",
    "LogisticScores",
    "RisingCurve",
    "exact_products",
    "exponential_curve",
    "gradient",
    "gradient_slowly",
    "knot_values",
    "margin_digits",
    "pieces",
    "unit_scores",
]

Integers: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]

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


@final
@dataclass(frozen=True, slots=True, eq=False)
class RisingCurve:
    """A curve that rises from 0 to 1, by its values at the knots in units of 2^-18, and flat before and beyond them."""

    values: Integers
    label_bits: int  # labels are whole numbers of 2^-18 times so many powers of two
    smooth: Callable[[Floats], tuple[Floats, Floats, Floats]]  # about its values, slopes and integrals, for a start

    @property
    def rises(self) -> Integers:
        """How much the curve rises over each piece, in units of 2^-18."""
        return np.diff(self.values)

    @property
    def steepest(self) -> Fraction:
        return Fraction(int(self.rises.max()), 1 << (TOP - PIECE))


def _logistic(margins: Floats) -> tuple[Floats, Floats, Floats]:
    near = np.clip(margins, -700.0, 700.0)
    chances = 1 / (1 + np.exp(-near))
    return chances, chances * (1 - chances), np.logaddexp(0.0, near)


LOGISTIC: Final = RisingCurve(VALUES, TOP, _logistic)


@lru_cache(64)
def exponential_curve(offset: int) -> RisingCurve:
    """Return min(e^(z + a), 1) at the knots, for a = offset / 64 from -15 to 0; labels are whole numbers of 2^-18.

    Its loss is that of Poisson where a mean is below the cap 1, and straight beyond. No slope exceeds 1.
    """
    if not -15 << PIECE <= offset <= 0:
        raise InvalidParameter("the offset of an exponential curve must lie between -15 and 0")
    heights = [min((place - KNOTS // 2 + offset) / (1 << PIECE), 0.0) for place in range(KNOTS + 1)]
    values = np.array([round((1 << TOP) * math.exp(height)) for height in heights], dtype=np.int64)

    def smooth(margins: Floats) -> tuple[Floats, Floats, Floats]:
        height = margins + offset / (1 << PIECE)
        below = np.exp(np.clip(height, -700.0, 0.0))
        return below, np.where(height < 0, below, 0.0), below + np.maximum(height, 0.0)

    return RisingCurve(values, 0, smooth)


ROW: Final = 15
RADIUS: Final = 1 << ROW  # Steps to the length of the longest row.
FINE: Final = 42  # Coefficients are multiples of 2^-42, unless said otherwise.
_DIGIT: Final = 21
_ENDS: Final = 1 << (FINE + ROW + 4)  # The margin 16 in units of 2^-57.
REST: Final = FINE + ROW - PIECE  # Bits of a margin within its piece.
LARGEST: Final = (1 << 62) - 1  # Of a coefficient in steps that 64 bits hold.
WEIGHT: Final = 20  # The weight 1, of the heaviest row, is 2^20 units.
_BLOCK: Final = 1 << 16  # Rows; 2^16 products of a digit and a step stay below 2^53.


@final
@dataclass(frozen=True, slots=True, eq=False)
class Labelled:
    """Rows in the unit ball, in steps of 2^-15, their labels, and what each weighs. The curve is public, all else not.

    Labels are whole numbers from 0 to 1: those of the logistic curve 0 or 1, of others in units of 2^-18.
    """

    rows: Integers = field(repr=False)
    labels: Integers = field(repr=False)
    curve: RisingCurve = LOGISTIC
    weights: Integers | None = field(default=None, repr=False)  # in units of 2^-20, at most 1; all 1 if there are none

    def blocks(self, size: int) -> Iterator[Labelled]:
        """Cut the rows into blocks."""
        for start in range(0, len(self.rows), size):
            some = slice(start, start + size)
            weights = None if self.weights is None else self.weights[some]
            yield Labelled(self.rows[some], self.labels[some], self.curve, weights)

    @property
    def shares(self) -> Floats | float:
        """What rows weigh, in floats."""
        return 1.0 if self.weights is None else np.asarray(self.weights * 2.0**-WEIGHT, dtype=np.float64)

    def gradient(self, place: list[int], fine: int) -> tuple[int, ...]:
        """Return sum w (p(x theta) - y) x at place * 2^-fine, in units of 2^-(fine + 62)."""
        if fine == FINE and max(map(abs, place), default=0) < LARGEST:
            return gradient(self, np.array(place, dtype=np.int64))
        return gradient_slowly(self, place, fine)

    def doubt(self, fine: int) -> int:
        """Return how far that may be from the truth, in the same units: it is exact."""
        return 0

    def curvature(self, place: Integers) -> Floats:
        """Return the second derivative on the pieces where the margins are, in floats; `place` in steps of 2^-42."""
        total = np.zeros((len(place), len(place)))
        for block in self.blocks(_BLOCK):
            rows = block.rows.astype(np.float64)
            slopes = self.curve.rises[pieces(rows, place)[0]] * 2.0 ** (PIECE - TOP) * block.shares
            total += (rows * slopes[:, None]).T @ rows / RADIUS**2
        return total

    def smooth(self, place: Floats) -> tuple[float, Floats, Floats]:
        """Return the loss of the smooth curve, its first and its second derivative, in floats."""
        rows, wanted = self.rows / RADIUS, self.labels * 2.0 ** (self.curve.label_bits - TOP)
        margins = rows @ place
        chances, slopes, losses = self.curve.smooth(margins)
        value = float((self.shares * (losses - wanted * margins)).sum())
        return value, rows.T @ (self.shares * (chances - wanted)), (rows * (self.shares * slopes)[:, None]).T @ rows


def gradient(data: Labelled, place: Integers) -> tuple[int, ...]:
    """Return sum w (p(x theta) - y) x in units of 2^-104, for theta = place * 2^-42."""
    total: list[int] = [0] * data.rows.shape[1]
    for block in data.blocks(_BLOCK):
        total = [a + b for a, b in zip(total, _block(block, place), strict=True)]
    return tuple(total)


def _block(data: Labelled, place: Integers) -> list[int]:
    rows, curve = data.rows.astype(np.float64), data.curve
    piece, rest = pieces(rows, place)
    high, low = curve.values[piece] - (data.labels << curve.label_bits), curve.rises[piece] * rest
    return exact_products(rows, [high, *_digits(low)], [REST, 2 * _DIGIT, _DIGIT, 0], data.weights)


def exact_products(rows: Floats, parts: list[Integers], shifts: list[int], weights: Integers | None) -> list[int]:
    """Return sum w s x over at most 2^16 rows, for numbers s with digits of 21 bits at these shifts, times 2^20."""
    if len(rows) > _BLOCK:
        raise InvalidParameter("these are more rows than add up exactly")
    if weights is None:
        shifts = [shift + WEIGHT for shift in shifts]
    else:  # Products of a digit and a weight are below 2^41: two digits each.
        products = [part * weights for part in parts]
        parts = [part for product in products for part in (product >> _DIGIT, product & ((1 << _DIGIT) - 1))]
        shifts = [place for shift in shifts for place in (shift + _DIGIT, shift)]
    # Digit by digit each sum is a whole number below 2^53, exact in floats; Python's integers put digits together.
    sums = (rows.T @ np.stack(parts, axis=1).astype(np.float64)).tolist()
    return [sum(int(value) << shift for value, shift in zip(row, shifts, strict=True)) for row in sums]


def pieces(rows: NDArray[np.float64], place: Integers) -> tuple[Integers, Integers]:
    """Return on which piece of the curve each margin lies, and how far into it, in units of 2^-57."""
    highest, middling, lowest = margin_digits(rows, place)
    about = (highest * 2.0**_DIGIT + middling) * 2.0**_DIGIT + lowest
    # Put together in 64 bits a far margin would overflow. Margins are clamped to +-16, so its sign is enough.
    far = np.abs(about) >= 2.0 * _ENDS
    high, middle, low = (np.where(far, 0.0, part).astype(np.int64) for part in (highest, middling, lowest))
    margins = (((high << _DIGIT) + middle) << _DIGIT) + low
    margins[far] = np.where(about[far] > 0, _ENDS - 1, -_ENDS)
    margins = np.clip(margins, -_ENDS, _ENDS - 1)
    return (margins >> REST) + KNOTS // 2, margins & ((1 << REST) - 1)


def margin_digits(rows: Floats, place: Integers) -> tuple[Floats, Floats, Floats]:
    """Return margins as three sums of digits, in units of 2^-15, 2^-36 and 2^-57, each exact.

    By Cauchy and Schwarz no partial sum of products exceeds 2^15 * 2^21 * sqrt(columns), which floats hold exactly.
    """
    high, middle, low = (rows @ np.stack(_digits(place), axis=1).astype(np.float64)).T
    return high, middle, low


def _digits(values: Integers) -> tuple[Integers, Integers, Integers]:
    """Cut 63-bit numbers into three digits of base 2^21, the first of which has the sign."""
    mask = (1 << _DIGIT) - 1
    return values >> (2 * _DIGIT), (values >> _DIGIT) & mask, values & mask


def gradient_slowly(data: Labelled, place: list[int], fine: int = FINE) -> tuple[int, ...]:
    """Do the same with Python's numbers, for coefficients in steps of 2^-fine; in units of 2^-(fine + 62)."""
    rest, ends, bits = fine + ROW - PIECE, 1 << (fine + ROW + 4), data.curve.label_bits
    values, rises = data.curve.values.tolist(), data.curve.rises.tolist()
    total: list[Any] = [0] * data.rows.shape[1]
    weights = [1 << WEIGHT] * len(data.rows) if data.weights is None else data.weights.tolist()
    for row, label, weight in zip(data.rows.tolist(), data.labels.tolist(), weights, strict=True):
        margin = min(max(sum(a * b for a, b in zip(row, place, strict=True)), -ends), ends - 1)
        piece = (margin >> rest) + KNOTS // 2
        score = ((values[piece] - (label << bits)) << rest) + rises[piece] * (margin & ((1 << rest) - 1))
        total = [sum_ + score * weight * x for sum_, x in zip(total, row, strict=True)]
    return tuple(total)


# --- noisy_derivatives ---
# Noisy first and second derivatives of a logistic fit: steps of Newton's method, and standard errors.


# --- scores: The gradient of a logistic fit with noise: one step of a descent or of Newton's method. ---


_SHORT: Final = 4  # Scores are whole numbers of 2^-14.
_WHOLE: Final = 1 << (TOP - _SHORT)
_NOISY_BLOCK: Final = 1 << 20  # Rows; so many products of at most 2^29 add up exactly in floats.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LogisticScores:
    """Measure sum w (y - p(x theta)) x for rows in the unit ball and public coefficients theta.

    Guarantee   Gaussian privacy with mu^2 = `mu_squared`.
    Theorem     A row adds a vector of whole numbers no longer than its residual, at most 1, times its length. At
                theta = 0 every residual is 1/2 or -1/2, and the noise is half as large. A weight of at most 1 makes
                no residual longer. [ABL23, DRS22]
    Utility     a deviation of 1 / mu on each entry under add-remove, twice that under replace-one.
    """

    dimension: int
    relation: Relation
    mu_squared: Fraction
    at_zero: bool = False  # whether theta is zero

    def __post_init__(self) -> None:
        settle(self, relation=read_relation(self.relation))
        settle(
            self,
            dimension=positive_integer(self.dimension, name="dimension"),
            mu_squared=positive(self.mu_squared, name="mu_squared"),
        )
        check_noise_variance(self.variance)

    @property
    def squared_sensitivity(self) -> int:
        longest = _WHOLE * RADIUS // (2 if self.at_zero else 1)
        return longest**2 * (1 if self.relation is Relation.ADD_REMOVE else 4)

    @property
    def variance(self) -> Fraction:
        return self.squared_sensitivity / self.mu_squared

    @property
    def event(self) -> events.GDP:
        return events.GDP(mu_squared=self.squared_sensitivity / self.variance)

    @property
    def deviation(self) -> float:
        return math.sqrt(self.variance) / (_WHOLE * RADIUS)

    def exact(self, data: Labelled, place: Integers) -> Integers:
        """Add up whole numbers; `place` is theta in steps of 2^-42. This is private."""
        at = np.zeros_like(place) if self.at_zero else place
        total = np.zeros(self.dimension, dtype=np.int64)
        for block in data.blocks(_NOISY_BLOCK):
            rows, residuals = _residuals(block, at)
            total += (rows.T @ residuals.astype(np.float64)).astype(np.int64)
        return total

    def measure(self, data: Labelled, place: Integers) -> Floats:
        """Add noise to the sum."""
        drawn = noise.rounded_gaussian(size=self.dimension, variance=self.variance)
        found: Floats = (self.exact(data, place) + drawn) / (_WHOLE * RADIUS)
        return found


def _residuals(data: Labelled, place: Integers) -> tuple[Floats, Integers]:
    """Return rows, and w (y - p(x theta)) of each in units of 2^-14, at most 2^14. This is private."""
    rows, curve = data.rows.astype(np.float64), data.curve
    piece, rest = pieces(rows, place)
    values = curve.values[piece] + (curve.rises[piece] * rest >> REST)  # At theta = 0 exactly one half.
    residuals = _shorter(data.labels << curve.label_bits, _SHORT) - _shorter(values, _SHORT)
    return rows, residuals if data.weights is None else _shorter(residuals * data.weights, WEIGHT)


def _shorter(values: Integers, bits: int) -> Integers:
    """Divide by a power of two and round to the nearest, so that no whole bound is exceeded."""
    found: Integers = (values + (1 << bits >> 1)) >> bits
    return found


def unit_scores(data: Labelled, place: Integers, units: Integers) -> tuple[Integers, int]:
    """Add up w (y - p(x theta)) x over the rows of each unit; return how long that of one row is at most. Private."""
    scores = np.zeros((int(units.max(initial=-1)) + 1, data.rows.shape[1]), dtype=np.int64)
    for start, block in zip(range(0, len(data.rows), _NOISY_BLOCK), data.blocks(_NOISY_BLOCK), strict=True):
        rows, residuals = _residuals(block, place)
        np.add.at(scores, units[start : start + _NOISY_BLOCK], rows.astype(np.int64) * residuals[:, None])
    return scores, _WHOLE * RADIUS


# --- curvature: The second derivative of a logistic fit with noise: what standard errors are made of. ---


_COARSE: Final = 1 << 6  # Rows are rounded to 2^-9 of the longest: entries of a matrix need no more.
_SMALL: Final = RADIUS // _COARSE
_CURVATURE_SHORT: Final = 3  # Slopes are whole numbers of 2^-9, the steepest of logistic ones is 2^7.
_WEIGHTED_SHORT: Final = 18  # Those times weights are whole numbers of 2^-14, the steepest is 2^14.
_CURVATURE_BLOCK: Final = 1 << 20  # Rows; so many products of at most 2^32 add up exactly in floats.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LogisticCurvature:
    """Measure sum w p'(x theta) x x^T for rows in the unit ball and public coefficients theta.

    Guarantee   Gaussian privacy with mu^2 = `mu_squared`.
    Theorem     A row adds a matrix of Frobenius norm w p' |x|^2 <= steepest. Entries off the diagonal count twice and
                get noise of half the variance, so the norm that noise sees is this one. Matrices of two rows have the
                inner product w p' v q' (x z)^2 >= 0, so replacing a row moves the sum by sqrt 2 such norms, not 2.
                [DRS22]
    Utility     a deviation of steepest / mu on the diagonal.
    """

    dimension: int
    relation: Relation
    mu_squared: Fraction
    steepest: Fraction = STEEPEST  # slope of the curve
    weighted: bool = False

    def __post_init__(self) -> None:
        settle(self, relation=read_relation(self.relation))
        settle(
            self,
            dimension=positive_integer(self.dimension, name="dimension"),
            mu_squared=positive(self.mu_squared, name="mu_squared"),
            steepest=positive(self.steepest, name="steepest"),
        )
        if self.steepest > 1:
            raise InvalidParameter("the slope of a curve must be at most 1")
        check_noise_variance(self.variance)
        check_noise_variance(self.variance / 2)

    def _slopes(self, rises: Integers, weights: Integers | int) -> Integers:
        """Return rises of pieces times weights, as far as they are measured."""
        if self.weighted or self.steepest != STEEPEST:
            return _shorter(rises * weights, _WEIGHTED_SHORT)
        return _shorter(rises, _CURVATURE_SHORT)

    @property
    def _longest(self) -> int:
        """The largest factor of a row."""
        rise = -int(-self.steepest * (1 << (TOP - PIECE)) // 1)
        return int(self._slopes(np.array([rise]), 1 << WEIGHT)[0])

    @property
    def squared_sensitivity(self) -> int:
        """Of the sum of whole numbers, in the Frobenius norm."""
        return (self._longest * _SMALL**2) ** 2 * (1 if self.relation is Relation.ADD_REMOVE else 2)

    @property
    def variance(self) -> Fraction:
        """Of the diagonal; off it half of that."""
        return self.squared_sensitivity / self.mu_squared

    @property
    def event(self) -> events.GDP:
        return events.GDP(mu_squared=self.squared_sensitivity / self.variance)

    @property
    def unit(self) -> float:
        bits = TOP - PIECE - _CURVATURE_SHORT
        if self.weighted or self.steepest != STEEPEST:
            bits = TOP - PIECE + WEIGHT - _WEIGHTED_SHORT
        return 1 / (float(_SMALL) ** 2 * (1 << bits))

    @property
    def deviation(self) -> float:
        """Of the noise on the diagonal."""
        return math.sqrt(self.variance) * self.unit

    def exact(self, data: Labelled, place: Integers) -> Integers:
        """Add up whole numbers; `place` is theta in steps of 2^-42. This is private."""
        if data.curve.steepest > self.steepest or (data.weights is not None and not self.weighted):
            raise InvalidParameter("this matrix was prepared for another curve, or for rows without weights")
        total = np.zeros((self.dimension, self.dimension), dtype=np.int64)
        for block in data.blocks(_CURVATURE_BLOCK):
            rises = data.curve.rises[pieces(block.rows.astype(np.float64), place)[0]]
            factors = self._slopes(rises, 1 << WEIGHT if block.weights is None else block.weights)
            small = clip_to_ball(np.rint(block.rows / _COARSE).astype(np.int64), _SMALL).astype(np.float64)
            total += ((small * factors[:, None].astype(np.float64)).T @ small).astype(np.int64)
        return total

    def measure(self, data: Labelled, place: Integers) -> Floats:
        """Add noise to the matrix."""
        upper = np.triu_indices(self.dimension, 1)
        drawn = np.zeros((self.dimension, self.dimension), dtype=np.int64)
        if len(upper[0]):
            drawn[upper] = noise.rounded_gaussian(size=len(upper[0]), variance=self.variance / 2)
        drawn += drawn.T
        drawn[np.diag_indices(self.dimension)] = noise.rounded_gaussian(size=self.dimension, variance=self.variance)
        return np.asarray((self.exact(data, place) + drawn) * self.unit, dtype=np.float64)
