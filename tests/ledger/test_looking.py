"""Looking at a ledger spends nothing, changes nothing, and believes nothing that was changed."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from discreet.errors import InvalidParameter, LedgerDamaged
from discreet.ledger import Account, Budget, Ledger, look
from discreet.privacy import Laplace, Relation

in_a_file = pytest.mark.parametrize("place", ["file"], indirect=True)
PEOPLE = Account("people", "row", Relation.ADD_REMOVE, Budget(epsilon=1))


@pytest.fixture
def ledger(place: Path | str) -> Path | str:
    path = place
    with Ledger.open(path, PEOPLE) as book:
        charge = book.charge(Laplace(10), relation=Relation.ADD_REMOVE, purpose="a count")
        book.store(charge, lambda: "answer")
    return path


def test_a_look_tells_what_the_ledger_tells(ledger):
    seen = look(ledger)
    with Ledger.open(ledger, PEOPLE) as book:
        assert seen.entries("people") == book.history()
        assert seen.spent("people") == book.spent()
        assert seen.left("people") == book.left()
        assert seen.describe("people") == book.describe()
        assert seen.account("people") == book.account
    assert seen.datasets == ("people",)
    charge = next(entry for entry in seen.entries() if entry.kind == "charge")
    assert seen.charge(charge.index) == charge
    assert seen.answer(charge.index) == "answer"
    assert seen.charge(1) is None or seen.charge(1).kind == "charge"
    assert seen.charge(0) is None
    assert seen.charge(99) is None


@in_a_file
def test_a_look_changes_no_byte(ledger):
    before = {path.name: path.read_bytes() for path in ledger.parent.iterdir()}
    look(ledger)
    after = {path.name: path.read_bytes() for path in ledger.parent.iterdir() if path.name in before}
    assert after == before


def test_a_look_works_while_somebody_spends(ledger):
    with Ledger.open(ledger, PEOPLE) as book:
        before = len(look(ledger).entries())
        book.charge(Laplace(20), relation=Relation.ADD_REMOVE, purpose="another")
        assert len(look(ledger).entries()) == before + 1


@in_a_file
def test_a_look_needs_no_folder_to_write_to(ledger, monkeypatch):
    """The superuser may write anywhere, so the answer of the system is given by hand."""
    before = sorted(path.name for path in ledger.parent.iterdir())
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert look(ledger).datasets == ("people",)
    assert sorted(path.name for path in ledger.parent.iterdir()) == before


@in_a_file
def test_a_changed_entry_is_noticed(ledger):
    with sqlite3.connect(ledger) as connection:
        connection.execute("DROP TRIGGER entries_stay")
        connection.execute("UPDATE entries SET body = replace(body, 'a count', 'a sum')")
    connection.close()
    with pytest.raises(LedgerDamaged):
        look(ledger)


@in_a_file
def test_a_changed_answer_is_noticed(ledger):
    with sqlite3.connect(ledger) as connection:
        connection.execute("DROP TRIGGER answers_stay")
        connection.execute("UPDATE answers SET body = 'another'")
    connection.close()
    with pytest.raises(LedgerDamaged):
        look(ledger)


@in_a_file
def test_an_old_copy_beside_a_newer_anchor_is_noticed(ledger):
    old = ledger.read_bytes()
    with Ledger.open(ledger, PEOPLE) as book:
        book.charge(Laplace(20), relation=Relation.ADD_REMOVE, purpose="another")
    for name in ("-wal", "-shm"):
        Path(f"{ledger}{name}").unlink(missing_ok=True)
    ledger.write_bytes(old)
    with pytest.raises(LedgerDamaged, match="was anchored"):
        look(ledger)


@pytest.mark.parametrize("bad", ["missing.ledger", "."])
def test_what_is_not_there_is_refused(tmp_path, bad):
    with pytest.raises(InvalidParameter):
        look(tmp_path / bad)


def test_a_file_that_is_no_ledger_is_refused(tmp_path):
    (tmp_path / "text.ledger").write_text("not a ledger" * 1000)
    with pytest.raises(LedgerDamaged):
        look(tmp_path / "text.ledger")


def test_an_unknown_data_set_is_refused_by_name(ledger):
    with pytest.raises(InvalidParameter, match="there are: people"):
        look(ledger).spent("others")
