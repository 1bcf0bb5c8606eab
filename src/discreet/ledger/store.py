"""What a place for the record must do. One is built on sqlite3; another can be built on a server."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol, final

from discreet.errors import Refused
from discreet.ledger.charge_record import Charge, Head, ReadClaim

__all__ = ["ClosedStore", "LedgerRows", "Store", "StoreTurn", "claim_of", "close_before_forks", "opening_stores"]


class LedgerRows(Protocol):
    """The record within one transaction. Entries and answers can be added, never changed."""

    def head(self) -> Head:
        """Return the end of the chain."""

    def append(self, head: Head, body: str) -> None:
        """Add an entry; `head` is the end of the chain after it."""

    def entry(self, index: int) -> tuple[str, str] | None:
        """Return the text of an entry and its hash."""

    def marked(self, mark: str, *, after: int) -> Iterator[tuple[str, str]]:
        """Return text and hash of the entries after an index whose text has a mark, the newest first."""

    def clock(self) -> int | None:
        """Return the time by a clock that all machines share, in microseconds since 1970; None: that of this one."""

    def entries(self) -> Iterator[tuple[Head, str]]:
        """Return every entry in order: the end of the chain after it, and its text."""

    def account(self, dataset: str) -> str | None:
        """Return what was declared for a data set."""

    def set_account(self, dataset: str, declared: str) -> None:
        """Remember what is declared for a data set."""

    def clear_accounts(self) -> None:
        """Forget what is declared: the ledger was moved, and nobody may charge it here any more."""

    def accounts(self) -> dict[str, str]:
        """Return what is declared for every data set."""

    def sums(self, dataset: str, scope: str) -> str | None:
        """Return the sums of one scope of a data set."""

    def set_sums(self, dataset: str, scope: str, text: str) -> None:
        """Remember the sums of one scope."""

    def all_sums(self) -> dict[tuple[str, str], str]:
        """Return the sums of every scope."""

    def remember(self, index: int, dataset: str, *, key: str | None, question: str | None) -> None:
        """Make a charge findable by its key and by its question."""

    def by_key(self, dataset: str, key: str) -> int | None:
        """Return the index of the charge that used a key."""

    def by_question(self, dataset: str, question: str) -> int | None:
        """Return the index of the newest charge for a question that has an answer."""

    def newest(self, dataset: str, question: str) -> int | None:
        """Return the index of the newest charge for a question, answered or not."""

    def remembered(self) -> dict[int, tuple[str, str | None, str | None]]:
        """Return data set, key and question of every charge that has one of them."""

    def answer(self, charge: int) -> str | None:
        """Return the answer that was stored under a charge."""

    def set_answer(self, charge: int, text: str) -> None:
        """Store an answer, once."""

    def answers(self) -> dict[int, str]:
        """Return all answers by their charge."""

    def claim(self, charge: int) -> ReadClaim | None:
        """Return the claim on the read of a charge that has no answer and was not released."""

    def claims(self, dataset: str | None = None) -> tuple[ReadClaim, ...]:
        """Return all such claims, or those on one data set, in the order in which they were made."""

    def set_claim(self, claim: ReadClaim) -> None:
        """Remember a claim, in place of what was known of one on the same charge."""

    def end_claim(self, charge: int) -> None:
        """Forget the claim on a charge, if there is one: it was answered, or released."""


def claim_of(
    charge: int,
    written_hash: str,
    index: int,
    dataset: str,
    principal: str,
    until: int,
    process: str,
    part: int | None,
    is_failed: int,
    counts: int,
) -> ReadClaim:
    """Return a claim as a row of a store has it, with the hash of its charge."""
    paid = Charge(charge, charge, written_hash)
    return ReadClaim(paid, index, dataset, principal, until, process, part, bool(is_failed), bool(counts))


class Store(Protocol):
    """A durable place. What is written within `writing` is on disk and anchored when the block is left.

    Examples:
        >>> account = dp.ledger.Account("visits", "row", dp.Relation.ADD_REMOVE, dp.Budget(epsilon=1))
        >>> ledger = dp.ledger.Ledger.open("visits.ledger", account)  # a store in SQLite, with an anchor beside it
        >>> ledger.close()
    """

    def writing(self) -> AbstractContextManager[LedgerRows]:
        """Open an exclusive transaction; an exception takes everything back."""

    def reading(self) -> AbstractContextManager[LedgerRows]:
        """Open a snapshot; what it shows is anchored when the block is left."""

    def close(self) -> None:
        """Let go of files."""


@final
class ClosedStore:
    """A store that was let go of."""

    @contextmanager
    def writing(self) -> Iterator[LedgerRows]:
        raise Refused("this ledger is closed: open it again")
        yield

    reading = writing

    def close(self) -> None:
        """There is nothing left to let go of."""


# --- turns: One user at a time within a process; and what is open is closed before it forks. ---


@final
class StoreTurn:
    """One user at a time within a process, and none while it forks."""

    __slots__ = ("is_busy", "lock")

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.is_busy = False

    @contextmanager
    def taken(self) -> Iterator[None]:
        with self.lock:
            if self.is_busy:
                raise Refused("a ledger was used from inside its own transaction: draw noise there, nothing else")
            self.is_busy = True
            try:
                yield
            finally:
                self.is_busy = False


class _OpenStore(Protocol):
    turn: StoreTurn

    def drop(self) -> None:
        """Close what is open; the next use opens it again."""


_living: weakref.WeakSet[_OpenStore] = weakref.WeakSet()
_guard = threading.RLock()
_waiting: list[_OpenStore] = []


def close_before_forks(store: _OpenStore) -> None:
    """Let a store be closed before this process forks: parent and child each open it again."""
    _living.add(store)


def opening_stores() -> AbstractContextManager[object]:
    """Keep others from opening a store, and from forking, while one is looked up."""
    return _guard


def _before_fork() -> None:
    """Wait until no transaction runs, and close: a lock or a connection that two processes share protects neither."""
    _guard.acquire()
    _waiting[:] = list(_living)
    for store in _waiting:
        store.turn.lock.acquire()
        if not store.turn.is_busy:  # Else this thread forks inside a transaction, and the child will be refused.
            store.drop()


def _after_fork() -> None:
    """Go on, in the parent and in the child; each opens the files again when it needs them."""
    for store in _waiting:
        store.turn.lock.release()
    _waiting.clear()
    _guard.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)
