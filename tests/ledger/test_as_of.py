"""What was left after a charge is what the ledger said then, whatever came later."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from discreet.errors import InvalidParameter
from discreet.ledger import Account, Budget, Ledger, Quota, left_after, restore
from discreet.privacy import ZCDP, Gaussian, Laplace, Relation

ADD = Relation.ADD_REMOVE


@pytest.mark.parametrize(
    ("budget", "event", "larger"),
    [
        (Budget(epsilon=1), Laplace(10), Budget(epsilon=2)),
        (Budget(epsilon=1, delta=1e-6), Gaussian(50), Budget(epsilon=2, delta=1e-5)),
        (Budget(rho=1), ZCDP(Fraction(1, 50)), Budget(rho=2)),
    ],
    ids=["pure", "approximate", "concentrated"],
)
def test_what_was_left_is_what_the_ledger_said_then(budget, event, larger):
    with Ledger.open("memory", Account("people", "row", ADD, budget)) as book:
        said = {}
        for number in range(6):
            charge = book.charge(event, relation=ADD, purpose=f"question {number}")
            book.store(charge, lambda: "answer")
            said[charge.id] = book.left()
            if number == 2:
                book.raise_budget(larger, reason="more is known", principal="ana")
            if number == 3:
                book.set_quotas([Quota(budget, principal="ana")], reason="fairness", principal="ana")
        assert {charge: left_after(book.history(), charge) for charge in said} == said
        assert len(set(map(str, said.values()))) == 6


def test_a_restored_ledger_has_nothing_left(place: Path | str):
    account = Account("people", "row", ADD, Budget(epsilon=1))
    path = place
    with Ledger.open(path, account) as book:
        book.charge(Laplace(10), relation=ADD, purpose="one")
    restore(path, [account], reason="a disk was lost", principal="ana")
    with Ledger.open(path, account) as book:
        last = book.history()[-1].index
        assert left_after(book.history(), last).share == book.left().share == 0


def test_entries_of_nothing_are_refused():
    with pytest.raises(InvalidParameter):
        left_after([], 3)
