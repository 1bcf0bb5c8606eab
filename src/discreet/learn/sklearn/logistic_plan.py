"""How a private logistic regression divides its budget, by public facts alone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.learn.convex.logistic_gradient import RADIUS, LogisticCurvature, LogisticScores
from discreet.learn.convex.objective_perturbation import LOGISTIC_ROW, Calibration, ObjectivePerturbation, RowLoss
from discreet.learn.convex.softmax_gradient import row_doubt, softmax_row
from discreet.learn.sklearn.bounds import FeatureFrame
from discreet.learn.sklearn.moments import ClassMoments, ClassSums
from discreet.mechanisms.additive_noise import GaussianNoise
from discreet.mechanisms.vector_mean import clip_to_ball
from discreet.privacy import events
from discreet.privacy.relation import Relation
from discreet.robust.least_squares import ResidualSquares
from discreet.robust.regression_design import HALF
from discreet.robust.tail_bounds import Tails

__all__ = [
    "LEVELS",
    "ColumnScales",
    "LogisticCoordinates",
    "NewtonPlan",
    "ObjectivePlan",
    "Preparation",
    "best_jacobian_share",
    "standardised",
]

_MOMENTS: Final = Fraction(1, 8)  # Of all squares of mu.
_LENGTHS: Final = Fraction(3, 100)
_OUTPUT: Final = Fraction(1, 500)
_CURVATURE: Final = Fraction(1, 10)
_SQUARES: Final = Fraction(1, 10)  # For what scores vary, where people have several rows, or rows have weights.
_JACOBIANS: Final = tuple(Fraction(part, 20) for part in (1, 2, 4, 6))
_PREPARED: Final = 1 << 20
_SOFTMAX_STEEPEST: Final = Fraction(1, 2)  # No eigenvalue of diag(p) - p p^T is larger.
_LEAST_RIDGE: Final = Fraction(1, 128)  # Nothing next to one row in a hundred; a smaller one is harder to certify.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Preparation:
    """What is measured before a fit: means and spreads of the columns, and how long rows are."""

    features: int
    relation: Relation
    mu_squared: Fraction  # of the whole fit

    @property
    def moments(self) -> ClassMoments:
        return ClassMoments(
            dimension=self.features,
            classes=1,
            relation=self.relation,
            mu_squared=self.mu_squared * _MOMENTS,
            weight=Fraction(1),
        )

    @property
    def lengths(self) -> Tails:
        levels = tuple(level * math.sqrt(self.features) for level in LEVELS)
        return Tails(levels=(levels,), relation=self.relation, mu_squared=self.mu_squared * _LENGTHS)

    @property
    def spent(self) -> Fraction:
        return self.moments.event.mu_squared + self.lengths.event.mu_squared


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectivePlan:
    """One minimum with a random slope for each problem; what intervals need comes from matrices measured at its end.

    Where each unit fills several slots, sums and losses are over slots, and have the noise and the ridge of one row a
    unit times the number of slots.
    """

    features: int
    has_intercept: bool
    calibration: Calibration
    ridge: Fraction  # at least that of the calibration, where a unit weighs one row
    inference: bool
    rows: int  # prepared for
    weighted: bool = False  # whether rows weigh unlike each other
    outputs: int = 1  # margins of a row: one, or, for softmax, one for each class
    kept: Fraction = Fraction(0)  # of all squares of mu, for sums that somebody else measures

    @classmethod
    def for_budget(
        cls,
        epsilon: Fraction,
        delta: Fraction,
        *,
        relation: Relation,
        features: int,
        problems: int,
        has_intercept: bool,
        inference: bool,
        ridge: Fraction | None,
        people: int | None,
        slots: int = 1,
        weighted: bool = False,
        outputs: int = 1,
        loss: RowLoss = LOGISTIC_ROW,
        kept: Fraction = Fraction(0),
    ) -> ObjectivePlan:
        """Divide epsilon and delta; a larger ridge than privacy needs is the caller's wish."""
        matrices = _CURVATURE + (_SQUARES if slots > 1 or weighted else 0)
        sums = _MOMENTS + _LENGTHS + _OUTPUT + kept + (matrices if inference else 0)
        choices = [
            Calibration(
                epsilon=epsilon,
                delta=delta,
                relation=relation,
                problems=problems,
                jacobian_share=share,
                sums_share=sums,
                slots=slots,
                loss=loss if outputs == 1 else softmax_row(outputs),
            )
            for share in (_JACOBIANS if people is not None else (Fraction(1, 10),))
        ]
        chosen = best_jacobian_share(choices, people or 0, features)
        return cls(
            features=features,
            has_intercept=has_intercept,
            calibration=chosen,
            ridge=max(chosen.ridge, ridge or Fraction(0), _LEAST_RIDGE),
            inference=inference,
            rows=max(_PREPARED, 4 * (people or 0)) * slots,
            weighted=weighted,
            outputs=outputs,
            kept=kept,
        )

    @property
    def slots(self) -> int:
        return self.calibration.slots

    @property
    def method(self) -> str:
        return "objective" if self.outputs == 1 else "softmax"

    @property
    def constant(self) -> float:
        """The intercept's column, next to the longest row of features: short, so that others get little noise."""
        return 0.25 if self.has_intercept else 0.0

    @property
    def even_constant(self) -> float:
        """The same where the matrix is measured, which is to be known in all directions."""
        return 0.6 if self.has_intercept else 0.0

    @property
    def problems(self) -> int:
        return self.calibration.problems

    @property
    def event(self) -> events.ApproxDP:
        if self.sums_spent > self.calibration.sums:
            raise InvalidParameter("the sums of this plan spend more than was kept for them")
        return self.calibration.event

    @property
    def preparation(self) -> Preparation:
        return Preparation(
            features=self.features,
            relation=self.calibration.relation,
            mu_squared=self.calibration.mu_squared / self.slots**2,
        )

    @property
    def dimension(self) -> int:
        return self.features + self.has_intercept

    @property
    def objective(self) -> ObjectivePerturbation:
        """Of each problem; that of softmax has coefficients for each class."""
        is_softmax = self.outputs > 1
        return ObjectivePerturbation(
            dimension=self.dimension * self.outputs,
            steepest=_SOFTMAX_STEEPEST if is_softmax else self.calibration.loss.trace,
            row_doubt=row_doubt(self.outputs) if is_softmax else Fraction(0),
            mu_squared=self.calibration.slope_mu_squared / self.slots**2,
            ridge=self.ridge * self.slots,
            output_mu_squared=self.calibration.mu_squared * _OUTPUT / self.problems,
            rows=self.rows,
        )

    @property
    def curvature(self) -> LogisticCurvature | None:
        """Of each problem."""
        share = self.calibration.mu_squared * _CURVATURE / (self.problems * self.slots**2)
        return (
            LogisticCurvature(
                dimension=self.dimension,
                relation=self.calibration.relation,
                mu_squared=share,
                steepest=self.calibration.loss.trace,
                weighted=self.weighted,
            )
            if self.inference
            else None
        )

    @property
    def squares(self) -> ResidualSquares | None:
        """Of each problem, where units have several rows or rows have weights: what the sums of scores vary."""
        share = self.calibration.mu_squared * _SQUARES / self.problems
        return (
            ResidualSquares(dimension=self.dimension, relation=self.calibration.relation, mu_squared=share)
            if self.inference and (self.slots > 1 or self.weighted)
            else None
        )

    @property
    def sums_spent(self) -> Fraction:
        """What preparation, ends of searches and matrices cost one unit together, in squares of mu."""
        curvature = self.curvature.event.mu_squared * self.slots**2 if self.curvature else 0
        squares = self.squares.event.mu_squared if self.squares else 0
        each = self.objective.output_mu_squared + curvature + squares
        kept = self.kept * self.calibration.mu_squared
        return self.preparation.spent * self.slots**2 + kept + self.problems * each


