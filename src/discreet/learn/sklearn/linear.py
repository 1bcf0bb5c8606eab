"""Private linear regression: least squares, found in the way that fits what is publicly known, and ridge."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, ClassVar, Final, Self, TypeAlias

from sklearn.base import BaseEstimator, RegressorMixin

from discreet.exact import Number, nonnegative
from discreet.learn.sklearn.base import TrainingTable
from discreet.learn.sklearn.bounds import Bounds
from discreet.learn.sklearn.regressor import Coefficients, LinearModel, read_method, records
from discreet.learn.sklearn.robust import m_estimate
from discreet.mechanisms.budget import GaussianNoise
from discreet.mechanisms.fields import read_flag
from discreet.privacy.payer import Payer
from discreet.privacy.relation import Relation
from discreet.robust.adassp import AdaSSP
from discreet.robust.design import Design
from discreet.robust.noisy_statistics import NoisyStatistics
from discreet.robust.private_regression import PrivateRegression
from discreet.robust.refined import RefinedRegression
from discreet.robust.regression_schedules import RegressionNewton
from discreet.robust.tukey_em import TukeyRegression
from discreet.statistics.regressions import worth_rounds

__all__ = ["LinearRegression", "Ridge", "automatic", "looking"]

LeastSquares: TypeAlias = RefinedRegression | PrivateRegression | NoisyStatistics | AdaSSP | TukeyRegression

METHODS: Final = ("auto", "refined", "robust", "noisy_statistics", "adassp", "tukey")
_FEW: Final = 35  # People times mu, for each coefficient; with fewer, Huber fits were the better ones when measured.
_INFERENCE: Final = Fraction(1, 10)  # Of the budget, for intervals.


class LinearRegression(LinearModel, RegressorMixin, BaseEstimator):
    """Ordinary least squares with privacy, and intervals for its coefficients.

    Features and target are clamped to declared bounds. `method="auto"` chooses by public facts alone, the number of
    features, epsilon, delta and `public_size`: least squares in rounds that narrow the bounds ("refined"), or, where
    few people leave little but noise to go by, a Huber fit by noisy Newton steps ("robust"), which aims at the same
    line if residuals are symmetric. "noisy_statistics" looks once; "adassp" and "tukey" are as published, the latter
    may decline, and then predicts the middle of the target's bounds. A tenth of the budget goes into intervals unless
    `inference=False`; "adassp" and "tukey" have none.
    """

    _stored_as: ClassVar[str] = "LinearRegression"

    def __init__(
        self,
        *,
        epsilon: Number,
        delta: Number,
        bounds: Bounds | None = None,
        target_bounds: tuple[Number, Number] | None = None,
        method: str = "auto",
        inference: bool = True,
        relation: str | Relation = "add-remove",
        public_size: int | None = None,
        session: Payer | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.target_bounds = target_bounds
        self.method = method
        self.inference = inference
        self.relation = relation
        self.public_size = public_size
        self.session = session

    def fit(self, X: Any, y: Any) -> Self:
        """Pay, read and fit."""
        table, design = self._facts(X, y)
        mechanism, method = self._mechanism(table, design)
        self._pay(mechanism.event, delta=self._delta(table.people))
        released: Coefficients
        if isinstance(mechanism, PrivateRegression):
            released = mechanism.release((table.values(), table.target()))
        else:
            released = mechanism.release(records(table))
        return self._settle(table, released, method)

    def _mechanism(self, table: TrainingTable, design: Design) -> tuple[LeastSquares, str]:
        """Make the mechanism from public facts."""
        method, relation, noise = read_method(self.method, METHODS), self._relation(), self._gaussian(table.people)
        share = _share(self.inference)
        if method == "auto":
            method = automatic(design, noise, table.people)
        match method:
            case "tukey":
                delta = self._delta(table.people)
                return TukeyRegression(design=design, relation=relation, epsilon=self._epsilon(), delta=delta), method
            case "adassp":
                return AdaSSP(design=design, relation=relation, noise=noise, size=table.size), method
            case "robust":
                return m_estimate(design, relation, noise, RegressionNewton(inference=bool(share))), method
            case _:
                return looking(method, design, relation, noise, table.size, share), method


class Ridge(LinearModel, RegressorMixin, BaseEstimator):
    """Least squares with privacy and a penalty of `alpha` times the squares of the coefficients, in the data's units.

    As in scikit-learn the intercept is not penalised. Intervals are for the penalised coefficients, not for those of
    least squares.
    """

    _stored_as: ClassVar[str] = "Ridge"

    def __init__(
        self,
        *,
        epsilon: Number,
        delta: Number,
        alpha: Number = 1.0,
        bounds: Bounds | None = None,
        target_bounds: tuple[Number, Number] | None = None,
        inference: bool = True,
        relation: str | Relation = "add-remove",
        public_size: int | None = None,
        session: Payer | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.alpha = alpha
        self.bounds = bounds
        self.target_bounds = target_bounds
        self.inference = inference
        self.relation = relation
        self.public_size = public_size
        self.session = session

    def fit(self, X: Any, y: Any) -> Self:
        """Pay, read and fit."""
        table, design = self._facts(X, y)
        noise, share = self._gaussian(table.people), _share(self.inference)
        method = "refined" if worth_rounds(design, noise, table.people) else "noisy_statistics"
        penalties = _penalties(nonnegative(self.alpha, name="alpha"), design)
        mechanism = looking(method, design, self._relation(), noise, table.size, share, penalties)
        self._pay(mechanism.event, delta=self._delta(table.people))
        return self._settle(table, mechanism.release(records(table)), method)

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
    size: int | None,
    share: Fraction,
    penalties: tuple[Fraction, ...] = (),
) -> RefinedRegression | NoisyStatistics:
    """Make the mechanism that looks in rounds, or the one that looks once."""
    kind = RefinedRegression if method == "refined" else NoisyStatistics
    return kind(design=design, relation=relation, noise=noise, size=size, inference_share=share, penalties=penalties)


def _share(inference: bool) -> Fraction:
    return _INFERENCE if read_flag(inference, name="inference") else Fraction(0)


def _penalties(alpha: Fraction, design: Design) -> tuple[Fraction, ...]:
    """Return the penalties within the frame, where a coefficient is larger by the half width of its feature."""
    return Fraction(0), *(alpha / ((high - low) / 2) ** 2 for low, high in design.features)
