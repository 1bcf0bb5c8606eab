"""What a place for the record must do. One is built on sqlite3; another can be built on a server."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, Protocol, final

from discreet.errors import LedgerDamaged, LedgerUnavailable, Refused
from discreet.ledger.charge_record import Charge, Head, ReadClaim

__all__ = [
    "ClosedStore",
    "CommitLine",
    "FoundDamage",
    "LedgerRows",
    "Store",
    "StoreTurn",
    "WaitingRequest",
    "claim_of",
    "close_before_forks",
    "opening_stores",
]


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

    def entries(self, *, after: int = 0) -> Iterator[tuple[Head, str]]:
        """Return every entry after an index in order: the end of the chain after it, and its text."""

    def links(self, *, before: int) -> Iterator[tuple[int, str, int, bytes]]:
        """Return index, hash, time and text of every entry before an index, in order."""

    def checkpoint(self) -> Head | None:
        """Return the checkpoint that is anchored; None if there is none, or no anchor."""

    def anchor_checkpoint(self, head: Head) -> None:
        """Anchor a checkpoint whose sums were added up from the chain, when this transaction is committed."""

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

    def verifying(self) -> AbstractContextManager[LedgerRows]:
        """Do the same for somebody who verifies the whole record in it: also where damage was found before."""

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

    reading = verifying = writing

    def close(self) -> None:
        """There is nothing left to let go of."""


# --- damage: What was found changed is not charged to any more. ---


@final
class FoundDamage:
    """What a store has found damaged stays so, until the whole record was verified anew.

    Whoever adds up, finds that something was changed, and raises is heard by one caller; the next charge adds nothing
    up, and would go on from what was changed. `damage_of` says of what the database raises whether it is damage.
    """

    __slots__ = ("_damage_of", "_found")

    def __init__(self, damage_of: Callable[[Exception], LedgerDamaged | None]) -> None:
        self._damage_of = damage_of
        self._found: str | None = None

    @contextmanager
    def remembered(self, *, verifies: bool = False) -> Iterator[None]:
        """Refuse a transaction if damage was found before, and note what this one finds; or verify, and go on."""
        if not verifies:
            self.refuse()
        with self.noted():
            yield
        if verifies:
            self._found = None

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Note the damage that whoever only reads finds."""
        try:
            yield
        except Exception as error:
            damage = error if isinstance(error, LedgerDamaged) else self._damage_of(error)
            if damage is None:
                raise
            self._found = str(damage)
            raise damage from None

    def refuse(self) -> None:
        """Raise what was found before, if anything was."""
        if self._found is not None:
            raise LedgerDamaged(self._found)

    def forget(self) -> None:
        """A copy was restored, and its whole budget counts as spent."""
        self._found = None


# --- turns: One user at a time within a process; and what is open is closed before it forks. ---


_WITHIN = "a ledger was used from inside its own transaction: draw noise there, nothing else"


@final
class StoreTurn:
    """One user at a time within a process, and none while it forks."""

    __slots__ = ("_thread", "lock")

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._thread = 0  # that has the turn; 0: none

    @property
    def is_busy(self) -> bool:
        """Whether somebody has the turn."""
        return self._thread != 0

    def refuse_within(self) -> None:
        """Refuse a thread that has the turn already: it would wait for itself."""
        if self._thread == threading.get_ident():
            raise Refused(_WITHIN)

    @contextmanager
    def taken(self) -> Iterator[None]:
        with self.lock:
            self.refuse_within()
            try:
                try:
                    self._thread = threading.get_ident()
                    yield
                finally:
                    self._thread = 0
            finally:
                self._thread = 0  # Again, for an interrupt may come within the first: the turn would be taken for ever.


# --- group commit: What several threads ask at once is decided in one transaction, which one of them runs. ---


