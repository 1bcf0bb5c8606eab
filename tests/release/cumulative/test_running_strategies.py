"""Every strategy gives back the totals, its sensitivity dominates brute force, and its errors are those it tells."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import accumulate, combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import InvalidParameter
from discreet.release.cumulative.strategies import (
    MOST_DAYS,
    ONE,
    DayTree,
    Strategy,
    best,
    dailies,
    largest_error,
    least_error,
    root_up,
    scaled_root,
    square_root,
    strategies,
    totals,
)

MAKERS: dict[str, Callable[[int], Strategy]] = {
    "tree": DayTree,
    "dailies": dailies,
    "totals": totals,
    "root": square_root,
    "scaled root": scaled_root,
}
EXACT = [name for name in MAKERS if name != "scaled root"]


def matrix(strategy: Strategy) -> list[list[int]]:
    """All measurements, one row each, in steps."""
    days = strategy.days
    return [[*row, *[0] * (days - len(row))] for day in range(days) for row in strategy.weights(day)]


def brute_force(strategy: Strategy, most: int) -> int:
    """The largest squared change over all sets of at most so many days."""
    rows = matrix(strategy)
    chosen = (days for size in range(1, most + 1) for days in combinations(range(strategy.days), size))
    return max(sum(sum(row[day] for day in days) ** 2 for row in rows) for days in chosen)


def measured(strategy: Strategy, counts: list[int]) -> list[list[int]]:
    return [
        [sum(w * x for w, x in zip(row, counts, strict=False)) for row in strategy.weights(day)]
        for day in range(len(counts))
    ]


@pytest.mark.parametrize("name", MAKERS)
@given(counts=st.lists(st.integers(-(10**9), 10**9), min_size=1, max_size=40), more=st.integers(0, 5))
@settings(max_examples=25, deadline=None)
def test_without_noise_the_totals_come_back_for_all_counts(name: str, counts: list[int], more: int) -> None:
    strategy = MAKERS[name](len(counts) + more)
    found = strategy.totals(measured(strategy, counts))
    assert len(found) == len(counts)
    for total, exact in zip(found, accumulate(counts), strict=True):
        assert abs(total - exact) < Fraction(1, 2**40)


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("days", range(1, 8))
def test_sensitivity_dominates_brute_force(name: str, days: int) -> None:
    strategy = MAKERS[name](days)
    for most in range(1, days + 1):
        worst, claimed = brute_force(strategy, most), strategy.squared_sensitivity(most)
        assert claimed >= worst
        if name in EXACT or most == 1:
            assert claimed == worst
        else:
            assert claimed <= Fraction(110, 100) * worst


@pytest.mark.slow
@pytest.mark.parametrize("name", MAKERS)
def test_sensitivity_dominates_brute_force_on_twelve_days(name: str) -> None:
    strategy = MAKERS[name](12)
    for most in range(1, 13):
        assert strategy.squared_sensitivity(most) >= brute_force(strategy, most)


def test_the_length_of_one_column_is_not_enough_for_two_days() -> None:
    """Wrong: one person more on one day. Brute force shows what a person on two days does."""
    strategy = square_root(6)
    assert strategy.squared_sensitivity(1) < brute_force(strategy, 2)
    assert 2 * strategy.squared_sensitivity(1) < brute_force(strategy, 2)  # The two do not just add up, either.


@pytest.mark.parametrize("name", MAKERS)
def test_variances_and_reaches_agree_with_dense_algebra(name: str) -> None:
    days = 21
    strategy = MAKERS[name](days)
    rows = np.array(matrix(strategy), dtype=float) / ONE
    # Columns of the combination: what one measurement that is off by one does to all totals.
    ends = np.cumsum([len(strategy.weights(day)) for day in range(days)])
    combination = np.zeros((days, len(rows)))
    for place in range(len(rows)):
        wrong = [0] * len(rows)
        wrong[place] = ONE
        split = [wrong[end - len(strategy.weights(day)) : end] for day, end in enumerate(ends)]
        combination[:, place] = [float(total) for total in strategy.totals(split)]
    assert np.allclose(combination @ rows, np.tril(np.ones((days, days))), atol=1e-9)
    assert np.allclose(np.square(combination).sum(axis=1), [float(one) for one in strategy.variances()], rtol=1e-9)
    assert np.allclose(np.abs(combination).sum(axis=1), [float(one) for one in strategy.reaches()], rtol=1e-9)


def test_a_total_never_looks_ahead() -> None:
    for make in MAKERS.values():
        whole = measured(make(16), list(range(16)))
        assert make(16).totals(whole)[:9] == make(16).totals(whole[:9])


def test_tree_variances_are_those_of_the_full_least_squares_within_a_stretch() -> None:
    """At the end of a full tree no other unbiased combination of its measurements is better."""
    days = 16
    strategy = DayTree(days)
    rows = np.array(matrix(strategy), dtype=float) / ONE
    best_variance = np.ones(days) @ np.linalg.inv(rows.T @ rows) @ np.ones(days)
    assert float(strategy.variances()[-1]) == pytest.approx(best_variance, rel=1e-12)


@pytest.mark.parametrize(("days", "most"), [(1, 1), (2, 1), (30, 1), (30, 5), (30, 30), (365, 1), (365, 100)])
def test_the_best_strategy_errs_least(days: int, most: int) -> None:
    chosen = best(days, most)
    assert all(largest_error(chosen, most) <= largest_error(one, most) for one in strategies(days))


def test_a_year_of_totals_errs_little_more_than_anything_can() -> None:
    """The figures of docs/running.md."""
    found = {one.name: largest_error(one, 1) for one in strategies(365)}
    assert found["scaled square root"] == pytest.approx(2.759, abs=1e-3)
    assert found["square root"] == pytest.approx(2.944, abs=1e-3)
    assert found["binary tree"] == pytest.approx(6.574, abs=1e-3)
    assert found["independent totals"] == pytest.approx(365**0.5, abs=1e-6)
    assert found["sums of daily counts"] == pytest.approx(365**0.5, abs=1e-6)
    assert least_error(365) == pytest.approx(2.583, abs=1e-3)
    assert best(365, 1).name == "scaled square root"


@pytest.mark.parametrize("days", [1, 2, 3, 10, 50])
@pytest.mark.parametrize("most", [1, 2, 7])
def test_no_strategy_goes_below_the_bound(days: int, most: int) -> None:
    counted = min(days, most)
    for one in strategies(days):
        sensitivity = one.squared_sensitivity(counted) / ONE**2
        mean = sensitivity * float(sum(one.variances())) / days
        assert mean**0.5 >= least_error(days, counted) * (1 - 1e-9)


def test_the_bound_is_the_nuclear_norm_of_running_sums() -> None:
    for days in (1, 2, 5, 40):
        exact = np.linalg.svd(np.tril(np.ones((days, days))), compute_uv=False).sum() / days
        assert least_error(days) == pytest.approx(exact, rel=1e-9)
        assert least_error(days) <= exact


def test_a_root_is_never_below() -> None:
    for value in (Fraction(0), Fraction(2), Fraction(1, 3), Fraction(10**12), Fraction(1, 10**9)):
        assert root_up(value) ** 2 >= value
        assert float(root_up(value)) == pytest.approx(float(value) ** 0.5, abs=4e-6)


@pytest.mark.parametrize("days", [0, -1, MOST_DAYS + 1])
def test_a_series_of_no_days_or_of_a_century_is_refused(days: int) -> None:
    with pytest.raises(InvalidParameter):
        strategies(days)


def test_ten_years_are_priced() -> None:
    assert square_root(MOST_DAYS).squared_sensitivity(1) > square_root(365).squared_sensitivity(1)
