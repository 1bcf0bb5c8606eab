"""k-means by Lloyd's steps with noisy sizes and sums."""

from __future__ import annotations

from fractions import Fraction
from math import isqrt
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClusterMixin

from discreet.exact import Number, positive_integer
from discreet.learn.sklearn.cell_counts import CellCounts
from discreet.learn.sklearn.class_laws import pooled
from discreet.learn.sklearn.class_moments import ClassMoments, coarser
from discreet.learn.sklearn.cluster_sums import Clusters, ClusterSums, nearest
from discreet.learn.sklearn.scaling import PrivateTransformer
from discreet.learn.sklearn.starting import StartGrid, Starts, grid_shape, heavy_starts, spread_points
from discreet.privacy.events import GDP
from discreet.privacy.payer import Payer
from discreet.privacy.relation import Relation
from discreet.robust.design import HALF

__all__ = ["KMeans"]

Floats: TypeAlias = NDArray[np.float64]

_LOOK = Fraction(1, 8)  # Of the budget, for the place and the spread of all rows.
_START = Fraction(1, 4)  # For a grid of counts, from which the first centres are found.
_SPREAD = 1.5  # Deviations from the mean within which centres begin.
_EMPTY = 3.0  # Deviations of noise below which a cluster is taken to be empty.
_FLOOR = 1e-6


class _KMeansMechanisms(NamedTuple):
    look: ClassMoments
    start: CellCounts
    steps: tuple[ClusterSums, ...]

    @property
    def event(self) -> GDP:
        """The squares of mu add up, whatever each step learns from those before it. [DRS22]"""
        parts = (self.look.event, self.start.event, *(step.event for step in self.steps))
        return GDP(mu_squared=sum((part.mu_squared for part in parts), Fraction(0)))


class KMeans(PrivateTransformer, ClusterMixin, BaseEstimator):
    """Find centres of clusters: some steps of rows to their nearest centre and centres to the mean of their rows.

    The mean and the spread of all rows are measured first, then how many rows each cell of a grid about the mean has,
    in the columns that spread most. From these noisy counts come the first centres, by as many searches as one likes,
    for they look at nothing else, and how far a row may be from its centre before it is clamped. A centre that seems to
    have no rows begins anew beside the largest cluster. The last of `n_steps` has half of their budget: it makes the
    centres that come out.

    Which cluster the rows of the table belong to is private. Where no session pays, `labels_` tells it as scikit-learn
    does, but it is never written with the model; `predict` tells it of any rows.

    Guarantee   (epsilon, delta), for the look, the grid and all steps together.
    Theorem     See `ClassMoments`, `CellCounts` and `ClusterSums`; the squares of mu add up. [DRS22]
    Utility     noise of about 1.5 sqrt(columns) / mu on each sum, in halves of the bounds; mu is about epsilon / 4.
                Clusters begin where they are if they have more than some 3 / mu rows in a cell of the grid.
    """

    _stored_as: ClassVar[str] = "KMeans"

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        epsilon: Number,
        delta: Number | None = None,
        bounds: Any = None,
        n_steps: int = 2,
        relation: str | Relation = "add-remove",
        public_size: int | None = None,
        session: Payer | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.n_steps = n_steps
        self.relation = relation
        self.public_size = public_size
        self.session = session

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the centres."""
        table = self._table(X)
        gaussian = self._gaussian(table.people)
        mechanisms = self._mechanisms(1 / gaussian.squared_multiplier)
        self._pay(mechanisms.event, delta=gaussian.delta or Fraction(0))
        self.frame_ = table.frame
        steps = table.steps()
        middle, half = self._middle_and_half()
        centres, self.cluster_sizes_ = _found(mechanisms, steps)
        self.cluster_centers_ = middle + half * centres
        self.n_iter_ = len(mechanisms.steps)
        if self.session is None:
            self.labels_ = self.predict(X)
        return self

    def _mechanisms(self, mu_squared: Fraction) -> _KMeansMechanisms:
        clusters, times = (
            positive_integer(self.n_clusters, name="n_clusters"),
            positive_integer(self.n_steps, name="n_steps"),
        )
        weight = Fraction(max(1, isqrt(self.n_features_in_)), 2)
        cut, parts = grid_shape(self.n_features_in_)
        rest = (1 - _LOOK - _START) * mu_squared
        return _KMeansMechanisms(
            ClassMoments(
                dimension=self.n_features_in_,
                classes=1,
                relation=self._relation(),
                mu_squared=_LOOK * mu_squared,
                count_weight=weight,
            ),
            CellCounts(cells=parts**cut, relation=self._relation(), mu_squared=_START * mu_squared),
            tuple(
                ClusterSums(
                    dimension=self.n_features_in_,
                    clusters=clusters,
                    relation=self._relation(),
                    mu_squared=share * rest,
                    size_weight=weight,
                )
                for share in _shares(times)
            ),
        )

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return the place of the nearest centre of each row. Rows stay as private as they were."""
        moved = self._moved(X)
        middle, half = self._middle_and_half()
        return nearest(middle + half * moved, self.cluster_centers_)

    def __getstate__(self) -> Any:
        """Leave out the labels: they are rows of the table, not of the model."""
        state = super().__getstate__()
        return {name: value for name, value in state.items() if name != "labels_"}


