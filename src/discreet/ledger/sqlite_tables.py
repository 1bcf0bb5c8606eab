"""The record in sqlite3, within one transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, final

from discreet.errors import LedgerDamaged
from discreet.ledger.charge_record import BEGINNING, Charge, Head, ReadClaim
from discreet.ledger.store import LedgerRows
from discreet.ledger.transactions import append

if TYPE_CHECKING:
    import sqlite3

__all__ = ["FORMAT", "SqliteRows", "create", "format_of", "migrate"]

# --- schema: The tables, their version, and how an older file becomes a newer one. ---


FORMAT = 2  # 2: reads are claimed.
_APPLICATION = 0x44_53_43_54  # "DSCT": what a file says that is ours.

_CLAIMS = """
CREATE TABLE claims (charge INTEGER PRIMARY KEY, idx INTEGER NOT NULL, dataset TEXT NOT NULL, principal TEXT NOT NULL,
    until INTEGER NOT NULL, process TEXT NOT NULL, part INTEGER, failed INTEGER NOT NULL, counts INTEGER NOT NULL);
CREATE INDEX claims_by_dataset ON claims (dataset);
"""
# Entries and answers are the record; the other tables are kept so that a charge need not read the record again.
_TABLES = f"""
CREATE TABLE entries (idx INTEGER PRIMARY KEY, hash TEXT NOT NULL, time INTEGER NOT NULL, body TEXT NOT NULL);
CREATE TABLE answers (charge INTEGER PRIMARY KEY, body TEXT NOT NULL);
CREATE TABLE accounts (dataset TEXT PRIMARY KEY, declared TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE sums (dataset TEXT, scope TEXT, body TEXT NOT NULL, PRIMARY KEY (dataset, scope)) WITHOUT ROWID;
CREATE TABLE charges (idx INTEGER PRIMARY KEY, dataset TEXT NOT NULL, key TEXT, question TEXT);
CREATE UNIQUE INDEX charges_by_key ON charges (dataset, key) WHERE key IS NOT NULL;
CREATE INDEX charges_by_question ON charges (dataset, question) WHERE question IS NOT NULL;
{_CLAIMS.strip()}
CREATE TABLE lease (id INTEGER PRIMARY KEY CHECK (id = 1), host TEXT NOT NULL, until INTEGER NOT NULL);
CREATE TRIGGER entries_stay BEFORE UPDATE ON entries BEGIN SELECT RAISE(ABORT, 'entries are never changed'); END;
CREATE TRIGGER entries_last BEFORE DELETE ON entries BEGIN SELECT RAISE(ABORT, 'entries are never deleted'); END;
CREATE TRIGGER answers_stay BEFORE UPDATE ON answers BEGIN SELECT RAISE(ABORT, 'answers are never changed'); END;
CREATE TRIGGER answers_last BEFORE DELETE ON answers BEGIN SELECT RAISE(ABORT, 'answers are never deleted'); END;
"""


def create(connection: sqlite3.Connection) -> None:
    """Make the tables of a new file, within the transaction that is open."""
    _execute(connection, _TABLES)
    connection.execute(f"PRAGMA application_id = {_APPLICATION}")
    connection.execute(f"PRAGMA user_version = {FORMAT}")


def _execute(connection: sqlite3.Connection, statements: str) -> None:
    """Run statements within the transaction that is open; `executescript` would end it."""
    for statement in statements.split(";\n"):
        if text := statement.strip():
            connection.execute(text)


def _add_claims(connection: sqlite3.Connection) -> None:
    _execute(connection, _CLAIMS)


# How a file of each format becomes one of the next.
STEPS: dict[int, Callable[[sqlite3.Connection], None]] = {1: _add_claims}


def format_of(connection: sqlite3.Connection) -> int:
    """Return the version of a file: 0 for an empty one; refuse what is not a ledger, or is newer than this release."""
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    application = int(connection.execute("PRAGMA application_id").fetchone()[0])
    if version == 0 and connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
        return 0
    if application != _APPLICATION:
        raise LedgerDamaged("this file is not a ledger")
    if version > FORMAT:
        raise LedgerDamaged(
            f"this ledger has format {version}, this release knows {FORMAT}: use a newer release of discreet"
        )
    return version


def migrate(connection: sqlite3.Connection, rows: LedgerRows, version: int) -> None:
    """Bring an older file up to date, within the transaction that is open. Entries stay; each step adds one."""
    for step in range(version, FORMAT):
        STEPS[step](connection)
        append(rows, "", "format", {"from": step, "to": step + 1})
    connection.execute(f"PRAGMA user_version = {FORMAT}")


_ROWS_CLAIMS = (
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
        row = self._connection.execute(f"{_ROWS_CLAIMS} WHERE charge = ?", (charge,)).fetchone()
        return None if row is None else _claim(*row)

    def claims(self, dataset: str | None = None) -> tuple[ReadClaim, ...]:
        if dataset is None and not self._one("SELECT count(*) FROM sqlite_master WHERE name = 'claims'"):
            return ()  # A file of an older format that is only looked at.
        which, values = ("", ()) if dataset is None else (" WHERE dataset = ?", (dataset,))
        rows = self._connection.execute(f"{_ROWS_CLAIMS}{which} ORDER BY claims.idx", values)
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
