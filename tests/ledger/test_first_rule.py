"""An account keeps the rule it was opened under, for life: a ledger file of the first rule is read and charged."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from discreet.errors import BudgetExceeded, Refused
from discreet.ledger import Account, Budget, Ledger, Quota, look, restore
from discreet.ledger.anchor import Anchor
from discreet.ledger.charge_record import Head
from discreet.privacy import ApproxDP, Event, Gaussian, Laplace, PoissonSampled, PureDP
from discreet.privacy.relation import Relation

ADD = Relation.ADD_REMOVE
WRITTEN = Path(__file__).with_name("opened_under_the_first_rule.sql")
PEOPLE = Account("people", "row", ADD, Budget("1.5", "1e-6"))  # opened with 1 and raised
QUOTAS = (Quota(Budget("0.5", "1e-7"), principal="*"),)
QUARTER = Account("half", "row", ADD, Budget(2, "1e-5", approximate="1/4"))
# What the release that wrote the file said was left: by the lifetime of "people" for one who had asked and one who had
# not, and of "half".
HELD: dict[Event, tuple[int, int, int]] = {
    Gaussian(100): (64, 89, 1646),
    PureDP("0.01"): (67, 93, 1649),
    ApproxDP("0.001", "1e-8"): (5, 5, 250),
    Laplace(50): (19, 27, 417),
    PoissonSampled(Gaussian(1), "0.001"): (0, 0, 93419),
}


@pytest.fixture
def old(tmp_path: Path) -> Path:
    path = tmp_path / "old.ledger"
    path.touch(mode=0o600)
    connection = sqlite3.connect(path)
    connection.executescript(WRITTEN.read_text())
    connection.execute(f"PRAGMA application_id = {0x44534354}")
    connection.execute("PRAGMA user_version = 1")
    last = connection.execute("SELECT idx, hash FROM entries ORDER BY idx DESC LIMIT 1").fetchone()
    connection.close()
    os.close(os.open(f"{path}.anchor", os.O_CREAT, 0o600))
    Anchor(Path(f"{path}.anchor")).replace(Head(*last))
    return path


def test_an_old_ledger_holds_what_it_held(old: Path) -> None:
    """A budget is said as it was said then, and counted as it was counted then."""
    with Ledger.open(old, PEOPLE, quotas=QUOTAS) as people:
        for event, (asked, new, _) in HELD.items():
            assert (people.times_left(event, principal="ann"), people.times_left(event, principal="dan")) == (
                asked,
                new,
            )
    with Ledger.open(old, QUARTER) as quarter:
        assert {event: quarter.times_left(event) for event in HELD} == {event: held[2] for event, held in HELD.items()}
    assert look(old).datasets == ("half", "people", "pure", "rho")


def test_an_old_ledger_is_charged_raised_and_verified_by_its_own_rule(old: Path) -> None:
    with Ledger.open(old, PEOPLE) as people:
        before = people.times_left(Gaussian(100), principal="eve")
        for _ in range(3):
            people.charge(Gaussian(100), relation=ADD, purpose="count", principal="eve")
        assert people.times_left(Gaussian(100), principal="eve") == before - 3
        people.raise_budget(Budget(2, "1e-6"), reason="more", principal="custodian")
        people.set_quotas(QUOTAS, reason="the same", principal="custodian")
        assert people.times_left(Gaussian(100), principal="eve") == before - 3  # The quota is the one it was.
        people.verify()
        declared = people.history()[-1].content["declared"]
        assert "rule" not in declared
        assert declared["budget"]["approximate"] == "1/2"
        assert declared["orders"] == ["18", "25", "35", "49", "69", "97", "137"]
        people.set_quotas([], reason="none", principal="custodian")
        whole = ApproxDP(2, "6e-7")  # within (2, 1e-6), but above the half of delta that is kept for such events
        with pytest.raises(BudgetExceeded):
            people.charge(whole, relation=ADD, purpose="all")
    with Ledger.open(old, Account("people", "row", ADD, Budget(2, "1e-6"))) as again:
        again.verify()


@pytest.mark.parametrize("said", [None, "1/2"])
def test_an_old_quota_that_was_taken_away_comes_back_with_its_rule_and_its_sums(old: Path, said: str | None) -> None:
    """However its share for events is said: its sums are those of its own orders, and mean nothing to another rule."""
    with Ledger.open(old, PEOPLE) as people:
        before = {event: people.times_left(event, principal="ann") for event in HELD}
        people.set_quotas([], reason="none", principal="custodian")
        assert people.times_left(Gaussian(100), principal="ann") > before[Gaussian(100)]
        again = Quota(Budget("0.5", "1e-7", approximate=said), principal="*")
        people.set_quotas([again], reason="again", principal="custodian")
        assert {event: people.times_left(event, principal="ann") for event in HELD} == before
        people.charge(Gaussian(100), relation=ADD, purpose="count", principal="ann")
        assert people.times_left(Gaussian(100), principal="ann") == before[Gaussian(100)] - 1
        people.verify()


def test_an_unused_account_of_the_first_rule_has_no_first_charge_rule(old: Path) -> None:
    """Its quotas are unused for somebody new, and still refuse what is above the half of delta for events."""
    with Ledger.open(old, PEOPLE) as people:
        assert people.times_left(ApproxDP("0.1", "6e-8"), principal="new") == 0
        assert people.times_left(ApproxDP("0.1", "5e-8"), principal="new") == 1


def test_another_split_than_the_one_that_was_declared_is_refused(old: Path, tmp_path: Path) -> None:
    for other in (Budget("1.5", "1e-6", expect="gaussian"), Budget("1.5", "1e-6", approximate="1/5")):
        with pytest.raises(Refused, match="was declared as"):
            Ledger.open(old, Account("people", "row", ADD, other))
    new = tmp_path / "new.ledger"
    Ledger.open(new, Account("people", "row", ADD, Budget(1, "1e-6"))).close()
    with pytest.raises(Refused, match="1/2 of δ for events"):
        Ledger.open(new, Account("people", "row", ADD, Budget(1, "1e-6", approximate="1/2")))
    with Ledger.open(new, Account("people", "row", ADD, Budget(1, "1e-6"))) as book:
        declared = book.history()[0].content["declared"]
        assert declared["rule"] == 2
        assert declared["shares"]["events"] == "1/5"
        for other in (Budget(2, "1e-6", expect="pure"), Budget(2, "1e-6", approximate="1/5")):
            with pytest.raises(Refused, match="split of delta"):
                book.raise_budget(other, reason="more", principal="custodian")


def test_a_restored_old_ledger_is_spent_and_keeps_its_rule(old: Path) -> None:
    accounts = [
        PEOPLE,
        QUARTER,
        Account("rho", "row", ADD, Budget(rho="0.5")),
        Account("pure", "row", ADD, Budget(1)),
    ]
    restore(old, accounts, reason="disk", principal="custodian")
    with Ledger.open(old, PEOPLE) as people:
        assert people.times_left(PureDP("1e-9")) == 0
        assert "rule" not in people.history()[-1].content["declared"]


def test_what_was_left_is_still_said_as_older_bundles_said_it(old: Path) -> None:
    """A bundle keeps the words of its day, and they are compared with the ledger's."""
    left = look(old).left("people")
    assert (
        left.describe_sums() == "ε = 0 of 1.5 by the sum, 94.8 % by the best rule, δ = 4.9e-07 for events with a delta"
    )
