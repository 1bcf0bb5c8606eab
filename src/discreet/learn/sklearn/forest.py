"""A random forest with privacy: trees that know the rows by noisy counts alone, and noisy counts in their leaves."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Final, NamedTuple, Self, TypeAlias, final

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from discreet import noise
from discreet.errors import InvalidParameter
from discreet.exact import Number, positive, positive_integer
from discreet.learn.sklearn.base import PrivatePredictor
from discreet.learn.sklearn.bounds import FeatureBounds
from discreet.learn.sklearn.kmeans import CellCounts
from discreet.learn.sklearn.leaf_sums import CELLS, cells_of, grouped, smoothed
from discreet.mechanisms.parameters import settle
from discreet.privacy import events
from discreet.privacy.payer import Payer
from discreet.privacy.relation import Relation
from discreet.robust.regression_design import HALF

__all__ = ["ForestPlan", "RandomForestClassifier", "RandomTree", "grown"]

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

_COUNTS: Final = Fraction(1, 10)  # Of all squares of mu, for where rows lie.
_GROUPS: Final = 32  # Of a feature, between which it may be cut.
_SHALLOW: Final = 4
_DEEP: Final = 8
_ROWS: Final = 4.0  # Of a leaf, in deviations of its noise, that a tree is deep for.
_SPREAD: Final = 0.15  # Of the share of a class, from a node to its children.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ForestPlan:
    """All that a fit measures: rows of the cells of each feature, and rows of each class in each leaf.

    Guarantee   Gaussian privacy with mu^2 = `mu_squared`, for everything together.
    Theorem     A row is in one cell of each feature and in one leaf of each tree, in one class. Trees are drawn by
                chance from what was told before, so all of it is Gaussian releases, and the squares add up. [DRS22]
    Utility     noise of sqrt(trees) / mu on each count of a leaf.
    """

    features: int
    classes: int
    trees: int
    relation: Relation
    mu_squared: Fraction
    rows: int | None  # about how many, where that is public
    depth: int | None = None

    def __post_init__(self) -> None:
        for name in ("features", "classes", "trees"):
            settle(self, **{name: positive_integer(getattr(self, name), name=name)})
        settle(self, mu_squared=positive(self.mu_squared, name="mu_squared"))
        if self.depth is not None and positive_integer(self.depth, name="max_depth") > 16:
            raise InvalidParameter("max_depth must be at most 16: each level doubles the leaves")
        _ = self.counts, self.leaves(1)  # Refuses noise that no sampler draws, while nothing is paid.

    @property
    def counts(self) -> CellCounts:
        """Of each feature, and of all rows where their number is not public."""
        share = self.mu_squared * _COUNTS / (self.features + (self.rows is None))
        return CellCounts(cells=CELLS, relation=self.relation, mu_squared=share)

    def leaves(self, depth: int) -> CellCounts:
        """Of each tree."""
        share = self.mu_squared * (1 - _COUNTS) / self.trees
        return CellCounts(cells=self.classes << depth, relation=self.relation, mu_squared=share)

    @property
    def event(self) -> events.GDP:
        counted = (self.features + (self.rows is None)) * self.counts.event.mu_squared
        return events.GDP(mu_squared=counted + self.trees * self.leaves(1).event.mu_squared)

    def depth_for(self, total: float) -> int:
        """Choose how deep trees are, so that most leaves have more rows than noise."""
        if self.depth is not None:
            return self.depth
        leaves = total / (_ROWS * math.sqrt(float(self.leaves(1).variance)))
        return min(max(int(math.log2(max(leaves, 2.0))), _SHALLOW), _DEEP)


class RandomTree(NamedTuple):
    """A tree whose levels each have one feature and one cut; one row of chances a leaf. All of it is public."""

    features: Integers
    cuts: Integers  # the first cell of the upper half
    chances: Floats

    def places(self, cells: Integers) -> Integers:
        """Return the leaf of each row; each row by itself."""
        found = np.zeros(len(cells), dtype=np.int64)
        for feature, cut in zip(self.features, self.cuts, strict=True):
            found = 2 * found + (cells[:, feature] >= cut)
        return found


def grown(plan: ForestPlan, steps: Integers, codes: Integers) -> tuple[RandomTree, ...]:
    """Grow a forest on rows in steps from -HALF to HALF with classes 0, 1, …. It must have been paid for."""
    cells, counts, total = cells_of(steps), plan.counts, plan.rows
    if total is None:
        everybody = np.zeros(len(cells), dtype=np.int64)
        total = round(max(float(replace(counts, cells=1).measure(everybody)[0]), 1.0))
    told = [smoothed(counts.measure(column), float(counts.variance), total) for column in cells.T]
    ends = [np.nonzero(np.diff(grouped(sizes, _GROUPS)))[0] + 1 for sizes in told]
    depth = plan.depth_for(total)
    leaves = plan.leaves(depth)
    trees = []
    for _ in range(plan.trees):
        tree = _drawn(depth, ends)
        measured = leaves.measure(tree.places(cells) * plan.classes + codes)
        trees.append(tree._replace(chances=_chances(measured.reshape(-1, plan.classes), float(leaves.variance))))
    return tuple(trees)


def _drawn(depth: int, ends: list[Integers]) -> RandomTree:
    """Draw a feature for each level, and for each a cut between two of its groups."""
    features = noise.uniform(len(ends), size=depth)
    cuts = [int(one[noise.uniform(len(one))]) if len(one) else CELLS for one in (ends[place] for place in features)]
    return RandomTree(features, np.array(cuts, dtype=np.int64), np.zeros((0, 0)))


def _chances(counts: Floats, variance: float) -> Floats:
    """Return the chance of each class in each leaf: from the root down, each node starts from its parent.

    How far it goes from there follows from how many rows it has next to noise and to chance. It is free.
    """
    classes, levels = counts.shape[1], [counts]
    while len(levels[-1]) > 1:
        levels.append(levels[-1].reshape(-1, 2, classes).sum(axis=1))
    chances = np.full((1, classes), 1 / classes)
    for level in reversed(levels):
        before = chances if len(level) == 1 else np.repeat(chances, 2, axis=0)
        rows = np.maximum(level.sum(axis=1, keepdims=True), 0.0)
        moved = level - level.sum(axis=1, keepdims=True) * before
        hidden = variance * len(counts) / len(level) * ((1 - before) ** 2 + (classes - 1) * before**2)
        spread = rows * (0.5 if len(level) == 1 else _SPREAD) ** 2
        weights = spread / (rows * spread + hidden + rows * before * (1 - before) + 1e-9)
        chances = np.clip(before + weights * moved, 0.01 / classes, 1.0)
        chances = chances / chances.sum(axis=1, keepdims=True)
    return np.asarray(chances, dtype=np.float64)


class RandomForestClassifier(PrivatePredictor, ClassifierMixin, BaseEstimator):
    """Classify by the mean of many random trees with noisy counts in their leaves.

    Each level of a tree has one feature and one cut, drawn by chance between groups that noisy counts give. All rows
    are in every tree. The share of each class in a leaf is drawn to that of its parents by how noisy it is.

    Guarantee   (epsilon, delta), for all counts together.
    Theorem     See `ForestPlan`.
    Utility     noise of sqrt(trees) / mu on each count of a leaf; mu is about epsilon / 4. `BoostedTreesClassifier` was
                the better one on all tables that were measured: it looks at what is left to explain.

    Args:
        epsilon: What a fit spends.
        delta: The delta that goes with epsilon.
        bounds: Public pairs or `dp.between(…)` of the columns, in order or by name; a step before may declare them.
        classes: The public classes.
        n_estimators: How many trees.
        max_depth: How deep trees are; chosen by how many rows there are next to noise, if not said.
        relation: The neighbouring relation, as `Relation` or as "add-remove" or "replace-one".
        public_rows: About how many rows there are, a public number.
        session: Who pays, a `Ledger` or a `Session`; it is charged before the rows are read. Nobody if not said.

    Examples:
        >>> import numpy as np
        >>> X = np.linspace(-1, 1, 2000)[:, None]
        >>> y = (abs(X[:, 0]) > 0.5).astype(int)
        >>> model = dp.learn.sklearn.RandomForestClassifier(epsilon=2, delta=1e-6, bounds=(-1, 1), classes=[0, 1])
        >>> bool(model.fit(X, y).score(X, y) > 0.8)
        True
    """

    _stored_as: ClassVar[str] = "RandomForestClassifier"

    keeps_rows_alone = True
    classes_: NDArray[Any]
    _trees: tuple[RandomTree, ...]

    def __init__(
        self,
        *,
        epsilon: Number,
        delta: Number,
        bounds: FeatureBounds | None = None,
        classes: Any = None,
        n_estimators: int = 32,
        max_depth: int | None = None,
        relation: str | Relation = "add-remove",
        public_rows: int | None = None,
        session: Payer | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.classes = classes
        self.n_estimators = n_estimators
        self.max_depth = max_depth
        self.relation = relation
        self.public_rows = public_rows
        self.session = session

    def fit(self, X: Any, y: Any, *, unit: Any = None, max_rows: int | None = None) -> Self:
        """Pay, draw trees and count; with `unit`, ids one a row, whole units are protected, each weighing the same."""
        table = self._table(X, y, unit=unit, max_rows=max_rows).filled()
        classes = table.classes(self.classes, has_session=self.session is not None)
        if len(classes) < 2:
            raise InvalidParameter("a classifier needs at least two classes; there is one class, or none, here")
        plan = ForestPlan(
            features=self.n_features_in_,
            classes=len(classes),
            trees=positive_integer(self.n_estimators, name="n_estimators"),
            relation=self._relation(),
            mu_squared=1 / self._row_gaussian(table).squared_multiplier,
            rows=None if table.people is None else table.people * table.max_rows,
            depth=self.max_depth,
        )
        with self._paid(table.event_of(plan.event), delta=self._delta(table.people), whom=table.whom):
            codes = table.codes(classes)
            inside = codes >= 0  # A label that is no class adds nothing to any count.
            self.classes_, self.frame_ = classes, table.frame
            self._trees = grown(plan, table.steps()[inside], codes[inside])
            return self

    def predict_proba(self, X: Any) -> Floats:
        """Return the chance of each class."""
        cells = cells_of(np.rint(self._seen(X) * HALF).astype(np.int64))
        found = np.zeros((len(cells), len(self.classes_)))
        for tree in self._trees:
            found += tree.chances[tree.places(cells)]
        return found / len(self._trees)

    def predict_log_proba(self, X: Any) -> Floats:
        """Return the logarithms of the chances."""
        logs: Floats = np.log(self.predict_proba(X))
        return logs

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the likeliest class."""
        places = self.predict_proba(X).argmax(axis=1)
        found: NDArray[Any] = self.classes_[places]
        return found
