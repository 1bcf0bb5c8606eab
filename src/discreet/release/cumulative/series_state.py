"""What a series must remember from one day to the next: who was counted how often, and the exact counts so far.

This is private data, in a file beside the ledger that only its owner can read. Nothing of it is ever shown.

Guarantee   Whatever becomes of the rows of a table from one day to the next, a unit adds one to the count of at most
            `most` days of the series, and at most one to each. On which days depends on its own rows alone.
Theorem     A unit is counted on a day if, by what is there now, it has rows on more days up to it than it was counted
            on so far, and it was counted less than `most` times. Both numbers are about that unit only. What was
            counted is written here before anything is measured, is never counted again, and never taken back.

So a row that comes late is counted on the next day of the series rather than on its own; one that is taken away later
was counted all the same. All days that are due are counted in one transaction: a crash leaves all of them, or none.
"""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, final

from discreet import noise
from discreet.errors import LedgerUnavailable, Refused
from discreet.ledger.private_files import create_private
from discreet.ledger.sqlite_connection import begun, connect

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["State", "opened_state"]

_TABLES = (
    "CREATE TABLE IF NOT EXISTS series (id INTEGER PRIMARY KEY CHECK (id = 1), charge TEXT NOT NULL, kind TEXT)",
    "CREATE TABLE IF NOT EXISTS days (day INTEGER PRIMARY KEY, counted INTEGER NOT NULL, token TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS units (unit TEXT PRIMARY KEY, counted INTEGER NOT NULL) WITHOUT ROWID",
)
_SEEN = "CREATE TEMP TABLE seen (unit TEXT, place INTEGER, day INTEGER, PRIMARY KEY (unit, place)) WITHOUT ROWID"
_TAKE = "INSERT INTO seen SELECT ?1, ?2, ?3 WHERE NOT EXISTS (SELECT 1 FROM units WHERE unit = ?1 AND counted >= ?2)"
_BY_DAY = (
    "CREATE INDEX temp.seen_by_day ON seen (day)"  # Places grow with days: a unit's first place has its first day.
)
_TODAY = "CREATE TEMP TABLE today AS SELECT unit, min(place) AS place FROM seen WHERE day <= ? GROUP BY unit"
_COUNT = (
    "INSERT INTO units SELECT unit, place FROM today WHERE true ON CONFLICT DO UPDATE SET counted = excluded.counted"
)
_DONE = "DELETE FROM seen WHERE (unit, place) IN (SELECT unit, place FROM today)"
_BATCH = 100_000


@final
class State:
    """The private memory of one series."""

    __slots__ = ("_connection",)

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def days(self) -> list[tuple[int, str]]:
        """Return the exact count and the token of every day that was counted."""
        return list(self._connection.execute("SELECT counted, token FROM days ORDER BY day"))

    def begin(self, charge: str, kind: str) -> None:
        """Make this the memory of a series, or check that it is: of this charge, and of units of this kind."""
        with begun(self._connection, "IMMEDIATE"):
            for statement in _TABLES:
                self._connection.execute(statement)
            self._connection.execute("INSERT OR IGNORE INTO series VALUES (1, ?, ?)", (charge, kind))
            found = self._connection.execute("SELECT charge, kind FROM series").fetchone()
        if found[0] != charge:
            raise Refused(
                "the private state beside the ledger belongs to another series",
                way_out="put back the file that belongs here, or move this one away if its series has ended",
            )
        if found[1] != kind:
            raise Refused(
                f"the column that tells units apart was of the kind {found[1]} and is {kind} now",
                reason="nobody would be known again, and everybody counted once more",
                way_out="hand the column over as it was",
            )

    def add_counts(self, counts: Sequence[int]) -> None:
        """Count the days that were not counted yet, where days or rows are protected by themselves."""
        with begun(self._connection, "IMMEDIATE"):
            for day in range(self._next(), len(counts)):
                self._add(day, counts[day])

    def add_units(self, seen: pa.Table, days: int) -> None:
        """Count the days that were not counted yet; `seen` has the first days of every unit, by today's rows."""
        self._connection.execute("PRAGMA temp_store = MEMORY")  # No trace of a unit in a scratch file.
        with begun(self._connection, "IMMEDIATE"):
            self._connection.execute(_SEEN)
            for batch in seen.to_batches(_BATCH):
                columns = (batch.column(name).to_pylist() for name in ("unit", "place", "day"))
                self._connection.executemany(_TAKE, zip(*columns, strict=True))
            self._connection.execute(_BY_DAY)
            for day in range(self._next(), days):
                self._add(day, self._count(day))
            self._connection.execute("DROP TABLE seen")

    def _count(self, day: int) -> int:
        self._connection.execute(_TODAY, (day,))
        counted = int(self._connection.execute("SELECT count(*) FROM today").fetchone()[0])
        self._connection.execute(_COUNT)
        self._connection.execute(_DONE)
        self._connection.execute("DROP TABLE today")
        return counted

    def _next(self) -> int:
        return int(self._connection.execute("SELECT count(*) FROM days").fetchone()[0])

    def _add(self, day: int, counted: int) -> None:
        # The token is told with the day's answer: by it an old copy of this file is recognised. It says nothing else.
        token = f"{noise.uniform(1 << 62):x}"
        self._connection.execute("INSERT INTO days VALUES (?, ?, ?)", (day, counted, token))


@contextmanager
def opened_state(path: Path, *, may_begin: bool) -> Iterator[State]:
    """Open the memory of a series; make it only if nothing was measured yet."""
    if not path.exists() and not may_begin:
        raise Refused(
            f"the private state of this series, {path.name}, is missing, and days of it were released",
            reason="without it people who were counted would be counted again",
            way_out="put the file back from a backup made since the last release; or end the series and begin another",
        )
    try:
        create_private(path)
        _check_private(path)
        connection = connect(str(path))
    except (OSError, sqlite3.Error):
        raise LedgerUnavailable("the private state beside the ledger cannot be opened or made here") from None
    try:
        yield State(connection)
    except sqlite3.Error:
        # What sqlite3 says could name a unit.
        raise LedgerUnavailable("the private state beside the ledger could not be used; nothing was released") from None
    finally:
        connection.close()


def _check_private(path: Path) -> None:
    facts = os.stat(path)
    if not stat.S_ISREG(facts.st_mode) or facts.st_mode & 0o077:
        raise Refused(
            "others may read or write the private state beside the ledger: take their permissions away (chmod 600)"
        )
