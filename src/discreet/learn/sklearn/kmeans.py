"""k-means by Lloyd's steps with noisy sizes and sums."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias, final

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClusterMixin

from discreet import noise
from discreet.errors import InvalidParameter
from discreet.exact import Number, positive, positive_integer
from discreet.learn.sklearn.moments import ClassMoments, coarser, pooled
from discreet.learn.sklearn.transformers import PrivateTransformer
from discreet.mechanisms.parameters import settle
from discreet.noise.limits import check_noise_variance, finest_radius
from discreet.privacy import events
from discreet.privacy.events import GDP
from discreet.privacy.payer import Payer
from discreet.privacy.relation import Relation, read_relation
from discreet.robust.regression_design import HALF

__all__ = [
    "CellCounts",
    "ClusterSums",
    "Clusters",
    "KMeans",
    "StartGrid",
    "Starts",
    "grid_shape",
    "heavy_starts",
    "nearest",
    "spread_points",
]

# --- cell_counts ---
# How many rows each cell of a public grid has: one Gaussian release, in which a row is in one cell.


Integers: TypeAlias = NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CellCounts:
    """Count the rows of each cell.

    Guarantee   Gaussian privacy with mu^2 = `mu_squared`, for all cells together.
    Theorem     A row is in one cell: with or without it one count differs by 1. A replaced row that goes elsewhere
                moves two counts by 1 each, a squared distance of 2. [DRS22]
    Utility     noise of 1 / mu on every count, however many cells there are.
    """

    cells: int
    relation: Relation
    mu_squared: Fraction

    def __post_init__(self) -> None:
        settle(self, relation=read_relation(self.relation))
        settle(
            self,
            cells=positive_integer(self.cells, name="cells"),
            mu_squared=positive(self.mu_squared, name="mu_squared"),
        )
        check_noise_variance(self.variance)

    @property
    def loss(self) -> int:
        """The squared distance by which one row moves all counts together."""
        return 1 if self.relation is Relation.ADD_REMOVE else 2

    @property
    def variance(self) -> Fraction:
        return self.loss / self.mu_squared

    @property
    def event(self) -> events.GDP:
        return events.GDP(mu_squared=self.loss / self.variance)

    def exact(self, places: Integers) -> Integers:
        """Return the counts; they are private."""
        return np.bincount(places, minlength=self.cells)[: self.cells].astype(np.int64)

    def measure(self, places: Integers) -> Floats:
        """Add noise; the caller answers for every row being in one cell."""
        counts = self.exact(places) + noise.rounded_gaussian(size=self.cells, variance=self.variance)
        return counts.astype(np.float64)


# --- cluster_sums: How many rows each cluster has and their sum: one Gaussian release with one joint sensitivity. ---


_FINEST = 1 << 15  # Steps from the middle to a bound.


class Clusters(NamedTuple):
    """Noisy sizes and sums in the frame in which bounds are -1 and 1, one row a cluster."""

    sizes: Floats
    sums: Floats
    size_deviation: float
    sum_deviation: float


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSums:
    """Measure the size and the sum of each cluster, for rows of whole numbers within [-reach, reach].

    Guarantee   Gaussian privacy with mu^2 = `mu_squared`, for all clusters together.
    Theorem     In the frame, with precisions q of sizes and 1 of sums, one row has the squared norm q + |x|^2 <= q + d,
                and belongs to one cluster. A replaced row that stays moves one sum by at most 2 sqrt(d); one that goes
                elsewhere moves two clusters, each by the norm of a row. [DRS22]
    Utility     noise of about sqrt(d) / mu on every sum, in the frame, whatever the number of clusters.
    """

    dimension: int
    clusters: int
    relation: Relation
    mu_squared: Fraction
    size_weight: Fraction = Fraction(1)  # q: how precise sizes are, next to sums
    reach: int = 0  # in steps; the finest that samplers take, unless given

    def __post_init__(self) -> None:
        settle(self, relation=read_relation(self.relation))
        settle(
            self,
            dimension=positive_integer(self.dimension, name="dimension"),
            clusters=positive_integer(self.clusters, name="clusters"),
            mu_squared=positive(self.mu_squared, name="mu_squared"),
            size_weight=positive(self.size_weight, name="size_weight"),
        )
        settle(self, reach=positive_integer(self.reach or self._finest(), name="reach"))
        if self.reach > _FINEST:
            raise InvalidParameter(f"reach must be at most {_FINEST} steps")
        check_noise_variance(self.size_variance)
        check_noise_variance(self.sum_variance)

    @property
    def loss(self) -> Fraction:
        """What one row costs, squared, where sums in the frame have noise of variance one."""
        row = self.size_weight + self.dimension
        if self.relation is Relation.ADD_REMOVE:
            return row
        within = Fraction(4 * self.dimension)
        return max(within, 2 * row) if self.clusters > 1 else within

    @property
    def precision(self) -> Fraction:
        """One over the variance of sums in the frame, as large as mu allows."""
        return self.mu_squared / self.loss

    @property
    def size_variance(self) -> Fraction:
        return 1 / (self.precision * self.size_weight)

    @property
    def sum_variance(self) -> Fraction:
        """In squared steps."""
        return self.reach**2 / self.precision

    @property
    def event(self) -> events.GDP:
        return events.GDP(mu_squared=self.loss * self.precision)

    def exact(self, rows: Integers, labels: Integers) -> tuple[Integers, Integers]:
        """Return sizes and sums, one row a cluster. They are private."""
        sizes = np.bincount(labels, minlength=self.clusters)[: self.clusters].astype(np.int64)
        sums = np.zeros((self.clusters, self.dimension), dtype=np.int64)
        np.add.at(sums, labels, rows)
        return sizes, sums

    def measure(self, rows: Integers, labels: Integers) -> Clusters:
        """Add noise; the caller answers for the bounds of every row."""
        sizes, sums = self.exact(rows, labels)
        sizes = sizes + noise.rounded_gaussian(size=self.clusters, variance=self.size_variance)
        sums = sums + noise.rounded_gaussian(size=sums.shape, variance=self.sum_variance)
        return Clusters(
            sizes=sizes.astype(np.float64),
            sums=sums / float(self.reach),
            size_deviation=float(self.size_variance) ** 0.5,
            sum_deviation=float(self.sum_variance) ** 0.5 / self.reach,
        )

    def _finest(self) -> int:
        """Return the largest power of two with which no noise is too wide, whatever the relation."""
        precision = self.mu_squared / (4 * self.dimension + 2 * self.size_weight)
        return finest_radius(precision, power=2, most=_FINEST, least=2)


def nearest(rows: Floats, centres: Floats) -> Integers:
    """Return the place of the nearest centre of each row, the first where several are.

    Squares are added up one column after the other, so that a row's cluster depends on that row alone.
    """
    apart = np.zeros((len(rows), len(centres)))
    for column, entries in zip(rows.T, centres.T, strict=True):
        apart += (column[:, None] - entries) ** 2
    found: Integers = apart.argmin(axis=1).astype(np.int64)
    return found


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

    Args:
        n_clusters: How many clusters.
        epsilon: What a fit spends.
        delta: The delta that goes with epsilon.
        bounds: Public pairs or `dp.between(…)` of the columns, in order or by name; a step before may declare them.
        n_steps: How many steps of rows to centres and centres to means.
        relation: The neighbouring relation, as `Relation` or as "add-remove" or "replace-one".
        public_rows: About how many rows there are, a public number.
        session: Who pays, a `Ledger` or a `Session`; it is charged before the rows are read. Nobody if not said.

    Examples:
        >>> import numpy as np
        >>> X = np.repeat([[-5.0, 0.0], [5.0, 0.0]], 500, axis=0)
        >>> dp.learn.sklearn.KMeans(2, epsilon=5, delta=1e-6, bounds=[(-10, 10)] * 2).fit(X).cluster_centers_.shape
        (2, 2)
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
        public_rows: int | None = None,
        session: Payer | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.n_steps = n_steps
        self.relation = relation
        self.public_rows = public_rows
        self.session = session

    def fit(self, X: Any, y: Any = None, *, unit: Any = None, max_rows: int | None = None) -> Self:
        """Find the centres; with `unit`, of rows that weigh one for each person together."""
        table = self._table(X, unit=unit, max_rows=max_rows).filled()
        gaussian = self._row_gaussian(table)
        mechanisms = self._mechanisms(1 / gaussian.squared_multiplier)
        with self._paid(table.event_of(mechanisms.event), delta=gaussian.delta or Fraction(0), whom=table.whom):
            self.frame_ = table.frame
            steps = table.steps()
            middle, half = self._middle_and_half()
            centres, sizes = _found(mechanisms, steps)
            self.cluster_sizes_ = sizes / table.max_rows
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


# --- starting ---
# Where a search for clusters begins: at heavy cells of a noisy grid, or evenly spread where these say nothing.


_TRIED = 64  # Points to choose from, for each that is chosen.
_CUTS = (32, 16, 8, 5)  # Of each column, by how many columns are cut: 32 to 625 cells.
_WIDE = 2.5  # Deviations from the mean that the grid reaches; rows beyond are in its outermost cells.
_SEEN = 5.0  # Deviations of noise above which a cell is taken to have rows.
_STARTS = 24  # Of the search on the grid, which costs nothing.
_ROUNDS = 30
_REACH = 3.0  # Deviations from a centre within which rows are not clamped.


def grid_shape(dimension: int) -> tuple[int, int]:
    """Return how many columns are cut, and into how many parts each: a public fact."""
    cut = min(dimension, len(_CUTS))
    return cut, _CUTS[cut - 1]


@final
@dataclass(frozen=True, slots=True, eq=False)
class StartGrid:
    """Cells about the noisy mean of all rows, in the columns that spread most. All of it is public."""

    means: Floats
    deviations: Floats

    @property
    def columns(self) -> Integers:
        found: Integers = np.sort(np.argsort(-self.deviations, kind="stable")[: grid_shape(len(self.means))[0]])
        return found

    @property
    def ends(self) -> tuple[Floats, Floats]:
        middle, reach = self.means[self.columns], _WIDE * self.deviations[self.columns]
        return np.clip(middle - reach, -1, 1), np.clip(middle + reach, -1, 1)

    def places(self, rows: Floats) -> Integers:
        """Return the cell of each row, which depends on that row alone. This is private."""
        parts = grid_shape(len(self.means))[1]
        found = np.zeros(len(rows), dtype=np.int64)
        for column, low, high in zip(self.columns, *self.ends, strict=True):
            cut = np.floor((rows[:, column] - low) * (parts / max(high - low, 1e-300)))
            found = found * parts + np.clip(cut, 0, parts - 1).astype(np.int64)
        return found

    def widths(self) -> Floats:
        """Return how wide a cell is in each column, 0 in those that are not cut."""
        low, high = self.ends
        found = np.zeros_like(self.means)
        found[self.columns] = (high - low) / grid_shape(len(self.means))[1]
        return found

    def centres(self) -> Floats:
        """Return the middle of each cell; in columns that are not cut, the mean of all rows."""
        cut, parts = grid_shape(len(self.means))
        places = np.stack(np.unravel_index(np.arange(parts**cut), (parts,) * cut), axis=1)
        low, high = self.ends
        found = np.tile(self.means, (parts**cut, 1))
        found[:, self.columns] = low + (places + 0.5) * (high - low) / parts
        return found


class Starts(NamedTuple):
    """The first centres, and how far from its centre a row may reach in each column before it is clamped."""

    centres: Floats
    reaches: Floats


def heavy_starts(grid: StartGrid, counts: Floats, deviation: float, others: Floats) -> Starts:
    """Return as many centres as `others` from noisy counts: the best of many searches, all free of charge.

    What seems empty counts for nothing. Where fewer cells are seen than centres are wanted, the rest are `others`, and
    rows may reach as far as they spread altogether.
    """
    seen = counts > _SEEN * deviation
    points, weights = grid.centres()[seen], counts[seen]
    wanted = min(len(others), len(points))
    everywhere = np.minimum(_REACH * grid.deviations, 1.0)
    if not wanted:
        return Starts(others, everywhere)
    firsts = np.argsort(-weights, kind="stable")[:_STARTS]
    found = [_searched(points, weights, _far_apart(points, weights, int(first), wanted)) for first in firsts]
    best = min(found, key=lambda centres: _spread(points, weights, centres))
    if wanted < len(others):
        return Starts(np.concatenate([best, others[wanted:]]), everywhere)
    widths = grid.widths()
    near = _REACH * _deviations_within(points, weights, best) + widths
    return Starts(best, np.where(widths > 0, np.minimum(near, everywhere), everywhere))


def _deviations_within(points: Floats, weights: Floats, centres: Floats) -> Floats:
    """Return the largest spread of a cluster in each column."""
    share = _starting_shares(points, weights, centres)
    squares = np.einsum("pk,pkd->kd", share, (points[:, None, :] - centres[None, :, :]) ** 2)
    found: Floats = np.sqrt(squares / np.maximum(share.sum(axis=0), 1e-300)[:, None]).max(axis=0)
    return found


def _far_apart(points: Floats, weights: Floats, first: int, count: int) -> Floats:
    """Choose points one after the other, each where weight times squared distance to those before is largest."""
    chosen = [first]
    apart = _squares(points, points[chosen])[:, 0]
    while len(chosen) < count:
        chosen.append(int((weights * apart).argmax()))
        apart = np.minimum(apart, _squares(points, points[chosen[-1:]])[:, 0])
    return points[chosen]


def _searched(points: Floats, weights: Floats, centres: Floats) -> Floats:
    """Take Lloyd's steps on weighted points."""
    for _ in range(_ROUNDS):
        share = _starting_shares(points, weights, centres)
        total = share.sum(axis=0)
        means = share.T @ points / np.maximum(total, 1e-300)[:, None]
        moved = np.where(total[:, None] > 0, means, centres)
        if np.array_equal(moved, centres):
            break
        centres = moved
    return centres


