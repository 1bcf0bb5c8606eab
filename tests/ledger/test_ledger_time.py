"""The time of the last entry decides which window is open: it must not be changed unseen."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from discreet.errors import LedgerDamaged
from discreet.ledger import Account, Budget, Ledger, Quota
from discreet.privacy import PureDP
from discreet.privacy.relation import Relation

ADD = Relation.ADD_REMOVE
ACCOUNT = Account("people", "row", ADD, Budget())
FIFTY_DAYS = 50 * 86_400 * 1_000_000


def charge(book: Ledger) -> None:
    book.charge(PureDP(1), relation=ADD, purpose="the whole day")


def moved(path: Path, by: int) -> None:
    """Move the time that the last entry is kept under, as somebody would who knows sqlite3."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("DROP TRIGGER IF EXISTS entries_stay")
        connection.execute("UPDATE entries SET time = time + ? WHERE idx = (SELECT max(idx) FROM entries)", (by,))


@pytest.mark.parametrize("by", [-FIFTY_DAYS, FIFTY_DAYS])
def test_a_moved_time_is_found_when_the_ledger_is_opened(by: int, tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "ledger", ACCOUNT, quotas=[Quota(Budget(1), window="day")]) as book:
        charge(book)
    moved(tmp_path / "ledger", by)
    with pytest.raises(LedgerDamaged):
        Ledger.open(tmp_path / "ledger", ACCOUNT)


def test_a_moved_time_is_found_by_verify_also_after_the_next_charge(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "ledger", ACCOUNT, quotas=[Quota(Budget(1), window="day")]) as book:
        charge(book)
        moved(tmp_path / "ledger", FIFTY_DAYS)
        charge(book)
        with pytest.raises(LedgerDamaged):
            book.verify()
