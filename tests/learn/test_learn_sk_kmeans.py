"""k-means: the joint sensitivity of a step by all neighbours, and centres near to those without noise."""

from __future__ import annotations

import pickle
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from learn.sk_purse import Purse, Watched
from sklearn import cluster
from sklearn.base import clone
from statistical import fits, rejects

import discreet as dp
from discreet.errors import InvalidParameter
from discreet.lab.verify.small_worlds import neighbours, worlds
from discreet.learn.sklearn.kmeans import (
    CellCounts,
    ClusterSums,
    KMeans,
    StartGrid,
    _about,
    grid_shape,
    nearest,
    spread_points,
)
from discreet.noise.laws import RoundedGaussianLaw
from discreet.privacy.relation import Relation

ADD_REMOVE, REPLACE_ONE = BOTH = (Relation.ADD_REMOVE, Relation.REPLACE_ONE)
REACH = 2
RECORDS = tuple((*x, label) for x in product((-2, 0, 1, 2), repeat=2) for label in (0, 1))
MADE = np.random.default_rng(4)
HOMES = np.array([[0.0, 0.0], [6.0, 0.0], [0.0, 6.0]])
ROWS = HOMES[MADE.integers(0, 3, size=6000)] + MADE.normal(size=(6000, 2)) * 0.5


def sums(relation: Relation, **fields: Any) -> ClusterSums:
    known: dict[str, Any] = {"dimension": 2, "clusters": 2, "mu_squared": Fraction(1, 7), "reach": REACH}
    return ClusterSums(relation=relation, **(known | fields))


def largest(subject: ClusterSums, records: Any, relation: Relation) -> Fraction:
    """The largest squared distance, in units of the noise, over all neighbours of at most two rows."""
    found = worlds(records, (1, 2) if relation is REPLACE_ONE else (0, 1, 2))
    told = []
    for data in found:
        table = np.array(data, dtype=np.int64).reshape(-1, 3)
        told.append(subject.exact(table[:, :2], table[:, 2]))
    one, other = np.array(neighbours(found, relation)).T
    blocks = (np.stack([answer[block].ravel() for answer in told]) for block in range(2))
    apart = np.stack([((block[one] - block[other]) ** 2).sum(axis=1) for block in blocks], axis=1)
    return max(
        sizes / subject.size_variance + totals / subject.sum_variance
        for sizes, totals in np.unique(apart, axis=0).tolist()
    )


@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize("size_weight", [Fraction(1, 10), Fraction(2), Fraction(5)])
def test_claim_dominates_brute_force(size_weight: Fraction, relation: Relation) -> None:
    subject = sums(relation, size_weight=size_weight)
    assert subject.event.mu_squared == subject.mu_squared
    assert largest(subject, RECORDS, relation) == subject.mu_squared


def test_one_cluster_is_billed_for_a_row_that_stays() -> None:
    subject = sums(REPLACE_ONE, clusters=1)
    assert largest(subject, [(*x, 0) for x in product((-2, 0, 2), repeat=2)], REPLACE_ONE) == subject.mu_squared


def test_mutants_are_caught() -> None:
    adding = sums(ADD_REMOVE)
    assert largest(adding, RECORDS, REPLACE_ONE) > adding.mu_squared
    # A row that changes its cluster, forgotten: with precise sizes it is the worst neighbour.
    replacing = sums(REPLACE_ONE, size_weight=Fraction(5))
    staying = [record for record in RECORDS if record[2] == 0]
    assert largest(replacing, staying, REPLACE_ONE) < replacing.mu_squared
    # The length of a row bounded as if it had one column.
    billed = (adding.size_weight + 1) * adding.precision
    assert largest(adding, [(2, 2, 0)], ADD_REMOVE) > billed


@pytest.mark.statistical
def test_noise_follows_its_law() -> None:
    subject = sums(ADD_REMOVE, clusters=2000, mu_squared=Fraction(3))
    measured = subject.measure(np.zeros((0, 2), np.int64), np.zeros(0, np.int64))
    for sample, variance in (
        (measured.sizes, subject.size_variance),
        (measured.sums.ravel() * REACH, subject.sum_variance),
    ):
        steps = np.rint(sample).astype(np.int64)
        assert fits(steps, RoundedGaussianLaw(variance))
        assert rejects(steps, RoundedGaussianLaw(2 * variance))
        assert rejects(steps, RoundedGaussianLaw(variance / 2))


