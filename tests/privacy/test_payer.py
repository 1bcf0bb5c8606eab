"""One way to pay: every payer is told whom a charge protects and under which key, and nobody looks at its signature."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

import discreet as dp
from discreet.ledger import Account, Budget, Ledger
from discreet.privacy.events import PureDP
from discreet.privacy.payer import Price, pay
from discreet.privacy.relation import Relation

SOURCE = Path(dp.__file__).parent
TENTH = Price(PureDP("0.1"), Relation.ADD_REMOVE)


class Told:
    """A payer that writes down all that it is told."""

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []

    def charge(self, event: Any, **said: Any) -> None:
        self.calls.append({"event": event, **said})


def test_nobody_is_nobody_to_charge() -> None:
    pay(None, TENTH, purpose="nothing")


def test_every_argument_is_named_to_every_payer() -> None:
    payer = Told()
    pay(payer, TENTH, purpose="one")
    pay(payer, TENTH, purpose="two", unit="person", idempotency_key="again")
    said = {"event": TENTH.event, "relation": TENTH.relation}
    assert payer.calls == [
        {**said, "purpose": "one", "unit": "row", "idempotency_key": None},
        {**said, "purpose": "two", "unit": "person", "idempotency_key": "again"},
    ]


def test_a_payer_that_cannot_tell_a_person_from_a_row_pays_for_nothing() -> None:
    class Blind:
        paid = 0

        def charge(self, event: Any, *, relation: Relation, purpose: str) -> None:
            self.paid += 1

    payer: Any = Blind()
    with pytest.raises(TypeError):
        dp.count([1, 2], epsilon=1, relation=Relation.ADD_REMOVE, session=payer)
    assert payer.paid == 0


@pytest.mark.parametrize(("account", "asked"), [("row", "person"), ("person", "row"), ("person", "household")])
def test_a_ledger_pays_for_the_units_of_its_account_only(account: str, asked: str) -> None:
    budget = Budget(epsilon=1)
    with Ledger.open("memory", Account("people", account, Relation.ADD_REMOVE, budget)) as book:
        with pytest.raises(dp.Refused):
            pay(book, TENTH, purpose="one", unit=asked)
        pay(book, TENTH, purpose="one", unit=account)
        assert [entry.kind for entry in book.history()] == ["open", "charge"]


def test_the_same_event_under_the_same_key_is_paid_once_and_another_is_refused() -> None:
    with Ledger.open("memory", Account("people", "row", Relation.ADD_REMOVE, Budget(epsilon=1))) as book:
        for _ in range(3):
            pay(book, TENTH, purpose="one", idempotency_key="run")
        assert [entry.kind for entry in book.history()] == ["open", "charge"]
        with pytest.raises(dp.Refused):
            pay(book, Price(PureDP("0.2"), Relation.ADD_REMOVE), purpose="one", idempotency_key="run")
        for _ in range(2):
            pay(book, TENTH, purpose="one")
        assert [entry.kind for entry in book.history()] == ["open", "charge", "charge", "charge"]


def test_only_pay_charges_a_payer_and_nobody_inspects_one() -> None:
    """What knows a ledger charges it by its own methods; everybody else goes through `pay`."""
    knows_a_ledger = {
        "privacy/payer.py",
        "query/session/executor.py",
        "release/cumulative/advance.py",
        "release/pricing/release_price.py",
        "release/bundle/rebuild.py",  # `charge` of a view of a ledger reads an entry
        "release/bundle/ledger_comparison.py",
        "learn/torch/private_training.py",  # with room for the claims of a run
        "synth/tables/private_table.py",  # an account of rounds within one charge
        "cli/doctor_support.py",
    }
    charging = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "charge"
    }
    assert charging == knows_a_ledger
    for path in SOURCE.rglob("*.py"):
        assert "signature(session" not in path.read_text(), path
