"""The tight total counts what was lost before a copy was restored: nobody knows it, so it is the whole budget."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from discreet.ledger import Account, Budget, Ledger, restore
from discreet.privacy import ZCDP, ApproxDP, Composed, Event, PureDP, epsilon
from discreet.privacy.relation import Relation

ADD = Relation.ADD_REMOVE
DELTA = "1e-5"


@pytest.mark.parametrize(
    ("before", "raised", "everything"),
    [
        ({"epsilon": 1}, {"epsilon": 3}, PureDP(1)),
        ({"rho": "0.5"}, {"rho": 2}, ZCDP("0.5")),
        ({"epsilon": 1, "delta": "1e-6"}, {"epsilon": 3, "delta": "5e-6"}, ApproxDP(1, "1e-6")),
    ],
    ids=["pure", "concentrated", "approximate"],
)
def test_the_total_after_a_restore_counts_what_was_lost(
    before: dict[str, Any], raised: dict[str, Any], everything: Event, place: Path | str, tmp_path: Path
) -> None:
    path, account = place, Account("people", "row", ADD, Budget(**before))
    with Ledger.open(path, account) as book:
        book.charge(PureDP("0.1"), relation=ADD, purpose="known")
    next(tmp_path.rglob("*.anchor")).unlink()
    restore(path, [account], reason="the disk failed", principal="custodian")
    with Ledger.open(path, account) as book:
        assert book.total(DELTA).epsilon == epsilon(everything, DELTA, relation=ADD)
        assert book.left().share == 0
        book.raise_budget(Budget(**raised), reason="decided", principal="custodian")
        book.charge(PureDP("0.2"), relation=ADD, purpose="after")
        both = epsilon(Composed([everything, PureDP("0.2")]), DELTA, relation=ADD)
        assert book.total(DELTA).epsilon == both
        book.verify()