def best_jacobian_share(choices: list[Calibration], people: int, features: int) -> Calibration:
    """Choose how much of epsilon the Jacobians get: less noise, or a smaller ridge.

    For second derivatives h in every direction the squared error is (ridge^2 t + sigma^2 + h) / (h + ridge)^2, where
    t is the squared length of the coefficients. It is a guess from public facts; no guarantee rests on it.
    """
    curved, length = 0.15 * people / (features + 1), 3.0

    def error(choice: Calibration) -> float:
        ridge, variance = float(choice.ridge), 1 / float(choice.slope_mu_squared)
        return (ridge**2 * length + variance + curved) / (curved + ridge) ** 2

    return min(choices, key=error)


_GRAM: Final = (
    3  # Shares of what preparation leaves: the matrix at zero, early gradients, the matrix, the last gradient.
)
_EARLY: Final = (2, 2, 2)
_MATRIX: Final = 4
_LAST: Final = 8
_ALL: Final = _GRAM + sum(_EARLY) + _MATRIX + _LAST
_MEAT: Final = 3  # The matrix of the scores of people, where these have several rows, or rows have weights.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NewtonPlan:
    """A few long steps, each over a noisy matrix along a noisy gradient: Gaussian privacy, which composes exactly.

    Where each unit fills several slots, `noise` and `event` are of one slot, and a unit spends what a group does.
    """

    features: int
    has_intercept: bool
    relation: Relation
    problems: int
    noise: GaussianNoise
    slots: int = 1
    weighted: bool = False  # whether rows weigh unlike each other

    @property
    def method(self) -> str:
        return "newton"

    @property
    def constant(self) -> float:
        """The intercept's column, next to the longest row of features."""
        return 0.6 if self.has_intercept else 0.0

    @property
    def mu_squared(self) -> Fraction:
        return 1 / self.noise.squared_multiplier

    @property
    def dimension(self) -> int:
        return self.features + self.has_intercept

    @property
    def preparation(self) -> Preparation:
        return Preparation(features=self.features, relation=self.relation, mu_squared=self.mu_squared)

    def _part(self, weight: int) -> Fraction:
        parts = _ALL + (_MEAT if self._has_squares else 0)
        return self.mu_squared * (1 - _MOMENTS - _LENGTHS) * weight / (parts * self.problems)

    def _matrix(self, weight: int) -> LogisticCurvature:
        return LogisticCurvature(
            dimension=self.dimension,
            relation=self.relation,
            mu_squared=self._part(weight),
            weighted=self.weighted,
        )

    def _scores(self, weight: int, *, at_zero: bool = False) -> LogisticScores:
        return LogisticScores(
            dimension=self.dimension, relation=self.relation, mu_squared=self._part(weight), at_zero=at_zero
        )

    @property
    def gram(self) -> LogisticCurvature:
        return self._matrix(_GRAM)

    @property
    def early(self) -> tuple[LogisticScores, ...]:
        return tuple(self._scores(weight, at_zero=not number) for number, weight in enumerate(_EARLY))

    @property
    def matrix(self) -> LogisticCurvature:
        return self._matrix(_MATRIX)

    @property
    def last(self) -> LogisticScores:
        return self._scores(_LAST)

    @property
    def _has_squares(self) -> bool:
        return self.slots > 1 or self.weighted

    @property
    def squares(self) -> ResidualSquares | None:
        """Where units have several rows or rows have weights: what sums of scores vary; its mu is that of one unit."""
        if not self._has_squares:
            return None
        share = self._part(_MEAT) * self.slots**2
        return ResidualSquares(dimension=self.dimension, relation=self.relation, mu_squared=share)

    @property
    def event(self) -> events.GDP:
        each = [part.event.mu_squared for part in (self.gram, self.matrix)]
        each += [part.event.mu_squared for part in (*self.early, self.last)]
        each += [self.squares.event.mu_squared / self.slots**2] if self.squares is not None else []
        return events.GDP(mu_squared=self.preparation.spent + self.problems * sum(each, Fraction(0)))


