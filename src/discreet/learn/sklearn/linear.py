"""Private linear regression: least squares, found in the way that fits what is publicly known, and ridge."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, ClassVar, Final, Self, TypeAlias

from sklearn.base import BaseEstimator, RegressorMixin

from discreet.errors import InvalidParameter
from discreet.exact import Number, exact_or_none, nonnegative
from discreet.learn.sklearn.base import TrainingTable
from discreet.learn.sklearn.bounds import FeatureBounds
from discreet.learn.sklearn.linear_model import Coefficients, LinearModel, read_method, records
from discreet.learn.sklearn.weights import read_weights
from discreet.mechanisms.additive_noise import GaussianNoise
from discreet.mechanisms.parameters import read_flag
from discreet.privacy.events import Event
from discreet.privacy.payer import Payer
from discreet.privacy.relation import Relation
from discreet.robust.adassp import AdaSSP
from discreet.robust.least_squares import NoisyStatistics
from discreet.robust.loss_functions import Huber, Psi
from discreet.robust.refined_regression import RefinedRegression
from discreet.robust.regression_design import Design
from discreet.robust.regression_queries import RegressionGradientDescent, RegressionNewton, RegressionSchedule
from discreet.robust.regressions import PrivateRegression, usual_leverage
from discreet.robust.tukey_em import TukeyRegression
from discreet.schema.columns import Bounds
from discreet.statistics.regressions import worth_rounds

__all__ = ["LinearRegression", "Ridge", "RobustRegressor", "automatic", "looking", "m_estimate"]

LeastSquares: TypeAlias = RefinedRegression | PrivateRegression | NoisyStatistics | AdaSSP | TukeyRegression

METHODS: Final = ("auto", "refined", "robust", "noisy_statistics", "adassp", "tukey")
_FEW: Final = 35  # People times mu, for each coefficient; with fewer, Huber fits were the better ones when measured.
_INFERENCE: Final = Fraction(1, 10)  # Of the budget, for intervals.
_DIVIDED: Final = ("refined", "noisy_statistics")  # Rows of a unit are divided by their number, and fill no slots.


class LinearRegression(LinearModel, RegressorMixin, BaseEstimator):
    """Ordinary least squares with privacy, and intervals for its coefficients.

    Features and target are clamped to declared bounds. `method="auto"` chooses by public facts alone, the number of
    features, epsilon, delta and `public_rows`: least squares in rounds that narrow the bounds ("refined"), or, where
    few people leave little but noise to go by, a Huber fit by noisy Newton steps ("robust"), which aims at the same
    line if residuals are symmetric. "noisy_statistics" looks once; "adassp" and "tukey" are as published, the latter
    may decline, and then predicts the middle of the target's bounds. A tenth of the budget goes into intervals unless
    `inference=False`; "adassp" and "tukey" have none.

    Args:
        epsilon: What a fit spends.
        delta: The delta that goes with epsilon.
        bounds: Public pairs or `dp.between(…)` of the columns, in order or by name; a step before may declare them.
        target_bounds: The public bounds of the target.
        method: "auto", "refined", "robust", "noisy_statistics", "adassp" or "tukey".
        inference: Whether a tenth of the budget pays for intervals.
        weight_bounds: The public bounds (0, high) of `sample_weight`, which is private and clamped to them; for the
            methods "refined" and "noisy_statistics".
        relation: The neighbouring relation, as `Relation` or as "add-remove" or "replace-one".
        public_rows: About how many rows there are, a public number.
        session: Who pays, a `Ledger` or a `Session`; it is charged before the rows are read. Nobody if not said.

    Examples:
        >>> import numpy as np
        >>> X = np.linspace(0, 10, 2000)[:, None]
        >>> model = dp.learn.sklearn.LinearRegression(
        ...     epsilon=5, delta=1e-6, bounds=[(0, 10)], target_bounds=(0, 30)
        ... ).fit(X, 2 * X[:, 0])
        >>> model.coef_.shape, model.predict(X).shape
        ((1,), (2000,))
    """

    _stored_as: ClassVar[str] = "LinearRegression"

    def __init__(
        self,
        *,
        epsilon: Number,
        delta: Number,
        bounds: FeatureBounds | None = None,
        target_bounds: Bounds | None = None,
        method: str = "auto",
        inference: bool = True,
        weight_bounds: Bounds | None = None,
        relation: str | Relation = "add-remove",
        public_rows: int | None = None,
        session: Payer | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.target_bounds = target_bounds
        self.method = method
        self.inference = inference
        self.weight_bounds = weight_bounds
        self.relation = relation
        self.public_rows = public_rows
        self.session = session

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, unit: Any = None, max_rows: int | None = None) -> Self:
        """Pay, read and fit; with `unit`, ids one a row, whole units are protected, with at most `max_rows` rows."""
        table, design = self._facts(X, y, unit, max_rows)
        weighing = read_weights(sample_weight, self.weight_bounds, table, has_session=self.session is not None)
        noise, method = self._gaussian(table.people), read_method(self.method, METHODS)
        if method == "auto":
            method = automatic(design, noise, table.people) if weighing is None else "refined"
        if method not in _DIVIDED and weighing is not None:
            raise InvalidParameter(f'sample_weight is for the methods {", ".join(_DIVIDED)} and "auto"')
        if method not in _DIVIDED:
            table = table.filled()
        mechanism = self._mechanism(method, table, design, noise)
        with self._paid(self._event(mechanism, table), delta=self._delta(table.people), whom=table.whom):
            released: Coefficients
            if isinstance(mechanism, PrivateRegression):
                released = mechanism.release((table.values(), table.target()), units=table.units())
            else:
                released = mechanism.release(records(table, weighing))
            return self._settle(table, released, method)

    @staticmethod
    def _event(mechanism: LeastSquares, table: TrainingTable) -> Event:
        """Return what one unit spends: what one row does where its rows share a weight or a block, else a group."""
        if isinstance(mechanism, (RefinedRegression, NoisyStatistics, TukeyRegression)):
            return mechanism.event
        return table.event_of(mechanism.event)

    def _mechanism(self, method: str, table: TrainingTable, design: Design, noise: GaussianNoise) -> LeastSquares:
        """Make the mechanism from public facts."""
        relation, share, of_row = self._relation(), _share(self.inference), self._row_gaussian(table)
        match method:
            case "tukey":
                delta = self._delta(table.people)
                return TukeyRegression(design=design, relation=relation, epsilon=self._epsilon(), delta=delta)
            case "adassp":
                return AdaSSP(design=design, relation=relation, noise=of_row, public_rows=table.size)
            case "robust":
                schedule = RegressionNewton(inference=bool(share))
                return m_estimate(design, relation, of_row, schedule, slots=table.max_rows)
            case _:
                return looking(method, design, relation, noise, table, share)


class Ridge(LinearModel, RegressorMixin, BaseEstimator):
    """Least squares with privacy and a penalty of `alpha` times the squares of the coefficients, in the data's units.

    As in scikit-learn the intercept is not penalised. Intervals are for the penalised coefficients, not for those of
    least squares.

    Args:
        epsilon: What a fit spends.
        delta: The delta that goes with epsilon.
        alpha: The penalty on the squares of the coefficients.
        bounds: Public pairs or `dp.between(…)` of the columns, in order or by name; a step before may declare them.
        target_bounds: The public bounds of the target.
        inference: Whether a tenth of the budget pays for intervals.
        weight_bounds: The public bounds (0, high) of `sample_weight`, which is private and clamped to them.
        relation: The neighbouring relation, as `Relation` or as "add-remove" or "replace-one".
        public_rows: About how many rows there are, a public number.
        session: Who pays, a `Ledger` or a `Session`; it is charged before the rows are read. Nobody if not said.

    Examples:
        >>> import numpy as np
        >>> X = np.linspace(0, 10, 2000)[:, None]
        >>> model = dp.learn.sklearn.Ridge(epsilon=5, delta=1e-6, bounds=[(0, 10)], target_bounds=(0, 30))
        >>> model.fit(X, 2 * X[:, 0]).coef_.shape
        (1,)
    """

    _stored_as: ClassVar[str] = "Ridge"

    def __init__(
        self,
        *,
        epsilon: Number,
        delta: Number,
        alpha: Number = 1.0,
        bounds: FeatureBounds | None = None,
        target_bounds: Bounds | None = None,
        inference: bool = True,
        weight_bounds: Bounds | None = None,
        relation: str | Relation = "add-remove",
        public_rows: int | None = None,
        session: Payer | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.alpha = alpha
        self.bounds = bounds
        self.target_bounds = target_bounds
        self.inference = inference
        self.weight_bounds = weight_bounds
        self.relation = relation
        self.public_rows = public_rows
        self.session = session

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, unit: Any = None, max_rows: int | None = None) -> Self:
        """Pay, read and fit; with `unit`, ids one a row, whole units are protected, with at most `max_rows` rows."""
        table, design = self._facts(X, y, unit, max_rows)
        weighing = read_weights(sample_weight, self.weight_bounds, table, has_session=self.session is not None)
        noise, share = self._gaussian(table.people), _share(self.inference)
        method = "refined" if worth_rounds(design, noise, table.people) else "noisy_statistics"
        # The mechanism divides weights by the heaviest, and so the whole loss, of which the penalty is a part.
        alpha = nonnegative(self.alpha, name="alpha") / (1 if weighing is None else weighing.heaviest)
        penalties = _penalties(alpha, design)
        mechanism = looking(method, design, self._relation(), noise, table, share, penalties)
        with self._paid(mechanism.event, delta=self._delta(table.people), whom=table.whom):
            return self._settle(table, mechanism.release(records(table, weighing)), method)

    def _covers(self) -> str:
        return super()._covers() + " It is the penalised coefficient that is covered."


def automatic(design: Design, noise: GaussianNoise, people: int | None) -> str:
    """Choose by public facts only: how many people there are for each coefficient, times mu."""
    few = people is not None and people**2 < (_FEW * design.dimension) ** 2 * noise.squared_multiplier
    return "robust" if few else "refined"


def looking(
    method: str,
    design: Design,
    relation: Relation,
    noise: GaussianNoise,
    table: TrainingTable,
    share: Fraction,
    penalties: tuple[Fraction, ...] = (),
) -> RefinedRegression | NoisyStatistics:
    """Make the mechanism that looks in rounds, or the one that looks once."""
    kind = RefinedRegression if method == "refined" else NoisyStatistics
    return kind(
        design=design,
        relation=relation,
        noise=noise,
        public_rows=table.size,
        inference_share=share,
        penalties=penalties,
    )


def _share(inference: bool) -> Fraction:
    return _INFERENCE if read_flag(inference, name="inference") else Fraction(0)


def _penalties(alpha: Fraction, design: Design) -> tuple[Fraction, ...]:
    """Return the penalties within the frame, where a coefficient is larger by the half width of its feature."""
    return Fraction(0), *(alpha / ((high - low) / 2) ** 2 for low, high in design.features)


# --- robust: Private regression that a few wild rows cannot bend. ---


ROBUST_METHODS: Final = ("newton", "gradient_descent")
_HUBER: Final = Huber()


class RobustRegressor(LinearModel, RegressorMixin, BaseEstimator):
    """An M-estimate of regression with privacy: large residuals and far rows count less, and intervals are paid for.

    `psi` is Huber's loss unless another of `discreet.robust` is given; `scale` is that of the residuals, asked for
    privately if it is not public. "newton" takes few steps; "gradient_descent" takes `iterations` of them and needs
    `public_rows`. It needs more people than least squares does, and is for targets with outliers.

    Args:
        epsilon: What a fit spends.
        delta: The delta that goes with epsilon.
        bounds: Public pairs or `dp.between(…)` of the columns, in order or by name; a step before may declare them.
        target_bounds: The public bounds of the target.
        psi: The loss, of `discreet.robust`; Huber's if not said.
        scale: The scale of the residuals, if it is public; else it is asked for privately.
        leverage: How far a row may be before it counts less.
        method: "newton" or "gradient_descent".
        iterations: The steps of gradient descent.
        inference: Whether a tenth of the budget pays for intervals.
        relation: The neighbouring relation, as `Relation` or as "add-remove" or "replace-one".
        public_rows: About how many rows there are, a public number.
        session: Who pays, a `Ledger` or a `Session`; it is charged before the rows are read. Nobody if not said.

    Examples:
        >>> import numpy as np
        >>> X = np.linspace(0, 10, 5000)[:, None]
        >>> y = 2 * X[:, 0] + np.random.default_rng(0).normal(size=5000)
        >>> model = dp.learn.sklearn.RobustRegressor(
        ...     epsilon=5, delta=1e-6, bounds=[(0, 10)], target_bounds=(-10, 30)
        ... )
        >>> model.fit(X, y).coef_.shape
        (1,)
    """

    _stored_as: ClassVar[str] = "RobustRegressor"

    def __init__(
        self,
        *,
        epsilon: Number,
        delta: Number,
        bounds: FeatureBounds | None = None,
        target_bounds: Bounds | None = None,
        psi: Psi | None = None,
        scale: Number | None = None,
        leverage: Number | None = None,
        method: str = "newton",
        iterations: int = 25,
        inference: bool = True,
        relation: str | Relation = "add-remove",
        public_rows: int | None = None,
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
        self.public_rows = public_rows
        self.session = session

    def fit(self, X: Any, y: Any, *, unit: Any = None, max_rows: int | None = None) -> Self:
        """Pay, read and fit; with `unit`, ids one a row, whole units are protected, with at most `max_rows` rows."""
        table, design = self._facts(X, y, unit, max_rows)
        table = table.filled()
        mechanism = self._mechanism(table, design)
        with self._paid(table.event_of(mechanism.event), delta=self._delta(table.people), whom=table.whom):
            name = "Huber" if self.psi is None else type(self.psi).__name__
            released = mechanism.release((table.values(), table.target()), units=table.units())
            return self._settle(table, released, f"{name}, {self.method}")

    def _mechanism(self, table: TrainingTable, design: Design) -> PrivateRegression:
        return m_estimate(
            design,
            self._relation(),
            self._row_gaussian(table),
            self._schedule(None if table.people is None else table.people * table.max_rows),
            slots=table.max_rows,
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
                'method="gradient_descent" needs public_rows, a public number of rows or a guess of it'
            )
        return RegressionGradientDescent(iterations=self.iterations, divisor=people, inference=inference)


def m_estimate(
    design: Design,
    relation: Relation,
    noise: GaussianNoise,
    schedule: RegressionSchedule,
    *,
    slots: int = 1,
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
        slots=slots,
    )
