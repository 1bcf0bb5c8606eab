"""One charge that pays for a series: its answers come in order, once each, and the chain covers them."""

from __future__ import annotations

import os
import signal
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from discreet.errors import InvalidParameter, LedgerDamaged, Refused
from discreet.ledger import Account, Budget, Ledger, restore
from discreet.ledger.charge_record import Charge
from discreet.privacy import Event, Gaussian, PureDP
from discreet.privacy.relation import Relation

ADD = Relation.ADD_REMOVE
HALF: Event = PureDP("0.5")
ACCOUNT = Account("people", "row", ADD, Budget(1))


def begun(book: Ledger, parts: int | None = 3, key: str | None = "series") -> Charge:
    return book.charge(HALF, relation=ADD, purpose="totals so far", idempotency_key=key, plan="p", parts=parts)


def never() -> str:
    raise AssertionError("drawn again")


def dying() -> str:
    os.kill(os.getpid(), signal.SIGKILL)
    return "never"


@pytest.fixture
def path(place: Path | str) -> Path | str:
    with Ledger.open(place, ACCOUNT) as book:
        charge = begun(book)
        assert book.store_part(charge, 0, lambda: "day 0") == "day 0"
        assert book.store_part(charge, 1, lambda: "day 1") == "day 1"
    return place


def test_a_series_is_paid_once_and_its_answers_are_drawn_once(path: Path) -> None:
    with Ledger.open(path, ACCOUNT) as book:
        charge = begun(book)
        assert book.spent().epsilon == HALF.epsilon  # type: ignore[attr-defined]
        assert book.parts(charge) == ("day 0", "day 1")
        assert book.store_part(charge, 0, never) == "day 0"
        assert book.store_part(charge, 1, never) == "day 1"
        assert book.store_part(charge, 2, lambda: "day 2") == "day 2"
        book.verify()
        assert [entry.kind for entry in book.history()] == ["open", "charge", "part", "part", "part"]
        assert book.spent().charges == 1


WRONG: dict[str, Callable[[Ledger, Charge], object]] = {
    "beyond the last": lambda book, charge: [book.store_part(charge, day, lambda: "x") for day in (2, 3)],
    "out of order": lambda book, charge: book.store_part(
        book.charge(HALF, relation=ADD, purpose="", parts=3), 1, never
    ),
    "negative": lambda book, charge: book.store_part(charge, -1, never),
    "a fraction": lambda book, charge: book.store_part(charge, 2.5, never),  # type: ignore[arg-type]
    "all at once": lambda book, charge: book.store(charge, never),
    "a single answer": lambda book, charge: book.store_part(book.charge(HALF, relation=ADD, purpose=""), 0, never),
    "no text": lambda book, charge: book.store_part(charge, 2, lambda: 5),  # type: ignore[arg-type,return-value]
    "no parts": lambda book, charge: begun(book, 0, None),
    "too many": lambda book, charge: begun(book, 10**7, None),
    "a key of ours": lambda book, charge: begun(book, None, "discreet:part:2:0"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_was_not_paid_for_is_refused(what: str, path: Path) -> None:
    with Ledger.open(path, ACCOUNT) as book, pytest.raises(InvalidParameter):
        WRONG[what](book, begun(book))


def test_a_key_stands_for_one_number_of_answers(path: Path) -> None:
    with Ledger.open(path, ACCOUNT) as book:
        for parts in (2, 4, None):
            with pytest.raises(Refused, match="another number of answers"):
                begun(book, parts)


CHANGES = {
    "an answer": "UPDATE answers SET body = 'day 9' WHERE charge = 3",
    "no answer": "DELETE FROM answers WHERE charge = 4",
    "the key of one": "UPDATE charges SET key = 'discreet:part:2:7' WHERE idx = 4",
    "no key": "DELETE FROM charges WHERE idx = 4",
    "the last entry": "DELETE FROM entries WHERE idx = 4",
    "another number": "UPDATE entries SET body = replace(body, '\"part\":1', '\"part\":2') WHERE idx = 4",
}


@pytest.mark.parametrize("place", ["file"], indirect=True)
@pytest.mark.parametrize("what", CHANGES)
def test_a_changed_series_is_found(what: str, path: Path) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    for trigger in ("entries_stay", "entries_last", "answers_stay", "answers_last"):
        connection.execute(f"DROP TRIGGER {trigger}")
    connection.execute(CHANGES[what])
    connection.close()
    with pytest.raises(LedgerDamaged):
        Ledger.open(path, ACCOUNT)


def test_a_series_does_not_go_on_after_a_copy_was_restored(path: Path) -> None:
    """The copy may lack an answer that was told: to draw it again is to tell twice."""
    restore(path, [ACCOUNT], reason="disk lost", principal="root")
    with Ledger.open(path, ACCOUNT) as book:
        charge = begun(book)
        assert book.store_part(charge, 1, never) == "day 1"
        with pytest.raises(Refused, match="new series"):
            book.store_part(charge, 2, never)


def test_a_process_that_dies_while_it_draws_leaves_no_answer(path: Path) -> None:
    child = os.fork()
    if child == 0:
        with Ledger.open(path, ACCOUNT) as book:
            book.store_part(begun(book), 2, dying)
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1])
    with Ledger.open(path, ACCOUNT) as book:
        assert book.parts(begun(book)) == ("day 0", "day 1")
        assert book.store_part(begun(book), 2, lambda: "day 2") == "day 2"
        book.verify()


def test_a_series_of_gaussian_answers_is_one_event_of_the_total() -> None:
    account = Account("people", "row", ADD, Budget(1, 1e-6))
    with Ledger.open("memory", account) as book:
        event = Gaussian(variance=100, squared_sensitivity=1)
        charge = book.charge(event, relation=ADD, purpose="totals", parts=2)
        before = book.spent()
        for day in range(2):
            book.store_part(charge, day, lambda: "told")
        assert book.spent() == before
        assert book.total(1e-6).charges == 1
