"""The questions by which a regression and its errors are found, and what is known after each of them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import final

import numpy as np

from discreet.mechanisms.budget import Sensitivity
from discreet.privacy.relation import Relation
from discreet.robust.bounded_rows import RegressionRows, Scores, Triangle
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
    "Squares",
]


@final
@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Line:
    """What is known about a regression so far. All of it is public."""

    coefficients: Floats
    place: Place  # the bracket of the first coefficient, and the scale of the residuals
    matrix: Floats  # by which Newton steps divide: the last of Gram and curvature, its small eigenvalues raised
    matrix_noise: float = 0.0  # the deviation of the noise on its entries
    raised: float = 1.0  # the factor by which its least eigenvalue was raised
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

    def evaluate(self, state: Line, table: RegressionRows) -> tuple[int, ...]:
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

    def evaluate(self, state: Line, table: RegressionRows) -> tuple[int, ...]:
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
class Gram:
    """Ask for the sum of w x x^T, which is not below any curvature of a loss whose psi rises by at most one."""

    share: Fraction
    triangle: Triangle

    def sensitivity(self, relation: Relation) -> Sensitivity:
        return self.triangle.sensitivity(relation)

    def evaluate(self, state: Line, table: RegressionRows) -> tuple[int, ...]:
        return self.triangle.add_up(table.rows, table.weights)

    def learn(self, state: Line, answer: tuple[int, ...], deviation: float) -> Line:
        return _with_matrix(state, self.triangle, answer, deviation)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Curvature:
    """Ask for the sum of psi' w x x^T."""

    share: Fraction
    triangle: Triangle
    psi: Psi

    def sensitivity(self, relation: Relation) -> Sensitivity:
        return self.triangle.sensitivity(relation)

    def evaluate(self, state: Line, table: RegressionRows) -> tuple[int, ...]:
        slopes = self.psi.derivative(table.residuals(state.coefficients) / state.place.scale)
        return self.triangle.add_up(table.rows, table.weights * slopes)

    def learn(self, state: Line, answer: tuple[int, ...], deviation: float) -> Line:
        return _with_matrix(state, self.triangle, answer, deviation)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Squares:
    """Ask for the sum of psi^2 w^2 x x^T, the covariance of the scores."""

    share: Fraction
    triangle: Triangle
    psi: Psi

    def sensitivity(self, relation: Relation) -> Sensitivity:
        return self.triangle.sensitivity(relation)

    def evaluate(self, state: Line, table: RegressionRows) -> tuple[int, ...]:
        scores = self.psi.psi(table.residuals(state.coefficients) / state.place.scale) * table.weights
        return self.triangle.add_up(table.rows, scores * scores)

    def learn(self, state: Line, answer: tuple[int, ...], deviation: float) -> Line:
        values, vectors = np.linalg.eigh(self.triangle.matrix(answer))
        return replace(state, square=(vectors * np.maximum(values, 0.0)) @ vectors.T)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NewtonMove:
    """Ask for the sum of scores, and move by it over the matrix asked before."""

    share: Fraction
    scores: Scores

    def sensitivity(self, relation: Relation) -> Sensitivity:
        return self.scores.sensitivity(relation)

    def evaluate(self, state: Line, table: RegressionRows) -> tuple[int, ...]:
        return self.scores.add_up(table, state.coefficients, state.place.scale)

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

    def evaluate(self, state: Line, table: RegressionRows) -> tuple[int, ...]:
        return self.scores.add_up(table, state.coefficients, state.place.scale)

    def learn(self, state: Line, answer: tuple[int, ...], deviation: float) -> Line:
        total = np.array(answer, dtype=np.float64) * self.scores.unit
        move = state.place.scale * self.rate / self.divisor * total
        return _moved(state, move, deviation * self.scores.unit)


def _with_matrix(state: Line, triangle: Triangle, answer: tuple[int, ...], deviation: float) -> Line:
    noise = deviation * triangle.unit
    matrix, factor = _raised(triangle.matrix(answer), noise)
    return replace(state, matrix=matrix, matrix_noise=noise, raised=factor)


def _moved(state: Line, move: Floats, noise: float) -> Line:
    return replace(state, coefficients=state.coefficients + move, noises=(*state.noises, noise))


def _raised(matrix: Floats, noise: float) -> tuple[Floats, float]:
    """Raise the eigenvalues that drown in the noise, whose norm is about 2 sqrt(d) deviations at most; tell how far."""
    values, vectors = np.linalg.eigh(matrix)
    least = max(2 * noise * math.sqrt(len(matrix)), 1e-12)
    raised: Floats = (vectors * np.maximum(values, least)) @ vectors.T
    lowest = float(values.min())
    return raised, max(least / lowest, 1.0) if lowest > 0 else math.inf
