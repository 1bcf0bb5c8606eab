"""Smooth sensitivities of order statistics are the definition, over all small data sets."""

from __future__ import annotations

import math
import time
from fractions import Fraction

import numpy as np
import pytest
from sensitivity_worlds import (
    ADD_REMOVE,
    HIGH,
    LOW,
    REPLACE_ONE,
    at_distances,
    data_sets,
    enclosed,
    halved,
    midpoint,
    order,
    quantile,
    trimmed,
    winsorised,
)

from discreet.adaptive import order_queries as exact
from discreet.adaptive.order_queries import local_winsorised_mean, winsorised_mean
from discreet.adaptive.smooth_query import RELATIVE_ERROR, Peak, highest
from discreet.balls import ball, precision
from discreet.mechanisms.order_statistics import Ranked

LOG_TWO = Fraction("0.693147180559945309417232")
BETAS = (Fraction(1, 20), Fraction(1, 3), Fraction(3, 2))


def sample(values) -> Ranked:
    return Ranked(np.array(values, np.int64), LOW, HIGH)


def subjects():
    """Name, size, relation, statistic, its smooth sensitivity, its local sensitivity at a distance."""
    for n in range(1, 7):
        for m in range(1, n + 1):
            yield pytest.param(
                n, REPLACE_ONE, order(m),
                lambda x, b, m=m: exact.rank(x, m, b),
                lambda x, k, m=m: exact.local_central_mean(x, m, m, k),
                id=f"rank {m} of {n}",
            )  # fmt: skip
        for ends in range(1, (n + 1) // 2):
            yield pytest.param(
                n, REPLACE_ONE, trimmed(ends),
                lambda x, b, ends=ends: exact.trimmed_mean(x, ends, b),
                lambda x, k, ends=ends, n=n: exact.local_central_mean(x, ends + 1, n - ends, k),
                id=f"mean of {n} without {ends} at each end",
            )  # fmt: skip
    for n in (2, 4, 6):
        yield pytest.param(
            n, REPLACE_ONE, midpoint, exact.midpoint_median,
            lambda x, k, n=n: exact.local_central_mean(x, n // 2, n // 2 + 1, k),
            id=f"midpoint of {n}",
        )  # fmt: skip
    for n in range(7):
        yield pytest.param(
            n, ADD_REMOVE, quantile(Fraction(1, 2)), exact.lower_median_add_remove,
            exact.local_lower_median_add_remove, marks=[pytest.mark.slow] if n > 5 else [],
            id=f"lower median of {n} under add-remove",
        )  # fmt: skip


@pytest.mark.parametrize(("n", "relation", "statistic", "smooth", "local"), list(subjects()))
def test_sensitivities_agree_with_the_definition_on_all_data_sets(n, relation, statistic, smooth, local) -> None:
    for x, heights in at_distances(statistic, n, relation).items():
        ranked = sample(x)
        assert [local(ranked, k) for k in range(n + 1)] == heights
        peak = smooth(ranked, LOG_TWO)
        assert peak.height / 2**peak.distance == halved(heights)


@pytest.mark.parametrize("beta", BETAS, ids=str)
def test_smooth_sensitivities_lie_in_the_enclosure_of_the_definition(beta: Fraction) -> None:
    subjects = [(order(3), exact.rank, (3,), REPLACE_ONE), (trimmed(1), exact.trimmed_mean, (1,), REPLACE_ONE)]
    subjects.append((quantile(Fraction(1, 2)), exact.lower_median_add_remove, (), ADD_REMOVE))
    with precision(128):
        for statistic, smooth, extra, relation in subjects:
            for x, heights in at_distances(statistic, 5 if relation is REPLACE_ONE else 3, relation).items():
                found = smooth(sample(x), *extra, beta).enclose(beta)
                assert abs(found / enclosed(heights, beta) - 1) < ball(RELATIVE_ERROR)


UPPER_BOUNDS = [
    *[(n, REPLACE_ONE, winsorised(ends), winsorised_mean, local_winsorised_mean, ends)
      for n, ends in ((1, 0), (3, 1), (4, 1), (5, 1), (5, 2), (6, 2))],
    *[(n, ADD_REMOVE, quantile(q), exact.quantile_add_remove, exact.local_quantile_add_remove, max(1, math.ceil(q * n)))
      for n in (0, 1, 3, 4) for q in map(Fraction, ("0", "1/4", "1/2", "0.9", "1"))],
]  # fmt: skip


@pytest.mark.parametrize(("n", "relation", "statistic", "smooth", "local", "where"), UPPER_BOUNDS)
def test_upper_bounds_dominate_brute_force(n, relation, statistic, smooth, local, where) -> None:
    for x, heights in at_distances(statistic, n, relation).items():
        ranked = sample(x)
        bounds = [local(ranked, where, k) for k in range(n + 2)]
        assert all(bound >= height for bound, height in zip(bounds, heights, strict=False))
        assert bounds == sorted(bounds)
        peak = smooth(ranked, where, LOG_TWO)
        assert peak.height / 2**peak.distance == halved(bounds) >= halved(heights)


def test_the_bound_for_quantiles_is_never_above_the_one_that_moves_two_ranks_a_step() -> None:
    """The coarser bound x_(m+2k+2) - x_(m-2k-2) is valid as well; ours must never exceed it."""
    for x in data_sets(5):
        ranked = sample(x)
        for m in range(1, 6):
            coarse = [int(np.ptp(ranked.between(m - 2 * k - 2, m + 2 * k + 2))) for k in range(6)]
            assert all(exact.local_quantile_add_remove(ranked, m, k) <= coarse[k] for k in range(6))


@pytest.mark.parametrize("beta", [1e-4, 0.01, 0.3, 5.0])
def test_the_maximum_found_by_halving_is_the_maximum_over_all_pairs(beta: float) -> None:
    source = np.random.default_rng(7)
    for trial in range(40):
        up, down = (_rising(source, int(source.integers(1, 60)), trial) for _ in range(2))
        t, s = np.indices((up.size, down.size))
        values = np.where(t + s > 0, (up[:, None] + down) * np.exp(-beta * (t + s - 1.0)), 0)
        assert highest(up, down, beta).approximate(beta) >= float(values.max()) * (1 - 1e-11)


def _rising(source: np.random.Generator, size: int, trial: int) -> np.ndarray:
    """Steps of very different heights, many of them none; a first entry of zero or above."""
    jumps = source.integers(0, 10 ** (trial % 12), size=size) * (source.random(size) < 0.5)
    return np.cumsum(jumps)


def test_far_peaks_are_found_though_no_float_holds_them() -> None:
    """All values are alike: the nearest other number is the bound, 4000 ranks away."""
    ranked = Ranked(np.zeros(4000, np.int64), 0, 10)
    assert exact.rank(ranked, 1, Fraction(1)) == Peak(Fraction(10), 3999)
    near = Ranked(np.array([0] * 4000 + [1] * 3), 0, 10)
    assert exact.rank(near, 1, Fraction(1)) == Peak(Fraction(1), 3999)  # and not (10, 4002)


def test_a_floor_is_kept_and_changes_nothing_above_it() -> None:
    ranked = Ranked(np.zeros(4000, np.int64), 0, 10)
    for smooth in (exact.lower_median_add_remove, _first, _extreme):
        assert smooth(ranked, Fraction(1), farthest=30) == Peak(Fraction(10), 30)
    for x in data_sets(4):
        for smooth in (exact.lower_median_add_remove, _first, _extreme):
            assert smooth(sample(x), Fraction(1), farthest=30) == smooth(sample(x), Fraction(1))


def _first(x: Ranked, beta: Fraction, *, farthest: int | None = None) -> Peak:
    return exact.central_mean(x, 1, 1, beta, farthest=farthest)


def _extreme(x: Ranked, beta: Fraction, *, farthest: int | None = None) -> Peak:
    return exact.quantile_add_remove(x, 1, beta, farthest=farthest)


def test_windows_of_ranks_are_those_of_a_sort_with_bounds_beyond() -> None:
    values = np.array([5, 1, 3, 3, 8, 0, 6, 2, 7, 4, 4, 1])
    whole = [LOW] * 3 + sorted(values.tolist()) + [HIGH] * 3
    for first in range(-2, 16):
        for last in range(first, 16):
            assert Ranked(values, LOW, HIGH).between(first, last).tolist() == whole[first + 2 : last + 3]


@pytest.mark.slow
def test_ten_million_values_cost_little_more_than_a_sort(capsys: pytest.CaptureFixture[str]) -> None:
    """Prints, never a gate: machines differ."""
    values = np.random.default_rng(1).integers(0, 10**6, size=10**7)
    began = time.perf_counter()
    ordered = np.sort(values)
    sorting = time.perf_counter() - began
    began = time.perf_counter()
    peak = exact.rank(Ranked(values, 0, 10**6), 5 * 10**6, Fraction(1, 10))
    taken = time.perf_counter() - began
    with capsys.disabled():
        print(f"\n10^7 values: sort {sorting:.2f} s, smooth sensitivity {taken:.2f} s, ratio {taken / sorting:.2f}")
    middle = ordered[5 * 10**6 - 200 : 5 * 10**6 + 200]
    assert peak == exact.rank(Ranked(middle, 0, 10**6), 200, Fraction(1, 10))
