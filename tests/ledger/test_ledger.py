"""Charges add up exactly, nothing is charged twice, and what was declared stays declared."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from discreet import privacy
from discreet.errors import BudgetExceeded, InvalidParameter, Refused, UnsupportedEvent
from discreet.ledger import Account, Budget, Ledger
from discreet.privacy import ApproxDP, Gaussian, PureDP
from discreet.privacy.relation import Relation

ADD = Relation.ADD_REMOVE


def account(budget: Budget, *, dataset: str = "people", unit: str = "row") -> Account:
    return Account(dataset, unit, ADD, budget)


def opened(budget: Budget) -> Ledger:
    return Ledger.open("memory", account(budget))


def test_ten_tenths_are_one_and_nothing_more_fits() -> None:
    ledger = opened(Budget(1))
    for _ in range(10):
        ledger.charge(PureDP(0.1), relation=ADD, purpose="a tenth")
    assert ledger.spent().epsilon == 1
    assert ledger.left().epsilon == 0
    with pytest.raises(BudgetExceeded):
        ledger.charge(PureDP("1e-60"), relation=ADD, purpose="one more")
    assert ledger.spent().charges == 10


def test_an_approximate_budget_admits_one_answer_at_one_or_ten_at_a_tenth() -> None:
    for event, times in ((PureDP(1), 1), (PureDP("0.1"), 10)):
        ledger = opened(Budget(1, "1e-6"))
        assert ledger.times_left(event) == times
        for _ in range(times):
            ledger.charge(event, relation=ADD, purpose="question")
        assert not ledger.affords(event)
        with pytest.raises(BudgetExceeded):
            ledger.charge(event, relation=ADD, purpose="one more")


def test_sums_are_checked_with_every_repetition_of_a_price() -> None:
    """Equal prices are added up at once: their epsilons, their deltas and their divergences, each as often."""
    for budget, event in (
        (Budget(1, "1e-6"), ApproxDP("0.01", "1e-8")),
        (Budget(1, "1e-6"), Gaussian(100)),
        (Budget(1), PureDP("0.01")),
        (Budget(rho=1), Gaussian(100)),
    ):
        ledger = opened(budget)
        for _ in range(3):
            ledger.charge(event, relation=ADD, purpose="the same again")
        ledger.verify()


def test_a_ledger_pays_for_library_calls() -> None:
    import discreet as dp

    payer: privacy.Payer = opened(Budget(1))
    assert isinstance(payer, Ledger)
    dp.count([1, 2, 3], relation=ADD, epsilon=0.25, session=payer)
    assert payer.spent().epsilon == Fraction(1, 4)


def test_a_pure_ledger_refuses_what_has_a_delta() -> None:
    ledger = opened(Budget(1))
    for event in (ApproxDP(0.1, 1e-9), Gaussian(10)):
        with pytest.raises(UnsupportedEvent, match="pure"):
            ledger.charge(event, relation=ADD, purpose="question")


def test_another_relation_or_a_free_event_is_refused() -> None:
    ledger = opened(Budget(1))
    with pytest.raises(InvalidParameter, match="REPLACE_ONE"):
        ledger.charge(PureDP(0.1), relation=Relation.REPLACE_ONE, purpose="question")
    with pytest.raises(InvalidParameter, match="nothing"):
        ledger.charge(PureDP(0), relation=ADD, purpose="question")


def test_a_data_set_is_reopened_as_declared_or_not_at_all(place: Path | str) -> None:
    path = place
    Ledger.open(path, account(Budget(1))).close()
    Ledger.open(path, account(Budget(1))).close()
    for other in (
        account(Budget(2)),
        account(Budget(1, "1e-6")),
        account(Budget(1), unit="customer"),
        Account("people", "row", Relation.REPLACE_ONE, Budget(1)),
    ):
        with pytest.raises(Refused, match="was declared as unit 'row', add-remove, ε = 1, pure"):
            Ledger.open(path, other)
    Ledger.open(path, account(Budget(2), dataset="others")).close()
