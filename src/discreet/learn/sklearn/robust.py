"""Private regression that a few wild rows cannot bend."""

from __future__ import annotations

from typing import Any, Final, Self

from sklearn.base import BaseEstimator, RegressorMixin

from discreet.errors import InvalidParameter
from discreet.exact import Number, exact_or_none, positive
from discreet.learn.sklearn.base import Table
from discreet.learn.sklearn.bounds import Bounds
from discreet.learn.sklearn.regressor import LinearModel, read_method
from discreet.mechanisms.fields import read_flag
from discreet.mechanisms.grid import Grid
from discreet.privacy.payer import Payer
from discreet.privacy.relation import Relation
from discreet.robust.design import Design
from discreet.robust.private_regression import PrivateRegression
from discreet.robust.psi import Huber, Psi
from discreet.robust.regression_schedules import RegressionGradientDescent, RegressionNewton, RegressionSchedule
from discreet.robust.regressions import usual_leverage

__all__ = ["RobustRegressor"]

METHODS: Final = ("newton", "gradient_descent")


class RobustRegressor(LinearModel, RegressorMixin, BaseEstimator):
    """An M-estimate of regression with privacy: large residuals and far rows count less, and intervals are paid for.

    `psi` is Huber's loss unless another of `discreet.robust` is given; `scale` is that of the residuals, asked for
    privately if it is not public. "newton" takes few steps; "gradient_descent" takes `iterations` of them and needs
    `public_size`. It needs more people than least squares does, and is for targets with outliers.
    """

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

    def _mechanism(self, table: Table, design: Design) -> PrivateRegression:
        grids = table.frame.grids
        given = exact_or_none(self.leverage, name="leverage")
        return PrivateRegression(
            psi=Huber() if self.psi is None else self.psi,
            x_grids=grids,
            y_grid=Grid.between(*design.response),
            relation=self._relation(),
            noise=self._gaussian(table.people),
            schedule=self._schedule(table.people),
            leverage=usual_leverage(len(grids)) if given is None else positive(given, name="leverage"),
            units=tuple((grid.high - grid.low) / 2 for grid in grids),
            scale=exact_or_none(self.scale, name="scale"),
        )

    def _schedule(self, people: int | None) -> RegressionSchedule:
        inference = read_flag(self.inference, name="inference")
        if read_method(self.method, METHODS) == "newton":
            return RegressionNewton(inference=inference)
        if people is None:
            raise InvalidParameter(
                'method="gradient_descent" needs public_size, a public number of rows or a guess of it'
            )
        return RegressionGradientDescent(iterations=self.iterations, divisor=people, inference=inference)
