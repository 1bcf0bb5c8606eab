"""No analyst beats a filter: the best of all adaptive trees stays within the budget, and wrong filters are caught."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import pytest
from adaptive_trees import Mechanism, gaussian, response, revealing, worst_delta
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import privacy
from discreet.errors import UnsupportedEvent
from discreet.ledger import Account, Budget, Ledger
from discreet.ledger.budget import GRID, UNIT, EventPrice, Sums, on_grid, units_up
from discreet.ledger.delta_shares import MOST_ORDERS, caps, choose_shares, shares_after
from discreet.ledger.filters import MixedFilter, PrivacyFilter, filter_for, fitting
from discreet.privacy import (
    GDP,
    ZCDP,
    ApproxDP,
    BoundedRange,
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Gaussian,
    Grouped,
    Laplace,
    Parallel,
    PoissonSampled,
    PureDP,
    Repeated,
)
from discreet.privacy.convert import renyi_to_epsilon
from discreet.privacy.relation import Relation

ADD = Relation.ADD_REMOVE
TOLERANCE = 1e-9  # Floats of the brute force; every margin below is far larger.

WORLDS = {
    "pure": (Budget(1), response("0.5") + response("0.25")),
    "pure, uneven": (Budget("0.7"), response("0.3") + response("0.2") + response("0.1")),
    "sums": (Budget(1, "0.05"), response("0.25") + response("0.5") + revealing("0.25", "0.02")),
    "orders": (Budget("0.5", "0.3"), response("0.1") + response("0.25") + revealing("0.1", "0.05")),
    "many orders": (Budget(1, "0.02"), response("0.1") + response("0.2")),
    "no delta for events": (Budget("0.5", "0.3", approximate=0), response("0.1") + response("0.2")),
}


@dataclass(frozen=True)
class Judged:
    """A filter, or what a wrong author made of it."""

    rule: PrivacyFilter
    judge: Callable[[Sums, Sums], bool] | None = None

    def after(self, before: Sums, event: Event) -> Sums | None:
        if self.judge is None:
            price = fitting(self.rule, before, event, ADD)
            return None if price is None else before.plus(price)
        after = before.plus(self.rule.price(event, ADD))
        return after if self.judge(before, after) else None


def rule_of(budget: Budget) -> PrivacyFilter:
    return filter_for(budget, choose_shares(budget))


def nothing(rule: PrivacyFilter) -> Sums:
    return Sums.nothing(rule.shares.kept)


@pytest.mark.parametrize("name", WORLDS)
def test_the_worst_adaptive_tree_stays_within_the_budget(name: str) -> None:
    budget, menu = WORLDS[name]
    rule = rule_of(budget)
    assert worst_delta(menu, Judged(rule), nothing(rule), budget.epsilon) <= float(budget.delta or 0) + TOLERANCE


def test_divergences_admit_more_than_the_sum_of_epsilons_does() -> None:
    rule = rule_of(Budget(1, "1e-6"))
    small = rule.price(PureDP("0.01"), ADD)
    assert rule.times(nothing(rule), small) > 3 * 100
    assert rule.times(nothing(rule), rule.price(Gaussian(100), ADD)) > 300


# What wrong authors did. Each takes the right filter of a world and judges sums in its own way.
def sees_the_sums_before(rule: PrivacyFilter) -> Judged:
    """Charge while something is left: the last charge is not looked at."""
    return Judged(rule, lambda before, after: (before.epsilon or 0) < (rule.budget.epsilon or 0))


def forgets_delta(rule: PrivacyFilter) -> Judged:
    """Look at epsilon only."""
    return Judged(rule, lambda before, after: (after.epsilon or 0) <= (rule.budget.epsilon or 0))


def converts_for_free(rule: PrivacyFilter) -> Judged:
    """Compare a divergence with epsilon itself."""
    limit = float(rule.budget.epsilon or 0) * UNIT
    return Judged(rule, lambda before, after: any(total is not None and total <= limit for total in after.kept))


def takes_the_largest(rule: PrivacyFilter) -> Judged:
    """Take the largest charge for the sum of all, as if each unit were in one of them only."""

    def judge(before: Sums, after: Sums) -> bool:
        return after.charges <= 12 and (after.epsilon or 0) - (before.epsilon or 0) <= (rule.budget.epsilon or 0)

    return Judged(rule, judge)


def spends_twice(rule: PrivacyFilter) -> Judged:
    """Give the budget out once for each of two projects."""
    return Judged(rule, lambda before, after: (after.epsilon or 0) <= 2 * (rule.budget.epsilon or 0))


def counts_a_few(rule: PrivacyFilter) -> Judged:
    """Limit the number of charges, not what they cost."""
    return Judged(rule, lambda before, after: after.charges <= 5)


WRONG = {
    "checks before it charges": ("pure", sees_the_sums_before),
    "forgets delta": ("sums", forgets_delta),
    "converts for free": ("many orders", converts_for_free),
    "takes the largest for the sum": ("pure", takes_the_largest),
    "spends twice": ("pure", spends_twice),
    "counts charges only": ("pure", counts_a_few),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_filter_is_caught(name: str) -> None:
    world, author = WRONG[name]
    budget, menu = WORLDS[world]
    rule = rule_of(budget)
    assert worst_delta(menu, author(rule), nothing(rule), budget.epsilon) > float(budget.delta or 0) + 1e-3


def test_a_filter_that_starts_anew_is_caught() -> None:
    budget, menu = WORLDS["pure"]
    rule = rule_of(budget)

    def reset(sums: Sums) -> Sums:
        full = (sums.epsilon or 0) >= (budget.epsilon or 0) and sums.charges < 8
        return Sums(Fraction(0), sums.delta, sums.rho, sums.kept, sums.charges) if full else sums

    judged = Judged(rule, lambda before, after: rule.admits(after) and after.charges <= 8)
    assert worst_delta(menu, judged, nothing(rule), budget.epsilon, reset=reset) > 1e-3


@dataclass(frozen=True)
class LateDelta:
    """A pure account that gets its first delta once it is used up; `carried` as somebody wrote it."""

    pure: Budget
    late: Budget
    carried: Callable[[Fraction], Fraction]

    def after(self, before: Sums, event: Event) -> Sums | None:
        rule = rule_of(self.pure) if not before.kept else self.raised
        if before.kept or isinstance(event, PureDP):
            price = fitting(rule, before, event, ADD)
            if price is not None or before.kept:
                return None if price is None else before.plus(price)
        spent = before.epsilon or Fraction(0)
        if spent < (self.pure.epsilon or 0):
            return None  # The first phase is used up, so that one rule serves every branch of the tree.
        over = Sums(spent, before.delta, before.rho, (0,) * self.raised.shares.kept, before.charges)
        price = fitting(self.raised, over, event, ADD)
        return None if price is None else over.plus(price)

    @property
    def raised(self) -> PrivacyFilter:
        return late_rule(self.late, self.carried(self.pure.epsilon or Fraction(0)))


@lru_cache
def late_rule(late: Budget, carried: Fraction) -> PrivacyFilter:
    return filter_for(late, shares_after(late, carried))


LATE = Budget(1, "0.05")
SMALLER = Fraction(1, 8)  # mu^2, of which a few fit the whole Gaussian rule


@pytest.mark.parametrize(
    ("pure", "late", "menu"),
    [
        (Budget(1), LATE, response("1") + gaussian(SMALLER)),
        (Budget(1), Budget("1.2", "0.05"), response("1") + gaussian(SMALLER)),
        (Budget("0.5"), Budget("0.75", "0.05"), response("0.25") + revealing("0.25", "0.005")),
    ],
)
def test_the_worst_tree_with_a_late_delta_stays_within_the_new_budget(
    pure: Budget, late: Budget, menu: list[Mechanism]
) -> None:
    judged = LateDelta(pure, late, lambda spent: spent)
    assert worst_delta(menu, judged, Sums.nothing(0), late.epsilon) <= float(late.delta or 0) + TOLERANCE


def test_a_late_delta_that_forgets_what_was_spent_is_caught() -> None:
    wrong = LateDelta(Budget(1), LATE, lambda spent: Fraction(0))
    assert worst_delta(response("1") + gaussian(SMALLER), wrong, Sums.nothing(0), LATE.epsilon) > 0.05 + 1e-3


EVENTS = (
    PureDP("0.03"),
    Laplace(50),
    DiscreteLaplace(100, 3),
    Gaussian(60),
    DiscreteGaussian(80, 1),
    BoundedRange("0.05"),
    ApproxDP("0.02", "1e-9"),
    ZCDP("1e-4"),
    PoissonSampled(Gaussian(2), "0.01"),
    Composed([PureDP("0.01"), Gaussian(90)]),
    Repeated(Laplace(200), 3),
    Parallel([PureDP("0.02"), Gaussian(70)]),
)


def independent_epsilon(events: list[Event], rule: MixedFilter) -> float:
    """Convert what a finished run spent anew, with the accountants of another floor, by the best rule."""
    delta, counts = rule.budget.delta or Fraction(0), Counter(events)
    found = [math.inf]
    for order, share in rule.shares.orders:
        total = sum(divergence(event, order) * count for event, count in counts.items())
        found.append(renyi_to_epsilon(order, total, delta * share))
    if all(map(has_mu, counts)):
        squares = [Fraction(privacy.gdp_mu(event, relation=ADD)) ** 2 * count for event, count in counts.items()]
        found.append(privacy.epsilon(GDP(mu_squared=sum(squares)), delta * rule.shares.gaussian))
    return min(found)


@lru_cache
def has_mu(event: Event) -> bool:
    return math.isfinite(privacy.gdp_mu(event, relation=ADD))


@lru_cache
def divergence(event: Event, order: Fraction) -> Fraction:
    return Fraction(privacy.renyi(event, order, relation=ADD))


@lru_cache
def is_pure(event: Event) -> bool:
    return math.isfinite(privacy.epsilon(event, 0, relation=ADD))


def adversarial_run(rule: PrivacyFilter, choose: Callable[[int, int], int]) -> list[Event]:
    """Charge whatever the analyst picks, until nothing on the menu fits any more."""
    sums, charged = nothing(rule), list[Event]()
    prices = [(event, rule.price(event, ADD)) for event in EVENTS]
    while True:
        fitting = [(event, price) for event, price in prices if rule.admits(sums.plus(price))]
        if not fitting:
            return charged
        event, price = fitting[choose(len(charged), len(fitting))]
        sums = sums.plus(price)
        charged.append(event)
        assert rule.admits(sums)


@settings(max_examples=40)
@given(st.lists(st.integers(0, 10**6), min_size=8, max_size=8))
def test_an_adversarial_run_ends_within_the_budget(picks: list[int]) -> None:
    rule = rule_of(Budget("0.5", "1e-5"))
    assert isinstance(rule, MixedFilter)
    events = adversarial_run(rule, lambda step, count: (picks[step % 8] * (step + 1)) % count)
    deltas = sum((event.delta for event in events if isinstance(event, ApproxDP)), Fraction(0))
    assert deltas <= rule.delta_of_events
    pure = [event if not isinstance(event, ApproxDP) else PureDP(event.epsilon) for event in events]
    by_sum = all(map(is_pure, pure)) and sum(privacy.epsilon(event, 0, relation=ADD) for event in pure) <= 0.5 + 1e-12
    assert by_sum or independent_epsilon(pure, rule) <= 0.5 + 1e-12


@given(st.fractions(min_value=Fraction(1, 10**6), max_value=20), st.sampled_from(["1e-12", "1e-6", "0.01", "0.5"]))
def test_caps_convert_back_to_the_budget(epsilon: Fraction, delta: str) -> None:
    budget = Budget(epsilon, delta)
    shares = choose_shares(budget)
    assert len(shares.orders) <= MOST_ORDERS
    normal, *by_order = caps(budget, shares)
    for (order, share), cap in zip(shares.orders, by_order, strict=True):
        back = renyi_to_epsilon(order, Fraction(cap, UNIT), Fraction(delta) * share)
        assert cap > 0
        assert Fraction(back) <= epsilon * (1 + Fraction(1, 2**50))
        assert Fraction(back) >= epsilon * (1 - Fraction(1, 2**30)) - Fraction(1, 2**30)
    spent = Fraction(privacy.delta(GDP(mu_squared=Fraction(normal, UNIT)), epsilon))
    assert spent <= Fraction(delta) * shares.gaussian
    assert spent >= Fraction(delta) * shares.gaussian * (1 - Fraction(1, 1000))


@pytest.mark.parametrize("event", EVENTS)
def test_a_price_counts_every_repetition(event: Event) -> None:
    rule = rule_of(Budget(1, "1e-6"))
    once, often = rule.price(event, ADD), rule.price(Repeated(event, 7), ADD)
    assert often.delta >= 7 * once.delta * (1 - Fraction(1, 10**6))
    assert once.epsilon is None or abs((often.epsilon or 0) - 7 * once.epsilon) <= Fraction(1, 10**12)
    assert any(once.kept)
    for total, single in zip(often.kept, once.kept, strict=True):
        assert (total is None) == (single is None)
        assert total is None or total >= 7 * single * (1 - 1e-12)


def test_one_split_of_delta_serves_every_sum() -> None:
    """A delta that depends on the cell a unit is in belongs to the charge as a whole."""
    rule = rule_of(Budget(1, "1e-6"))
    cells = rule.price(Parallel([ApproxDP("0.1", "1e-8"), ApproxDP("0.2", "1e-9")]), ADD)
    whole = rule.price(ApproxDP("0.2", "1e-8"), ADD)
    assert (cells.epsilon, cells.delta, cells.kept) == (whole.epsilon, whole.delta, whole.kept)


def test_cells_with_a_delta_are_paid_each_time() -> None:
    rule = rule_of(Budget(1, "1e-6"))
    cells = rule.price(Repeated(Parallel([ApproxDP("0.1", "1e-8"), ApproxDP("0.2", "1e-9")]), 7), ADD)
    whole = rule.price(Repeated(ApproxDP("0.2", "1e-8"), 7), ADD)
    assert (cells.epsilon, cells.delta, cells.kept) == (whole.epsilon, whole.delta, whole.kept)


def test_groups_without_a_rule_are_priced_by_their_divergences_or_refused() -> None:
    rule = rule_of(Budget(1, "1e-6"))
    price = rule.price(Grouped(PoissonSampled(Gaussian(20), "0.01"), 2), ADD)
    assert price.epsilon is None
    assert any(price.kept)
    with pytest.raises(UnsupportedEvent):
        rule_of(Budget(1)).price(Grouped(PoissonSampled(Gaussian(20), "0.01"), 2), ADD)


class TestConcentrated:
    """A rho ledger adds exact rhos."""

    rule = rule_of(Budget(rho="0.5"))

    @pytest.mark.parametrize(
        ("event", "rho"),
        [
            (ZCDP("0.1"), "0.1"),
            (Gaussian(2), "0.125"),
            (DiscreteGaussian(2, 1), "0.125"),
            (BoundedRange(2), "0.5"),
            (Repeated(ZCDP("0.01"), 5), "0.05"),
            (Parallel([ZCDP("0.01"), ZCDP("0.03")]), "0.03"),
        ],
    )
    def test_what_has_a_rho_is_priced_by_it(self, event: Event, rho: str) -> None:
        assert self.rule.price(event, ADD).rho == Fraction(rho)

    def test_pure_events_are_priced_by_their_best_rho(self) -> None:
        rho = self.rule.price(PureDP(1), ADD).rho
        assert rho is not None
        assert math.tanh(0.5) <= rho <= math.tanh(0.5) + 1e-9
        tiny = self.rule.price(PureDP("1e-12"), ADD).rho
        assert tiny is not None
        assert 0 < tiny <= Fraction(1, 2 * 10**24)

    @pytest.mark.parametrize("event", [ApproxDP("0.1", "1e-9"), PoissonSampled(Gaussian(2), "0.1")])
    def test_what_has_none_is_refused(self, event: Event) -> None:
        with pytest.raises(UnsupportedEvent, match="rho"):
            self.rule.price(event, ADD)

    def test_the_divergence_of_every_order_stays_below_what_rho_promises(self) -> None:
        price = self.rule.price(PureDP("0.5"), ADD)
        for order in (Fraction(11, 10), Fraction(2), Fraction(10), Fraction(100)):
            assert privacy.renyi(PureDP("0.5"), order) <= float(order * (price.rho or 0)) * (1 + 1e-12)


@given(st.fractions(min_value=0, max_value=10**6))
def test_the_grid_rounds_up_and_hardly(value: Fraction) -> None:
    rounded = on_grid(value)
    assert 0 <= rounded - value < Fraction(1, 10**80)
    assert GRID % rounded.denominator == 0


@pytest.mark.parametrize("event", [Gaussian(10**11), PureDP("1e-11"), Laplace(10**11)], ids=lambda e: type(e).__name__)
def test_what_is_less_than_a_unit_costs_a_unit_of_every_sum(event: Event) -> None:
    """Rounded down it would cost nothing, and any number of them would fit."""
    price = rule_of(Budget(1, "1e-6")).price(event, ADD)
    assert price.kept
    assert all(units is not None and units >= 1 for units in price.kept)
    assert price.kept[0] == 1


@given(value=st.floats(0, 1e300))
def test_what_is_kept_beside_the_grid_rounds_up_and_hardly(value: float) -> None:
    kept = units_up(value)
    assert kept is not None
    assert 0 <= kept - Fraction(value) * UNIT < 1


def test_sums_stay_short_whatever_is_charged() -> None:
    """The size of a sum is what makes a charge O(1)."""
    rule = rule_of(Budget(10, "1e-6"))
    sums = nothing(rule)
    for divisor in range(10_007, 10_607, 2):
        sums = sums.plus(rule.price(PureDP(Fraction(1, divisor * 1000)), ADD))
    assert len(sums.text()) < 1200


def test_a_million_millionths_are_one() -> None:
    price = rule_of(Budget(1)).price(PureDP("1e-6"), ADD)
    rule, sums = rule_of(Budget(1)), Sums.nothing(0)
    for _ in range(1000):
        sums = sums.plus(price)
    thousand = EventPrice(sums.epsilon, sums.delta, sums.rho)
    total = Sums.nothing(0)
    for _ in range(1000):
        total = total.plus(thousand)
    assert total.epsilon == 1
    assert rule.admits(total)
    assert not rule.admits(total.plus(price))
    assert sum([1e-6] * 10**6) != 1.0  # What floats would have said.


@pytest.mark.slow
def test_a_million_charges_of_a_millionth_are_one_and_one_more_is_refused() -> None:
    rule = rule_of(Budget(1))
    price, sums = rule.price(PureDP("1e-6"), ADD), Sums.nothing(0)
    for _ in range(10**6):
        sums = sums.plus(price)
    assert sums.epsilon == 1
    assert rule.admits(sums)
    assert not rule.admits(sums.plus(price))


@pytest.mark.slow
def test_ten_thousand_adversarial_runs_end_within_the_budget() -> None:
    rule = rule_of(Budget("0.5", "1e-5"))
    assert isinstance(rule, MixedFilter)
    for seed in range(10_000):
        events = adversarial_run(
            rule, lambda step, count, seed=seed: (seed * 2_654_435_761 + step * step * 40_503) % count
        )
        assert sum((event.delta for event in events if isinstance(event, ApproxDP)), Fraction(0)) <= Fraction(5, 10**6)
        assert events


@pytest.mark.slow
def test_a_hundred_thousand_charges_cost_the_same_each(capsys: pytest.CaptureFixture[str]) -> None:
    """The later half takes as long as the first one; time is printed, the size of the sums is what counts."""
    book = Ledger.open("memory", Account("people", "row", ADD, Budget(1, "1e-6")))
    halves, sizes = [], []
    for half in range(2):
        start = time.perf_counter()
        for i in range(50_000):
            event = PureDP(Fraction(1, 10**7 + i % 1000))
            book.charge(event, relation=ADD, purpose="question")
        halves.append(time.perf_counter() - start)
        sizes.append(sum(len(str(total)) for _, total in book.spent().renyi))
        assert half + 1 == book.spent().charges / 50_000
    assert sizes[1] < 2 * sizes[0]
    with capsys.disabled():
        print(f"\n100,000 charges: {halves[0]:.1f} s and {halves[1]:.1f} s")