# --- logistic_coordinates ---
# Public coordinates in which rows of a logistic regression lie in a ball that is as small as the data allow.
#
# Noise follows the longest row there may be. So columns are first centred and scaled by noisy means and spreads, and
# rows
# that are longer than nearly all others are shortened; both are paid for.


Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

LEVELS: Final = tuple((2.0 ** np.arange(-2.0, 4.01, 0.25)).tolist())  # Of lengths of rows, over the root of their size.
_LEAST: Final = 2.0**-11  # Of a variance, in the frame.
_FAR: Final = 1 << 24  # Steps; its square, a thousand times, fits 64 bits.


@final
@dataclass(frozen=True, slots=True, eq=False)
class ColumnScales:
    """A centre and a spread for each column, in the frame [-1, 1]."""

    centres: Floats
    spreads: Floats

    def look(self, steps: Integers) -> Floats:
        """Return rows centred and scaled; each number by itself. This is private."""
        return np.asarray((steps / HALF - self.centres) / self.spreads, dtype=np.float64)


def standardised(seen: ClassSums, origin: Floats | None) -> ColumnScales:
    """Choose centres and spreads from noisy sums; the noisier they are, the more alike all columns are taken to be.

    With an `origin` columns keep it as their centre: there is no intercept to make up for another.
    """
    count = max(float(seen.counts[0]), 3 * seen.count_deviation, 1.0)
    error = seen.sum_deviation / count
    means = _shrunken(seen.sums[0] / count, error)
    centres = np.clip(means, -1.0, 1.0) if origin is None else origin
    about = seen.squares[0] / count - 2 * centres * seen.sums[0] / count + centres**2
    noise = math.hypot(seen.gap_deviation, 2 * seen.sum_deviation) / count
    variances = _shrunken(np.maximum(about, 0.0), noise)
    return ColumnScales(centres, np.sqrt(np.maximum(variances, max(_LEAST, noise / 2))))


