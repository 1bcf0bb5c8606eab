"""Events carry no unit: what protects a row must not be charged to an account that protects people."""

from __future__ import annotations

import pyarrow as pa
import pytest

import discreet as dp
from discreet.errors import Refused
from discreet.ledger import Account, Budget, Ledger
from discreet.privacy import PureDP
from discreet.privacy.relation import Relation

ADD = Relation.ADD_REMOVE
TABLE = pa.table({"customer": [1, 1, 1, 2], "price": [1, 2, 3, 4]})


def test_a_library_call_is_not_charged_to_a_ledger_of_people() -> None:
    with Ledger.open("memory", Account("shop", "customer", ADD, Budget(1))) as book:
        with pytest.raises(Refused, match="customer"):
            dp.count([1, 2, 3], relation=ADD, epsilon=0.25, session=book)
        assert book.spent().charges == 0
        book.charge(PureDP("0.25"), relation=ADD, purpose="clipped by person", unit="customer")
        assert book.spent().charges == 1


def test_nor_by_way_of_the_ledger_of_a_session() -> None:
    people = dp.Unit("customer")
    given = {"ledger": "memory", "dataset": "shop", "principal": "ana", "budget": dp.Budget(1)}
    with dp.Session({"orders": TABLE}, unit=people, **given) as session:
        with pytest.raises(Refused, match="customer"):
            dp.count([1, 2, 3], relation=ADD, epsilon=0.25, session=session.ledger)
        session.sql("SELECT COUNT(*) AS n FROM orders", epsilon=0.5).release()
        session.charge(PureDP("0.1"), relation=ADD, purpose="clipped by person", unit="customer")
        assert session.spent.charges == 2
