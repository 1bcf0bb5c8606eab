"""Poisson regression with privacy: counts whose mean is e to a line, by objective perturbation."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Final, Self, TypeAlias, final

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.metrics import d2_tweedie_score
from sklearn.utils.validation import check_is_fitted

from discreet import noise
from discreet.adaptive.bounded_memberships import SLOTS
from discreet.errors import InvalidParameter, Refused
from discreet.exact import Number, nonnegative
from discreet.learn.convex.logistic_gradient import PIECE, TOP, exponential_curve
from discreet.learn.convex.objective_perturbation import RowLoss
from discreet.learn.sklearn.base import PrivatePredictor, TrainingTable
from discreet.learn.sklearn.bounds import FeatureBounds, FeatureFrame, read_pair
from discreet.learn.sklearn.linear_model import Summary
from discreet.learn.sklearn.logistic import Estimates, LogisticFit, by_objective, prepared
from discreet.learn.sklearn.logistic_plan import ObjectivePlan
from discreet.learn.sklearn.validation import combined, rows_to_predict, showing_no_text
from discreet.learn.sklearn.weights import read_weights
from discreet.mechanisms.grid import Grid
from discreet.mechanisms.parameters import read_confidence, read_flag
from discreet.noise.limits import check_noise_variance
from discreet.privacy.payer import Payer
from discreet.privacy.relation import Relation
from discreet.robust.regression_design import HALF
from discreet.robust.tail_bounds import Tails
from discreet.schema.columns import Bounds

__all__ = ["POISSON_ROW", "PoissonPlan", "PoissonRegressor"]

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

# With y and the mean m within [0, 1] the gradient w (m - y) x of a row lies between -y x and (1 - y) x: two corners, of
# length 1 at most. Its second derivative is of rank one, and no slope of the curve exceeds 1.
POISSON_ROW: Final = RowLoss(ends=2, trace=Fraction(1))
_CAP: Final = Fraction(5, 100)  # Of all squares of mu, for how large counts are.
_MEAN: Final = Fraction(2, 100)  # For about their mean.
_LEVELS: Final[tuple[float, ...]] = tuple(
    (2.0 ** np.arange(-10.0, 0.01, 0.5)).tolist()
)  # Of counts, next to their bound.
_SURE: Final = 3.0  # Deviations of noise by which counts must exceed what is spared.
_SHORT: Final = 1 << 10  # Steps of a count next to its cap, where their mean is measured.
_LOWEST: Final = -8.0  # The logarithm of a mean next to its cap; a smaller one counts as this.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PoissonPlan:
    """A cap that few counts exceed, about their mean, and one minimum with a random slope.

    Guarantee   `fit.event`, for everything together.
    Theorem     Where a mean would exceed the cap, its loss goes on as a straight line, so that with counts shortened to
                the cap a row moves a gradient by at most the cap times its length, whatever the coefficients; see
                `POISSON_ROW` and `discreet.learn.convex.objective_perturbation`. Cap and mean are sums with Gaussian
                noise, and their squares of mu are kept in the plan of the fit.
    Utility     the noise of one gradient, in units of the cap, which follows the counts and not their bound.
    """

    fit: ObjectivePlan

    def __post_init__(self) -> None:
        check_noise_variance(self.mean_variance)
        if self._spent > self.fit.kept * self.fit.calibration.mu_squared:
            raise InvalidParameter("cap and mean of this plan spend more than was kept for them")

    @property
    def _slot(self) -> Fraction:
        """The mu^2 of the whole, for one slot of a unit."""
        return self.fit.calibration.mu_squared / self.fit.slots**2

    @property
    def tails(self) -> Tails:
        return Tails(levels=(_LEVELS,), relation=self.fit.calibration.relation, mu_squared=self._slot * _CAP)

    @property
    def mean_variance(self) -> Fraction:
        """Of the sum of counts in steps of their cap; with, without or with another row it moves by one cap."""
        return _SHORT**2 / (self._slot * _MEAN)

    @property
    def _spent(self) -> Fraction:
        mean = _SHORT**2 / self.mean_variance
        return (self.tails.event.mu_squared + mean) * self.fit.slots**2

    def cap(self, counts: Floats) -> float:
        """Return a level that few counts exceed, next to their bound, from noisy counts of these.

        It is two above the first level, from the highest down, that more counts reach than are spared and than noise
        alone would show; where none is sure, two above the likeliest such level. A lower one would bend the fit.
        """
        tails = self.tails
        (bins,) = tails.noisy((counts,))
        spared, deviation = self.fit.features / math.sqrt(self._slot) + 1, math.sqrt(tails.variance)
        excess = (np.cumsum(bins[::-1]) - spared) / (deviation * np.sqrt(np.arange(1, len(bins) + 1)))
        sure = np.flatnonzero(excess > _SURE)
        down = int(sure[0]) if len(sure) else int(excess.argmax())
        return _LEVELS[min(len(_LEVELS) - down + 1, len(_LEVELS) - 1)]

    def offset(self, labels: Integers, rows: float) -> int:
        """Return about the logarithm of the mean of labels, in knots of the curve, from a noisy sum."""
        shorter = (labels >> (TOP - 10)).sum()
        total = float(shorter + noise.rounded_gaussian(variance=self.mean_variance)) / _SHORT
        height = math.log(max(total, 1.0) / max(rows, 1.0, total))
        return round(max(height, _LOWEST) * (1 << PIECE))


class PoissonRegressor(PrivatePredictor, RegressorMixin, BaseEstimator):
    """Fit counts whose mean is e to a line of the features, which lie within declared bounds.

    Columns are centred and scaled by noisy means and spreads, and long rows are shortened, as for logistic regression.
    A cap that few counts exceed is found from a noisy histogram, so wide `target_bounds` cost little; counts and means
    beyond it count as the cap. Then a random slope is added to the loss, and the minimum is told.

    Guarantee   (epsilon, delta), for everything that is measured together.
    Theorem     See `PoissonPlan`.
    Utility     noise of about cap / mu on the gradient in units of the longest row; mu is about epsilon / 4.

    Args:
        epsilon: What a fit spends.
        delta: The delta that goes with epsilon.
        bounds: Public pairs or `dp.between(…)` of the columns, in order or by name; a step before may declare them.
        target_bounds: The public bounds of the counts, which are not below zero.
        regularisation: The ridge, in units of the squared longest row and the cap; the least that privacy needs if not
            said.
        inference: Whether a fifth of the budget pays for intervals.
        weight_bounds: The public bounds (0, high) of `sample_weight`, which is private and clamped to them.
        relation: The neighbouring relation, as `Relation` or as "add-remove" or "replace-one".
        public_rows: About how many rows there are, a public number.
        session: Who pays, a `Ledger` or a `Session`; it is charged before the rows are read. Nobody if not said.

    Examples:
        >>> import numpy as np
        >>> X = np.linspace(0, 1, 5000)[:, None]
        >>> y = np.random.default_rng(0).poisson(np.exp(1 + X[:, 0]))
        >>> model = dp.learn.sklearn.PoissonRegressor(epsilon=5, delta=1e-6, bounds=(0, 1), target_bounds=(0, 100))
        >>> bool(abs(model.fit(X, y).coef_[0] - 1) < 0.3)
        True
    """

    _stored_as: ClassVar[str] = "PoissonRegressor"

    keeps_rows_alone = True
    coef_: Floats
    intercept_: float
    cap_: float
    target_limits_: tuple[float, float]

    def __init__(
        self,
        *,
        epsilon: Number,
        delta: Number,
        bounds: FeatureBounds | None = None,
        target_bounds: Bounds | None = None,
        regularisation: Number | None = None,
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
        self.regularisation = regularisation
        self.inference = inference
        self.weight_bounds = weight_bounds
        self.relation = relation
        self.public_rows = public_rows
        self.session = session

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, unit: Any = None, max_rows: int | None = None) -> Self:
        """Pay for the whole fit, then read the rows; with `unit`, a person's loss is the mean over their rows."""
        table = self._table(X, y, y_numeric=True, unit=unit, max_rows=max_rows)
        weighing = read_weights(sample_weight, self.weight_bounds, table, has_session=self.session is not None)
        grid = self._counts()
        table = table.filled(int(SLOTS / math.log2(POISSON_ROW.ends + 1)))  # As many corners as of two classes.
        plan = self._plan(table)
        with self._paid(plan.fit.event, delta=self._delta(table.people), whom=table.whom):
            # In units of the highest count.
            counts = (grid.indices(table.target()) / grid.last).clip(0.0, 1.0)
            weights = None if weighing is None else weighing.shares(table)
            self.frame_, self.target_limits_ = table.frame, (float(grid.low), float(grid.high))
            self._learn(plan, table.frame, table.steps(), counts, weights, table.units())
            return self

    def _counts(self) -> Grid:
        if self.target_bounds is None:
            raise Refused(
                "this needs target_bounds=(0, high)",
                reason="counts are clamped to bounds that must not be read from the data: they set the noise",
                way_out="declare what is publicly known of the counts; wide bounds cost little",
            )
        low, high = read_pair(self.target_bounds, "target_bounds")
        if low < 0:
            raise InvalidParameter("target_bounds must not begin below zero: these are bounds of counts")
        return Grid.between(low, high)

    def _plan(self, table: TrainingTable) -> PoissonPlan:
        """Plan from public facts alone; counts vary more or less than Poisson's, so how scores vary is measured."""
        wish = None if self.regularisation is None else nonnegative(self.regularisation, name="regularisation")
        fit = ObjectivePlan.for_budget(
            self._epsilon(),
            self._delta(table.people),
            relation=self._relation(),
            features=len(table.frame.bounds),
            problems=1,
            has_intercept=True,
            inference=read_flag(self.inference, name="inference"),
            ridge=wish,
            people=table.people,
            slots=table.max_rows,
            weighted=True,
            loss=POISSON_ROW,
            kept=_CAP + _MEAN,
        )
        return PoissonPlan(fit=fit)

    def _learn(
        self,
        plan: PoissonPlan,
        frame: FeatureFrame,
        steps: Integers,
        counts: Floats,
        weights: Integers | None,
        units: Integers | None,
    ) -> None:
        """Find cap, mean and coordinates, and fit. It must have been paid for."""
        weights = None if weights is None else np.clip(weights, 0, HALF)
        inside = np.full(len(steps), True) if weights is None else weights > 0
        ground = prepared(plan.fit, frame, steps, np.where(inside, 0, -1))
        cap = plan.cap(np.where(inside, counts, 0.0))
        labels = np.rint(np.minimum(counts / cap, 1.0) * (1 << TOP)).astype(np.int64)
        offset = plan.offset(np.where(inside, labels, 0), ground.count)
        units = np.arange(len(steps)) if units is None else units
        ground = replace(ground, units=units, weights=weights, curve=exponential_curve(offset))
        self._settle(by_objective(plan.fit, ground, labels), cap * self.target_limits_[1], offset / (1 << PIECE))

    def _settle(self, found: LogisticFit, cap: float, offset: float) -> None:
        """Keep a fit of means next to the cap as one of means."""
        self.cap_ = cap
        moved = np.zeros(len(found.coefficients))
        moved[0] = math.log(cap) + offset
        self.intercept_, self.coef_ = float(found.coefficients[0] + moved[0]), found.coefficients[1:]
        errors = None if found.errors is None else found.errors[None, :]
        self._estimates = Estimates((found.estimate + moved)[None, :], errors, found.hidden)

    def predict(self, X: Any) -> Floats:
        """Predict means for features clamped to their bounds; predictions stay within those of the counts."""
        check_is_fitted(self)
        values = rows_to_predict(self, X)
        inside: Floats = np.clip(values, *self.frame_.limits.T)
        heights = combined(inside, self.coef_[:, None])[:, 0] + self.intercept_
        # One number at a time: nothing says that numpy's rounds each alike wherever it stands in an array.
        means = [math.exp(height) for height in np.clip(heights, -300.0, 300.0).tolist()]
        found: Floats = np.clip(np.array(means, dtype=np.float64), *self.target_limits_)
        return found

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of the deviance that is explained, as scikit-learn does; refused with a session."""
        if self.session is not None:
            return super().score(X, y, sample_weight)  # Which refuses.
        with showing_no_text():
            return float(d2_tweedie_score(y, self.predict(X), sample_weight=sample_weight, power=1))

    def intervals_(self, confidence: Number = 0.95) -> Floats:
        """Return an interval (low, high) for each coefficient, the intercept first; unbounded where noise hides it."""
        check_is_fitted(self)
        if self._estimates.errors is None:
            raise Refused("there are no intervals for this fit", reason=str(self._estimates.reason))
        found: Floats = self._estimates.intervals(read_confidence(confidence))[0]
        return found

    def summary(self, confidence: Number = 0.95) -> Summary:
        """Return a table of the coefficients, the intercept first, with their errors and the price.

        It tells the coefficients without the pull of the ridge; `coef_`, to predict with, are those with it.
        """
        check_is_fitted(self)
        given = getattr(self, "feature_names_in_", None)
        features = [f"x{place}" for place in range(self.n_features_in_)] if given is None else given.tolist()
        return self._estimates.summary(
            title=type(self).__name__,
            cost=str(self.privacy_spent_),
            confidence=read_confidence(confidence),
            names=["intercept", *features],
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags
