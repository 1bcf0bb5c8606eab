"""The questions by which a regression and its errors are found: bounded vectors and matrices of each row, summed.

Every row becomes a vector of whole numbers in a ball of public radius by itself, so the sensitivity of a sum is exact
whatever floats do. Symmetric matrices are asked for by their upper triangles.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import final

import numpy as np
from numpy.typing import NDArray

from discreet.mechanisms.budget import Sensitivity
from discreet.mechanisms.grid import exact_sum
from discreet.mechanisms.vector_mean import clip_to_ball
from discreet.privacy.relation import Relation
from discreet.robust.location_questions import HalveCentre, HalveScale, Place
from discreet.robust.psi import Floats, Psi

__all__ = [
    "Curvature",
    "GradientMove",
    "Gram",
    "Line",
    "NewtonMove",
    "OfResiduals",
    "OfTargets",
    "Scores",
    "Squares",
    "Table",
    "Triangle",
]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Rows in public units, what they are to predict, and what each row counts for its length. All private."""

    rows: Floats = field(repr=False)
    targets: Floats = field(repr=False)
    weights: Floats = field(repr=False)

    def residuals(self, coefficients: Floats) -> Floats:
        """Subtract one column after the other: a row's sum must not depend on where the row stands."""
        left = self.targets.copy()
        for column, coefficient in zip(self.rows.T, coefficients.tolist(), strict=True):
            left -= column * coefficient
        return left


