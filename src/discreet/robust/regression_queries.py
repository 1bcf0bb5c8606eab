"""The adaptive queries by which a regression and its errors are found, and what each costs. All of it is public."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Protocol, TypeAlias, final

import numpy as np

from discreet.exact import Number, positive, positive_integer
from discreet.formatting import record
from discreet.mechanisms.additive_noise import Sensitivity
from discreet.mechanisms.parameters import read_flag, settle
from discreet.privacy.relation import Relation
from discreet.robust.adaptive_queries import AdaptiveQuery
from discreet.robust.least_squares import CAUTION
from discreet.robust.locations import HalveCentre, HalveScale, Place, shares_of
from discreet.robust.loss_functions import Floats, Psi
from discreet.robust.regression_design import Integers, RegressionRows, Scores, Triangle

__all__ = [
    "Curvature",
    "GradientMove",
    "Gram",
    "Line",
    "NewtonMove",
    "OfResiduals",
    "OfTargets",
    "RegressionFacts",
    "RegressionGradientDescent",
    "RegressionNewton",
    "RegressionSchedule",
    "Squares",
]

# --- regression_questions ---
# The questions by which a regression and its errors are found, and what is known after each of them.


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
    """Ask for the sum of psi^2 w^2 x x^T, the covariance of the scores.

    Where each unit fills `slots` rows it is the sum of s s^T over units, s the sum of psi w x over their rows. [LZ86]

    Theorem     The mean of the scores of a unit is no longer than the longest of them, so its s s^T is at most the
                triangle of one row, slots^2 times. `slots` of these slots^2 are asked for: a unit moves the answer by
                `slots` times what one row does, as it moves all other sums, and post-processing multiplies by the
                rest.
    """

    share: Fraction
    triangle: Triangle
    scores: Scores
    slots: int = 1

    def sensitivity(self, relation: Relation) -> Sensitivity:
        return self.triangle.sensitivity(relation)

    def evaluate(self, state: Line, table: RegressionRows) -> tuple[int, ...]:
        if table.units is not None:
            return self._by_unit(state, table, table.units)
        scores = self.scores.psi.psi(table.residuals(state.coefficients) / state.place.scale) * table.weights
        return self.triangle.add_up(table.rows, scores * scores)

    def _by_unit(self, state: Line, table: RegressionRows, units: Integers) -> tuple[int, ...]:
        steps = self.scores.steps(table, state.coefficients, state.place.scale)
        sums = np.zeros((int(units.max(initial=-1)) + 1, steps.shape[1]), dtype=np.int64)
        np.add.at(sums, units, steps)
        means: Floats = sums * np.float64(self.scores.unit / self.slots)
        return tuple(self.slots * part for part in self.triangle.add_up(means, np.ones(len(means))))

    def learn(self, state: Line, answer: tuple[int, ...], deviation: float) -> Line:
        values, vectors = np.linalg.eigh(self.slots * self.triangle.matrix(answer))
        # There are fewer units than rows, so noise hides more: as for least squares, somewhat larger than it looks.
        more = 2 * CAUTION * self.slots * deviation * self.triangle.unit if self.slots > 1 else 0.0
        return replace(state, square=(vectors * (np.maximum(values, 0.0) + more)) @ vectors.T)


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


# --- regression_schedules ---
# In which order a regression is asked for, and what is spent on each question. All of it is public.


Questions: TypeAlias = tuple[AdaptiveQuery[Line], ...]

_HALVINGS = 10  # For the intercept and for the scale of the targets.
_RESIDUAL_HALVINGS = 7
_MOST_RAISED = 2.0  # Then steps are half as long as they should be, and six of them leave 2 % of the way.
_ARRIVED = 0.05  # Of the way, that may be left in the flattest direction.
_LEAST_RESIDUAL = 1 / 64  # Of the spread of the targets.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RegressionFacts:
    """The public facts that questions about a regression are made of."""

    size: int  # coefficients, the intercept among them
    psi: Psi
    leverage: Fraction
    resolution: int
    has_intercept: bool
    has_scale: bool
    slots: int = 1  # that each unit fills with its rows

    @property
    def scores(self) -> Scores:
        limit = float(self.psi.bound * self.leverage)
        return Scores(size=self.size, psi=self.psi, limit=limit, resolution=self.resolution)

    @property
    def gram(self) -> Triangle:
        return self._triangle(Fraction(1), is_positive=True)

    @property
    def curvature(self) -> Triangle:
        low, high = self.psi.slopes
        return self._triangle(max(-low, high), is_positive=low >= 0)

    @property
    def squares(self) -> Triangle:
        return self._triangle(self.psi.bound**2, is_positive=True)

    def _triangle(self, factor: Fraction, *, is_positive: bool) -> Triangle:
        limit = float(factor * self.leverage**2)
        return Triangle(size=self.size, limit=limit, resolution=self.resolution, is_positive=is_positive)

    def start(self, share: Fraction) -> Questions:
        parts = _HALVINGS if share else 0
        return tuple(OfTargets(question=HalveCentre(share=share / parts)) for _ in range(parts))

    def scale(self, share: Fraction) -> Questions:
        parts = _HALVINGS if share else 0
        return tuple(OfResiduals(question=HalveScale(share=share / parts)) for _ in range(parts))

    def scale_anew(self, share: Fraction) -> Questions:
        """Look for a smaller scale of the residuals once there is a fit."""
        if not share:
            return ()
        question = HalveScale(share=share / _RESIDUAL_HALVINGS)
        first = OfResiduals(question=question, anew=_LEAST_RESIDUAL)
        return (first, *(OfResiduals(question=question) for _ in range(_RESIDUAL_HALVINGS - 1)))

    def inference(self, curvature: Fraction, squares: Fraction) -> Questions:
        if not squares:
            return ()
        return (
            Curvature(share=curvature, triangle=self.curvature, psi=self.psi),
            self.squares_of_scores(squares),
        )

    def squares_of_scores(self, share: Fraction) -> Squares:
        return Squares(share=share, triangle=self.squares, scores=self.scores, slots=self.slots)


class RegressionSchedule(Protocol):
    """A public plan of questions about a regression."""

    @property
    def inference(self) -> bool:
        """Whether it asks for what intervals need."""

    def questions(self, facts: RegressionFacts, /) -> Questions: ...

    def covariance(self, line: Line, /) -> Floats:
        """Return the covariance of the coefficients by sampling and by the noise."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RegressionNewton:
    """A few steps over the Gram matrix, the scale, a few more, and a last long one over the curvature. [ABL23]

    Args:
        early: How many steps are taken before the scale is found.
        late: How many steps follow it, the last of which is the long one.
        inference: Whether a part of the budget is spent on intervals.

    Examples:
        >>> import numpy as np
        >>> X = np.arange(2000).reshape(-1, 1) % 10
        >>> release = dp.robust.regression(
        ...     X, X[:, 0], relation=dp.Relation.REPLACE_ONE, x_bounds=(0, 10), y_bounds=(0, 10), rho=0.5,
        ...     schedule=dp.robust.RegressionNewton(inference=False),
        ... )
        >>> release.labels
        ('intercept', 'x1')
    """

    early: int = 3
    late: int = 2
    inference: bool = True

    __repr__ = record

    def __post_init__(self) -> None:
        settle(
            self,
            early=positive_integer(self.early, name="early"),
            late=positive_integer(self.late, name="late"),
            inference=read_flag(self.inference, name="inference"),
        )

    def questions(self, facts: RegressionFacts) -> Questions:
        unknown = not facts.has_scale
        weights = [2 * facts.has_intercept, 2 * unknown, 4, *[2] * self.early, 2 * unknown, *[2] * self.late]
        shares = shares_of([*weights, 4, 12, 3 * self.inference])
        start, scale, gram, *moves, curvature, last, squares = shares
        early, anew, late = moves[: self.early], moves[self.early], moves[self.early + 1 :]
        scores = facts.scores
        return (
            *facts.start(start),
            *facts.scale(scale),
            Gram(share=gram, triangle=facts.gram),
            *(NewtonMove(share=share, scores=scores) for share in early),
            *facts.scale_anew(anew),
            *(NewtonMove(share=share, scores=scores) for share in late),
            Curvature(share=curvature, triangle=facts.curvature, psi=facts.psi),
            NewtonMove(share=last, scores=scores),
            *((facts.squares_of_scores(squares),) if squares else ()),
        )

    def covariance(self, line: Line) -> Floats:
        """Return H^-1 (Q + noise^2 + what the error before the last step and the noise in H leave) H^-1."""
        assert line.square is not None
        if line.raised > _MOST_RAISED:
            return np.full_like(line.matrix, math.inf)  # Steps are too short to have arrived.
        bread, one = np.linalg.inv(line.matrix), np.eye(len(line.matrix))
        before = bread @ (line.square + line.noises[-2] ** 2 * one) @ bread
        left = line.matrix_noise**2 * float(np.trace(before))
        middle = line.square + (line.noises[-1] ** 2 + left) * one
        found: Floats = line.place.scale**2 * bread @ middle @ bread
        return found


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RegressionGradientDescent:
    """Equal steps along the mean score, each paid alike. [ABL23]

    Args:
        iterations: The number of steps.
        divisor: The public number of rows: the exact one under replace-one, a guess under add-remove.
        rate: How far a step goes.
        inference: Whether a part of the budget is spent on intervals.

    Examples:
        >>> import numpy as np
        >>> X = np.arange(2000).reshape(-1, 1) % 10
        >>> release = dp.robust.regression(
        ...     X, X[:, 0], relation=dp.Relation.REPLACE_ONE, x_bounds=(0, 10), y_bounds=(0, 10), rho=0.5,
        ...     schedule=dp.robust.RegressionGradientDescent(iterations=5, divisor=2000),
        ... )
        >>> release.labels
        ('intercept', 'x1')
    """

    iterations: int
    divisor: int  # a public number of rows: the exact one under replace-one, a guess under add-remove
    rate: Number = Fraction(1, 2)
    inference: bool = True

    __repr__ = record

    def __post_init__(self) -> None:
        settle(
            self,
            iterations=positive_integer(self.iterations, name="iterations"),
            divisor=positive_integer(self.divisor, name="divisor"),
            rate=positive(self.rate, name="rate"),
            inference=read_flag(self.inference, name="inference"),
        )

    def questions(self, facts: RegressionFacts) -> Questions:
        part, none, half = Fraction(self.iterations, 10), Fraction(0), self.iterations // 2
        scales = [none, none] if facts.has_scale else [part, part]
        weights = [part if facts.has_intercept else none, *scales, *[Fraction(1)] * self.iterations]
        start, scale, anew, *steps, curvature, squares = shares_of([*weights, *[Fraction(self.inference)] * 2])
        moves = [GradientMove(share=s, scores=facts.scores, rate=float(self.rate), divisor=self.divisor) for s in steps]
        return (
            *facts.start(start),
            *facts.scale(scale),
            *moves[:half],
            *facts.scale_anew(anew),
            *moves[half:],
            *facts.inference(curvature, squares),
        )

    def covariance(self, line: Line) -> Floats:
        """Add to the sandwich the stationary covariance C = A C A + jump^2 of the descent, A = 1 - rate * H / n."""
        assert line.square is not None
        values, vectors = np.linalg.eigh(line.matrix)
        pulls = float(self.rate) * values / self.divisor
        # A descent that has not arrived is not around its goal, and says nothing of how far it is.
        if pulls.max() >= 2 or pulls.min() <= 0 or (1 - pulls.min()) ** self.iterations > _ARRIVED:
            return np.full_like(line.matrix, math.inf)
        jump = float(self.rate) * line.noises[-1] / self.divisor
        stationary = (vectors * (jump**2 / (1 - (1 - pulls) ** 2))) @ vectors.T
        bread = np.linalg.inv(line.matrix)
        found: Floats = line.place.scale**2 * (bread @ line.square @ bread + stationary)
        return found
