"""The record in a file of this machine, or in memory.

One connection for each process, one transaction at a time. A fork waits until no transaction runs, and the child
opens files of its own: a lock or a connection that is shared by two processes protects neither.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import final

from discreet.errors import LedgerDamaged, Refused
from discreet.ledger.anchor import Anchor
from discreet.ledger.connecting import begun, connect, translated
from discreet.ledger.entry import Head
from discreet.ledger.files import check_private, create_private, refuse_network
from discreet.ledger.lease import hold_lease
from discreet.ledger.rows import SqliteRows
from discreet.ledger.schema import create, format_of

__all__ = ["FileStore", "MemoryStore", "file_store"]


@final
class MemoryStore:
    """A record that ends with the process. A forked child may not use its copy."""

    def __init__(self) -> None:
        self._process = os.getpid()
        self._turn = _Turn()
        self._connection = connect(":memory:")
        with begun(self._connection, "IMMEDIATE"):
            create(self._connection)

    @contextmanager
    def writing(self) -> Iterator[SqliteRows]:
        if os.getpid() != self._process:
            raise Refused("a ledger in memory belongs to the process that made it: use a file to share a budget")
        with self._turn.taken(), translated(), begun(self._connection, "IMMEDIATE"):
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
        self._turn = _Turn()
        self._open: _OpenFiles | None = None
        self._inherited: list[_OpenFiles] = []
        _living.add(self)

    @contextmanager
    def writing(self) -> Iterator[SqliteRows]:
        with self._turn.taken(), translated():
            files = self._files()
            with files.locked():
                try:
                    with begun(files.connection, "IMMEDIATE"):
                        rows = SqliteRows(files.connection)
                        files.check(rows.head(), rows)
                        hold_lease(files.connection)
                        yield rows
                        head = rows.head()
                except sqlite3.Error:
                    self._drop()  # What a failed write left behind is looked at again from the disk.
                    raise
                files.anchor.move(head)

    @contextmanager
    def reading(self) -> Iterator[SqliteRows]:
        with self._turn.taken(), translated():
            connection = self._files().connection
            with begun(connection, "DEFERRED"):
                yield SqliteRows(connection)

    def close(self) -> None:
        with self._turn.taken():
            self._drop()

    def _files(self) -> _OpenFiles:
        if self._open is not None and self._open.process != os.getpid():
            # Closing what belongs to the parent could drop its locks: it is kept, and never used.
            self._inherited.append(self._open)
            self._open = None
        if self._open is None:
            self._open = _OpenFiles(self.path, self.anchor)
        return self._open

    def _drop(self) -> None:
        if self._open is not None and self._open.process == os.getpid():
            self._open.close()
        self._open = None


@final
class _OpenFiles:
    """What one process has open."""

    def __init__(self, path: Path, anchor: Path) -> None:
        self.process = os.getpid()
        self.path = path
        refuse_network(path)
        lock = path.with_name(f"{path.name}.lock")
        create_private(lock)
        self._lock = os.open(lock, os.O_RDWR | os.O_CLOEXEC)
        with self.locked():
            self.anchor = _anchor_of(path, anchor)
            check_private(path)
            self.connection = connect(str(path))
            self._identity = _identity(path)
            self._prepare()

    def _prepare(self) -> None:
        """Make the tables of a new file, and refuse a file that the anchor does not know."""
        with begun(self.connection, "IMMEDIATE"):
            if format_of(self.connection) == 0:
                if self.anchor.read().index > 0:
                    raise LedgerDamaged("this ledger is empty, but its anchor knows entries: it was replaced or cut")
                create(self.connection)
            rows = SqliteRows(self.connection)
            self.check(rows.head(), rows)
            hold_lease(self.connection)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Wait in line with the other processes. The kernel lets go of the lock if this one dies."""
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._lock, fcntl.LOCK_UN)

    def check(self, head: Head, rows: SqliteRows) -> None:
        """Refuse a chain that does not contain what is anchored. The lock is held, so nobody moves either."""
        if _identity(self.path) != self._identity:
            raise LedgerDamaged("the file of this ledger was replaced while it was open")
        anchored = self.anchor.read()
        if anchored.index > head.index:
            raise LedgerDamaged(
                f"this ledger ends at entry {head.index}, but entry {anchored.index} was anchored: an old copy was "
                "restored, or the file was cut. What was spent since is unknown, so nothing more is answered"
            )
        if anchored != head and anchored.index and (rows.entry(anchored.index) or ("", ""))[1] != anchored.hash:
            raise LedgerDamaged("this ledger does not contain its anchored entry: it is another one, or was changed")

    def close(self) -> None:
        self.connection.close()
        self.anchor.close()
        os.close(self._lock)


def _anchor_of(path: Path, anchor: Path) -> Anchor:
    """Open the anchor; make both files if neither is there. The anchor comes first, so a crash leaves no orphan."""
    if not anchor.exists():
        if path.exists() and path.stat().st_size:
            raise LedgerDamaged(f"the anchor of this ledger is missing ({anchor.name}): restore it, not a new one")
        made = Anchor.create(anchor)
        create_private(path)
        return made
    check_private(anchor)
    found = Anchor(anchor)
    if not path.exists():
        if found.read().index:
            found.close()
            raise LedgerDamaged("the ledger is gone, but its anchor knows entries: restore the ledger file")
        create_private(path)
    return found


def _identity(path: Path) -> tuple[int, int]:
    try:
        facts = os.stat(path)
    except FileNotFoundError:
        raise LedgerDamaged("the file of this ledger is gone") from None
    return facts.st_dev, facts.st_ino


@final
class _Turn:
    """One user at a time within a process, and none while it forks."""

    __slots__ = ("_busy", "lock")

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._busy = False

    @contextmanager
    def taken(self) -> Iterator[None]:
        with self.lock:
            if self._busy:
                raise Refused("a ledger was used from inside its own transaction: draw noise there, nothing else")
            self._busy = True
            try:
                yield
            finally:
                self._busy = False


_stores: weakref.WeakValueDictionary[Path, FileStore] = weakref.WeakValueDictionary()
_living: weakref.WeakSet[FileStore] = weakref.WeakSet()
_guard = threading.Lock()
_held: list[FileStore] = []


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
    _guard.acquire()
    _held[:] = list(_living)
    for store in _held:
        store._turn.lock.acquire()


def _after_fork() -> None:
    for store in _held:
        store._turn.lock.release()
    _held.clear()
    _guard.release()


def _after_fork_in_child() -> None:
    """The locks are held by the thread that forked, which is the one thread the child has."""
    _after_fork()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child)