@final
@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Line:
    """What is known about a regression so far. All of it is public."""

    coefficients: Floats
    place: Place  # the bracket of the first coefficient, and the scale of the residuals
    matrix: Floats  # by which Newton steps divide: the last of Gram and curvature, its small eigenvalues raised
    matrix_noise: float = 0.0  # the deviation of the noise on its entries
    square: Floats | None = None
    noises: tuple[float, ...] = ()  # the deviations of the noise on the sums of scores


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OfTargets:
    """A question about the median of the targets, with which the intercept starts."""

    question: HalveCentre

    @property
    def share(self) -> Fraction:
        return self.question.share

    def sensitivity(self, relation: Relation) -> Sensitivity:
        return self.question.sensitivity(relation)

    def evaluate(self, state: Line, table: Table) -> tuple[int, ...]:
        return self.question.evaluate(state.place, table.targets)

    def learn(self, state: Line, answer: tuple[int, ...], deviation: float) -> Line:
        place = self.question.learn(state.place, answer, deviation)
        return replace(state, place=place, coefficients=np.append(place.centre, state.coefficients[1:]))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OfResiduals:
    """A question about the scale of the residuals; the first of several may look for it anew, below the last one."""

    question: HalveScale
    anew: float | None = None  # the least part of the present scale that is looked for

    @property
    def share(self) -> Fraction:
        return self.question.share

    def sensitivity(self, relation: Relation) -> Sensitivity:
        return self.question.sensitivity(relation)

    def evaluate(self, state: Line, table: Table) -> tuple[int, ...]:
        return self.question.evaluate(self._place(state), table.residuals(state.coefficients))

    def learn(self, state: Line, answer: tuple[int, ...], deviation: float) -> Line:
        return replace(state, place=self.question.learn(self._place(state), answer, deviation))

    def _place(self, state: Line) -> Place:
        place = replace(state.place, centre=0.0)
        if self.anew is None:
            return place
        return replace(place, least=self.anew * place.scale, most=2 * place.scale)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Triangle:
    """The upper triangles of factor * x x^T, one for each row, at most `limit` long, in whole steps.

    Theorem     The triangle of a a^T is at most |a|^2 long. Two of them have an inner product of
                ((a b)^2 + sum a_i^2 b_i^2) / 2 >= 0, so the square of their distance is at most the sum of their
                squares: a replaced row moves the sum by sqrt 2 radii, not 2. Rounding and shortening move each entry
                by less than 1.6, so that the inner product of two rows of steps is at least -3.2 sqrt(D) R - 2.6 D.
    """

    size: int  # of the matrix
    limit: float
    resolution: int
    is_positive: bool  # whether factors are never negative

    @property
    def dimension(self) -> int:
        return self.size * (self.size + 1) // 2

    @property
    def unit(self) -> float:
        return self.limit / self.resolution

    def sensitivity(self, relation: Relation) -> Sensitivity:
        radius, length = self.resolution, self.dimension
        squared = radius**2
        if relation is Relation.REPLACE_ONE:
            rounding = 7 * (math.isqrt(length) + 1) * radius + 6 * length
            squared = min(4 * squared, 2 * squared + rounding) if self.is_positive else 4 * squared
        return Sensitivity(l1=max(1, math.isqrt(length * squared)), squared_l2=squared, dimension=length)

    def add_up(self, rows: Floats, factors: Floats) -> tuple[int, ...]:
        first, second = np.triu_indices(self.size)
        steps = _steps(rows[:, first] * rows[:, second] * factors[:, None], self.unit)
        return _column_sums(clip_to_ball(steps, self.resolution))

    def matrix(self, answer: tuple[int, ...]) -> Floats:
        """Return the symmetric matrix of a noisy answer."""
        found = np.zeros((self.size, self.size))
        found[np.triu_indices(self.size)] = np.array(answer, dtype=np.float64) * self.unit
        return found + np.triu(found, 1).T


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Gram:
    """Ask for the sum of w x x^T, which is not below any curvature of a loss whose psi rises by at most one."""

    share: Fraction
    triangle: Triangle

    def sensitivity(self, relation: Relation) -> Sensitivity:
        return self.triangle.sensitivity(relation)

    def evaluate(self, state: Line, table: Table) -> tuple[int, ...]:
        return self.triangle.add_up(table.rows, table.weights)

    def learn(self, state: Line, answer: tuple[int, ...], deviation: float) -> Line:
        noise = deviation * self.triangle.unit
        return replace(state, matrix=_raised(self.triangle.matrix(answer), noise), matrix_noise=noise)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Curvature:
    """Ask for the sum of psi' w x x^T."""

    share: Fraction
    triangle: Triangle
    psi: Psi

    def sensitivity(self, relation: Relation) -> Sensitivity:
        return self.triangle.sensitivity(relation)

    def evaluate(self, state: Line, table: Table) -> tuple[int, ...]:
        slopes = self.psi.derivative(table.residuals(state.coefficients) / state.place.scale)
        return self.triangle.add_up(table.rows, table.weights * slopes)

    def learn(self, state: Line, answer: tuple[int, ...], deviation: float) -> Line:
        noise = deviation * self.triangle.unit
        return replace(state, matrix=_raised(self.triangle.matrix(answer), noise), matrix_noise=noise)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Squares:
    """Ask for the sum of psi^2 w^2 x x^T, the covariance of the scores."""

    share: Fraction
    triangle: Triangle
    psi: Psi

    def sensitivity(self, relation: Relation) -> Sensitivity:
        return self.triangle.sensitivity(relation)

    def evaluate(self, state: Line, table: Table) -> tuple[int, ...]:
        scores = self.psi.psi(table.residuals(state.coefficients) / state.place.scale) * table.weights
        return self.triangle.add_up(table.rows, scores * scores)

    def learn(self, state: Line, answer: tuple[int, ...], deviation: float) -> Line:
        values, vectors = np.linalg.eigh(self.triangle.matrix(answer))
        return replace(state, square=(vectors * np.maximum(values, 0.0)) @ vectors.T)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """The sum of psi w x in whole steps; each row at most `limit` long."""

    size: int
    psi: Psi
    limit: float
    resolution: int

    def sensitivity(self, relation: Relation) -> Sensitivity:
        squared = self.resolution**2 * (1 if relation is Relation.ADD_REMOVE else 4)
        return Sensitivity(l1=max(1, math.isqrt(self.size * squared)), squared_l2=squared, dimension=self.size)

    def evaluate(self, state: Line, table: Table) -> tuple[int, ...]:
        scores = self.psi.psi(table.residuals(state.coefficients) / state.place.scale) * table.weights
        return _column_sums(clip_to_ball(_steps(table.rows * scores[:, None], self.unit), self.resolution))

    @property
    def unit(self) -> float:
        return self.limit / self.resolution


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NewtonMove:
    """Ask for the sum of scores, and move by it over the matrix asked before."""

    share: Fraction
    scores: Scores

    def sensitivity(self, relation: Relation) -> Sensitivity:
        return self.scores.sensitivity(relation)

    def evaluate(self, state: Line, table: Table) -> tuple[int, ...]:
        return self.scores.evaluate(state, table)

    def learn(self, state: Line, answer: tuple[int, ...], deviation: float) -> Line:
        total = np.array(answer, dtype=np.float64) * self.scores.unit
        move = state.place.scale * np.asarray(np.linalg.solve(state.matrix, total), dtype=np.float64)
        return _moved(state, move, deviation * self.scores.unit)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GradientMove:
    """Ask for the sum of scores, and move by `rate` times it over a public divisor."""

    share: Fraction
    scores: Scores
    rate: float
    divisor: int

    def sensitivity(self, relation: Relation) -> Sensitivity:
        return self.scores.sensitivity(relation)

    def evaluate(self, state: Line, table: Table) -> tuple[int, ...]:
        return self.scores.evaluate(state, table)

    def learn(self, state: Line, answer: tuple[int, ...], deviation: float) -> Line:
        total = np.array(answer, dtype=np.float64) * self.scores.unit
        move = state.place.scale * self.rate / self.divisor * total
        return _moved(state, move, deviation * self.scores.unit)


def _moved(state: Line, move: Floats, noise: float) -> Line:
    return replace(state, coefficients=state.coefficients + move, noises=(*state.noises, noise))


def _steps(values: Floats, unit: float) -> NDArray[np.int64]:
    return np.rint(values / unit).astype(np.int64)


def _column_sums(steps: NDArray[np.int64]) -> tuple[int, ...]:
    return tuple(exact_sum(np.ascontiguousarray(column)) for column in steps.T)


def _raised(matrix: Floats, noise: float) -> Floats:
    """Raise the eigenvalues that drown in the noise, whose norm is about 2 sqrt(d) deviations at most."""
    values, vectors = np.linalg.eigh(matrix)
    least = max(2 * noise * math.sqrt(len(matrix)), 1e-12)
    raised: Floats = (vectors * np.maximum(values, least)) @ vectors.T
    return raised
