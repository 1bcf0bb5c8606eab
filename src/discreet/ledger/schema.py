"""The tables, their version, and how an older file becomes a newer one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from discreet.errors import LedgerDamaged
from discreet.ledger.recording import append
from discreet.ledger.store import LedgerRows

if TYPE_CHECKING:
    import sqlite3

__all__ = ["FORMAT", "create", "format_of", "migrate"]

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
