"""Queries that a user supplies, and the search for a counterexample to their bounds."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any

import pytest
from smooth_worlds import ADD_REMOVE, GRID, HALVES, REPLACE_ONE, VALUES, LowerMedian, bounded, local_sensitivity

from discreet.adaptive.noise_recipes import polynomial
from discreet.adaptive.smooth_mechanisms import SmoothSensitivityMechanism
from discreet.adaptive.smooth_query import DistanceQuery, Highest, Peak
from discreet.adaptive.smoothness_check import check_smoothness
from discreet.balls import precision
from discreet.errors import InvalidParameter
from discreet.lab import verify
from discreet.lab.verify import worlds
from discreet.mechanisms import Grid

MEDIAN = LowerMedian()
SMALL = list(worlds(VALUES, range(1, 6)))


def supplied(**fields: Any) -> DistanceQuery:
    given = {"evaluate": MEDIAN.value, "local_sensitivity_at_distance": local_sensitivity, "grid": GRID}
    return DistanceQuery(**given | {"relation": REPLACE_ONE} | fields)


@pytest.mark.parametrize("beta", ["0.05", "0.3", "2"])
def test_the_largest_faded_local_sensitivity_is_the_smooth_one(beta: str) -> None:
    """Down to 1/256 of a step, from which on a bound need not be followed."""
    smooth = Fraction(beta)
    for data in combinations_with_replacement(VALUES, 5):
        with precision(128):
            found = float(supplied().smooth_bound(data, smooth).enclose(smooth))
            exact = float(MEDIAN.smooth_bound(data, smooth).enclose(smooth))
        assert found == pytest.approx(max(exact, 1 / 256), rel=1e-9, abs=1 / 256 * 2)


@pytest.mark.parametrize("beta", ["0.05", "0.3", "2"])
def test_a_supplied_distance_gives_a_smooth_bound(beta: str) -> None:
    found = check_smoothness(supplied(), SMALL, beta=beta)
    assert found.holds
    assert found.pairs > 1000
    assert found.growth == pytest.approx(float(beta), rel=1e-9)
    assert "no violation" in str(found)


@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE_ONE])
def test_the_smooth_sensitivity_of_the_median_is_smooth(relation: Any) -> None:
    found = check_smoothness(LowerMedian(relation), worlds(VALUES, range(6)), beta="0.2")
    assert found.holds
    assert found.growth > 0.19


def test_a_supplied_query_is_a_verified_mechanism() -> None:
    mechanism = SmoothSensitivityMechanism(query=supplied(), recipe=polynomial(1, beta="0.1"))
    assert verify.check(mechanism, worlds(VALUES, [3, 4])).holds
    assert mechanism.release([1, 3, 6]).value.denominator == 1


def test_a_bound_that_never_wakes_up_still_fades_and_stays_smooth() -> None:
    """Where all local sensitivities are said to be zero, the range itself is faded for as long as a step counts."""
    beta = Fraction(1, 4)
    query = supplied(evaluate=lambda data: Fraction(0), local_sensitivity_at_distance=lambda data, k: Fraction(0))
    with precision(128):
        found = float(query.smooth_bound((1, 2), beta).enclose(beta))
    assert 0 < found <= 1 / 256
    assert check_smoothness(query, SMALL, beta=beta).growth < 1e-30


def test_a_supplied_sensitivity_is_cut_at_the_range_and_values_at_the_bounds() -> None:
    query = supplied(evaluate=lambda data: Fraction(99), local_sensitivity_at_distance=lambda data, k: Fraction(10**9))
    with precision(128):
        assert float(query.smooth_bound((1,), Fraction(1)).enclose(Fraction(1))) == GRID.width
    assert query.value((1,)) == GRID.last
    low = bounded(lambda data: Fraction(-5), lambda data, beta: Peak(Fraction(1), 0), grid=HALVES)
    assert low.value((1,)) == HALVES.first


def test_the_highest_of_peaks_is_the_largest_number() -> None:
    beta = Fraction(1, 3)
    peaks = (Peak(Fraction(5), 2), Peak(Fraction(3), 0), Peak(Fraction(9), 9))
    with precision(128):
        assert float(Highest(peaks).enclose(beta)) == pytest.approx(max(3, 5 * math.exp(-2 / 3)))


def test_the_local_sensitivity_is_refuted_as_a_smooth_bound() -> None:
    found = check_smoothness(bounded(MEDIAN.value, lambda d, b: Peak(local_sensitivity(d, 0), 0)), SMALL, beta="0.1")
    assert not found.holds
    assert found.uneven is not None
    assert found.exceeded is None
    assert found.growth > 1
    assert str(found).startswith("refuted: the bound grows")


def test_a_bound_without_distance_zero_is_refuted() -> None:
    """The largest 2^(-k epsilon) A_k over k >= 1, as a set of lecture notes has it."""

    def without_zero(data: Any, beta: Fraction) -> Peak:
        decay = math.log(2) * 2
        best = max(range(1, 6), key=lambda k: float(local_sensitivity(data, k)) * math.exp(-decay * k))
        return Peak(Fraction(float(local_sensitivity(data, best)) * math.exp(-decay * best)), 0)

    found = check_smoothness(bounded(MEDIAN.value, without_zero), SMALL, beta=2)
    assert not found.holds
    assert found.exceeded is not None
    assert "below a change of the value" in str(found)
    one, other = found.exceeded
    assert abs(MEDIAN.value(one) - MEDIAN.value(other)) > 0


def test_a_bound_that_is_zero_somewhere_is_refuted() -> None:
    query = bounded(lambda data: Fraction(0), lambda d, b: Peak(Fraction(d[0] != 0), 0))
    found = check_smoothness(query, SMALL, beta=1)
    assert not found.holds
    assert math.isinf(found.growth)


def test_an_error_of_values_and_of_bounds_is_allowed_for() -> None:
    """A bound that is off by a tenth both ways is smooth enough for a beta that leaves room for it, and says so."""

    def rough(data: Any, beta: Fraction) -> Peak:
        peak = MEDIAN.smooth_bound(data, beta)
        return Peak(peak.height * (Fraction(11, 10) if sum(data) % 2 else Fraction(10, 11)), peak.distance)

    told = bounded(MEDIAN.value, rough, relative_error=Fraction(1, 10))
    assert check_smoothness(told, SMALL, beta="0.3").holds
    assert not check_smoothness(bounded(MEDIAN.value, rough), SMALL, beta="0.3").holds


def test_a_world_without_neighbours_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="no two neighbours"):
        check_smoothness(MEDIAN, [(1, 2)], beta=1)
    with pytest.raises(InvalidParameter, match="no two neighbours"):
        check_smoothness(LowerMedian(ADD_REMOVE), [(1, 2), (3, 4)], beta=1)


@pytest.mark.parametrize("bad", [0, -1, math.nan, "x", None, True])
def test_a_beta_that_is_nonsense_is_refused(bad: Any) -> None:
    with pytest.raises(InvalidParameter):
        check_smoothness(MEDIAN, SMALL, beta=bad)


def test_a_wide_grid_costs_no_more_distances_than_it_takes_to_fade() -> None:
    asked: list[int] = []

    def watched(data: Any, distance: int) -> Fraction:
        asked.append(distance)
        return Fraction(distance == 3)

    grid = Grid.between(0, 10**6, step=1)
    supplied(local_sensitivity_at_distance=watched, grid=grid).smooth_bound((1,), Fraction(1, 10))
    # 10^6 e^(-k / 10) is below e^-0.3 from k = 142 on.
    assert max(asked) <= 142
