"""Looking at a ledger must not make it forget: a read moves the anchor on, and never to another history."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from discreet.errors import LedgerDamaged
from discreet.ledger import Account, Budget, Ledger, restore
from discreet.ledger.sqlite_store import FileStore
from discreet.privacy import PureDP
from discreet.privacy.relation import Relation

ADD = Relation.ADD_REMOVE
ACCOUNT = Account("people", "row", ADD, Budget(1))


def spend(book: Ledger, *epsilons: str) -> None:
    for epsilon in epsilons:
        book.charge(PureDP(epsilon), relation=ADD, purpose="question")


def copied(path: Path) -> Path:
    """A copy of a closed ledger and its anchor, as if on another machine."""
    copy = path.with_name("copy")
    shutil.copy2(path, copy)
    shutil.copy2(path.with_name(f"{path.name}.anchor"), copy.with_name("copy.anchor"))
    return copy


@pytest.mark.parametrize("look", [Ledger.left, Ledger.history], ids=["left", "history"])
def test_a_look_does_not_anchor_another_history(look: Callable[[Ledger], object], tmp_path: Path) -> None:
    """`sqlite3 ledger ".restore copy"` under an open ledger; the copy was spent from elsewhere, and is longer."""
    path = tmp_path / "ledger"
    Ledger.open(path, ACCOUNT).close()
    copy = copied(path)
    with Ledger.open(copy, ACCOUNT) as elsewhere:
        spend(elsewhere, "0.1", "0.1", "0.1")
    with Ledger.open(path, ACCOUNT) as book:
        spend(book, "0.9")
        with closing(sqlite3.connect(copy)) as source, closing(sqlite3.connect(path)) as target:
            source.backup(target)
        with pytest.raises(LedgerDamaged, match="another one"):
            look(book)
        with pytest.raises(LedgerDamaged, match="another one"):
            spend(book, "0.6")


def test_a_process_that_has_the_lost_file_open_does_not_spoil_the_restored_one(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    Ledger.open(path, ACCOUNT).close()
    copy = copied(path)
    other = FileStore(path, path.with_name("ledger.anchor"))  # not the one of this process: as another one has it
    with other.writing() as rows:
        assert rows.head().index == 1
    with Ledger.open(path, ACCOUNT) as book:
        spend(book, "0.1", "0.1", "0.1")
    os.replace(copy, path)
    restore(path, [ACCOUNT], reason="the disk failed", principal="custodian")
    with pytest.raises(LedgerDamaged, match="replaced"), other.reading() as rows:
        rows.head()
    with Ledger.open(path, ACCOUNT) as book:
        assert book.left().epsilon == 0
    other.close()


def test_a_look_goes_on_while_others_write(tmp_path: Path) -> None:
    """The anchor may be further on than what was read by the time it is compared."""
    path = tmp_path / "ledger"
    with Ledger.open(path, ACCOUNT) as book:
        other = FileStore(path, path.with_name("ledger.anchor"))
        with other.reading() as rows:
            assert rows.head().index == 1
            spend(book, "0.1", "0.1")
        other.close()