def _starting_shares(points: Floats, weights: Floats, centres: Floats) -> Floats:
    """Return the weight of each point in the column of its nearest centre."""
    near = _squares(points, centres).argmin(axis=1)
    found: Floats = (near[:, None] == np.arange(len(centres))) * weights[:, None]
    return found


def _spread(points: Floats, weights: Floats, centres: Floats) -> float:
    return float((weights * _squares(points, centres).min(axis=1)).sum())


def _squares(points: Floats, centres: Floats) -> Floats:
    found: Floats = ((points[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2)
    return found


def spread_points(count: int, dimension: int) -> Floats:
    """Return points of [-1, 1]^d that are far from each other: no chance, and no data, is in them.

    Each is the farthest from those before it, out of many that fill the cube evenly: multiples of powers of the root of
    x^(d + 1) = x + 1, without their whole parts.
    """
    root = 2.0
    for _ in range(64):
        root = (1 + root) ** (1 / (dimension + 1))
    steps = (1 / root) ** np.arange(1, dimension + 1)
    cloud = 2 * ((0.5 + np.arange(_TRIED * count)[:, None] * steps) % 1) - 1
    chosen = [cloud[1 % len(cloud)]]
    apart = np.full(len(cloud), np.inf)
    for _ in range(count - 1):
        apart = np.minimum(apart, ((cloud - chosen[-1]) ** 2).sum(axis=1))
        chosen.append(cloud[apart.argmax()])
    return np.array(chosen)
