"""The record in a sqlite3 file of this machine, or in memory, with its lock, its lease and its anchor."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import threading
import weakref
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import final

from discreet.errors import LedgerDamaged, Refused
from discreet.ledger import sqlite_tables
from discreet.ledger.anchor import Anchor
from discreet.ledger.charge_record import Head
from discreet.ledger.lease import hold_lease
from discreet.ledger.private_files import check_private, create_private, reachable, refuse_network
from discreet.ledger.sqlite_connection import begun, connect, translated
from discreet.ledger.sqlite_tables import SqliteRows

__all__ = ["FileStore", "MemoryStore", "OpenFiles", "file_store"]

# --- open_files: What one process has open of a ledger: the file, the lock beside it and the anchor outside it. ---


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
            version, rows = sqlite_tables.format_of(self.connection), SqliteRows(self.connection)
            if version == 0:
                if self.anchor.read().index > 0:
                    raise LedgerDamaged("this ledger is empty, but its anchor knows entries: it was replaced or cut")
                sqlite_tables.create(self.connection)
            self.check(rows)
            hold_lease(self.connection)
            if 0 < version < sqlite_tables.FORMAT:
                sqlite_tables.migrate(self.connection, rows, version)

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


# --- sqlite_store: The record in a file of this machine, or in memory. ---
#
# One connection for each process, one transaction at a time. A fork waits until no transaction runs and closes the
# files; parent and child open them again: a lock or a connection that two processes share protects neither.


@final
class MemoryStore:
    """A record that ends with the process. A forked child may not use its copy."""

    def __init__(self) -> None:
        self._process = os.getpid()
        self.turn = _Turn()
        self._connection = connect(":memory:")
        with begun(self._connection, "IMMEDIATE"):
            sqlite_tables.create(self._connection)

    @contextmanager
    def writing(self) -> Iterator[SqliteRows]:
        if os.getpid() != self._process:
            raise Refused("a ledger in memory belongs to the process that made it: use a file to share a budget")
        with self.turn.taken(), translated(), begun(self._connection, "IMMEDIATE"):
            yield SqliteRows(self._connection)

    reading = writing

    def close(self) -> None:
        if os.getpid() == self._process:
            self._connection.close()


@final
class FileStore:
    """A record in a file, with a lock beside it and an anchor outside it."""

    def __init__(self, path: Path, anchor: Path) -> None:
        self.path, self.anchor = path, anchor
        self.turn = _Turn()
        self._open: list[OpenFiles] = []  # one or none
        weakref.finalize(self, _close_all, self._open)
        _living.add(self)

    @contextmanager
    def writing(self) -> Iterator[SqliteRows]:
        with self.turn.taken(), translated():
            files = self._files()
            try:
                with files.locked(), begun(files.connection, "IMMEDIATE"):
                    rows = SqliteRows(files.connection)
                    files.check(rows)
                    hold_lease(files.connection)
                    yield rows
                    head = rows.head()
            except sqlite3.Error:
                self.drop()  # What a failed write left behind is looked at again from the disk.
                raise
            files.anchor.move(head)

    @contextmanager
    def reading(self) -> Iterator[SqliteRows]:
        with self.turn.taken(), translated():
            files = self._files()
            with begun(files.connection, "DEFERRED"):
                rows = SqliteRows(files.connection)
                yield rows
                files.check_read(rows)
                head = rows.head()
            files.anchor.move(head)  # Whoever wrote it may have died before they could.

    @contextmanager
    def restoring(self) -> Iterator[SqliteRows]:
        """Write to a file that the anchor does not know, and anchor it: an old copy is accepted, on purpose."""
        with self.turn.taken(), translated():
            self.drop()
            files = OpenFiles(self.path, self.anchor, is_restored=True)
            self._open.append(files)
            with files.locked():
                with begun(files.connection, "IMMEDIATE"):
                    hold_lease(files.connection)
                    rows = SqliteRows(files.connection)
                    yield rows
                    head = rows.head()
                files.anchor.replace(head)

    def close(self) -> None:
        with self.turn.taken():
            self.drop()

    def _files(self) -> OpenFiles:
        if not self._open:
            self._open.append(OpenFiles(self.path, self.anchor))
        if self._open[0].process != os.getpid():
            raise Refused("this process was forked from inside a transaction, or not by Python: open no ledger here")
        return self._open[0]

    def drop(self) -> None:
        """Close what is open; the next use opens it again."""
        _close_all(self._open)


def _close_all(files: list[OpenFiles]) -> None:
    for each in files:
        if each.process == os.getpid():  # What belongs to the parent is not ours to close.
            each.close()
    files.clear()


@final
class _Turn:
    """One user at a time within a process, and none while it forks."""

    __slots__ = ("is_busy", "lock")

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.is_busy = False

    @contextmanager
    def taken(self) -> Iterator[None]:
        with self.lock:
            if self.is_busy:
                raise Refused("a ledger was used from inside its own transaction: draw noise there, nothing else")
            self.is_busy = True
            try:
                yield
            finally:
                self.is_busy = False


_stores: weakref.WeakValueDictionary[Path, FileStore] = weakref.WeakValueDictionary()
_living: weakref.WeakSet[FileStore] = weakref.WeakSet()
_guard = threading.RLock()
_waiting: list[FileStore] = []


def file_store(path: Path, anchor: Path | None) -> FileStore:
    """Return the store of a file: one for each file and process, so that two users of it wait for each other."""
    place = path.resolve()
    outside = (anchor or place.with_name(f"{place.name}.anchor")).resolve()
    with _guard:
        found = _stores.get(place)
        if found is None:
            found = _stores[place] = FileStore(place, outside)
        if found.anchor != outside:
            raise Refused("this ledger is open already, with another anchor")
        return found


def _before_fork() -> None:
    """Wait until no transaction runs, and close: what sqlite3 knows about locks must not be in two processes."""
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


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)
