"""The record in a file of this machine, or in memory.

One connection for each process, one transaction at a time. A fork waits until no transaction runs and closes the
files; parent and child open them again: a lock or a connection that two processes share protects neither.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import final

from discreet.errors import Refused
from discreet.ledger import schema
from discreet.ledger.connecting import begun, connect, translated
from discreet.ledger.lease import hold_lease
from discreet.ledger.open_files import OpenFiles
from discreet.ledger.rows import SqliteRows

__all__ = ["FileStore", "MemoryStore", "file_store"]


@final
class MemoryStore:
    """A record that ends with the process. A forked child may not use its copy."""

    def __init__(self) -> None:
        self._process = os.getpid()
        self.turn = _Turn()
        self._connection = connect(":memory:")
        with begun(self._connection, "IMMEDIATE"):
            schema.create(self._connection)

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