def kmeans(**fields: Any) -> KMeans:
    return KMeans(**({"n_clusters": 3, "epsilon": 2, "delta": 1e-6, "bounds": (-10, 10)} | fields))


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_centres_are_found(relation: str) -> None:
    fit = kmeans(relation=relation).fit(ROWS)
    apart = np.linalg.norm(fit.cluster_centers_[:, None] - HOMES, axis=2)
    assert sorted(apart.argmin(axis=1)) == [0, 1, 2]
    assert apart.min(axis=1).max() < 1
    assert fit.cluster_sizes_.sum() == pytest.approx(6000, rel=0.1)
    assert 1.99 < fit.privacy_spent_.epsilon <= 2


def test_without_noise_to_speak_of_it_is_lloyds_algorithm() -> None:
    ours = kmeans(epsilon=100_000, n_steps=30).fit(ROWS).cluster_centers_
    plain = cluster.KMeans(3, n_init=5, random_state=0).fit(ROWS).cluster_centers_
    assert np.sort(ours, axis=0) == pytest.approx(np.sort(plain, axis=0), abs=0.02)


def test_nothing_is_read_before_it_is_paid_for_and_labels_stay_where_they_are() -> None:
    purse = Purse()
    fit = kmeans(session=purse).fit(Watched(ROWS, purse))
    assert [event for event, _, _ in purse.charges] == [fit.privacy_spent_.event]
    assert not hasattr(fit, "labels_")
    empty = Purse(is_empty=True)
    with pytest.raises(dp.BudgetExceeded):
        kmeans(session=empty).fit(Watched(ROWS, empty))
    without = kmeans().fit(ROWS)
    assert (without.labels_ == without.predict(ROWS)).all()
    assert not hasattr(pickle.loads(pickle.dumps(without)), "labels_")


def test_with_a_session_no_value_is_an_error() -> None:
    odd = ROWS.copy()
    odd[0], odd[1, 0] = np.nan, np.inf
    assert kmeans(session=Purse()).fit(odd).predict(odd).shape == (6000,)


def test_the_cluster_of_a_row_depends_on_that_row_alone() -> None:
    rows, centres = MADE.normal(size=(200, 5)), MADE.normal(size=(4, 5))
    whole = nearest(rows, centres)
    assert [int(nearest(row[None], centres)[0]) for row in rows] == whole.tolist()
    assert nearest(np.zeros((1, 1)), np.array([[1.0], [-1.0]])).tolist() == [0]


CELLS = 3


def moved(subject: CellCounts, relation: Relation) -> Fraction:
    """The largest squared distance of counts, in units of the noise, over all neighbours of at most three rows."""
    found = worlds(range(CELLS), (1, 2, 3) if relation is REPLACE_ONE else (0, 1, 2, 3))
    told = np.array([subject.exact(np.array(data, dtype=np.int64)) for data in found])
    one, other = np.array(neighbours(found, relation)).T
    return Fraction(int(((told[one] - told[other]) ** 2).sum(axis=1).max())) / subject.variance


@pytest.mark.parametrize("relation", BOTH)
def test_cells_claim_what_brute_force_finds(relation: Relation) -> None:
    subject = CellCounts(cells=CELLS, relation=relation, mu_squared=Fraction(1, 7))
    assert moved(subject, relation) == subject.mu_squared == subject.event.mu_squared
    adding = CellCounts(cells=CELLS, relation=ADD_REMOVE, mu_squared=Fraction(1, 7))
    assert moved(adding, REPLACE_ONE) > adding.mu_squared  # A row that goes elsewhere, billed as one that comes.


@pytest.mark.statistical
def test_noise_of_cells_follows_its_law() -> None:
    subject = CellCounts(cells=4000, relation=ADD_REMOVE, mu_squared=Fraction(1, 9))
    steps = np.rint(subject.measure(np.zeros(0, np.int64))).astype(np.int64)
    assert fits(steps, RoundedGaussianLaw(subject.variance))
    assert rejects(steps, RoundedGaussianLaw(2 * subject.variance))


