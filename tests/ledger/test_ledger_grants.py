"""Caps of agents: granted once under a name, by an entry, beside the quotas that are declared."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from discreet.errors import BudgetExceeded, InvalidParameter, Refused
from discreet.ledger import Account, Budget, Ledger, Quota
from discreet.privacy import PureDP, Relation

ADD = Relation.ADD_REMOVE
ACCOUNT = Account("people", "row", ADD, Budget(4))
DAILY = Quota(Budget(3), principal="*", window="day")
CAP = Quota(Budget("0.5"), principal="agent:a")
WHO = {"reason": "asked for", "principal": "ana"}


def spend(book: Ledger, epsilon: str, principal: str) -> None:
    book.charge(PureDP(epsilon), relation=ADD, purpose="count", principal=principal)


def test_a_cap_holds_for_its_agent_and_for_nobody_else():
    with Ledger.open("memory", ACCOUNT, quotas=[DAILY]) as book:
        book.grant(CAP, **WHO)
        spend(book, "0.5", "agent:a")
        with pytest.raises(BudgetExceeded):
            spend(book, "1e-3", "agent:a")
        spend(book, "1", "ana")
        book.verify()


def test_the_same_grant_again_changes_nothing_and_another_cap_is_refused():
    with Ledger.open("memory", ACCOUNT) as book:
        book.grant(CAP, **WHO)
        entries = len(book.history())
        book.grant(CAP, **WHO)
        for budget in (Budget("0.6"), Budget("0.5", "1e-9"), Budget("0.4")):
            with pytest.raises(Refused, match="once under a name"):
                book.grant(Quota(budget, principal="agent:a"), **WHO)
        assert (len(book.history()), book.quotas) == (entries, (CAP,))


def test_a_grant_that_was_taken_back_makes_no_room_and_does_not_come_back(place):
    with Ledger.open(place, ACCOUNT, quotas=[DAILY]) as book:
        book.grant(CAP, **WHO)
        spend(book, "0.5", "agent:a")
        book.end_grant("agent:a", **WHO)
        assert book.quotas == (DAILY,)
        entries = len(book.history())
        for budget in (Budget("0.5"), Budget("0.6"), Budget("0.1")):
            with pytest.raises(Refused, match="taken back"):
                book.grant(Quota(budget, principal="agent:a"), **WHO)
        with pytest.raises(Refused, match="no cap in force"):
            book.end_grant("agent:a", **WHO)
        with pytest.raises(Refused, match="not in force"):
            book.set_quotas([DAILY, CAP], **WHO)
        assert len(book.history()) == entries
        book.grant(Quota(Budget("0.6"), principal="agent:b"), **WHO)
        spend(book, "0.6", "agent:b")
        book.verify()


def test_quotas_are_replaced_beside_the_grants():
    with Ledger.open("memory", ACCOUNT, quotas=[DAILY]) as book:
        book.grant(CAP, **WHO)
        spend(book, "0.4", "agent:a")
        for said, after in (([], (CAP,)), ([CAP], (CAP,)), ([DAILY], (DAILY, CAP)), ([CAP, DAILY], (CAP, DAILY))):
            book.set_quotas(said, **WHO)
            assert book.quotas == after
        with pytest.raises(Refused, match="granted once under a name"):  # It would begin with nothing spent.
            book.set_quotas([Quota(Budget("0.6"), principal="agent:a")], **WHO)
        with pytest.raises(BudgetExceeded):
            spend(book, "0.2", "agent:a")
        book.verify()


def test_an_agent_without_a_grant_in_force_is_charged_nothing(place):
    """Quotas for everybody are no grant, and neither is one per day; a charge and a claim are refused alike."""
    daily = Quota(Budget(1), principal="agent:a", window="day")
    with Ledger.open(place, ACCOUNT, quotas=[DAILY, daily]) as book:
        for agent in ("agent:a", "agent:b", "agent:"):
            assert book.times_left(PureDP("0.1"), principal=agent) == 0
            assert not book.affords(PureDP("0.1"), principal=agent, at_once=False)
            assert book.left(principal=agent, like=PureDP("0.1")).more == 0
            with pytest.raises(Refused, match=f"{agent} has no cap in force"):
                spend(book, "0.1", agent)
            with pytest.raises(Refused, match="no cap in force"):
                book.claim(PureDP("0.1"), relation=ADD, purpose="count", principal=agent, seconds=1)
        assert book.times_left(PureDP("0.1"), principal="agents") == 30
        spend(book, "0.1", "agents")  # somebody who is no agent
        book.grant(CAP, **WHO)
        spend(book, "0.5", "agent:a")
        assert book.spent().charges == 2
        book.verify()


@pytest.mark.parametrize(
    "quota",
    [DAILY, Quota(Budget(1), principal="ana"), Quota(Budget(1), principal="agent:a", window="day"),
     Quota(Budget(1), principal="agent:a", project="x")],
)  # fmt: skip
def test_only_the_cap_of_one_agent_is_a_grant(quota):
    with Ledger.open("memory", ACCOUNT) as book, pytest.raises(InvalidParameter):
        book.grant(quota, **WHO)


def test_declared_quotas_are_declared_again_without_the_grants(tmp_path: Path):
    path = tmp_path / "ledger"
    with Ledger.open(path, ACCOUNT, quotas=[DAILY]) as book:
        book.grant(CAP, **WHO)
    for said in ([], [DAILY], [DAILY, CAP]):
        with Ledger.open(path, ACCOUNT, quotas=said) as book:
            assert book.quotas == (DAILY, CAP)
    for said in ([CAP], [Quota(Budget(2), window="day")]):  # Declared ones stay as they were declared.
        with pytest.raises(Refused, match="set_quotas"):
            Ledger.open(path, ACCOUNT, quotas=said)


def test_grants_at_once_keep_each_other(tmp_path: Path):
    path = tmp_path / "ledger"
    Ledger.open(path, ACCOUNT).close()

    def grant(number: int) -> None:
        with Ledger.open(path, ACCOUNT) as book:
            book.grant(Quota(Budget("0.5"), principal=f"agent:{number % 4}"), **WHO)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(grant, range(12)))
    with Ledger.open(path, ACCOUNT) as book:
        assert sorted(quota.principal or "" for quota in book.quotas) == [f"agent:{number}" for number in range(4)]
        book.verify()
