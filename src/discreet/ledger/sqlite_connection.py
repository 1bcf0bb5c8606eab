"""Connections to sqlite3 that force every commit to disk, and errors that say what to do."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from discreet.errors import LedgerDamaged, LedgerUnavailable

__all__ = ["begun", "connect", "translated"]

_PATIENCE = 60.0  # Seconds to wait for somebody else who has the file locked.
_CHECKPOINT = 500  # Pages of the log; it is then written from its start again, which forces no new block.


def connect(location: str) -> sqlite3.Connection:
    """Open a file (or `:memory:`) so that a commit returns only when it is on the disk."""
    connection = sqlite3.connect(
        location, timeout=_PATIENCE, isolation_level=None, check_same_thread=False, cached_statements=64
    )
    if location != ":memory:":
        mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
        if mode != "wal":
            connection.close()
            raise LedgerUnavailable("this file system does not support a write-ahead log: use a local disk")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA fullfsync = ON")
        connection.execute("PRAGMA checkpoint_fullfsync = ON")
        connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT}")
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    return connection


@contextmanager
def begun(connection: sqlite3.Connection, how: str) -> Iterator[None]:
    """Run a block within a transaction; an exception takes everything back."""
    connection.execute(f"BEGIN {how}")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


@contextmanager
def translated() -> Iterator[None]:
    """Say in our words what sqlite3 met. Its own text names files and statements, never data; ours is shorter."""
    try:
        yield
    except sqlite3.IntegrityError as error:
        raise LedgerDamaged(f"the ledger refuses this change: {error}") from None
    except sqlite3.OperationalError as error:
        raise LedgerUnavailable(f"the ledger could not be used ({error}); nothing was released") from None
    except sqlite3.DatabaseError as error:
        raise LedgerDamaged(f"this file is not a ledger, or is damaged ({error}): restore it from a backup") from None
