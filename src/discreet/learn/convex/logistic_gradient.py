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

from discreet import noise
from discreet.exact import positive, positive_integer
from discreet.mechanisms.parameters import settle
from discreet.mechanisms.vector_mean import clip_to_ball
from discreet.noise.limits import check_noise_variance
from discreet.privacy import events
from discreet.privacy.relation import Relation, read_relation

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
    "LogisticCurvature",
    "LogisticScores",
    "gradient",
    "gradient_slowly",
    "knot_values",
    "pieces",
    "slopes_at",
    "unit_scores",
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
    # Digit by digit each sum is a whole number below 2^53, exact in floats; Python's integers put digits together.
    sums = (rows.T @ parts).tolist()
    shifts = (REST, 2 * _DIGIT, _DIGIT, 0)
    return [sum(int(value) << shift for value, shift in zip(row, shifts, strict=True)) for row in sums]


def pieces(rows: NDArray[np.float64], place: Integers) -> tuple[Integers, Integers]:
    """Return on which piece of the curve each margin lies, and how far into it, in units of 2^-57.

    By Cauchy and Schwarz no partial sum of products exceeds 2^15 * 2^21 * sqrt(columns), which floats hold exactly.
    """
    high, middle, low = (rows @ np.stack(_digits(place), axis=1).astype(np.float64)).T
    about = (high * 2.0**_DIGIT + middle) * 2.0**_DIGIT + low
    # Put together in 64 bits a far margin would overflow. Margins are clamped to +-16, so its sign is enough.
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


# --- noisy_derivatives ---
# Noisy first and second derivatives of a logistic fit: steps of Newton's method, and standard errors.


# --- scores: The gradient of a logistic fit with noise: one step of a descent or of Newton's method. ---


Floats: TypeAlias = NDArray[np.float64]

