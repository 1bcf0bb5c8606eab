"""Boosted trees with privacy: sums of curves of one feature and tables of two, which may be read and published."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeAlias, final

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from discreet.errors import InvalidParameter, Refused
from discreet.exact import Number, positive_integer
from discreet.learn.sklearn.base import PrivatePredictor, TrainingTable
from discreet.learn.sklearn.boosting import (
    HEAVIEST,
    SCORE,
    AdditiveModel,
    AdditivePart,
    BoostingPlan,
    LabelTarget,
    NumberTarget,
    ResidualTarget,
    boosted,
)
from discreet.learn.sklearn.bounds import FeatureBounds, Pair, read_pair
from discreet.learn.sklearn.leaf_sums import CELLS
from discreet.learn.sklearn.weights import class_shares, read_weights, shares_of_rows
from discreet.mechanisms.grid import Grid
from discreet.privacy.payer import Payer
from discreet.privacy.relation import Relation
from discreet.robust.regression_design import HALF, centred
from discreet.schema.columns import Bounds

__all__ = ["BoostedTreesClassifier", "BoostedTreesRegressor", "ShapeTerm"]

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ShapeTerm:
    """What one feature, or a pair of them, adds to a prediction. Everything in it may be published.

    Args:
        features: The names of the one feature or the two.
        edges: For each feature the ends of its intervals, in the units of the data.
        values: What each interval adds, beside the mean: log-odds for two classes, one last axis of scores for more,
            units of the target for numbers.
        rows: About how many rows each interval holds, as noisy counts tell.

    Examples:
        >>> import numpy as np
        >>> X = np.linspace(-1, 1, 1000)[:, None]
        >>> model = dp.learn.sklearn.BoostedTreesClassifier(epsilon=5, delta=1e-6, bounds=(-1, 1), classes=[0, 1])
        >>> term = model.fit(X, (X[:, 0] > 0).astype(int)).terms()[0]
        >>> term.features, bool(term.values[0] < term.values[-1])
        (('x0',), True)
    """

    features: tuple[str, ...]
    edges: tuple[Floats, ...]
    values: Floats
    rows: Floats

    @property
    def importance(self) -> float:
        """The mean over rows of how far this moves a prediction."""
        moves = np.abs(self.values).reshape(len(self.rows.ravel()), -1).mean(axis=1)
        return float((moves * self.rows.ravel()).sum() / max(float(self.rows.sum()), 1.0))

    def __str__(self) -> str:
        """Draw a curve of one feature as bars, one line an interval; of others tell the shape."""
        head = f"{' × '.join(self.features)}: importance {self.importance:.3g}"
        if len(self.features) > 1 or self.values.ndim > 1:
            return f"{head}, table of {' × '.join(map(str, self.values.shape))}"
        most = max(float(np.abs(self.values).max()), 1e-12)
        ends = zip(self.edges[0], self.edges[0][1:], self.values, strict=False)
        lines = [f"{low:>12.5g} … {high:<12.5g} {value:>+10.4g} {_bar(value / most)}" for low, high, value in ends]
        return "\n".join([head, *lines])


def _bar(share: float) -> str:
    """Draw a bar to the left or to the right of a middle."""
    long = round(abs(share) * 12)
    return f"{('▒' * long).rjust(12)}│" if share < 0 else f"{' ' * 12}│{'█' * long}"


class _BoostedTrees(PrivatePredictor):
    """What both share: the plan, the model and its terms."""

    keeps_rows_alone = True
    pairs: int
    rounds: int | None
    weight_bounds: Bounds | None
    leaves: int | None
    intercept_: Floats
    feature_importances_: Floats
    _model: AdditiveModel

    def _boosting(self, table: TrainingTable, outputs: int, *, has_numbers: bool, weighs: bool) -> BoostingPlan:
        """Plan from public facts alone."""
        if isinstance(self.pairs, bool) or not isinstance(self.pairs, int) or self.pairs < 0:
            raise InvalidParameter("pairs must be a whole number, 0 for no pairs")
        for name in ("rounds", "leaves"):
            if getattr(self, name) is not None:
                positive_integer(getattr(self, name), name=name)
        return BoostingPlan(
            features=self.n_features_in_,
            outputs=outputs,
            relation=self._relation(),
            mu_squared=1 / self._row_gaussian(table).squared_multiplier,
            rows=None if weighs or table.people is None else table.people * table.max_rows,
            has_numbers=has_numbers,
            pairs=self.pairs,
            rounds=self.rounds,
            leaves=self.leaves,
        )

    def _learn(
        self,
        table: TrainingTable,
        plan: BoostingPlan,
        steps: Integers,
        target: ResidualTarget,
        weights: Integers | None,
    ) -> None:
        self.frame_, self._slots = table.frame, table.max_rows
        self._model = boosted(plan, steps, target, weights)
        middles = np.array([part.middle for part in self._model.parts])
        self.intercept_ = self._in_units(self._model.start + middles.sum(axis=0), origin=True)
        terms = self.terms()
        self.feature_importances_ = np.array([term.importance for term in terms[: self.n_features_in_]])

    def _scored(self, X: Any) -> Floats:
        steps = np.rint(self._seen(X) * HALF).astype(np.int64)
        found: Floats = self._model.scores(steps) / SCORE
        return found

    def _in_units(self, scores: Any, *, origin: bool = False) -> Floats:
        """Return scores in what they are told in; those of numbers are differences unless they have an origin."""
        return np.asarray(scores, dtype=np.float64) / SCORE

    def terms(self) -> tuple[ShapeTerm, ...]:
        """Return what each feature adds to a prediction, in their order, and then the pairs: free, as all is public.

        Returns:
            One term a feature, and one for each pair that was found.

        Raises:
            NotFittedError: If the model is not fitted.
        """
        check_is_fitted(self)
        return tuple(self._term(part) for part in self._model.parts)

    def _term(self, part: AdditivePart) -> ShapeTerm:
        given = getattr(self, "feature_names_in_", None)
        names = [f"x{place}" for place in range(self.n_features_in_)] if given is None else given.tolist()
        values = self._in_units(part.values - part.middle).reshape(*part.shape, -1)
        return ShapeTerm(
            features=tuple(str(names[place]) for place in part.features),
            edges=tuple(self._edges(*side) for side in zip(part.features, part.groups, strict=True)),
            values=values[..., 0] if values.shape[-1] == 1 else values,
            rows=part.sizes.reshape(part.shape) / self._slots,
        )

    def _edges(self, feature: int, groups: Integers) -> Floats:
        low, high = self.frame_.limits[feature]
        ends = np.array([0, *(np.nonzero(np.diff(groups))[0] + 1), CELLS])
        found: Floats = low + (high - low) * ends / CELLS
        return found


class BoostedTreesClassifier(_BoostedTrees, ClassifierMixin, BaseEstimator):
    """Classify by a sum of curves, one a feature, and of tables for pairs of them, boosted with privacy.

    The parts are built from small trees in many rounds: each is cut at random, in bins of noisy counts, and noise
    is added to the sums of residuals in its leaves. Where the rows outweigh the noise, pairs of features whose
    residuals still tell something are added. The model is the sum of what may be read in `terms()`.

    Guarantee   (epsilon, delta), for counts, choices and all rounds together: their squares of mu add up.
    Theorem     See `BoostingPlan` and `LeafSums`: one row is in one leaf of each tree, and its residual is shortened.
    Utility     noise of about sqrt(features) / (2 mu) on the sums of a leaf; mu is about epsilon / 4.

    Args:
        epsilon: What a fit spends.
        delta: The delta that goes with epsilon.
        bounds: Public pairs or `dp.between(…)` of the columns, in order or by name; a step before may declare them.
        classes: The public classes.
        pairs: How many pairs of features there are at most; 0 for curves alone.
        rounds: How many rounds; chosen by how many rows there are next to noise, if not said.
        leaves: How many leaves a tree has; chosen likewise, if not said.
        weight_bounds: The public bounds (0, high) of `sample_weight`, which is private and clamped to them.
        class_weight: A public weight for each class; 1 for those that are not named.
        relation: The neighbouring relation, as `Relation` or as "add-remove" or "replace-one".
        public_rows: About how many rows there are, a public number.
        session: Who pays, a `Ledger` or a `Session`; it is charged before the rows are read. Nobody if not said.

    Examples:
        >>> import numpy as np
        >>> X = np.linspace(-1, 1, 2000)[:, None]
        >>> y = (abs(X[:, 0]) > 0.5).astype(int)
        >>> model = dp.learn.sklearn.BoostedTreesClassifier(epsilon=2, delta=1e-6, bounds=(-1, 1), classes=[0, 1])
        >>> bool(model.fit(X, y).score(X, y) > 0.8)
        True
    """

    _stored_as: ClassVar[str] = "BoostedTreesClassifier"
    classes_: NDArray[Any]

    def __init__(
        self,
        *,
        epsilon: Number,
        delta: Number,
        bounds: FeatureBounds | None = None,
        classes: Any = None,
        pairs: int = 8,
        rounds: int | None = None,
        leaves: int | None = None,
        weight_bounds: Bounds | None = None,
        class_weight: Mapping[Any, Number] | None = None,
        relation: str | Relation = "add-remove",
        public_rows: int | None = None,
        session: Payer | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.classes = classes
        self.pairs = pairs
        self.rounds = rounds
        self.leaves = leaves
        self.weight_bounds = weight_bounds
        self.class_weight = class_weight
        self.relation = relation
        self.public_rows = public_rows
        self.session = session

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, unit: Any = None, max_rows: int | None = None) -> Self:
        """Pay, count and boost; with `unit`, ids one a row, whole units are protected, each weighing the same."""
        table = self._table(X, y, unit=unit, max_rows=max_rows).filled()
        weighing = read_weights(sample_weight, self.weight_bounds, table, has_session=self.session is not None)
        classes = table.classes(self.classes, has_session=self.session is not None)
        if len(classes) < 2:
            raise InvalidParameter("a classifier needs at least two classes; there is one class, or none, here")
        shares = class_shares(self.class_weight, classes, HEAVIEST)
        weighs = weighing is not None or shares is not None
        plan = self._boosting(table, 1 if len(classes) == 2 else len(classes), has_numbers=False, weighs=weighs)
        with self._paid(table.event_of(plan.event), delta=self._delta(table.people), whom=table.whom):
            codes = table.codes(classes)
            inside = codes >= 0  # A label that is no class adds nothing to any sum.
            weights = shares_of_rows(weighing, shares, table, codes, HEAVIEST)
            self.classes_ = classes
            target = LabelTarget(codes[inside], len(classes))
            self._learn(table, plan, table.steps()[inside], target, None if weights is None else weights[inside])
            return self

    def decision_function(self, X: Any) -> Floats:
        """Return a score that rises with the chance of the second class, or one for each class."""
        scores = self._scored(X)
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict_proba(self, X: Any) -> Floats:
        """Return the chance of each class."""
        return LabelTarget.chances(self._scored(X))

    def predict_log_proba(self, X: Any) -> Floats:
        """Return the logarithms of the chances."""
        logs: Floats = np.log(self.predict_proba(X))
        return logs

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the likeliest class."""
        scores = self.decision_function(X)
        places = (scores > 0).astype(np.int64) if scores.ndim == 1 else scores.argmax(axis=1)
        found: NDArray[Any] = self.classes_[places]
        return found


