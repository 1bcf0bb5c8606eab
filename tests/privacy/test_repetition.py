"""k times an event is k copies of it, however it is nested, in every account and every kind of ledger."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from discreet.errors import UnsupportedEvent
from discreet.ledger import Account, Budget, Ledger
from discreet.ledger.delta_shares import Shares, choose_shares
from discreet.ledger.filters import filter_for
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
    delta,
    epsilon,
    gdp_mu,
    renyi,
    tradeoff,
)
from discreet.privacy.relation import Relation

ADD, REPLACE = Relation.ADD_REMOVE, Relation.REPLACE_ONE
BUDGET = Budget(20, "1e-2")
BUDGETS = {
    "pure": Budget(20),
    "approximate": BUDGET,
    "gaussian": Budget(20, "1e-2", expect="gaussian"),
    "concentrated": Budget(rho=20),
}

levels = st.fractions(min_value=Fraction(1, 50), max_value=Fraction(1, 4), max_denominator=50)
pure = levels.map(PureDP) | levels.map(BoundedRange) | levels.map(lambda x: Laplace(1 / x))
discrete = levels.map(lambda x: DiscreteLaplace(2 / x, 2)) | levels.map(lambda x: DiscreteGaussian(1 / x, 1))
normal = levels.map(GDP) | levels.map(lambda x: Gaussian(1 / x)) | levels.map(lambda x: ZCDP(x**2))
with_delta = levels.map(lambda x: ApproxDP(x, x / 10**6))
single = pure | discrete | normal
sampled = st.builds(PoissonSampled, pure | normal, st.sampled_from(["0.1", "0.5"]))
leaves = single | with_delta | sampled


def nested(inner: st.SearchStrategy[Event]) -> st.SearchStrategy[Event]:
    few = st.lists(inner, min_size=1, max_size=3)
    return (
        few.map(Composed)
        | few.map(Parallel)
        | st.builds(Repeated, inner, st.integers(1, 3))
        | st.builds(Grouped, inner, st.integers(1, 2))
    )


events = st.recursive(leaves, nested, max_leaves=5)
NESTED: list[tuple[Event, Relation]] = [
    (Parallel([PureDP("0.1"), Laplace(20)]), ADD),
    (Parallel([ZCDP("0.02"), PureDP("0.3")]), ADD),
    (Parallel([Parallel([Laplace(5), PureDP("0.05")])]), ADD),
    (Parallel([Parallel([Laplace(5), Gaussian(6), PureDP("0.05")])]), REPLACE),
    (Grouped(PureDP("0.1"), 2), ADD),
    (Parallel([Gaussian(10), PureDP("0.1")]), ADD),
    (Parallel([ApproxDP("0.1", "1e-8"), ApproxDP("0.2", "1e-9")]), ADD),
    (Composed([Grouped(Parallel([PureDP("0.1"), Laplace(9)]), 1), PoissonSampled(Laplace(2), "0.1")]), ADD),
    (Grouped(Composed([Laplace(9), Repeated(Gaussian(8), 2)]), 2), REPLACE),
]


def nested_examples(test: object) -> object:
    for event, relation in NESTED:
        test = example(event=event, relation=relation, times=10)(test)
    return test


def both(event: Event, times: int) -> tuple[Event, Event]:
    return Repeated(event, times), Composed([event] * times)


def known(event: Event, relation: Relation) -> None:
    """Leave out what no account knows under this relation."""
    try:
        renyi(event, 2, relation=relation)
    except UnsupportedEvent:
        assume(False)


def same(one: float, other: float) -> bool:
    return one == other or math.isclose(one, other, rel_tol=1e-9)


asked = given(event=events, relation=st.sampled_from([ADD, REPLACE]), times=st.integers(2, 4))


@nested_examples
@settings(max_examples=60, deadline=None)
@asked
def test_k_times_is_k_copies_in_every_sum(event: Event, relation: Relation, times: int) -> None:
    known(event, relation)
    repeated, copies = both(event, times)
    for ask, factor in (
        (lambda e: epsilon(e, 0, relation=relation), times),
        (lambda e: renyi(e, 3, relation=relation), times),
        (lambda e: gdp_mu(e, relation=relation), math.sqrt(times)),
    ):
        assert same(ask(repeated), ask(copies))
        assert same(ask(repeated), factor * ask(event))


@pytest.mark.parametrize(("event", "relation"), NESTED, ids=[str(n) for n in range(len(NESTED))])
def test_k_times_is_k_copies_on_every_curve(event: Event, relation: Relation) -> None:
    repeated, copies = both(event, 5)
    for ask in (
        lambda e: epsilon(e, "1e-3", relation=relation),
        lambda e: delta(e, "0.2", relation=relation),
        lambda e: tradeoff(e, "0.1", relation=relation),
    ):
        assert same(ask(repeated), ask(copies))
    assert delta(event, 0, relation=relation) < delta(repeated, 0, relation=relation)
    assert tradeoff(event, "0.1", relation=relation) > tradeoff(repeated, "0.1", relation=relation)


@nested_examples
@settings(max_examples=60, deadline=None)
@asked
def test_k_times_costs_k_charges_in_every_kind_of_ledger(event: Event, relation: Relation, times: int) -> None:
    """The price of a repetition, of a composition of copies, and the sums after k charges are the same."""
    known(event, relation)
    for budget in BUDGETS.values():
        rule = filter_for(budget, choose_shares(budget))
        try:
            once = rule.sum_price(event, relation)
        except UnsupportedEvent:
            for each in both(event, times):
                with pytest.raises(UnsupportedEvent):
                    rule.sum_price(each, relation)
            continue
        repeated, copies = (rule.sum_price(each, relation) for each in both(event, times))
        assert repeated == copies
        for name in ("epsilon", "rho"):
            single, total = getattr(once, name), getattr(repeated, name)
            assert (single is None) == (total is None)
            assert single is None or same(float(total), times * float(single))
        assert same(float(repeated.delta), 1 - (1 - float(once.delta)) ** times) or repeated.delta <= times * once.delta
        assert repeated.delta >= times * once.delta * (1 - Fraction(times) * once.delta)
        for single, total in zip(once.kept, repeated.kept, strict=True):
            assert (single is None) == (total is None)
            assert single is None or same(float(total), times * float(single))


@pytest.mark.parametrize("kind", BUDGETS)
@pytest.mark.parametrize(("event", "relation"), NESTED, ids=[str(n) for n in range(len(NESTED))])
def test_one_charge_of_k_leaves_what_k_charges_leave(kind: str, event: Event, relation: Relation) -> None:
    account = Account("people", "row", relation, BUDGETS[kind])
    with Ledger.open("memory", account) as at_once, Ledger.open("memory", account) as one_by_one:
        try:
            at_once.charge(Repeated(event, 7), relation=relation, purpose="all")
        except UnsupportedEvent:
            return
        for _ in range(7):
            one_by_one.charge(event, relation=relation, purpose="one")
        assert at_once.spent().share == pytest.approx(one_by_one.spent().share, rel=1e-6)
        assert at_once.left().epsilon == one_by_one.left().epsilon
        assert at_once.left().rho == one_by_one.left().rho


def test_deltas_of_events_fit_their_share_and_no_more() -> None:
    """One event at the share of delta for events fits beside others; a little more does not."""
    budget = Budget(1, "1e-6")
    shares: Shares = choose_shares(budget)
    part = Fraction("1e-6") * shares.events
    with Ledger.open("memory", Account("people", "row", ADD, budget)) as book:
        book.charge(Gaussian(1000), relation=ADD, purpose="one")
        assert book.times_left(ApproxDP("0.001", part)) == 1
        assert book.times_left(ApproxDP("0.001", part * Fraction(1001, 1000))) == 0
        book.charge(ApproxDP("0.001", part), relation=ADD, purpose="two")
        assert book.times_left(ApproxDP("0.001", part / 10**6)) == 0
        assert book.times_left(Gaussian(1000)) > 0
