"""What a place for the record must do. One is built on sqlite3; another can be built on a server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol, final

from discreet.errors import Refused
from discreet.ledger.charge_record import Head, ReadClaim

__all__ = ["ClosedStore", "LedgerRows", "Store"]


class LedgerRows(Protocol):
    """The record within one transaction. Entries and answers can be added, never changed."""

    def head(self) -> Head:
        """Return the end of the chain."""

    def append(self, head: Head, body: str) -> None:
        """Add an entry; `head` is the end of the chain after it."""

    def entry(self, index: int) -> tuple[str, str] | None:
        """Return the text of an entry and its hash."""

    def entries(self) -> Iterator[tuple[Head, str]]:
        """Return every entry in order: the end of the chain after it, and its text."""

    def account(self, dataset: str) -> str | None:
        """Return what was declared for a data set."""

    def set_account(self, dataset: str, declared: str) -> None:
        """Remember what is declared for a data set."""

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