_SHORT: Final = 4  # Scores are whole numbers of 2^-14.
_WHOLE: Final = 1 << (TOP - _SHORT)
_NOISY_BLOCK: Final = 1 << 20  # Rows; so many products of at most 2^29 add up exactly in floats.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LogisticScores:
    """Measure sum (y - p(x theta)) x for rows in the unit ball and public coefficients theta.

    Guarantee   Gaussian privacy with mu^2 = `mu_squared`.
    Theorem     A row adds a vector of whole numbers no longer than its residual, at most 1, times its length. At
                theta = 0 every residual is 1/2 or -1/2, and the noise is half as large. [ABL23, DRS22]
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
        for start in range(0, len(data.rows), _NOISY_BLOCK):
            rows, residuals = _residuals(data, at, start)
            total += (rows.T @ residuals.astype(np.float64)).astype(np.int64)
        return total

    def measure(self, data: Labelled, place: Integers) -> Floats:
        """Add noise to the sum."""
        drawn = noise.rounded_gaussian(size=self.dimension, variance=self.variance)
        found: Floats = (self.exact(data, place) + drawn) / (_WHOLE * RADIUS)
        return found


def _residuals(data: Labelled, place: Integers, start: int) -> tuple[Floats, Integers]:
    """Return a block of rows, and y - p(x theta) of each in units of 2^-14, at most 2^14. This is private."""
    rows = data.rows[start : start + _NOISY_BLOCK].astype(np.float64)
    piece, rest = pieces(rows, place)
    values = VALUES[piece] + (slopes_at(piece) * rest >> REST)  # At theta = 0 exactly one half.
    return rows, data.labels[start : start + _NOISY_BLOCK] * _WHOLE - (values + (1 << _SHORT >> 1) >> _SHORT)


def unit_scores(data: Labelled, place: Integers, units: Integers) -> tuple[Integers, int]:
    """Add up (y - p(x theta)) x over the rows of each unit, and return how long that of one row is at most. Private."""
    scores = np.zeros((int(units.max(initial=-1)) + 1, data.rows.shape[1]), dtype=np.int64)
    for start in range(0, len(data.rows), _NOISY_BLOCK):
        rows, residuals = _residuals(data, place, start)
        np.add.at(scores, units[start : start + _NOISY_BLOCK], rows.astype(np.int64) * residuals[:, None])
    return scores, _WHOLE * RADIUS


# --- curvature: The second derivative of a logistic fit with noise: what standard errors are made of. ---


_COARSE: Final = 1 << 6  # Rows are rounded to 2^-9 of the longest: entries of a matrix need no more.
_SMALL: Final = RADIUS // _COARSE
_CURVATURE_SHORT: Final = 3  # Slopes are whole numbers of 2^-9, the steepest is 2^7.
_STEEPEST: Final = int(STEEPEST * (1 << (TOP - PIECE))) + (1 << _CURVATURE_SHORT >> 1) >> _CURVATURE_SHORT
_CURVATURE_BLOCK: Final = 1 << 20  # Rows; so many products of at most 2^25 add up exactly in floats.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LogisticCurvature:
    """Measure sum p'(x theta) x x^T for rows in the unit ball and public coefficients theta.

    Guarantee   Gaussian privacy with mu^2 = `mu_squared`.
    Theorem     A row adds a matrix of Frobenius norm p' |x|^2 <= steepest. Entries off the diagonal count twice and get
                noise of half the variance, so the norm that noise sees is this one. Matrices of two rows have the inner
                product p' q' (x z)^2 >= 0, so replacing a row moves the sum by sqrt 2 such norms, not 2. [DRS22]
    Utility     a deviation of steepest / mu on the diagonal.
    """

    dimension: int
    relation: Relation
    mu_squared: Fraction

    def __post_init__(self) -> None:
        settle(self, relation=read_relation(self.relation))
        settle(
            self,
            dimension=positive_integer(self.dimension, name="dimension"),
            mu_squared=positive(self.mu_squared, name="mu_squared"),
        )
        check_noise_variance(self.variance)
        check_noise_variance(self.variance / 2)

    @property
    def squared_sensitivity(self) -> int:
        """Of the sum of whole numbers, in the Frobenius norm."""
        return (_STEEPEST * _SMALL**2) ** 2 * (1 if self.relation is Relation.ADD_REMOVE else 2)

    @property
    def variance(self) -> Fraction:
        """Of the diagonal; off it half of that."""
        return self.squared_sensitivity / self.mu_squared

    @property
    def event(self) -> events.GDP:
        return events.GDP(mu_squared=self.squared_sensitivity / self.variance)

    @property
    def unit(self) -> float:
        return 1 / (float(_SMALL) ** 2 * (1 << (TOP - PIECE - _CURVATURE_SHORT)))

    @property
    def deviation(self) -> float:
        """Of the noise on the diagonal."""
        return math.sqrt(self.variance) * self.unit

    def exact(self, rows: Integers, place: Integers) -> Integers:
        """Add up whole numbers; `place` is theta in steps of 2^-42. This is private."""
        total = np.zeros((self.dimension, self.dimension), dtype=np.int64)
        for start in range(0, len(rows), _CURVATURE_BLOCK):
            block = rows[start : start + _CURVATURE_BLOCK]
            slopes = slopes_at(pieces(block.astype(np.float64), place)[0])
            weights = (slopes + (1 << _CURVATURE_SHORT >> 1) >> _CURVATURE_SHORT).astype(np.float64)
            small = clip_to_ball(np.rint(block / _COARSE).astype(np.int64), _SMALL).astype(np.float64)
            total += ((small * weights[:, None]).T @ small).astype(np.int64)
        return total

    def measure(self, rows: Integers, place: Integers) -> Floats:
        """Add noise to the matrix."""
        upper = np.triu_indices(self.dimension, 1)
        drawn = np.zeros((self.dimension, self.dimension), dtype=np.int64)
        if len(upper[0]):
            drawn[upper] = noise.rounded_gaussian(size=len(upper[0]), variance=self.variance / 2)
        drawn += drawn.T
        drawn[np.diag_indices(self.dimension)] = noise.rounded_gaussian(size=self.dimension, variance=self.variance)
        return np.asarray((self.exact(rows, place) + drawn) * self.unit, dtype=np.float64)
