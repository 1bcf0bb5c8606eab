"""A report that is paid for promises what the table and the report give away together, and was paid for."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

import discreet as dp
from discreet.lab.evaluation import evaluate_for_a_price, evaluate_publicly
from discreet.lab.evaluation.promised_limits import guess_of
from discreet.privacy import GDP, ApproxDP, Event, Relation
from discreet.synth.promise import Promise

DOMAIN = dp.synth.Domain({"a": dp.synth.Category(["x", "y"]), "b": dp.synth.Category([1, 2])})
TABLE = {"a": ["x", "y"] * 20, "b": [1, 2, 2, 1] * 10}


class Purse:
    """A payer that remembers."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def charge(
        self, event: Event, *, relation: Relation, purpose: str, unit: str = "row", idempotency_key: str | None = None
    ) -> None:
        self.events.append(event)


def promise(event: Event, relation: Relation = Relation.ADD_REMOVE, unit: str = "row") -> Promise:
    return Promise.of(event, method="mst", relation=relation, delta=Fraction(1, 10**6), unit=unit, rows_per_unit=1)


def report(purse: Any, promised: Promise, **more: Any) -> Any:
    asked: dict[str, Any] = {"epsilon": 1, "delta": 1e-6, "domain": DOMAIN, "promise": promised} | more
    return evaluate_for_a_price(TABLE, TABLE, session=purse, **asked)


@pytest.mark.parametrize("event", [GDP(mu_squared=Fraction(1, 4)), ApproxDP(1, Fraction(1, 10**6))])
def test_the_promise_of_a_paid_report_covers_the_table_and_the_report(event: Event) -> None:
    table = promise(event)
    found = report(Purse(), table)
    assert guess_of(found.promise) > guess_of(table)
    assert guess_of(found.promise) > guess_of(found.priced.spent)
    assert found.promise.epsilon > table.epsilon
    assert found.promise.delta == table.delta + found.priced.spent.delta
    assert "together" in " ".join(found.notes)


@pytest.mark.parametrize("other", [{"relation": Relation.REPLACE_ONE}, {"unit": "a person"}])
def test_promises_to_different_people_are_not_added(other: dict[str, Any]) -> None:
    purse = Purse()
    with pytest.raises(dp.InvalidParameter, match="unit and relation"):
        report(purse, promise(GDP(mu_squared=Fraction(1, 4)), **other))
    assert purse.events == []


def test_a_report_that_nobody_pays_for_is_not_written() -> None:
    with pytest.raises(dp.InvalidParameter, match="session"):
        report(None, promise(GDP(mu_squared=Fraction(1, 4))))


def test_a_missing_column_is_named() -> None:
    with pytest.raises(dp.InvalidParameter, match="no column 'b'"):
        evaluate_publicly(TABLE, {"a": ["x", "y"]}, domain=DOMAIN)
