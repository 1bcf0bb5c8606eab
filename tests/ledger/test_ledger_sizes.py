"""Numbers of any size are charged or refused by name; nothing else comes of them."""

from __future__ import annotations

from typing import Any

import pytest

from discreet.errors import BudgetExceeded, InvalidParameter
from discreet.ledger import Account, Budget, Ledger
from discreet.privacy import ApproxDP, Event, PureDP, Repeated
from discreet.privacy.relation import Relation

ADD = Relation.ADD_REMOVE


@pytest.mark.parametrize(
    "given",
    [
        {"epsilon": 10**400, "delta": "1e-6"},
        {"epsilon": "1e-9000", "delta": "1e-6"},
        {"epsilon": 1, "delta": "1e-9000"},
        {"rho": "1e-9000"},
        {"epsilon": "1e400"},
    ],
)
def test_a_budget_of_an_odd_size_is_refused_by_name(given: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter, match=r"must lie between 1e-300 and 1e300|exponent"):
        Budget(**given)


@pytest.mark.parametrize(
    "given",
    [{"epsilon": "1e-300", "delta": "1e-300"}, {"epsilon": "1e300", "delta": "1e-300"}, {"rho": "1e-300"}],
)
def test_a_budget_at_the_ends_is_kept(given: dict[str, Any]) -> None:
    with Ledger.open("memory", Account("people", "row", ADD, Budget(**given))) as book:
        assert book.describe()
        assert book.affords(PureDP(1)) == ("epsilon" in given and given["epsilon"] == "1e300")
        book.verify()


@pytest.mark.parametrize("event", [PureDP("1e-9000"), ApproxDP("0.1", "1e-9000")])
def test_an_event_that_cannot_be_written_is_refused_by_name(event: Event) -> None:
    with Ledger.open("memory", Account("people", "row", ADD, Budget(1, "1e-6"))) as book:
        with pytest.raises(InvalidParameter, match="too many digits"):
            book.charge(event, relation=ADD, purpose="question")
        assert book.spent().charges == 0


def test_a_huge_event_is_refused() -> None:
    with Ledger.open("memory", Account("people", "row", ADD, Budget(1))) as book, pytest.raises(BudgetExceeded):
        book.charge(Repeated(PureDP("1e2000"), 10**2000), relation=ADD, purpose="question")
