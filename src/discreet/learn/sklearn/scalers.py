"""Scalers: moments or bounds of each column, measured privately, and rows that keep public bounds afterwards."""

from __future__ import annotations

from fractions import Fraction
from math import isqrt
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin

from discreet.exact import Number, positive
from discreet.learn.sklearn.base import TrainingTable
from discreet.learn.sklearn.bounds import BoundedArray, read_ends
from discreet.learn.sklearn.moments import ClassMoments, ClassSums, coarser, pooled
from discreet.learn.sklearn.transformers import (
    Floats,
    PrivateRanges,
    PrivateTransformer,
    choice_epsilon,
    shared_mu_squared,
)
from discreet.mechanisms.parameters import read_flag, read_share
from discreet.privacy import calibrate
from discreet.privacy.events import BoundedRange, Composed, Event, Repeated
from discreet.privacy.payer import Payer
from discreet.privacy.relation import Relation

__all__ = ["MinMaxScaler", "StandardScaler"]

Steps: TypeAlias = NDArray[np.int64]

_FLOOR = 1e-9  # Of a variance, next to the squared half of the bounds: a column may be constant.
_RANGES = Fraction(1, 2)  # Of the budget, for bounds that are found first.


class StandardScaler(PrivateTransformer, OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Subtract a noisy mean and divide by a noisy deviation; results are clamped to `limit` deviations.

    The next step of a pipeline needs no bounds: the rows that come out declare those of `limit`. With `coverage`, say
    0.95, the declared bounds may be far too wide: bounds that hold about that share of each column are found first, for
    half of the budget, and values beyond them are clamped.

    Guarantee   (epsilon, delta), for all columns together, and for the bounds where they are found.
    Theorem     See `ClassMoments`, of one class, and `PrivateRanges`.
    Utility     means are off by about sqrt(columns) / (mu rows) times half the bounds; mu is about epsilon / 4.

    Args:
        epsilon: What a fit spends.
        delta: The delta that goes with epsilon.
        bounds: Public pairs or `dp.between(…)` of the columns, in order or by name; a step before may declare them.
        coverage: The share of each column for which bounds are found first; the declared ones are used if not said.
        limit: How many deviations results are clamped to.
        with_mean: Whether the mean is subtracted.
        with_std: Whether rows are divided by the deviation.
        relation: The neighbouring relation, as `Relation` or as "add-remove" or "replace-one".
        public_rows: About how many rows there are, a public number.
        session: Who pays, a `Ledger` or a `Session`; it is charged before the rows are read. Nobody if not said.

    Examples:
        >>> import numpy as np
        >>> X = np.linspace(20, 60, 1000)[:, None]
        >>> scaler = dp.learn.sklearn.StandardScaler(epsilon=1, delta=1e-6, bounds=[(0, 120)]).fit(X)
        >>> abs(float(scaler.transform(X).mean())) < 1
        True
    """

    _stored_as: ClassVar[str] = "StandardScaler"

    def __init__(
        self,
        *,
        epsilon: Number,
        delta: Number | None = None,
        bounds: Any = None,
        coverage: Number | None = None,
        limit: Number = 4,
        with_mean: bool = True,
        with_std: bool = True,
        relation: str | Relation = "add-remove",
        public_rows: int | None = None,
        session: Payer | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.coverage = coverage
        self.limit = limit
        self.with_mean = with_mean
        self.with_std = with_std
        self.relation = relation
        self.public_rows = public_rows
        self.session = session

    def fit(self, X: Any, y: Any = None, *, unit: Any = None, max_rows: int | None = None) -> Self:
        """Measure the mean and the deviation of each column; with `unit`, rows weigh one for each person together."""
        table = self._table(X, unit=unit, max_rows=max_rows).filled()
        limit = positive(self.limit, name="limit")
        flags = read_flag(self.with_mean, name="with_mean"), read_flag(self.with_std, name="with_std")
        delta = self._delta(table.people)
        moments, ranges = self._mechanisms(table, delta)
        if ranges is not None:
            ranges.check_size(table.people, table.max_rows)
        event: Event = moments.event if ranges is None else Composed([ranges.event, moments.event])
        with self._paid(table.event_of(event), delta=delta, whom=table.whom):
            columns = table.columns()
            self.frame_ = table.frame if ranges is None else ranges.find(columns)
            steps = coarser(self.frame_.steps(columns), moments.reach)
            self._settle(moments.measure(steps, np.zeros(len(steps), dtype=np.int64)), float(limit), *flags)
            return self

    def _mechanisms(self, table: TrainingTable, delta: Fraction) -> tuple[ClassMoments, PrivateRanges | None]:
        if self.coverage is None:
            return self._moments(1 / self._row_gaussian(table).squared_multiplier), None
        choices, slots = 2 * self.n_features_in_, table.max_rows
        mu_squared = shared_mu_squared(self._epsilon(), delta, self._relation(), share=_RANGES, choices=choices)
        ranges = PrivateRanges(
            widest=table.frame,
            coverage=read_share(self.coverage, name="coverage"),
            epsilon=choice_epsilon(_RANGES * mu_squared, choices) / slots,
            relation=self._relation(),
        )
        return self._moments((1 - _RANGES) * mu_squared / slots**2), ranges

    def _moments(self, mu_squared: Fraction) -> ClassMoments:
        return ClassMoments(
            dimension=self.n_features_in_,
            classes=1,
            relation=self._relation(),
            mu_squared=mu_squared,
            count_weight=Fraction(max(1, isqrt(self.n_features_in_)), 2),
        )

    def _settle(self, measured: ClassSums, limit: float, with_mean: bool, with_std: bool) -> None:
        found = pooled(measured, _FLOOR)
        middle, half = self._middle_and_half()
        self.mean_ = middle + half * found.means[0]
        self.var_ = half**2 * found.variances[0]
        self.scale_ = np.sqrt(self.var_)
        self.shift_ = self.mean_ if with_mean else np.zeros_like(self.mean_)
        self.unit_ = self.scale_ if with_std else np.ones_like(self.scale_)
        # One pair of bounds for all columns; one that is not divided reaches as far as its deviations do.
        # A column that is divided reaches to the limit itself: the quotient of a number by itself is one.
        reach = limit * (self.scale_ / self.unit_) + np.abs(self.mean_ - self.shift_) / self.unit_
        self.limit_ = float(reach.max())

    def transform(self, X: Any) -> BoundedArray:
        """Scale rows and clamp them to the limit. Rows stay as private as they were."""
        moved = self._moved(X)
        middle, half = self._middle_and_half()
        return BoundedArray.clamped((middle + half * moved - self.shift_) / self.unit_, -self.limit_, self.limit_)

    def inverse_transform(self, X: Any) -> Floats:
        """Turn scaled rows back."""
        found: Floats = np.asarray(X, dtype=np.float64) * self.unit_ + self.shift_
        return found


class MinMaxScaler(PrivateTransformer, OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Find bounds that hold about a share `coverage` of each column, and move them to `feature_range`.

    Values beyond are clamped, and the rows that come out declare their bounds to the next step of a pipeline.

    Guarantee   epsilon, pure, or (epsilon, delta) where delta is given: then many columns cost less.
    Theorem     See `PrivateRanges`.
    Utility     bounds are off by about (4 columns / epsilon) ln(points of the grid) ranks, far less with delta.

    Args:
        epsilon: What a fit spends.
        delta: The delta that goes with epsilon.
        bounds: Public pairs or `dp.between(…)` of the columns, in order or by name; a step before may declare them.
        coverage: The share of each column that the bounds shall hold.
        feature_range: What the bounds are moved to.
        relation: The neighbouring relation, as `Relation` or as "add-remove" or "replace-one".
        public_rows: About how many rows there are, a public number.
        session: Who pays, a `Ledger` or a `Session`; it is charged before the rows are read. Nobody if not said.

    Examples:
        >>> import numpy as np
        >>> X = np.linspace(20, 60, 1000)[:, None]
        >>> scaled = dp.learn.sklearn.MinMaxScaler(epsilon=1, bounds=[(0, 120)]).fit(X).transform(X)
        >>> float(scaled.min()) >= 0, float(scaled.max()) <= 1
        (True, True)
    """

    _stored_as: ClassVar[str] = "MinMaxScaler"

    def __init__(
        self,
        *,
        epsilon: Number,
        delta: Number | None = None,
        bounds: Any = None,
        coverage: Number = 0.98,
        feature_range: tuple[Number, Number] = (0, 1),
        relation: str | Relation = "add-remove",
        public_rows: int | None = None,
        session: Payer | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.coverage = coverage
        self.feature_range = feature_range
        self.relation = relation
        self.public_rows = public_rows
        self.session = session

    def fit(self, X: Any, y: Any = None, *, unit: Any = None, max_rows: int | None = None) -> Self:
        """Choose bounds for each column; with `unit`, rows weigh one for each person together."""
        table = self._table(X, unit=unit, max_rows=max_rows).filled()
        low, high = read_ends(self.feature_range, "feature_range")
        delta = Fraction(0) if self.delta is None else self._delta(table.people)
        ranges = PrivateRanges(
            widest=table.frame,
            coverage=read_share(self.coverage, name="coverage"),
            epsilon=self._each(delta) / table.max_rows,
            relation=self._relation(),
        )
        ranges.check_size(table.people, table.max_rows)
        with self._paid(table.event_of(ranges.event), delta=delta, whom=table.whom):
            self.frame_ = ranges.find(table.columns())
            self.data_min_, self.data_max_ = self.frame_.limits.T
            self.scale_ = float(high - low) / (self.data_max_ - self.data_min_)
            self.min_ = float(low) - self.data_min_ * self.scale_
            self.range_ = (float(low), float(high))
            return self

    def _each(self, delta: Fraction) -> Fraction:
        """Return what each quantile may spend."""
        spent, times = self._epsilon(), 2 * self.n_features_in_
        if delta == 0:
            return spent / times
        return calibrate(
            lambda each: Repeated(BoundedRange(each), times),
            epsilon=spent,
            delta=delta,
            relation=self._relation(),
            increasing=True,
        )

    def transform(self, X: Any) -> BoundedArray:
        """Scale rows and clamp them to the range. Rows stay as private as they were."""
        moved = self._moved(X)
        low, high = self.range_
        return BoundedArray.clamped((low + high) / 2 + (high - low) / 2 * moved, low, high)

    def inverse_transform(self, X: Any) -> Floats:
        """Turn scaled rows back."""
        found: Floats = (np.asarray(X, dtype=np.float64) - self.min_) / self.scale_
        return found