def _shrunken(values: Floats, error: float) -> Floats:
    """Draw values towards their mean, by how much of their spread is noise."""
    middle = float(values.mean())
    spread = max(float(((values - middle) ** 2).mean()) - error**2, 0.0)
    return np.asarray(middle + (values - middle) * (spread / (spread + error**2 + 1e-12)), dtype=np.float64)


@final
@dataclass(frozen=True, slots=True, eq=False)
class LogisticCoordinates:
    """Rows (constant, features), at most RADIUS steps long."""

    frame: FeatureFrame
    columns: ColumnScales
    longest: float  # standardised features longer than this are shortened
    share: float  # of the intercept's column next to the longest row of features; none without an intercept

    @property
    def has_intercept(self) -> bool:
        return self.share > 0

    @property
    def dimension(self) -> int:
        return len(self.columns.centres) + self.has_intercept

    @property
    def constant(self) -> int:
        """The column of the intercept, in steps."""
        return round(RADIUS * self.share / math.hypot(1, self.share))

    @property
    def features_radius(self) -> int:
        return math.isqrt(RADIUS**2 - self.constant**2)

    def rows(self, standard: Floats, inside: NDArray[np.bool_]) -> Integers:
        """Place standardised rows in the ball, in steps; rows that are not `inside` count nothing. This is private."""
        near = np.rint(standard * (self.features_radius / self.longest))
        steps = clip_to_ball(np.clip(near, -_FAR, _FAR).astype(np.int64), self.features_radius)
        if self.has_intercept:
            steps = np.column_stack([np.full(len(steps), self.constant, dtype=np.int64), steps])
        steps[~inside] = 0
        return steps

    def next_to(self, other: LogisticCoordinates) -> Floats:
        """Return what the coefficients of other coordinates, which differ in the share, are multiplied by here."""
        factors = np.full(self.dimension, other.features_radius / self.features_radius)
        factors[: self.has_intercept] = other.constant / max(self.constant, 1)
        return factors

    @property
    def turn(self) -> Floats:
        """The matrix from coefficients of the ball to (intercept, slopes) in the units of the data.

        A margin is theta_0 c + sum theta_j r (u_j - m_j) / (s_j l), where u = (x - middle) / half.
        """
        low, high = self.frame.limits.T
        per_step = self.features_radius / (RADIUS * self.longest * self.columns.spreads)
        slopes = per_step * 2 / (high - low)
        turned = np.zeros((len(slopes) + 1, self.dimension))
        turned[1:, self.has_intercept :] = np.diag(slopes)
        if self.has_intercept:
            turned[0, 0] = self.constant / RADIUS
            turned[0, 1:] = -per_step * self.columns.centres - slopes * (low + high) / 2
        return turned
