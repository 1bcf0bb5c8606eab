"""How a private logistic regression divides its budget, by public facts alone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, final

from discreet.errors import InvalidParameter
from discreet.learn.convex.calibrated import Calibration
from discreet.learn.convex.curvature import LogisticCurvature
from discreet.learn.convex.objective import ObjectivePerturbation
from discreet.learn.convex.scores import LogisticScores
from discreet.learn.sklearn.class_moments import ClassMoments
from discreet.learn.sklearn.logistic_coordinates import LEVELS
from discreet.mechanisms.budget import GaussianNoise
from discreet.privacy import events
from discreet.privacy.relation import Relation
from discreet.robust.tails import Tails

__all__ = ["NewtonPlan", "ObjectivePlan", "Preparation", "best_jacobian_share"]

_MOMENTS: Final = Fraction(1, 8)  # Of all squares of mu.
_LENGTHS: Final = Fraction(3, 100)
_OUTPUT: Final = Fraction(1, 500)
_CURVATURE: Final = Fraction(1, 10)
_JACOBIANS: Final = tuple(Fraction(part, 20) for part in (1, 2, 4, 6))
_PREPARED: Final = 1 << 20
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
    """One minimum with a random slope for each problem; what intervals need comes from a matrix measured at its end."""

    features: int
    has_intercept: bool
    calibration: Calibration
    ridge: Fraction  # at least that of the calibration
    inference: bool
    rows: int  # prepared for

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
    ) -> ObjectivePlan:
        """Divide epsilon and delta; a larger ridge than privacy needs is the caller's wish."""
        sums = _MOMENTS + _LENGTHS + _OUTPUT + (_CURVATURE if inference else 0)
        choices = [
            Calibration(
                epsilon=epsilon,
                delta=delta,
                relation=relation,
                problems=problems,
                jacobian_share=share,
                sums_share=sums,
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
            rows=max(_PREPARED, 4 * (people or 0)),
        )

    @property
    def method(self) -> str:
        return "objective"

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
            features=self.features, relation=self.calibration.relation, mu_squared=self.calibration.mu_squared
        )

    @property
    def dimension(self) -> int:
        return self.features + self.has_intercept

    @property
    def objective(self) -> ObjectivePerturbation:
        """Of each problem."""
        return ObjectivePerturbation(
            dimension=self.dimension,
            mu_squared=self.calibration.each,
            ridge=self.ridge,
            output_mu_squared=self.calibration.mu_squared * _OUTPUT / self.problems,
            rows=self.rows,
        )

    @property
    def curvature(self) -> LogisticCurvature | None:
        """Of each problem."""
        share = self.calibration.mu_squared * _CURVATURE / self.problems
        return (
            LogisticCurvature(dimension=self.dimension, relation=self.calibration.relation, mu_squared=share)
            if self.inference
            else None
        )

    @property
    def sums_spent(self) -> Fraction:
        """What preparation, ends of searches and matrices spend together, in squares of mu."""
        each = self.objective.output_mu_squared + (self.curvature.event.mu_squared if self.curvature else 0)
        return self.preparation.spent + self.problems * each


def best_jacobian_share(choices: list[Calibration], people: int, features: int) -> Calibration:
    """Choose how much of epsilon the Jacobians get: less noise, or a smaller ridge.

    For second derivatives h in every direction the squared error is (ridge^2 t + sigma^2 + h) / (h + ridge)^2, where
    t is the squared length of the coefficients. It is a guess from public facts; no guarantee rests on it.
    """
    curved, length = 0.15 * people / (features + 1), 3.0

    def error(choice: Calibration) -> float:
        ridge, variance = float(choice.ridge), 1 / float(choice.each)
        return (ridge**2 * length + variance + curved) / (curved + ridge) ** 2

    return min(choices, key=error)


_GRAM: Final = (
    3  # Shares of what preparation leaves: the matrix at zero, early gradients, the matrix, the last gradient.
)
_EARLY: Final = (2, 2, 2)
_MATRIX: Final = 4
_LAST: Final = 8
_ALL: Final = _GRAM + sum(_EARLY) + _MATRIX + _LAST


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NewtonPlan:
    """A few long steps, each over a noisy matrix along a noisy gradient: Gaussian privacy, which composes exactly."""

    features: int
    has_intercept: bool
    relation: Relation
    problems: int
    noise: GaussianNoise

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
        return self.mu_squared * (1 - _MOMENTS - _LENGTHS) * weight / (_ALL * self.problems)

    def _matrix(self, weight: int) -> LogisticCurvature:
        return LogisticCurvature(dimension=self.dimension, relation=self.relation, mu_squared=self._part(weight))

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
    def event(self) -> events.GDP:
        each = [part.event.mu_squared for part in (self.gram, self.matrix)]
        each += [part.event.mu_squared for part in (*self.early, self.last)]
        return events.GDP(mu_squared=self.preparation.spent + self.problems * sum(each, Fraction(0)))