def _shares(times: int) -> list[Fraction]:
    """Divide the budget of the steps: the last one has half of it."""
    return [Fraction(1)] if times == 1 else [*[Fraction(1, 2 * (times - 1))] * (times - 1), Fraction(1, 2)]


def _found(mechanisms: _KMeansMechanisms, steps: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Return the centres and the sizes of the last step, in the frame."""
    look, clusters = mechanisms.look, mechanisms.steps[0].clusters
    seen = pooled(look.measure(coarser(steps, look.reach), np.zeros(len(steps), dtype=np.int64)), _FLOOR)
    means, deviations = seen.means[0], np.sqrt(seen.variances[0])
    points = spread_points(clusters, look.dimension)
    centres, reaches = _begun(mechanisms.start, steps, means, deviations, points)
    rows, sizes = steps / HALF, np.zeros(clusters)
    for place, step in enumerate(mechanisms.steps, start=1):
        labels = nearest(rows, centres)
        measured = step.measure(_about(rows, centres[labels], reaches, step.reach), labels)
        centres, sizes = _moved_to_means(measured, centres, reaches), measured.sizes
        if place < len(mechanisms.steps):
            centres = _begun_anew(measured, centres, deviations * points)
    return centres, sizes


def _begun(start: CellCounts, steps: NDArray[np.int64], means: Floats, deviations: Floats, points: Floats) -> Starts:
    """Measure the grid, and find the first centres on it."""
    grid = StartGrid(means, deviations)
    counts = start.measure(grid.places(steps / HALF))
    others = np.clip(means + _SPREAD * deviations * points, -1, 1)
    return heavy_starts(grid, counts, float(start.variance) ** 0.5, others)


def _about(rows: Floats, centres: Floats, reaches: Floats, steps: int) -> NDArray[np.int64]:
    """Return rows about their centres, clamped to the reach, in whole steps; each by itself. This is private."""
    return np.rint(np.clip((rows - centres) / reaches, -1.0, 1.0) * steps).astype(np.int64)


def _moved_to_means(measured: Clusters, centres: Floats, reaches: Floats) -> Floats:
    """Move centres to the means of their rows, as far as these are told through the noise."""
    sizes = np.maximum(measured.sizes, 1.0)[:, None]
    means = np.clip(centres + reaches * np.clip(measured.sums / sizes, -1, 1), -1, 1)
    told = measured.sizes[:, None] > _EMPTY * measured.size_deviation
    found: Floats = np.where(told, means, centres)
    return found


def _begun_anew(measured: Clusters, centres: Floats, directions: Floats) -> Floats:
    """Put centres that seem to have no rows beside those that have most."""
    empty = np.flatnonzero(measured.sizes <= _EMPTY * measured.size_deviation)
    largest = np.argsort(measured.sizes)[::-1]
    moved = centres.copy()
    for place, cluster in enumerate(empty.tolist()):
        moved[cluster] = np.clip(centres[largest[place % len(largest)]] + directions[cluster] / 2, -1, 1)
    return moved
