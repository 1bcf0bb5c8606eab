"""Huber's location with smooth sensitivity and by proposal, against all small data sets."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import pytest
from robust_worlds import ADD_REMOVE, BOTH, GRID, REPLACE_ONE

from discreet.adaptive import ProposeTestRelease, SmoothSensitivityMechanism, check_smoothness, polynomial
from discreet.errors import InvalidParameter
from discreet.lab import verify
from discreet.mechanisms.grid import Grid
from discreet.privacy.relation import Relation
from discreet.robust import Huber, gross_error_sensitivity, huber_query, location_fit, propose_huber
from discreet.robust.huber_query import HuberQuery, ScoreSum, _Within

SMALL = [world for size in range(6) for world in combinations_with_replacement(range(6), size)]


def neighbours(relation: Relation) -> list[tuple[Any, Any]]:
    """All pairs of multisets of at most five values that differ in one unit."""
    found = []
    for world in SMALL:
        for place in range(len(world)):
            less = world[:place] + world[place + 1 :]
            if relation is ADD_REMOVE:
                found.append((world, less))
            else:
                found += [(world, tuple(sorted((*less, value)))) for value in range(6)]
    return found


def slow_value(world: Any, reach: int) -> int:
    """The definition."""
    return next(t for t in range(6) if sum(max(-reach, min(reach, x - t)) for x in world) <= 0)


@pytest.mark.parametrize("reach", [1, 2, 4])
def test_the_location_is_the_first_root_of_the_scores(reach: int) -> None:
    query = HuberQuery(grid=GRID, reach=reach, relation=REPLACE_ONE)
    for world in SMALL:
        assert query.value(list(world)) == slow_value(world, reach)


@pytest.mark.parametrize("reach", [1, 2])
@pytest.mark.parametrize("relation", BOTH)
def test_widths_dominate_brute_force_and_grow_by_one_distance(relation: Relation, reach: int) -> None:
    """No neighbour is farther than A_0, and A_k of a data set is at most A_(k+1) of each neighbour."""
    query = HuberQuery(grid=GRID, reach=reach, relation=relation)
    distances = np.arange(7)
    known = {world: (int(query.value(list(world))), query.widths(list(world), distances)) for world in SMALL}
    largest = 0
    for one, other in neighbours(relation):
        (here, widths), (there, others) = known[one], known[other]
        largest = max(largest, abs(here - there))
        assert abs(here - there) <= min(widths[0], others[0])
        assert np.all(widths[:-1] <= others[1:])
        assert np.all(others[:-1] <= widths[1:])
    assert largest > 0


@pytest.mark.parametrize("relation", BOTH)
def test_the_distance_of_a_proposal_moves_by_one_at_most(relation: Relation) -> None:
    query = HuberQuery(grid=GRID, reach=1, relation=relation)
    values = {world: query.value(list(world)) for world in SMALL}
    for bound in (1, 2, 4):
        known = {world: query.distance(list(world), bound) for world in SMALL}
        for one, other in neighbours(relation):
            assert abs(known[one] - known[other]) <= 1
            if abs(values[one] - values[other]) > bound:
                assert known[one] == known[other] == 1


@pytest.mark.parametrize("relation", BOTH)
def test_the_bound_is_smooth_on_small_worlds(relation: Relation) -> None:
    sizes = range(4) if relation is ADD_REMOVE else [4]
    query = HuberQuery(grid=GRID, reach=1, relation=relation)
    assert check_smoothness(query, verify_worlds(sizes), beta=Fraction(1, 2)).holds


def verify_worlds(sizes: Any) -> list[list[int]]:
    return [list(world) for size in sizes for world in combinations_with_replacement(range(6), size)]


@pytest.mark.parametrize("relation", BOTH)
def test_smooth_noise_keeps_its_promise_on_small_worlds(relation: Relation) -> None:
    query = HuberQuery(grid=GRID, reach=1, relation=relation)
    mechanism = SmoothSensitivityMechanism(query=query, recipe=polynomial(epsilon=2, beta="0.3"))
    sizes = [0, 1, 2] if relation is ADD_REMOVE else [3]
    assert verify.check(mechanism, verify.worlds(range(6), sizes)).holds


@pytest.mark.parametrize("relation", BOTH)
def test_proposing_keeps_its_promise_on_small_worlds(relation: Relation) -> None:
    mechanism = propose_huber(
        grid=GRID, scale=1, bound=1, epsilon=4, delta="0.01", relation=relation, test_share=Fraction(1, 2)
    )
    sizes = [0, 1, 2, 3] if relation is ADD_REMOVE else [4]
    assert verify.check(mechanism, verify.worlds(range(6), sizes), deltas=["0.01"]).holds


def test_where_one_value_decides_the_bound_is_the_whole_range() -> None:
    """501 zeros and 500 hundreds: noise by the gross error sensitivity would be 0.19 wide here."""
    grid = Grid.between(0, 100, step="0.1")
    query = huber_query(grid=grid, scale=1, relation=REPLACE_ONE)
    data = np.array([0.0] * 501 + [100.0] * 500)
    assert query.widths(data, np.arange(1))[0] > 950
    calm = np.linspace(49, 51, 1001)
    assert query.widths(calm, np.arange(1))[0] < 10
    assert query.distance(data, 10) == 1
    assert query.distance(calm, 10) > 10


def test_the_query_agrees_with_the_exact_fit() -> None:
    grid = Grid.between(-100, 100, step="0.001")
    data = np.random.default_rng(5).standard_t(3, size=999)
    found = float(huber_query(grid=grid, scale=1, relation=ADD_REMOVE).value(data) * grid.step)
    assert found == pytest.approx(location_fit(data, scale=1).value.estimates[0], abs=0.002)


def test_score_sums_agree_with_the_definition() -> None:
    values = np.array([-5, -5, 0, 1, 7, 20])
    score = ScoreSum.of(values, 3)
    places = np.arange(-10, 25)
    slow = np.array([sum(max(-3, min(3, int(x) - int(t))) for x in values) for t in places])
    assert np.array_equal(score.at(places), slow)
    for level in range(-20, 20):
        first = next((int(t) for t, s in zip(places, slow, strict=True) if s <= level), 24)
        assert score.first_at_most(np.array([level]), -10, 24)[0] == first


@pytest.mark.parametrize("bound", [0, -1, 5, 6, float("nan")])
def test_a_proposal_that_says_nothing_is_refused(bound: float) -> None:
    with pytest.raises(InvalidParameter):
        propose_huber(grid=GRID, scale=1, bound=bound, epsilon=1, delta="1e-6", relation=ADD_REMOVE)


def test_a_grid_that_is_too_fine_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="step"):
        huber_query(grid=Grid.between(0, 1 << 31, step=1), scale=1, relation=ADD_REMOVE)
    assert math.isfinite(float(huber_query(grid=GRID, scale=1, relation=ADD_REMOVE).value([])))


@pytest.mark.parametrize("reach", [1, 2])
def test_the_test_covers_the_fixed_scale_gross_error_sensitivity_for_all_small_worlds(reach: int) -> None:
    """LS <= (2 / n) max_i GES_(1/n) of the data without value i, and GES_(1/n) / n <= A_0."""
    query = HuberQuery(grid=GRID, reach=reach, relation=REPLACE_ONE)
    for world in SMALL:
        if len(world) < 2:
            continue
        here, width = slow_value(world, reach), int(query.widths(world, np.arange(1))[0])
        local, fixed_scale = 0, 0
        for place in range(len(world)):
            less = world[:place] + world[place + 1 :]
            moved = [slow_value((*less, value), reach) for value in range(6)]
            local = max(local, *(abs(there - here) for there in moved))
            fixed_scale = max(fixed_scale, *(abs(there - slow_value(less, reach)) for there in moved))
        assert local <= 2 * fixed_scale
        assert max(local, fixed_scale) <= width


def test_a_test_of_the_gross_error_sensitivity_is_refuted_however_far_it_looks() -> None:
    """Among columns of two far values all have a small one, so that no distance to a large one is finite."""
    worlds = verify.worlds((0, 5), [3])
    largest = max(gross_error_sensitivity(Huber(1), values=[float(value) for value in world]).value for world in worlds)
    proposal = math.ceil(2 * largest / 3)  # What the bound of the notes would be, in grid steps.
    assert proposal == 1
    query = HuberQuery(grid=GRID, reach=1, relation=REPLACE_ONE)
    noisy = _Within(query=query, bound=proposal, epsilon=Fraction(1, 2))
    passed = ProposeTestRelease(
        distance=lambda data: 10**6, mechanism=noisy, epsilon=Fraction(1, 2), delta=Fraction(1, 100)
    )
    assert verify.check(passed, worlds, deltas=["0.01"]).violated
    tested = propose_huber(grid=GRID, scale=1, psi=Huber(1), bound=1, epsilon=1, delta="0.01", relation=REPLACE_ONE)
    assert verify.check(tested, worlds, deltas=["0.01"]).holds
