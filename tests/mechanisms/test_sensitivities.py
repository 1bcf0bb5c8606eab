"""C05: over all small data sets no aggregate changes by more than its sensitivity, and some pair reaches it."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from subjects import ADD_REMOVE, BOTH, GRID, correlated, laplace, sizes

from discreet.lab.verify import sensitivity, squared_l2, worlds
from discreet.mechanisms import Count, Grid, Histogram, Mean, Proportion, Quantile, Sum, Variance, VectorMean
from discreet.privacy.relation import Relation

NOISE = laplace(1)
LOPSIDED = Grid(low=Fraction(-5), high=Fraction(2), step=Fraction(1), default=Fraction(-5))
ABOVE = Grid(low=Fraction(3), high=Fraction(7), step=Fraction(1, 2), default=Fraction(5))


def made(kind: Any, relation: Relation, size: int, **fields: Any) -> Any:
    known = {"public_rows": None if relation is ADD_REMOVE else size} if kind not in (Sum, Count, Histogram) else {}
    return kind(relation=relation, noise=NOISE, **fields, **known)


def small(relation: Relation, values: tuple[Any, ...], size: int) -> Any:
    return worlds(values, sizes(relation, size))


@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize("size", [2, 3, 4])
@pytest.mark.parametrize("grid", [GRID, LOPSIDED, ABOVE])
@pytest.mark.parametrize("kind", [Sum, Mean, Variance])
def test_statistics_change_by_their_sensitivity_and_no_more(
    kind: Any, grid: Grid, size: int, relation: Relation
) -> None:
    mechanism = made(kind, relation, size, grid=grid)
    values = (grid.low, grid.low + grid.step, grid.high)
    for measurement in mechanism.measurements:
        found = sensitivity(
            lambda data, ask=measurement.query: ask.evaluate(list(data)),
            small(relation, values, size),
            relation=relation,
        )
        assert found.value == measurement.query.sensitivity.l1
        assert measurement.query.sensitivity.squared_l2 == measurement.query.sensitivity.l1**2


@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize("kind", [Count, Proportion])
def test_counts_and_shares_change_by_their_sensitivity_and_no_more(kind: Any, relation: Relation) -> None:
    mechanism = made(kind, relation, 3)
    for measurement in mechanism.measurements:
        query = measurement.query.evaluate
        if kind is Proportion:
            query = lambda data, ask=query: ask([value is True for value in data])  # noqa: E731
        found = sensitivity(
            lambda data, ask=query: ask(list(data)), small(relation, (True, False, None), 3), relation=relation
        )
        assert found.value == measurement.query.sensitivity.l1


@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize("bins", [("a",), ("a", "b"), ("a", "b", "c")])
def test_histograms_change_by_their_sensitivity_and_no_more(bins: tuple[str, ...], relation: Relation) -> None:
    (measurement,) = made(Histogram, relation, 3, bins=bins).measurements
    world = small(relation, ("a", "b", "z"), 4)
    query, claimed = measurement.query.evaluate, measurement.query.sensitivity
    assert sensitivity(lambda data: query(list(data)), world, relation=relation).value == claimed.l1
    assert (
        sensitivity(lambda data: query(list(data)), world, relation=relation, distance=squared_l2).value
        == claimed.squared_l2
    )


def test_histogram_sensitivity_is_one_or_two() -> None:
    one, two = (made(Histogram, relation, 3, bins=("a", "b")).measurements[0].query.sensitivity for relation in BOTH)
    assert (one.l1, two.l1) == (1, 2)
    assert (one.squared_l2, two.squared_l2) == (1, 2)


@pytest.mark.parametrize("relation", BOTH)
def test_vector_means_change_by_their_sensitivity_and_no_more(relation: Relation) -> None:
    mechanism = VectorMean(
        bound=Fraction(5),
        step=Fraction(1),
        dimension=2,
        relation=relation,
        noise=NOISE,
        public_rows=None if relation is ADD_REMOVE else 2,
    )
    query, claimed = mechanism.measurements[0].query.evaluate, mechanism.measurements[0].query.sensitivity
    rows = ((3, 4), (-3, -4), (9, 0), (100, -100), (0, 0), (4, 4))
    world = small(relation, rows, 2)
    found = sensitivity(lambda data: query([list(row) for row in data]), world, relation=relation, distance=squared_l2)
    assert found.value == claimed.squared_l2
    # No whole vector of this length has the l1 norm that the bound allows for: at most, not equal.
    assert sensitivity(lambda data: query([list(row) for row in data]), world, relation=relation).value <= claimed.l1


@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize("q", ["0", "1/4", "1/2", "2/3", "9/10", "1"])
def test_rank_errors_change_by_their_sensitivity_and_no_more(q: str, relation: Relation) -> None:
    grid = Grid(low=Fraction(0), high=Fraction(4), step=Fraction(1), default=Fraction(2))
    mechanism = Quantile(quantile=Fraction(q), epsilon=Fraction(1), grid=grid, relation=relation)

    def most(one: Any, other: Any) -> Fraction:
        return Fraction(max(abs(a - b) for a, b in zip(one, other, strict=True)))

    found = sensitivity(
        lambda data: scores(mechanism, list(data)),
        small(relation, (0, 2, 4), 4),
        relation=relation,
        distance=most,
    )
    assert found.value == mechanism.sensitivity


def scores(mechanism: Quantile, data: list[int]) -> list[int]:
    """Return the score of every point of the grid, from the pieces."""
    starts, lengths, found = mechanism.pieces(data)
    points = {
        int(start) + place: int(score)
        for start, length, score in zip(starts, lengths, found, strict=True)
        for place in range(int(length))
    }
    return [points[index] for index in range(mechanism.grid.first, mechanism.grid.last + 1)]


@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize("fineness", [0, 1, 4, 24])
def test_rounding_of_turned_vectors_stays_within_what_is_charged(fineness: int, relation: Relation) -> None:
    mechanism = correlated(relation, fineness)
    variances = (Fraction(2), Fraction(1, 2))
    far = range(-3, 4)
    changes = [(1, 0), (0, 1)] if relation is ADD_REMOVE else [(1, 0), (0, 1), (1, -1)]
    worst = Fraction(0)
    for one in ((x, y) for x in far for y in far):
        for change in changes:
            other = (one[0] + change[0], one[1] + change[1])
            steps = zip(mechanism.turned(one), mechanism.turned(other), mechanism.steps, variances, strict=True)
            worst = max(worst, sum(((a - b) * step) ** 2 / variance for a, b, step, variance in steps))
    assert mechanism.squared_sensitivity / 2 < worst <= mechanism.charged
    assert mechanism.charged <= mechanism.squared_sensitivity * (1 + Fraction(8, 2**fineness))
