"""Private regression that a few wild rows cannot bend."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, ClassVar, Final, Self

from sklearn.base import BaseEstimator, RegressorMixin

from discreet.errors import InvalidParameter
from discreet.exact import Number, exact_or_none
from discreet.learn.sklearn.base import TrainingTable
from discreet.learn.sklearn.bounds import Bounds
from discreet.learn.sklearn.regressor import LinearModel, read_method
from discreet.mechanisms.budget import GaussianNoise
from discreet.mechanisms.fields import read_flag
from discreet.privacy.payer import Payer
from discreet.privacy.relation import Relation
from discreet.robust.design import Design
from discreet.robust.private_regression import PrivateRegression
from discreet.robust.psi import Huber, Psi
from discreet.robust.regression_schedules import RegressionGradientDescent, RegressionNewton, RegressionSchedule
from discreet.robust.regressions import usual_leverage

__all__ = ["RobustRegressor", "m_estimate"]

ROBUST_METHODS: Final = ("newton", "gradient_descent")
_HUBER: Final = Huber()


class RobustRegressor(LinearModel, RegressorMixin, BaseEstimator):
    """An M-estimate of regression with privacy: large residuals and far rows count less, and intervals are paid for.

    `psi` is Huber's loss unless another of `discreet.robust` is given; `scale` is that of the residuals, asked for
    privately if it is not public. "newton" takes few steps; "gradient_descent" takes `iterations` of them and needs
    `public_size`. It needs more people than least squares does, and is for targets with outliers.
    """

    _stored_as: ClassVar[str] = "RobustRegressor"

    def __init__(
        self,
        *,
        epsilon: Number,
        delta: Number,
        bounds: Bounds | None = None,
        target_bounds: tuple[Number, Number] | None = None,
        psi: Psi | None = None,
        scale: Number | None = None,
        leverage: Number | None = None,
        method: str = "newton",
        iterations: int = 25,
        inference: bool = True,
        relation: str | Relation = "add-remove",
        public_size: int | None = None,
        session: Payer | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.target_bounds = target_bounds
        self.psi = psi
        self.scale = scale
        self.leverage = leverage
        self.method = method
        self.iterations = iterations
        self.inference = inference
        self.relation = relation
        self.public_size = public_size
        self.session = session

    def fit(self, X: Any, y: Any) -> Self:
        """Pay, read and fit."""
        table, design = self._facts(X, y)
        mechanism = self._mechanism(table, design)
        self._pay(mechanism.event, delta=self._delta(table.people))
        name = "Huber" if self.psi is None else type(self.psi).__name__
        return self._settle(table, mechanism.release((table.values(), table.target())), f"{name}, {self.method}")

    def _mechanism(self, table: TrainingTable, design: Design) -> PrivateRegression:
        return m_estimate(
            design,
            self._relation(),
            self._gaussian(table.people),
            self._schedule(table.people),
            psi=_HUBER if self.psi is None else self.psi,
            scale=exact_or_none(self.scale, name="scale"),
            leverage=exact_or_none(self.leverage, name="leverage"),
        )

    def _schedule(self, people: int | None) -> RegressionSchedule:
        inference = read_flag(self.inference, name="inference")
        if read_method(self.method, ROBUST_METHODS) == "newton":
            return RegressionNewton(inference=inference)
        if people is None:
            raise InvalidParameter(
                'method="gradient_descent" needs public_size, a public number of rows or a guess of it'
            )
        return RegressionGradientDescent(iterations=self.iterations, divisor=people, inference=inference)


def m_estimate(
    design: Design,
    relation: Relation,
    noise: GaussianNoise,
    schedule: RegressionSchedule,
    *,
    psi: Psi = _HUBER,
    scale: Fraction | None = None,
    leverage: Fraction | None = None,
) -> PrivateRegression:
    """Make the mechanism from public facts; columns are divided by half the width of their bounds."""
    *features, target = design.grids
    return PrivateRegression(
        psi=psi,
        x_grids=tuple(features),
        y_grid=target,
        relation=relation,
        noise=noise,
        schedule=schedule,
        leverage=usual_leverage(len(features)) if leverage is None else leverage,
        units=tuple((grid.high - grid.low) / 2 for grid in features),
        scale=scale,
    )