@final
class WaitingRequest:
    """What one thread asks, and what has become of it."""

    __slots__ = ("batch", "decision", "error", "is_ended", "is_settled", "request", "thread", "told", "woken")

    def __init__(self, request: Any) -> None:
        self.request, self.thread = request, threading.get_ident()
        self.decision: Any = None
        self.error: Exception | None = None
        self.is_settled = False  # It was decided, durably. If not, and without an error, it is left to its thread.
        self.is_ended = False  # No transaction will take it any more.
        self.woken = threading.Lock()
        self.woken.acquire()
        # Of one who leads: whom it decides for, and what those are told who are not settled.
        self.batch: list[WaitingRequest] = []
        self.told: Exception | None = None

    def settle(self, decision: Any) -> None:
        """Note what was decided: only after that is committed, forced to disk and anchored."""
        self.decision, self.is_settled = decision, True

    def end(self, told: Exception | None) -> None:
        """Take it out of what waits; one that was settled before stays so."""
        if not self.is_ended:
            self.error, self.is_ended = told, True

    def wake(self) -> None:
        """Let its thread look."""
        with suppress(RuntimeError):  # It was woken before.
            self.woken.release()


@final
class CommitLine:
    """Threads in line at a store. The first decides for all who came meanwhile; nobody is told before that is durable.

    While one transaction is forced to disk others ask, and the next one decides all of them: so the more wait, the
    fewer flushes each needs. A thread whose request is not settled does it again, alone, and is told why it is refused.

    An interrupt can come between any two steps, and nobody may wait for ever after it. So there is no lock that it
    could leave held: who leads stands in one place, which is taken in one step of a dictionary; everybody leaves twice,
    for one interrupt ends one of the two; and who waits looks again after a while, whether or not somebody woke it.
    """

    def __init__(self) -> None:
        self.process = os.getpid()  # A forked child has none of the threads that wait here.
        self._queue: list[WaitingRequest] = []  # Each thread adds and removes its own.
        self._place: dict[str, WaitingRequest] = {}  # of who leads; empty: nobody

    def through(self, request: Any, together: Callable[[Sequence[WaitingRequest]], None]) -> WaitingRequest:
        """Return a request when a transaction with it has ended, or raise what ended that transaction."""
        asked = WaitingRequest(request)
        try:
            try:
                self._queue.append(asked)
                while not asked.is_ended:
                    leads = self._place.setdefault(_LEADS, asked)
                    if leads is asked:
                        self._lead(asked, together)
                        break
                    if leads.thread == asked.thread:  # A handler of signals has come upon it: it would wait for itself.
                        raise Refused(_WITHIN)
                    asked.woken.acquire(timeout=_LOOK_AGAIN)
            finally:
                self._leave(asked)
        finally:
            self._leave(asked)
        error = None if asked.is_settled else asked.error
        asked.batch, asked.told, asked.error = [], None, None  # An error that is kept here would keep its frames.
        if error is not None:
            try:
                raise error
            finally:
                del error
        return asked

    def _lead(self, asked: WaitingRequest, together: Callable[[Sequence[WaitingRequest]], None]) -> None:
        """Decide for all who wait. What was begun for them is over when this is left, however it is left."""
        if asked.is_ended:  # by somebody who led until just now
            return
        asked.told = LedgerUnavailable(_INTERRUPTED)
        asked.batch = [each for each in self._queue[:] if not each.is_ended]
        try:
            together(asked.batch)
            asked.told = None
        except Exception as error:  # noqa: BLE001 - Everybody whom it concerns is told, each in a thread of its own.
            asked.told = error

    def _leave(self, asked: WaitingRequest) -> None:
        """End what was decided here, and let the next one lead. It can be done twice."""
        for each in asked.batch:
            each.end(asked.told)
        asked.is_ended = True  # What others are deciding for it now may still be charged: that loses budget.
        if asked in self._queue:
            self._queue.remove(asked)
        if self._place.get(_LEADS) is asked:
            del self._place[_LEADS]
            waiting = [each for each in self._queue[:] if not each.is_ended]
            for each in (*asked.batch, *waiting[:1]):
                each.wake()


_LEADS = "leads"
_LOOK_AGAIN = 0.05  # seconds; it matters only after an interrupt, for whoever leaves wakes the next one
_INTERRUPTED = "the thread that decided for several was interrupted; nothing was released: ask again"


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
