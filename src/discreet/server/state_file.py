"""The state of one server in an SQLite file."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, final

from discreet.errors import InvalidParameter, Refused
from discreet.file_locks import CLOSE_ON_EXEC, NO_FOLLOW, refuse_without_locks, try_to_lock
from discreet.server.state_store import ServerState, StateConflict, StateUnavailable
from discreet.server.state_tables import APPEND_ONLY

__all__ = ["StateFile", "locked_alone", "make_private"]


@final
class StateFile(ServerState):
    """A file, and its anchor beside it unless that is kept elsewhere."""

    is_shared = False

    def __init__(self, path: Path, *, anchor: Path | None = None, clock: Callable[[], float] | None = None) -> None:
        super().__init__(clock, anchor or path.with_name(f"{path.name}.anchor"))
        self.path, self.name = path, path.name
        self._server: int | None = None
        make_private(path)
        self._database = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=10)
        try:
            self._database.row_factory = sqlite3.Row
            with self._errors():
                for setting in ("foreign_keys = ON", "journal_mode = WAL", "synchronous = FULL"):
                    self._database.execute(f"PRAGMA {setting}")
            self._prepare()
        except BaseException:
            self._database.close()
            raise

    def _begin(self) -> None:
        self._database.execute("BEGIN IMMEDIATE")

    def _end(self, word: str) -> None:
        if self._database.in_transaction:  # A full disk ends it by itself.
            self._database.execute(word)

    def _run(self, query: str, values: Sequence[Any]) -> sqlite3.Cursor:
        return self._database.execute(query, values)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.IntegrityError:
            raise StateConflict("there is one of this name already, or the state does not let this change") from None
        except UnicodeEncodeError:
            raise InvalidParameter("a text has characters that cannot be kept") from None
        except sqlite3.DatabaseError as error:
            code = getattr(error, "sqlite_errorname", None) or type(error).__name__
            raise StateUnavailable(f"{self.name} cannot be read or written now ({code})") from None

    def _format(self) -> int:
        return int(self._database.execute("PRAGMA user_version").fetchone()[0])

    def _set_format(self, number: int) -> None:
        self._database.execute(f"PRAGMA user_version = {number}")

    def _table_columns(self, table: str) -> set[str]:
        return {row["name"] for row in self._database.execute(f"PRAGMA table_info({table})")}

    def _made(self, statement: str) -> str:
        return statement

    def _keep_rows(self) -> None:
        for table in APPEND_ONLY:
            for name, what in (("stay", "UPDATE"), ("last", "DELETE")):
                self._database.execute(
                    f"CREATE TRIGGER IF NOT EXISTS {table}_{name} BEFORE {what} ON {table}"
                    f" BEGIN SELECT RAISE(ABORT, '{table} stay'); END"
                )

    def copy_to(self, file: Path) -> None:
        """Copy it by SQLite's own way, in small steps: the server goes on meanwhile."""
        make_private(file)
        with self._errors(), closing(sqlite3.connect(self.path)) as source, closing(sqlite3.connect(file)) as copy:
            source.backup(copy, pages=256)

    def take_alone(self) -> None:
        """Refuse a second server on this file: SQLite is for one machine."""
        self._server = locked_alone(self.path)

    def count_on(self) -> None:
        """Numbers go on by themselves here."""

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._database.close()
            self._close_anchor()
            if self._server is not None:
                os.close(self._server)
                self._server = None


def locked_alone(path: Path) -> int:
    """Take the lock that a server has on its file, and return it; refuse if another has it."""
    refuse_without_locks("a server")
    lock = os.open(f"{path}.lock", os.O_CREAT | os.O_RDWR | CLOSE_ON_EXEC | NO_FOLLOW, 0o600)
    try:
        try_to_lock(lock)
    except OSError:
        os.close(lock)
        raise Refused(
            f"another server runs on {path.name}",
            way_out="stop it first, or name another file with --state: both may serve the same ledger; several servers"
            " on one state need PostgreSQL (--state postgresql://…)",
        ) from None
    return lock


def make_private(path: Path) -> None:
    """Make the file for its owner only, or refuse one that others may read."""
    os.close(os.open(path, os.O_CREAT | os.O_RDWR | CLOSE_ON_EXEC | NO_FOLLOW, 0o600))
    facts = os.stat(path)
    if not stat.S_ISREG(facts.st_mode) or facts.st_mode & 0o077:
        raise Refused(
            f"others may read or write {path.name}, which has digests of passwords and tokens",
            way_out="take their permissions away (chmod 600)",
        )
