"""The Gaussian mechanism with any covariance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import isqrt
from typing import TypeAlias, final

from discreet import noise
from discreet.balls import ball, normal_cdf, precision
from discreet.errors import InvalidParameter
from discreet.exact import Number, exact, integer, positive
from discreet.formatting import record
from discreet.mechanisms.gaussian import read_vector
from discreet.mechanisms.parameters import settle
from discreet.mechanisms.release import EachCell, Interval, Release
from discreet.noise.laws import RoundedGaussianLaw
from discreet.privacy import events, outcomes
from discreet.privacy.outcomes import Outcomes
from discreet.privacy.relation import Relation, read_relation

__all__ = ["CorrelatedGaussian", "Matrix", "factor", "read_covariance", "solve", "times"]

# --- matrices: Exact factorisation of a rational covariance matrix. ---


Matrix: TypeAlias = tuple[tuple[Fraction, ...], ...]


def read_covariance(rows: Sequence[Sequence[Number]]) -> Matrix:
    """Read a symmetric matrix exactly; that it is positive definite shows when it is factored."""
    matrix = tuple(tuple(exact(value, name="covariance") for value in row) for row in rows)
    size = len(matrix)
    if size == 0 or any(len(row) != size for row in matrix):
        raise InvalidParameter("covariance must be a square matrix")
    if any(matrix[i][j] != matrix[j][i] for i in range(size) for j in range(i)):
        raise InvalidParameter("covariance must be symmetric")
    return matrix


@lru_cache(64)
def factor(covariance: Matrix) -> tuple[Matrix, tuple[Fraction, ...]]:
    """Return L and D with covariance = L D L^T: L lower triangular with ones, D positive. No root is taken."""
    size = len(covariance)
    lower = [[Fraction(int(i == j)) for j in range(size)] for i in range(size)]
    pivots: list[Fraction] = []
    for j in range(size):
        pivot = covariance[j][j] - sum((lower[j][k] ** 2 * pivots[k] for k in range(j)), Fraction(0))
        if pivot <= 0:
            raise InvalidParameter("covariance must be positive definite")
        pivots.append(pivot)
        for i in range(j + 1, size):
            rest = sum((lower[i][k] * lower[j][k] * pivots[k] for k in range(j)), Fraction(0))
            lower[i][j] = (covariance[i][j] - rest) / pivot
    return tuple(map(tuple, lower)), tuple(pivots)


def solve(lower: Matrix, vector: Sequence[Fraction | int]) -> tuple[Fraction, ...]:
    """Return the x with L x = vector."""
    found: list[Fraction] = []
    for row, value in zip(lower, vector, strict=True):
        found.append(value - sum((row[k] * found[k] for k in range(len(found))), Fraction(0)))
    return tuple(found)


def times(lower: Matrix, vector: Sequence[Fraction]) -> tuple[Fraction, ...]:
    """Return L x."""
    return tuple(sum((part * value for part, value in zip(row, vector, strict=True)), Fraction(0)) for row in lower)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CorrelatedGaussian:
    """Add Gaussian noise with a given covariance to a vector of whole numbers.

    The vector is turned by an exact triangular matrix into coordinates in which the noise is independent, rounded to
    a fine public grid there, given rounded Gaussian noise on that grid, and turned back, which is free.

    Guarantee   Gaussian privacy with mu^2 = sup (f - f')^T covariance^-1 (f - f') over neighbours, a little more for
                the rounding: see `charged`.
    Theorem     Whitening the covariance makes it a Gaussian of unit variance. Rounding moves each coordinate by half
                a step, so a difference by one step, and the triangle inequality bounds the norm. [BW18, Mir17]
    Utility     the covariance asked for, up to one part in 2^(2 fineness).

    Args:
        covariance: Rows of exact numbers, in squared grid steps; positive definite.
        squared_sensitivity: The squared Mahalanobis norm of the largest change by one unit.
        relation: The neighbouring relation.
        fineness: Bits by which the grid of the noise is finer than its standard deviation, from 0 to 36.

    Raises:
        InvalidParameter: If the covariance is not positive definite, or a field is out of range.

    Examples:
        >>> mechanism = dp.mechanisms.CorrelatedGaussian(
        ...     covariance=((4, 1), (1, 4)), squared_sensitivity=1, relation=dp.Relation.ADD_REMOVE
        ... )
        >>> len(mechanism.release([10, 20]).value)
        2
    """

    covariance: Matrix  # in squared grid steps, exact, positive definite
    squared_sensitivity: Fraction  # Mahalanobis: of the norm that the inverse covariance gives
    relation: Relation
    fineness: int = 24  # bits by which the grid of the noise is finer than its standard deviation

    __repr__ = record

    def __post_init__(self) -> None:
        settle(
            self,
            covariance=read_covariance(self.covariance),
            squared_sensitivity=positive(self.squared_sensitivity, name="squared_sensitivity"),
            fineness=integer(self.fineness, name="fineness"),
        )
        settle(self, relation=read_relation(self.relation))
        if not 0 <= self.fineness <= 36:
            raise InvalidParameter("fineness must lie between 0 and 36 bits")
        factor(self.covariance)

    @property
    def steps(self) -> tuple[Fraction, ...]:
        """The public grid of each turned coordinate: a power of two, at most its deviation / 2^fineness."""
        _, variances = factor(self.covariance)
        return tuple(_root_down(variance) / (1 << self.fineness) for variance in variances)

    @property
    def charged(self) -> Fraction:
        """The squared sensitivity after rounding, in units of the noise.

        Rounding adds a vector whose whitened squared norm is at most r, the sum of step^2 / variance, that is at most
        d / 4^fineness. The square of the sum of two norms is s + r + 2 sqrt(s r), the root being rounded up.
        """
        _, variances = factor(self.covariance)
        rounding = sum((step**2 / variance for step, variance in zip(self.steps, variances, strict=True)), Fraction(0))
        return self.squared_sensitivity + rounding + 2 * _root_up(self.squared_sensitivity * rounding)

    @property
    def event(self) -> events.Gaussian:
        return events.Gaussian(variance=1, squared_sensitivity=self.charged)

    def release(self, answer: Sequence[int]) -> Release[tuple[Fraction, ...]]:
        """Add noise to a private vector."""
        lower, variances = factor(self.covariance)
        noisy = tuple(
            step * (place + noise.rounded_gaussian(variance=variance / step**2))
            for place, step, variance in zip(self.turned(answer), self.steps, variances, strict=True)
        )
        return Release(
            value=times(lower, noisy),
            event=self.event,
            relation=self.relation,
            accuracy=EachCell(cells=self._cells(lower)),
        )

    def turned(self, answer: Sequence[int]) -> tuple[int, ...]:
        """Return the answer in the coordinates of the noise, in steps of their grid. This is private."""
        lower, _ = factor(self.covariance)
        exact = solve(lower, read_vector(answer, len(lower)))
        return tuple(round(value / step) for value, step in zip(exact, self.steps, strict=True))

    def distribution(self, answer: Sequence[int]) -> Outcomes:
        """List the law of the turned coordinates, from which the released ones follow and the other way round."""
        _, variances = factor(self.covariance)
        laws = (RoundedGaussianLaw(variance / step**2) for variance, step in zip(variances, self.steps, strict=True))
        places = self.turned(answer)
        return outcomes.product(*(outcomes.from_law(law, place) for law, place in zip(laws, places, strict=True)))

    def _cells(self, lower: Matrix) -> tuple[_NormalAccuracy, ...]:
        """Rounding the answer and rounding the noise move a turned coordinate by half a step each."""
        return tuple(
            _NormalAccuracy(
                variance=self.covariance[i][i],
                slack=sum((abs(part) * step for part, step in zip(row, self.steps, strict=True)), Fraction(0)),
            )
            for i, row in enumerate(lower)
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _NormalAccuracy:
    """The answer is the value minus a normal variable, up to `slack`."""

    variance: Fraction
    slack: Fraction

    @property
    def noise(self) -> None:
        return None

    def interval(self, value: Fraction, confidence: Fraction) -> Interval:
        reach = _normal_quantile_up(confidence) * _root_up(self.variance) + self.slack
        return value - reach, value + reach


def _root_down(value: Fraction) -> Fraction:
    """Return the largest power of two that is not above the root of a positive number."""
    power = (value.numerator.bit_length() - value.denominator.bit_length()) // 2 + 1
    while Fraction(4) ** power > value:
        power -= 1
    return Fraction(2) ** power


def _root_up(value: Fraction) -> Fraction:
    """Return a fraction at or just above the root."""
    scale = 1 << 64
    # The root of n / d is the root of n d over d.
    return Fraction(isqrt(value.numerator * value.denominator * scale**2) + 1, value.denominator * scale)


def _normal_quantile_up(confidence: Fraction) -> Fraction:
    """Return a z with P[|Z| <= z] >= confidence, to a few parts in a million."""
    outside = (1 - confidence) / 2
    low, high, unit = 0, 1, 1 << 20
    while not _outside_at_most(Fraction(high, unit), outside):
        high *= 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _outside_at_most(Fraction(middle, unit), outside) else (middle, high)
    return Fraction(high, unit)


def _outside_at_most(z: Fraction, outside: Fraction) -> bool:
    with precision(128):
        return bool(normal_cdf(-ball(z)) <= ball(outside))
