"""What one process has open of a ledger: the file, the lock beside it and the anchor outside it."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import final

from discreet.errors import LedgerDamaged
from discreet.ledger import schema
from discreet.ledger.anchor import Anchor
from discreet.ledger.connecting import begun, connect
from discreet.ledger.entry import Head
from discreet.ledger.files import check_private, create_private, reachable, refuse_network
from discreet.ledger.lease import hold_lease
from discreet.ledger.rows import SqliteRows

__all__ = ["OpenFiles"]


@final
class OpenFiles:
    """Open files, checked against the anchor when they are opened and in every transaction."""

    def __init__(self, path: Path, anchor: Path, *, is_restored: bool = False) -> None:
        self.process, self.path = os.getpid(), path
        refuse_network(path)
        with reachable(), ExitStack() as opened:
            self._lock = _open_lock(path)
            opened.callback(os.close, self._lock)
            with self.locked():
                if is_restored and not Anchor.is_made(anchor):
                    Anchor.create(anchor).close()
                self.anchor = _anchor_of(path, anchor)
                opened.callback(self.anchor.close)
                check_private(path)
                self.connection = connect(str(path))
                opened.callback(self.connection.close)
                self._identity = _identity(path)
                if not is_restored:
                    self._prepare()
            self._opened = opened.pop_all()

    def _prepare(self) -> None:
        """Make the tables of a new file or bring an old one up to date; refuse a file the anchor does not know."""
        with begun(self.connection, "IMMEDIATE"):
            version, rows = schema.format_of(self.connection), SqliteRows(self.connection)
            if version == 0:
                if self.anchor.read().index > 0:
                    raise LedgerDamaged("this ledger is empty, but its anchor knows entries: it was replaced or cut")
                schema.create(self.connection)
            self.check(rows)
            hold_lease(self.connection)
            if 0 < version < schema.FORMAT:
                schema.migrate(self.connection, rows, version)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Wait in line with the other processes. The kernel lets go of the lock if this one dies."""
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._lock, fcntl.LOCK_UN)

    def check(self, rows: SqliteRows) -> None:
        """Refuse a chain that does not contain what is anchored. Only what is committed is ever anchored."""
        anchored, head = self.anchor.read(), rows.head()
        self._check_same(rows, anchored)
        if anchored.index > head.index:
            raise LedgerDamaged(
                f"this ledger ends at entry {head.index}, but entry {anchored.index} was anchored: an old copy was "
                "restored, or the file was cut. What was spent since is unknown, so nothing more is answered"
            )

    def check_read(self, rows: SqliteRows) -> None:
        """Refuse another history before its end is anchored; others may have gone on since this one was read."""
        self._check_same(rows, self.anchor.read())

    def _check_same(self, rows: SqliteRows, anchored: Head) -> None:
        if _identity(self.path) != self._identity:
            raise LedgerDamaged("the file of this ledger was replaced while it was open")
        if not 0 < anchored.index <= rows.head().index or anchored == rows.head():
            return
        if (rows.entry(anchored.index) or ("", ""))[1] != anchored.hash:
            raise LedgerDamaged("this ledger does not contain its anchored entry: it is another one, or was changed")

    def close(self) -> None:
        """Close everything."""
        self._opened.close()


def _open_lock(path: Path) -> int:
    lock = path.with_name(f"{path.name}.lock")
    create_private(lock)
    return os.open(lock, os.O_RDWR | os.O_CLOEXEC)


def _anchor_of(path: Path, anchor: Path) -> Anchor:
    """Open the anchor; make both files if neither is there. The anchor comes first, so a crash leaves no orphan."""
    if not Anchor.is_made(anchor):
        if path.exists() and path.stat().st_size:
            raise LedgerDamaged(f"the anchor of this ledger is missing ({anchor.name}): restore it, not a new one")
        Anchor.create(anchor).close()
    check_private(anchor)
    found = Anchor(anchor)
    try:
        if not path.exists() and found.read().index:
            raise LedgerDamaged("the ledger is gone, but its anchor knows entries: restore the ledger file")
        create_private(path)
    except BaseException:
        found.close()
        raise
    return found


def _identity(path: Path) -> tuple[int, int]:
    try:
        facts = os.stat(path)
    except FileNotFoundError:
        raise LedgerDamaged("the file of this ledger is gone") from None
    return facts.st_dev, facts.st_ino
