"""Partition selection: the recursion, its closed form, the best that privacy allows, and not more."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statistical import clopper_pearson, fits, rejects
from threshold_worlds import ADD_REMOVE, BOTH, LETTERS, REPLACE_ONE, assert_pays_first, assert_refuses, small

from discreet.adaptive.bounded_memberships import Memberships
from discreet.adaptive.partition_selection import OptimalPartitionSelection, partition_probability
from discreet.balls import ball, precision
from discreet.errors import DiscreetError
from discreet.lab import verify
from discreet.privacy.events import ApproxDP

EPSILONS = st.fractions(Fraction(1, 50), 8, max_denominator=1000)
DELTAS = st.fractions(Fraction(1, 10**12), Fraction(1, 3), max_denominator=10**12)


def selection(relation: Any, epsilon: Any = 1, delta: Any = "0.01", bins: int = 1) -> OptimalPartitionSelection:
    return OptimalPartitionSelection(epsilon=epsilon, delta=delta, relation=relation, bins_per_unit=bins)


@settings(max_examples=15, deadline=None)
@given(epsilon=EPSILONS, delta=DELTAS)
def test_closed_form_is_the_recursion_for_all_budgets(epsilon: Fraction, delta: Fraction) -> None:
    mechanism = selection(ADD_REMOVE, epsilon, delta)
    with precision(1024):
        power, chance, p = ball(epsilon).exp(), ball(delta), ball(0)
        for count in range(60):
            found = mechanism.release_probability(count)
            assert found.overlaps(p)
            assert found.rad() < ball(Fraction(1, 2**700))
            p = (power * p + chance).min(1 - (1 - p - chance) / power).min(ball(1))


@settings(max_examples=15, deadline=None)
@given(epsilon=EPSILONS, delta=DELTAS, count=st.integers(0, 200))
def test_one_more_unit_stays_within_both_bounds_for_all_counts(epsilon: Fraction, delta: Fraction, count: int) -> None:
    """And one of the two is reached, or the chance is one: no mechanism names a bin more often."""
    mechanism, tiny = selection(ADD_REMOVE, epsilon, delta), ball(Fraction(1, 2**300))
    with precision(512):
        one, more = (mechanism.release_probability(n) for n in (count, count + 1))
        power = ball(epsilon).exp()
        room = [power * one + ball(delta) - more, power * (1 - more) + ball(delta) - (1 - one)]
        assert all(left > -tiny for left in room)
        assert any(abs(left) < tiny for left in room) or (more - 1).is_zero()
        assert more + tiny > one


@pytest.mark.parametrize("epsilon", ["0.1", 1, 4])
@pytest.mark.parametrize("delta", ["0.3", "1e-5", "1e-12"])
def test_one_person_alone_is_named_with_chance_delta(epsilon: Any, delta: str) -> None:
    """C14: the chance of a bin that one person opens, as an exact number."""
    assert partition_probability(0, epsilon=epsilon, delta=delta) == 0
    assert 0 < partition_probability(1, epsilon=epsilon, delta=delta) <= Fraction(delta)
    assert partition_probability(10**9, epsilon=epsilon, delta=delta) == 1
    ladder = [partition_probability(n, epsilon=epsilon, delta=delta) for n in range(0, 400, 7)]
    assert ladder == sorted(ladder)


def test_tiny_epsilons_and_huge_counts_take_no_time() -> None:
    assert 0.017 < partition_probability(10**6, epsilon="1e-6", delta="1e-8") < 0.018
    assert partition_probability(10**30, epsilon="1e-25", delta="1e-20") == 1
    assert partition_probability(2, epsilon=600, delta="1e-20") > 1 - Fraction(1, 10**19)


@pytest.mark.parametrize("relation", BOTH)
def test_claim_holds_on_all_data_sets_of_six_over_five_keys(relation: Any) -> None:
    report = verify.check(selection(relation), small(LETTERS, relation, 6))
    assert report.holds, str(report)
    assert report.lower >= report.claimed / 2.1


@pytest.mark.parametrize("relation", BOTH)
def test_claim_holds_where_one_bin_falls_silent_as_another_is_named(relation: Any) -> None:
    """A unit that changes its bin uses up the delta of two: that of rising chances and that of falling ones."""
    report = verify.check(selection(relation, 1, "0.25"), small(["a", "b"], relation, 4))
    assert report.holds, str(report)


BASKETS = [(), ("a",), ("a", "b"), ("b", "c"), ("a", "b", "c")]


def baskets(data: Any) -> Memberships:
    """Units that bring several keys each."""
    rows = [(unit, key) for unit, keys in enumerate(data) for key in keys]
    return Memberships([unit for unit, _ in rows], [key for _, key in rows])


@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize("bins", [1, 2])
def test_claim_holds_where_units_bring_more_keys_than_count(relation: Any, bins: int) -> None:
    report = verify.check(selection(relation, bins=bins), small(BASKETS, relation, 3), query=baskets)
    assert report.holds, str(report)


@pytest.mark.parametrize(
    ("wrong", "relation", "keys"),
    [
        (selection(ADD_REMOVE, bins=1), ADD_REMOVE, [(), ("a", "b")]),
        (selection(ADD_REMOVE, "0.2", "0.2"), REPLACE_ONE, [("a",), ("b",)]),
    ],
    ids=["two bins billed as one", "replaced billed as removed"],
)
def test_wrong_bills_are_refuted(wrong: Any, relation: Any, keys: Any) -> None:
    """Two bins of one unit, each with the whole budget; and one unit that leaves a bin and enters another."""

    class Whole:
        symmetric = True

        def distribution(self, data: Any) -> Any:
            flat = [key for unit in data for key in unit]
            return wrong.distribution(flat)

    report = verify.check(Whole(), small(keys, relation, 6), relation=relation, claim=wrong.event)
    assert report.violated


def test_only_keys_come_out_in_an_order_that_data_do_not_set() -> None:
    mechanism = selection(ADD_REMOVE, 10, "0.5")
    one = mechanism.release(["b"] * 50 + ["a"] * 50 + [2] * 50)
    other = mechanism.release([2] * 50 + ["a"] * 60 + ["b"] * 70)
    assert one.value == other.value == (2, "a", "b")
    assert one.event == ApproxDP(10, "0.5")
    with pytest.raises(DiscreetError):
        one.interval()


@pytest.mark.statistical
def test_release_follows_distribution() -> None:
    mechanism, data = selection(ADD_REMOVE, 1, "0.1"), list("aaaaabbbccd")
    with precision(128):
        masses = mechanism.distribution(data).masses
        wrong = mechanism.distribution([*data, "d", "d", "b"]).masses
    places = {outcome: place for place, outcome in enumerate(masses)}
    sample = [places[mechanism.release(data).value] for _ in range(300)]
    assert fits(sample, [float(mass) for mass in masses.values()])
    assert rejects(sample, [float(wrong[outcome]) for outcome in places])


@pytest.mark.statistical
@pytest.mark.parametrize("bins", [1, 8])
def test_singletons_are_named_no_more_often_than_delta(bins: int) -> None:
    """C14: bins of one unit each; twice the chance would be seen."""
    mechanism, units = selection(ADD_REMOVE, 1, "0.08", bins), 100_000 // bins
    data = Memberships(np.repeat(np.arange(units), bins), np.arange(units * bins))
    low, high = clopper_pearson(len(mechanism.release(data).value), units * bins)
    assert low <= 0.08 / bins <= high
    assert high < 0.16 / bins


def test_reliable_count_is_the_least() -> None:
    mechanism = selection(ADD_REMOVE, 1, "1e-5")
    count = mechanism.reliable_count("0.99")
    assert partition_probability(count, epsilon=1, delta="1e-5") >= Fraction(99, 100)
    assert partition_probability(count - 1, epsilon=1, delta="1e-5") < Fraction(99, 100)


def test_pays_first_and_refuses_nonsense() -> None:
    assert_pays_first(selection(REPLACE_ONE), ["a", "b"])
    good = {"epsilon": 1, "delta": "0.1", "relation": ADD_REMOVE, "bins_per_unit": 2}
    assert_refuses(OptimalPartitionSelection, good, numbers=["epsilon", "delta", "bins_per_unit"])
    for count in (-1, 1.5, "1", True, None):
        with pytest.raises(DiscreetError):
            partition_probability(count, epsilon=1, delta="0.1")  # type: ignore[arg-type]


def test_the_empty_data_set_names_nothing() -> None:
    assert selection(ADD_REMOVE).release([]).value == ()
