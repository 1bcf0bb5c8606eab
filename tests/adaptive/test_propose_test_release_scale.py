"""The interquartile range by a proposal on a logarithmic scale: places, bins, distances by definition, claims."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threshold_worlds import (
    GRID,
    NUMBERS,
    REPLACE_ONE,
    assert_pays_first,
    assert_refuses,
    distances_to,
    multisets,
    small,
)

from discreet.adaptive.interquartile_range import LogScale, QuartileDistance, propose_interquartile_range
from discreet.adaptive.no_answer import NO_ANSWER
from discreet.errors import DiscreetError
from discreet.lab import verify
from discreet.mechanisms import Grid
from discreet.privacy.events import ApproxDP, PureDP

RATIOS = st.fractions(Fraction(11, 10), 5, max_denominator=100)


@settings(max_examples=50)
@given(ratio=RATIOS, fineness=st.integers(1, 12), steps=st.integers(1, 10**4))
def test_a_place_is_where_the_power_says_for_all_scales(ratio: Fraction, fineness: int, steps: int) -> None:
    scale = LogScale(ratio=ratio, fineness=fineness)
    place = scale.place(steps)
    assert ratio**place <= steps**fineness < ratio ** (place + 1)
    assert scale.lower(place) <= steps <= scale.upper(place)
    assert scale.lower(place) <= scale.middle(place) <= scale.upper(place)


def test_whole_powers_are_where_they_belong() -> None:
    scale = LogScale(ratio=Fraction(2), fineness=3)
    assert [scale.place(2**k) for k in range(60)] == [3 * k for k in range(60)]
    assert [scale.place(2**k - 1) for k in range(3, 60)] == [3 * k - 1 for k in range(3, 60)]
    assert scale.bin(0) is None


@settings(max_examples=25)
@given(fineness=st.integers(1, 8), shift=st.integers(0, 7), steps=st.integers(1, 200))
def test_places_in_one_bin_are_fewer_than_fineness_apart(fineness: int, shift: int, steps: int) -> None:
    scale = LogScale(ratio=Fraction(2), fineness=fineness, shift=shift % fineness)
    same = [other for other in range(1, 200) if scale.bin(other) == scale.bin(steps)]
    assert max(map(scale.place, same)) - min(map(scale.place, same)) <= fineness - 1


def quartile_range(data: Any) -> int:
    """x_ceil(3n/4) - x_ceil(n/4), by definition."""
    ranked, n = sorted(data), len(data)
    return int(ranked[math.ceil(3 * n / 4) - 1] - ranked[math.ceil(n / 4) - 1])


@pytest.mark.parametrize("size", [2, 3, 4, 5, 6, 7])
@pytest.mark.parametrize("scale", [LogScale(ratio=Fraction(2), fineness=2), LogScale(ratio=Fraction(3), fineness=1)])
def test_distance_is_the_distance_to_another_bin(size: int, scale: LogScale) -> None:
    """C16, on all data sets of a size over five values."""
    found = multisets(NUMBERS, [size])
    query = QuartileDistance(grid=GRID, public_rows=size, scale=scale)
    bins = {data: scale.bin(quartile_range(data)) for data in found}
    for home in set(bins.values()):
        mine = [data for data in found if bins[data] == home]
        others = [data for data in found if bins[data] != home]
        for data, steps in zip(mine, distances_to(mine, others, REPLACE_ONE), strict=True):
            assert query.distance(data) == steps
            assert query.value(data) == quartile_range(data)


@pytest.mark.parametrize(("size", "fineness", "shift"), [(4, 1, 0), (4, 2, 1), (4, 3, 0), (6, 2, 0)])
def test_claim_holds_on_all_data_sets(size: int, fineness: int, shift: int) -> None:
    mechanism = propose_interquartile_range(
        grid=GRID, epsilon=4, delta="0.05", public_rows=size, ratio=2, fineness=fineness, shift=shift
    )
    report = verify.check(mechanism, small(NUMBERS, REPLACE_ONE, size), epsilons=[0, 2, 4])
    assert report.holds, str(report)


def test_a_release_billed_as_its_test_alone_is_refuted() -> None:
    """A range of 1 or of 7, in one bin and two steps from leaving it, told apart by noise for a small epsilon."""
    grid = Grid(low=Fraction(0), high=Fraction(7), step=Fraction(1), default=Fraction(0))
    mechanism = propose_interquartile_range(
        grid=grid, epsilon=4, delta="0.3", public_rows=7, ratio=8, fineness=3, test_share="1/4"
    )
    world = small((0, 1, 7), REPLACE_ONE, 7)
    assert verify.check(mechanism, world, claim=ApproxDP(1, "0.3")).violated
    assert verify.check(mechanism, world, claim=ApproxDP(4, "0.3")).holds


@pytest.mark.parametrize("fineness", [1, 32])
def test_a_scale_is_found_within_its_interval(fineness: int) -> None:
    values = np.random.default_rng(1).normal(0, 10, 20_001)
    mechanism = propose_interquartile_range(
        grid=Grid.between(-100, 100, step="0.001"),
        epsilon=2,
        delta="1e-6",
        public_rows=20_001,
        ratio="1.5",
        fineness=fineness,
    )
    assert mechanism.true_distance(values).value > mechanism.test.reliable_distance("0.999999999999")
    release = mechanism.release(values)
    low, high = release.interval("0.999999999")
    assert low <= Fraction(float(np.subtract(*np.percentile(values, [75, 25])))) <= high
    assert (high / low <= Fraction(3, 2) * Fraction(1001, 1000)) is (fineness == 1)
    assert release.cost == "ε = 2, δ = 1e-6"


def test_a_bin_that_is_told_without_noise_leaves_all_of_epsilon_to_the_test() -> None:
    whole, parts = (
        propose_interquartile_range(grid=GRID, epsilon=2, delta="0.1", public_rows=4, fineness=fineness)
        for fineness in (1, 2)
    )
    assert (whole.epsilon, parts.epsilon) == (2, 1)
    assert whole.mechanism.event == PureDP(0)


def test_no_spread_at_all_is_told_exactly_where_it_is_stable() -> None:
    mechanism = propose_interquartile_range(grid=GRID, epsilon=2, delta="1e-3", public_rows=1001)
    release = mechanism.release([3] * 1001)
    assert release.value == 0
    assert release.interval() == (0, 0)
    torn = [0] * 250 + [1] * 751
    assert mechanism.release(torn).value in (NO_ANSWER, 1)


def test_the_usual_ratio_is_one_plus_one_over_the_logarithm() -> None:
    for size in (2, 100, 10**6):
        mechanism: Any = propose_interquartile_range(grid=GRID, epsilon=1, delta="0.1", public_rows=size)
        ratio = mechanism.mechanism.query.scale.ratio
        assert float(ratio) == pytest.approx(1 + 1 / max(1, math.log(size)), rel=1e-3)


def test_pays_first_and_refuses_nonsense() -> None:
    good = {"grid": GRID, "epsilon": 1, "delta": "0.1", "public_rows": 4, "ratio": 2, "fineness": 2}
    assert_pays_first(propose_interquartile_range(**good), [0, 1, 2, 3])
    assert_refuses(propose_interquartile_range, good, numbers=["epsilon", "delta", "public_rows", "fineness"])
    for extra in (
        {"ratio": 1},
        {"ratio": "0.5"},
        {"ratio": 1 << 30},
        {"ratio": "x"},
        {"public_rows": 1},
        {"shift": 2},
        {"fineness": 5000},
    ):
        with pytest.raises(DiscreetError):
            propose_interquartile_range(**good | extra)
    assert replace(LogScale(ratio=Fraction(2), fineness=2), shift=1).bin(1) == 0