class BoostedTreesRegressor(_BoostedTrees, RegressorMixin, BaseEstimator):
    """Predict a number by a sum of curves, one a feature, and of tables for pairs of them, boosted with privacy.

    As `BoostedTreesClassifier`. The middle of the target and how long residuals are is measured too: the longest, about
    one in fifteen, are shortened, so wide `target_bounds` cost little, and the far tail of a target pulls less.

    Guarantee   (epsilon, delta), for counts, choices and all rounds together: their squares of mu add up.
    Theorem     See `BoostingPlan` and `LeafSums`: one row is in one leaf of each tree, and its residual is shortened.
    Utility     noise of about sqrt(features) / mu on the sums of a leaf, in longest residuals; mu is about epsilon / 4.

    Args:
        epsilon: What a fit spends.
        delta: The delta that goes with epsilon.
        bounds: Public pairs or `dp.between(…)` of the columns, in order or by name; a step before may declare them.
        target_bounds: The public bounds of the target.
        pairs: How many pairs of features there are at most; 0 for curves alone.
        rounds: How many rounds; chosen by how many rows there are next to noise, if not said.
        leaves: How many leaves a tree has; chosen likewise, if not said.
        weight_bounds: The public bounds (0, high) of `sample_weight`, which is private and clamped to them.
        relation: The neighbouring relation, as `Relation` or as "add-remove" or "replace-one".
        public_rows: About how many rows there are, a public number.
        session: Who pays, a `Ledger` or a `Session`; it is charged before the rows are read. Nobody if not said.

    Examples:
        >>> import numpy as np
        >>> X = np.linspace(-1, 1, 2000)[:, None]
        >>> model = dp.learn.sklearn.BoostedTreesRegressor(epsilon=2, delta=1e-6, bounds=(-1, 1), target_bounds=(0, 1))
        >>> bool(model.fit(X, X[:, 0] ** 2).score(X, X[:, 0] ** 2) > 0.8)
        True
    """

    _stored_as: ClassVar[str] = "BoostedTreesRegressor"
    _target: Pair

    def __init__(
        self,
        *,
        epsilon: Number,
        delta: Number,
        bounds: FeatureBounds | None = None,
        target_bounds: Bounds | None = None,
        pairs: int = 8,
        rounds: int | None = None,
        leaves: int | None = None,
        weight_bounds: Bounds | None = None,
        relation: str | Relation = "add-remove",
        public_rows: int | None = None,
        session: Payer | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.target_bounds = target_bounds
        self.pairs = pairs
        self.rounds = rounds
        self.leaves = leaves
        self.weight_bounds = weight_bounds
        self.relation = relation
        self.public_rows = public_rows
        self.session = session

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, unit: Any = None, max_rows: int | None = None) -> Self:
        """Pay, count and boost; with `unit`, ids one a row, whole units are protected, each weighing the same."""
        table = self._table(X, y, y_numeric=True, unit=unit, max_rows=max_rows).filled()
        weighing = read_weights(sample_weight, self.weight_bounds, table, has_session=self.session is not None)
        if self.target_bounds is None:
            raise Refused(
                "this needs target_bounds=(low, high)",
                reason="the target is clamped to bounds that must not be read from the data: they set the noise",
                way_out="declare what is publicly known of the target",
            )
        self._target = read_pair(self.target_bounds, "target_bounds")
        grid = Grid.between(*self._target)
        plan = self._boosting(table, 1, has_numbers=True, weighs=weighing is not None)
        with self._paid(table.event_of(plan.event), delta=self._delta(table.people), whom=table.whom):
            weights = None if weighing is None else weighing.shares(table, HEAVIEST)
            self._learn(table, plan, table.steps(), NumberTarget(centred(grid, table.target())), weights)
            return self

    def _in_units(self, scores: Any, *, origin: bool = False) -> Floats:
        low, high = self._target
        return super()._in_units(scores) * float((high - low) / 2) + (float((high + low) / 2) if origin else 0.0)

    def predict(self, X: Any) -> Floats:
        """Return the predicted numbers, within the bounds of the target."""
        scores = self._scored(X)[:, 0]
        low, high = (float(end) for end in self._target)
        found: Floats = np.clip(self._in_units(scores * SCORE, origin=True), low, high)
        return found
