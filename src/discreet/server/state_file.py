"""The state of a server: one SQLite file with people, tokens, jobs, and a log of decisions that only grows.

The budget is not in it: that is the ledger's. Whoever rolls this file back brings back revoked tokens and spent caps of
tokens, never budget.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import Any, final

from discreet.errors import InvalidParameter, Refused
from discreet.file_locks import CLOSE_ON_EXEC, NO_FOLLOW, refuse_without_locks, try_to_lock
from discreet.server.state_tables import FORMAT, TABLES

__all__ = ["StateFile"]


@final
class StateFile:
    """One connection, shared by threads: whoever holds it is alone, and what they do is done whole or not at all."""

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.time) -> None:
        self.path, self._clock, self._lock = path, clock, RLock()
        self._server: int | None = None
        _make_private(path)
        self._database = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=10)
        self._database.row_factory = sqlite3.Row
        self._database.execute("PRAGMA foreign_keys = ON")
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute("PRAGMA synchronous = FULL")
        found = self._database.execute("PRAGMA user_version").fetchone()[0]
        if found not in (0, FORMAT):
            raise InvalidParameter(f"{path.name} was written by another version of the server")
        self._database.executescript(TABLES)
        self._database.execute(f"PRAGMA user_version = {FORMAT}")
        last = self._database.execute("SELECT MAX(at) FROM decisions").fetchone()[0]
        self._latest = float(last or 0)

    def now(self) -> float:
        """Return the time, which never goes back: a clock that jumps back revives no session and no token."""
        with self._lock:
            self._latest = max(self._latest, self._clock())
            return self._latest

    @contextmanager
    def changing(self) -> Iterator[sqlite3.Connection]:
        """Change something, whole or not at all."""
        with self._lock:
            self._database.execute("BEGIN IMMEDIATE")
            try:
                yield self._database
            except BaseException:
                self._database.execute("ROLLBACK")
                raise
            self._database.execute("COMMIT")

    def rows(self, query: str, *values: Any) -> list[sqlite3.Row]:
        """Return all rows of a query."""
        with self._lock:
            return self._database.execute(query, values).fetchall()

    def row(self, query: str, *values: Any) -> sqlite3.Row | None:
        """Return the first row of a query, if there is one."""
        return next(iter(self.rows(query, *values)), None)

    def decide(self, who: str, what: str, *, dataset: str = "", outcome: str = "done", about: str = "") -> None:
        """Write a decision down: who, what, about which data set, and how it ended. No value of data, no SQL."""
        with self.changing() as database:
            last = database.execute("SELECT number, hash FROM decisions ORDER BY number DESC LIMIT 1").fetchone()
            number, before = (1, "") if last is None else (last["number"] + 1, last["hash"])
            said = (number, self.now(), who, what, dataset, outcome, about)
            database.execute("INSERT INTO decisions VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (*said, _chained(before, said)))

    def decisions(
        self, *, before: int | None = None, most: int = 100, only: Iterable[str] | None = None
    ) -> list[dict[str, Any]]:
        """Return the last decisions, the newest first: all, or those about some data sets."""
        last, named = (1 << 62) if before is None else before, None if only is None else json.dumps(sorted(only))
        found = self.rows(
            "SELECT * FROM decisions WHERE number < ? AND (? IS NULL OR (dataset <> '' AND dataset IN"
            " (SELECT value FROM json_each(?)))) ORDER BY number DESC LIMIT ?",
            last,
            named,
            named,
            most,
        )
        return [dict(row) for row in found]

    def decisions_hold(self) -> bool:
        """Tell whether every decision is the one that was written, with none left out before the last."""
        before = ""
        for place, row in enumerate(self.rows("SELECT * FROM decisions ORDER BY number"), 1):
            *said, found = tuple(row)
            if said[0] != place or found != _chained(before, tuple(said)):
                return False
            before = found
        return True

    def take_alone(self) -> None:
        """Refuse a second server on this state: its queue is in the memory of one process."""
        refuse_without_locks("a server")
        self._server = os.open(f"{self.path}.lock", os.O_CREAT | os.O_RDWR | CLOSE_ON_EXEC | NO_FOLLOW, 0o600)
        try:
            try_to_lock(self._server)
        except OSError:
            raise Refused(
                f"another server runs on {self.path.name}",
                way_out="stop it first, or name another file with --state: both may serve the same ledger",
            ) from None

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._database.close()
            if self._server is not None:
                os.close(self._server)
                self._server = None


def _chained(before: str, said: tuple[Any, ...]) -> str:
    return hashlib.sha256(json.dumps([before, *said], ensure_ascii=True).encode()).hexdigest()


def _make_private(path: Path) -> None:
    """Make the file for its owner only, or refuse one that others may read."""
    os.close(os.open(path, os.O_CREAT | os.O_RDWR | CLOSE_ON_EXEC | NO_FOLLOW, 0o600))
    facts = os.stat(path)
    if not stat.S_ISREG(facts.st_mode) or facts.st_mode & 0o077:
        raise Refused(
            f"others may read or write {path.name}, which has digests of passwords and tokens",
            way_out="take their permissions away (chmod 600)",
        )
