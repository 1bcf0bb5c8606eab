"""The record in sqlite3, within one transaction."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, final

from discreet.ledger.entry import BEGINNING, Charge, Head, ReadClaim

if TYPE_CHECKING:
    import sqlite3

__all__ = ["SqliteRows"]

_CLAIMS = (
    "SELECT charge, hash, claims.idx, dataset, principal, until, process, part, failed, counts "
    "FROM claims JOIN entries ON entries.idx = charge"
)


@final
class SqliteRows:
    """One statement for each thing that a ledger asks."""

    __slots__ = ("_connection", "_head")

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._head: Head | None = None  # Within a transaction nobody else moves it.

    def _one(self, statement: str, *values: object) -> Any:
        row = self._connection.execute(statement, values).fetchone()
        return None if row is None else row[0]

    def head(self) -> Head:
        if self._head is None:
            row = self._connection.execute("SELECT idx, hash, time FROM entries ORDER BY idx DESC LIMIT 1").fetchone()
            self._head = BEGINNING if row is None else Head(*row)
        return self._head

    def append(self, head: Head, body: str) -> None:
        self._connection.execute("INSERT INTO entries VALUES (?, ?, ?, ?)", (head.index, head.hash, head.time, body))
        self._head = head

    def entry(self, index: int) -> tuple[str, str] | None:
        row = self._connection.execute("SELECT body, hash FROM entries WHERE idx = ?", (index,)).fetchone()
        return None if row is None else (row[0], row[1])

    def entries(self) -> Iterator[tuple[Head, str]]:
        rows = self._connection.execute("SELECT idx, hash, time, body FROM entries ORDER BY idx")
        yield from ((Head(index, written_hash, time), body) for index, written_hash, time, body in rows)

    def account(self, dataset: str) -> str | None:
        return self._one("SELECT declared FROM accounts WHERE dataset = ?", dataset)  # type: ignore[no-any-return]

    def set_account(self, dataset: str, declared: str) -> None:
        self._connection.execute("INSERT OR REPLACE INTO accounts VALUES (?, ?)", (dataset, declared))

    def accounts(self) -> dict[str, str]:
        return dict(self._connection.execute("SELECT dataset, declared FROM accounts"))

    def sums(self, dataset: str, scope: str) -> str | None:
        return self._one("SELECT body FROM sums WHERE dataset = ? AND scope = ?", dataset, scope)  # type: ignore[no-any-return]

    def set_sums(self, dataset: str, scope: str, text: str) -> None:
        self._connection.execute("INSERT OR REPLACE INTO sums VALUES (?, ?, ?)", (dataset, scope, text))

    def all_sums(self) -> dict[tuple[str, str], str]:
        rows = self._connection.execute("SELECT dataset, scope, body FROM sums")
        return {(dataset, scope): body for dataset, scope, body in rows}

    def remember(self, index: int, dataset: str, *, key: str | None, question: str | None) -> None:
        self._connection.execute("INSERT INTO charges VALUES (?, ?, ?, ?)", (index, dataset, key, question))

    def by_key(self, dataset: str, key: str) -> int | None:
        return self._one("SELECT idx FROM charges WHERE dataset = ? AND key = ?", dataset, key)  # type: ignore[no-any-return]

    def by_question(self, dataset: str, question: str) -> int | None:
        return self._one(  # type: ignore[no-any-return]
            "SELECT max(idx) FROM charges JOIN answers ON charge = idx WHERE dataset = ? AND question = ?",
            dataset,
            question,
        )

    def newest(self, dataset: str, question: str) -> int | None:
        return self._one("SELECT max(idx) FROM charges WHERE dataset = ? AND question = ?", dataset, question)  # type: ignore[no-any-return]

    def remembered(self) -> dict[int, tuple[str, str | None, str | None]]:
        rows = self._connection.execute("SELECT idx, dataset, key, question FROM charges")
        return {index: (dataset, key, question) for index, dataset, key, question in rows}

    def answer(self, charge: int) -> str | None:
        return self._one("SELECT body FROM answers WHERE charge = ?", charge)  # type: ignore[no-any-return]

    def set_answer(self, charge: int, text: str) -> None:
        self._connection.execute("INSERT INTO answers VALUES (?, ?)", (charge, text))

    def answers(self) -> dict[int, str]:
        return dict(self._connection.execute("SELECT charge, body FROM answers"))

    def claim(self, charge: int) -> ReadClaim | None:
        row = self._connection.execute(f"{_CLAIMS} WHERE charge = ?", (charge,)).fetchone()
        return None if row is None else _claim(*row)

    def claims(self, dataset: str | None = None) -> tuple[ReadClaim, ...]:
        if dataset is None and not self._one("SELECT count(*) FROM sqlite_master WHERE name = 'claims'"):
            return ()  # A file of an older format that is only looked at.
        which, values = ("", ()) if dataset is None else (" WHERE dataset = ?", (dataset,))
        rows = self._connection.execute(f"{_CLAIMS}{which} ORDER BY claims.idx", values)
        return tuple(_claim(*row) for row in rows)

    def set_claim(self, claim: ReadClaim) -> None:
        values = (claim.dataset, claim.principal, claim.until, claim.process, claim.part, claim.is_failed, claim.counts)
        self._connection.execute(
            "INSERT OR REPLACE INTO claims VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", (claim.charge.id, claim.index, *values)
        )

    def end_claim(self, charge: int) -> None:
        self._connection.execute("DELETE FROM claims WHERE charge = ?", (charge,))


def _claim(
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
    paid = Charge(charge, charge, written_hash)
    return ReadClaim(paid, index, dataset, principal, until, process, part, bool(is_failed), bool(counts))