@pytest.mark.parametrize("dimension", [1, 2, 3, 4, 7])
def test_a_row_is_in_one_cell_which_depends_on_that_row_alone(dimension: int) -> None:
    grid = StartGrid(MADE.uniform(-0.9, 0.9, dimension), MADE.uniform(0.001, 0.6, dimension))
    rows = np.concatenate([MADE.uniform(-1, 1, (300, dimension)), np.ones((1, dimension)), -np.ones((1, dimension))])
    cut, parts = grid_shape(dimension)
    places = grid.places(rows)
    assert 0 <= places.min() <= places.max() < parts**cut == len(grid.centres())
    assert [int(grid.places(row[None])[0]) for row in rows] == places.tolist()
    assert (grid.places(grid.centres()) == np.arange(parts**cut)).all()


def test_rows_about_their_centres_stay_within_the_steps_and_alone() -> None:
    rows, centres = MADE.uniform(-1, 1, (300, 3)), MADE.uniform(-1, 1, (300, 3))
    reaches = np.array([1e-3, 0.1, 1.0])
    found = _about(rows, centres, reaches, 1 << 15)
    assert np.abs(found).max() == 1 << 15
    assert all(
        (_about(r[None], c[None], reaches, 1 << 15)[0] == f).all() for r, c, f in zip(rows, centres, found, strict=True)
    )


def test_all_parts_are_in_the_price() -> None:
    fit = kmeans(n_steps=3)
    fit.n_features_in_ = 2
    parts = fit._mechanisms(Fraction(1, 5))
    assert parts.event.mu_squared == Fraction(1, 5)
    assert len(parts.steps) == 3
    told = [parts.look.event.mu_squared, parts.start.event.mu_squared, *(step.event.mu_squared for step in parts.steps)]
    assert sum(told) == Fraction(1, 5)


CLEAR = {
    "corners": [[0, 0], [10, 0], [5, 9]],
    "line": [[1, 1], [5, 5], [9, 9]],
    "two near": [[1, 1], [3, 1], [9, 9]],
}


@pytest.mark.long
@pytest.mark.statistical
@pytest.mark.parametrize("homes", CLEAR.values(), ids=CLEAR)
def test_three_clear_clusters_are_found_in_nearly_every_fit(homes: list[list[float]]) -> None:
    """A start that was the same for everybody reached 12 times the best on the line, in every fit."""
    rows = np.repeat(np.array(homes, dtype=float), 334, axis=0)[:1000]
    rows = rows + 0.4 * np.random.default_rng(3).normal(size=rows.shape)
    best = cluster.KMeans(3, n_init=20, random_state=0).fit(rows).inertia_
    near = 0
    for _ in range(200):
        centres = KMeans(3, epsilon=1, delta=1e-6, bounds=(-2, 12)).fit(rows).cluster_centers_
        near += ((rows[:, None] - centres) ** 2).sum(axis=2).min(axis=1).sum() <= 1.5 * best
    assert near >= 190


@pytest.mark.parametrize(("count", "dimension"), [(1, 1), (5, 2), (8, 10)])
def test_starting_points_are_the_same_for_everybody_and_apart(count: int, dimension: int) -> None:
    points = spread_points(count, dimension)
    assert (points == spread_points(count, dimension)).all()
    assert points.shape == (count, dimension)
    assert np.abs(points).max() <= 1
    if count > 1:
        apart = np.linalg.norm(points[:, None] - points, axis=2) + 9 * np.eye(count)
        assert apart.min() > 0.5


def test_a_clone_keeps_its_parameters() -> None:
    assert clone(kmeans(n_steps=7)).n_steps == 7


@pytest.mark.parametrize("wrong", [{"n_clusters": 0}, {"n_steps": 0}, {"delta": None}, {"epsilon": 0}])
def test_nonsense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        kmeans(**wrong).fit(ROWS)
    with pytest.raises(InvalidParameter):
        sums(ADD_REMOVE, **({"reach": 1 << 16} if "delta" in wrong else {"clusters": 0}))
