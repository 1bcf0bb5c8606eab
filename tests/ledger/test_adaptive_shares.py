"""No analyst beats the split of delta: the best adaptive tree stays within the budget, wrong splits are caught."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

import pytest
from adaptive_trees import Mechanism, gaussian, response, revealing, worst_delta

from discreet.errors import BudgetExceeded, LedgerDamaged, UnsupportedEvent
from discreet.ledger import Account, Budget, Ledger, Quota, restore
from discreet.ledger.budget import EXPECTED, UNIT, Sums, on_grid
from discreet.ledger.delta_shares import Shares, caps, choose_shares
from discreet.ledger.filters import MixedFilter, filter_for, fitting, held
from discreet.ledger.prices import split_price
from discreet.privacy import (
    GDP,
    ApproxDP,
    Composed,
    Event,
    Gaussian,
    Grouped,
    Laplace,
    PoissonSampled,
    PureDP,
    Repeated,
    epsilon,
)
from discreet.privacy.gaussian import largest_mu_squared
from discreet.privacy.relation import Relation

ADD = Relation.ADD_REMOVE
TOLERANCE = 1e-9
SMALL = Budget(1, "0.05")
SPARE = 1 - Fraction(1, 10**9)


def rule_of(budget: Budget) -> MixedFilter:
    rule = filter_for(budget, choose_shares(budget))
    assert isinstance(rule, MixedFilter)
    return rule


def cap_of(budget: Budget) -> Fraction:
    """Return what the Gaussian rule holds, less what rounding up may add."""
    return Fraction(rule_of(budget).caps[0], UNIT) * SPARE


def of_delta(budget: Budget, part: str) -> str:
    return str((budget.delta or 0) * Fraction(part))


@dataclass(frozen=True)
class Right:
    """The filter as the ledger uses it."""

    rule: MixedFilter

    def after(self, before: Sums, event: Event) -> Sums | None:
        price = fitting(self.rule, before, event, ADD)
        return None if price is None else before.plus(price)


@dataclass(frozen=True)
class Wrong:
    """What a wrong author made of it."""

    rule: MixedFilter
    judge: Callable[[MixedFilter, Sums, Event], Sums | None]

    def after(self, before: Sums, event: Event) -> Sums | None:
        return self.judge(self.rule, before, event)


def worst(menu: list[Mechanism], judged: Right | Wrong) -> float:
    rule = judged.rule
    return worst_delta(menu, judged, Sums.nothing(rule.shares.kept), rule.budget.epsilon or Fraction(0))


def menus(budget: Budget) -> dict[str, list[Mechanism]]:
    """Menus that come up to the caps of a budget exactly, alone and together."""
    cap, events = cap_of(budget), rule_of(budget).shares.events
    half_events = of_delta(budget, str(events / 2))
    whole = largest_mu_squared(budget.epsilon or 0, budget.delta or 0) * SPARE
    return {
        "two Gaussians": gaussian(cap / 2),
        "three Gaussians": gaussian(cap / 3, edges=12),
        "uneven Gaussians": gaussian(cap / 2, edges=12) + gaussian(cap / 4, edges=12),
        "Gaussians and events with a delta": gaussian(cap / 2, edges=16) + revealing("0.1", half_events),
        "all kinds": gaussian(cap / 2, edges=10) + response("0.25") + revealing("0.25", half_events),
        "first a Gaussian that takes all": gaussian(whole, edges=60) + gaussian(cap / 2, edges=12) + response("0.25"),
        "first an event that takes all": [
            *gaussian(cap / 2, edges=12),
            *revealing(str(budget.epsilon), str(budget.delta)),
        ],
    }


@pytest.mark.parametrize("name", menus(SMALL))
def test_no_adaptive_tree_exceeds_the_budget(name: str) -> None:
    assert worst(menus(SMALL)[name], Right(rule_of(SMALL))) <= 0.05 + TOLERANCE


@pytest.mark.parametrize("expect", EXPECTED)
def test_no_adaptive_tree_exceeds_the_budget_under_any_split(expect: str) -> None:
    budget = Budget(1, "0.05", expect=expect)  # type: ignore[arg-type]
    for name in ("Gaussians and events with a delta", "all kinds"):
        assert worst(menus(budget)[name], Right(rule_of(budget))) <= 0.05 + TOLERANCE


def test_the_search_comes_close_to_what_a_single_charge_may_take() -> None:
    """The bins lose little: what takes the whole budget is found to take it."""
    found = worst(menus(SMALL)["first a Gaussian that takes all"], Right(rule_of(SMALL)))
    assert found >= 0.97 * 0.05


@lru_cache
def cap_at(rule: MixedFilter, delta: Fraction) -> int:
    return math.floor(largest_mu_squared(rule.budget.epsilon or 0, delta) * UNIT) if delta > 0 else -1


def normal(sums: Sums) -> int:
    return sums.kept[0] if sums.kept[0] is not None else 1 << 400


def moves_shares(rule: MixedFilter, before: Sums, event: Event) -> Sums | None:
    """Let the Gaussian rule have all of delta that events have not used so far."""
    after, delta = before.plus(rule.price(event, ADD)), rule.budget.delta or Fraction(0)
    return after if normal(after) <= cap_at(rule, delta - after.delta) else None


def uses_delta_twice(rule: MixedFilter, before: Sums, event: Event) -> Sums | None:
    """Give events all of delta, and the Gaussian rule as well."""
    after, delta = before.plus(rule.price(event, ADD)), rule.budget.delta or Fraction(0)
    return after if after.delta <= delta and normal(after) <= cap_at(rule, delta) else None


def gives_the_gaussian_rule_all(rule: MixedFilter, before: Sums, event: Event) -> Sums | None:
    """Keep a share for events, and convert at the whole delta all the same."""
    after, delta = before.plus(rule.price(event, ADD)), rule.budget.delta or Fraction(0)
    return after if after.delta <= rule.delta_of_events and normal(after) <= cap_at(rule, delta) else None


def lets_the_newest_charge_take_all(rule: MixedFilter, before: Sums, event: Event) -> Sums | None:
    """Apply the rule of the first charge on an account that was used."""
    price = fitting(rule, before, event, ADD) or rule.price_alone(event, ADD)
    return None if price is None or before.charges == 3 else before.plus(price)


def adds_mu_without_squares(rule: MixedFilter, before: Sums, event: Event) -> Sums | None:
    """Compare the sum of mu with what the sum of squares may come to."""
    price = rule.price(event, ADD)
    root = math.isqrt((price.kept[0] or 0) * UNIT)
    after = before.plus(replace(price, kept=(root, *price.kept[1:])))
    return after if normal(after) <= rule.caps[0] else None


def prices_a_better_part(rule: MixedFilter, before: Sums, event: Event) -> Sums | None:
    """Take the delta of one split of an event, and the sums of another part than the one that is left by it."""
    price = rule.price(event, ADD)
    if isinstance(event, ApproxDP):
        price = replace(price, kept=split_price(event.epsilon / 4, event.delta, rule.shares).kept)
    after = before.plus(price)
    return after if rule.admits(after) else None


def caught() -> dict[str, tuple[Budget, list[Mechanism], Callable[[MixedFilter, Sums, Event], Sums | None]]]:
    whole, far = largest_mu_squared(1, Fraction("0.05")) * SPARE, Budget(6, "0.05")
    first = largest_mu_squared(1, Fraction("0.005")) * Fraction(99, 100)
    all_at_once = revealing("0.001", "0.049") + gaussian(whole / 2, edges=16)
    return {
        "shares move": (SMALL, revealing("0", "0.045") + gaussian(first) + gaussian(whole - first), moves_shares),
        "delta is used twice": (SMALL, all_at_once, uses_delta_twice),
        "the Gaussian rule takes all": (
            SMALL,
            revealing("0.001", "0.005") + gaussian(whole / 2, edges=36),
            gives_the_gaussian_rule_all,
        ),
        "the newest charge takes all": (SMALL, gaussian(whole) + response("0.25"), lets_the_newest_charge_take_all),
        "mu without squares": (far, gaussian(Fraction(4), edges=16), adds_mu_without_squares),
        "a better part": (
            Budget(2, "0.05", expect="gaussian"),
            revealing("1", "0.0005") + response("0.5"),
            prices_a_better_part,
        ),
    }


@pytest.mark.parametrize("name", caught())
def test_a_wrong_split_is_caught(name: str) -> None:
    budget, menu, judge = caught()[name]
    rule = rule_of(budget)
    assert worst(menu, Wrong(rule, judge)) > 0.05 + 1e-3
    assert worst(menu, Right(rule)) <= 0.05 + TOLERANCE


def opened(budget: Budget, **more: object) -> Ledger:
    return Ledger.open("memory", Account("people", "row", ADD, budget), **more)  # type: ignore[arg-type]


def charge(book: Ledger, event: Event, *, principal: str = "") -> None:
    book.charge(event, relation=ADD, purpose="count", principal=principal)


STEP = PoissonSampled(Gaussian(1), "0.001")


class TestFirstCharge:
    """On an unused account, what is (epsilon, delta)-private by its own curve fits; nothing fits beside it."""

    @pytest.mark.parametrize(
        "event",
        [
            GDP(mu_squared=largest_mu_squared(1, Fraction("1e-6"))),
            ApproxDP(1, "1e-6"),
            Repeated(STEP, 30_000),
            Repeated(Laplace(100), 560),
        ],
        ids=["Gaussian", "approximate", "steps", "Laplace"],
    )
    def test_it_takes_all_and_closes_the_account(self, event: Event) -> None:
        assert epsilon(event, "1e-6", relation=ADD) <= 1
        with opened(Budget(1, "1e-6")) as book:
            assert book.times_left(event) == 1
            assert book.affords(event)
            assert not book.affords(event, at_once=False)
            charge(book, event)
            assert book.left().share == 0
            for more in (PureDP("1e-9"), Gaussian(10**6), ApproxDP(0, "1e-30"), event):
                assert book.times_left(more) == 0
                with pytest.raises(BudgetExceeded):
                    charge(book, more)
            book.verify()

    @pytest.mark.parametrize("delta", ["1/1000003", "1e-100"])
    def test_a_delta_between_the_points_of_the_grid_is_taken_and_read_back(self, delta: str, place: object) -> None:
        """Rounded up, the one charge would be above the budget, and the ledger would be refused ever after."""
        path, account = place, Account("people", "row", ADD, Budget(3, delta))
        assert on_grid(Fraction(delta)) > Fraction(delta)
        with Ledger.open(path, account) as book:
            charge(book, GDP(mu_squared=largest_mu_squared(3, Fraction(delta))))
            book.verify()
        with Ledger.open(path, account) as again:
            assert again.spent().delta == Fraction(delta)
            assert again.times_left(PureDP("1e-9")) == 0
            again.raise_budget(Budget(4, 6 * Fraction(delta)), reason="more", principal="custodian")
            charge(again, PureDP("0.01"))
            again.verify()

    def test_it_is_for_unused_accounts_only(self) -> None:
        with opened(Budget(1, "1e-6")) as book:
            charge(book, PureDP("1e-9"))
            assert book.times_left(GDP(mu_squared=largest_mu_squared("0.99", Fraction("9e-7")))) == 0
            assert book.times_left(ApproxDP("0.5", "5e-7")) == 0

    def test_what_has_no_price_beside_others_is_for_unused_accounts_only_too(self) -> None:
        """A group that has neither a rule nor divergences has its own curve, and that is for the first charge."""
        group = Grouped(Composed([ApproxDP("0.1", "3e-7"), PureDP("0.1")]), 2)
        with opened(Budget(1, "1e-6")) as book:
            assert book.times_left(group) == 1
            charge(book, PureDP("1e-9"))
            with pytest.raises(UnsupportedEvent):
                charge(book, group)
            assert book.spent().charges == 1

    def test_what_is_a_little_too_much_is_refused(self) -> None:
        with opened(Budget(1, "1e-6")) as book:
            assert book.times_left(GDP(mu_squared=largest_mu_squared(1, Fraction("1.001e-6")))) == 0
            assert book.times_left(ApproxDP(1, "1.001e-6")) == 0

    def test_after_raising_the_budget_it_counts_as_its_own_epsilon_and_delta(self) -> None:
        """A fifth of delta is for such events: it fits the sums again once that fifth holds its delta."""
        whole = GDP(mu_squared=largest_mu_squared(1, Fraction("1e-6")))
        with opened(Budget(1, "1e-6")) as book:
            charge(book, whole)
            book.raise_budget(Budget(2, "4e-6"), reason="more", principal="custodian")
            assert book.times_left(PureDP("0.01")) == 0
            book.raise_budget(Budget(2, "5e-6"), reason="more", principal="custodian")
            assert book.times_left(PureDP("0.01")) >= 100
            assert book.times_left(ApproxDP(0, "1e-9")) == 0
            charge(book, PureDP("0.01"))
            book.verify()

    def test_a_quota_has_its_own_first_charge_and_the_lifetime_has_one(self) -> None:
        """Each quota promises something of its own charges; the lifetime budget is one account for all."""
        event = ApproxDP("0.5", "1e-7")
        with opened(Budget(1, "1e-6"), quotas=[Quota(Budget("0.5", "1e-7"), principal="*")]) as book:
            charge(book, event, principal="ann")
            assert book.times_left(PureDP("1e-9"), principal="ann") == 0
            charge(book, event, principal="ben")
            assert book.times_left(event, principal="cy") == 0  # A fifth of the lifetime delta is used up.
            book.verify()

    def test_a_restored_account_is_not_unused(self, place: object) -> None:
        path, account = place, Account("people", "row", ADD, Budget(1, "1e-6"))
        Ledger.open(path, account).close()
        restore(path, [account], reason="disk", principal="custodian")
        with Ledger.open(path, account) as book:
            assert book.times_left(ApproxDP("0.1", "1e-7")) == 0
            assert book.times_left(PureDP("1e-9")) == 0
            book.verify()


def test_an_event_that_no_sum_holds_is_priced_by_its_own_curve() -> None:
    """One sampled step of epsilon 0.022 leaves most of a budget of 1, and is split like anything with a delta."""
    with opened(Budget(1, "1e-6")) as book:
        held = book.times_left(STEP)
        assert held >= 4
        charge(book, STEP)
        assert book.times_left(STEP) == held - 1
        assert 0 < book.spent().delta <= Fraction("2e-7")
        assert book.times_left(Gaussian(100)) > 300


def test_its_price_is_that_of_the_purely_private_part_and_nothing_better() -> None:
    rule = rule_of(Budget(1, "1e-6"))
    price = rule.price(STEP, ADD)
    assert price.epsilon is not None
    assert price == split_price(price.epsilon, price.delta, rule.shares)
    assert price.kept == rule.price(PureDP(price.epsilon), ADD).kept
    assert epsilon(STEP, price.delta, relation=ADD) <= price.epsilon


@pytest.mark.parametrize("level", [1, 4, 10])
def test_a_split_holds_most_of_what_fits_without_it(level: int) -> None:
    """The share of the best number of charges that are fixed in advance: by default, and for what is expected."""
    for event, expect, default, said in (
        (Gaussian(100), "gaussian", 0.93, 0.97),
        (PureDP("0.01"), "pure", 0.75, 0.82),
        (Laplace(100), "pure", 0.75, 0.82),
    ):
        for chosen, goal in ((None, default), (expect, said)):
            with opened(Budget(level, "1e-6", expect=chosen)) as book:  # type: ignore[arg-type]
                held = book.times_left(event)
            enough = math.ceil(held / goal) + 1  # If so many do not fit in advance, the goal is reached.
            assert epsilon(Repeated(event, enough), "1e-6", relation=ADD) > level


def test_what_is_said_of_a_budget_is_a_share_and_a_number_never_unbounded() -> None:
    with opened(Budget(4, "1e-6")) as book:
        for _ in range(3):
            charge(book, Gaussian(20))
        assert str(book.spent()) == "1.2 % (3 charges, the last ε = 0.1893 at δ = 1e-6)"
        assert str(book.left()) == "265 more like the last charge (98.8 % of ε = 4, δ = 1e-06)"
        assert book.left().recorded() == "98.8 % of ε = 4, δ = 1e-06: 265 more like the last charge"  # in bundles
        assert book.money() == "spent: 1.2 % (3 charges, the last ε = 0.1893 at δ = 1e-6); left: 265 more like it"
        assert "unbounded" not in book.describe()


def test_shares_stay_as_they_were_written_when_the_budget_is_raised_and_when_it_is_read(place: object) -> None:
    """Sums are those of the orders in the first entry; for another budget others would be chosen today."""
    path, low, high = place, Budget(1, "1e-6"), Budget(8, "1e-4")
    written = choose_shares(low)
    assert written.orders != choose_shares(high).orders
    with Ledger.open(path, Account("people", "row", ADD, low)) as book:
        charge(book, Gaussian(10))
        book.raise_budget(high, reason="more", principal="custodian")
        by_order = book.spent().renyi
    with Ledger.open(path, Account("people", "row", ADD, high)) as again:
        assert [entry.content["declared"]["shares"] for entry in again.history() if "declared" in entry.content] == [
            written.packed()["shares"]
        ] * 2
        assert again.spent().renyi == by_order
        assert [order for order, _ in by_order] == [order for order, _ in written.orders]
        raised = filter_for(high, written)
        sums = Sums.nothing(written.kept).plus(raised.price(Gaussian(10), ADD))
        for event in (Gaussian(10), PureDP("0.01"), ApproxDP("0.01", "1e-7")):
            assert again.times_left(event) == held(raised, sums, event, ADD)


def test_a_refusal_says_how_much_of_delta_is_left_for_events_with_one() -> None:
    """Else it would say that something does not fit into all of the budget."""
    with opened(Budget(1, "1e-6")) as book:
        charge(book, ApproxDP(0, "1.5e-7"))
        with pytest.raises(BudgetExceeded, match="100 % of ε = 1, δ = 1e-06, with δ = 5e-08 of it for events with a δ"):
            charge(book, ApproxDP("0.1", "1e-7"))
        with pytest.raises(BudgetExceeded, match=r"1e-06 \(the lifetime budget\)$"):
            charge(book, PureDP(2))


def test_where_delta_is_what_is_used_up_every_text_says_so_and_names_a_way_out() -> None:
    """It said "98.2 % left, and no more like it", which is a dead end."""
    event = ApproxDP("0.1", "1e-7")
    with opened(Budget(20, "1e-6")) as book:
        assert book.left(like=event).describe("this one").startswith("2 more like this one, limited by δ (100 %")
        charge(book, event)
        assert book.money().endswith("left: 1 more like it, limited by δ")
        charge(book, ApproxDP("0.1", "5e-8"))
        some = book.money(like=event)
        assert "% of ε, 25 % of the δ for charges with a δ of their own, and no more like this one" in some
        assert some.endswith("a smaller delta= fits, or list the keys of groups, or raise δ")
        with pytest.raises(
            BudgetExceeded, match=r"(?s)way out: ask with a smaller delta=.*budget raise --delta.*mixed"
        ):
            charge(book, event)
        charge(book, ApproxDP("0.1", "5e-8"))
        with pytest.raises(BudgetExceeded, match="way out: ask about groups whose keys are listed"):
            charge(book, event)
        assert "δ for charges" not in book.money(like=PureDP("0.1"))
    with opened(Budget(20, "1e-6", expect="mixed")) as book:
        assert book.left(like=event).more == 5


def test_shares_in_a_ledger_that_are_more_than_the_whole_are_refused() -> None:
    budget = Budget(1, "1e-6")
    packed = choose_shares(budget).packed()
    assert Shares.unpacked(budget, packed) == choose_shares(budget)
    assert caps(budget, Shares.unpacked(budget, packed)) == caps(budget, choose_shares(budget))
    split = packed["shares"]

    def more(share: str) -> str:
        return str(Fraction(share) + Fraction(1, 10**6))

    (order, share), *others = split["orders"]
    for wrong in (
        {"rule": 3},
        {"rule": 4},
        {"shares": split | {"carried": "1"}},
        {"rule": 3, "shares": split | {"carried": "-1"}},
        *({"shares": split | {name: more(split[name])}} for name in ("gaussian", "events")),
        {"shares": split | {"orders": [[order, more(share)], *others]}},
    ):
        with pytest.raises(LedgerDamaged):
            Shares.unpacked(budget, packed | wrong)
