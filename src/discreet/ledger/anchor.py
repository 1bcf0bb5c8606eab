"""The anchor: the head of the hash chain, kept a second time outside the ledger file.

A ledger whose chain does not contain the anchored head was rolled back, replaced or cut, and is refused. The order
is always: commit the entry, anchor its head, answer the caller. So the anchor is never ahead of the ledger, and
never behind anything that a caller was told. If a crash comes between the first two steps, the anchor is behind by
an entry of which nobody has heard; the next one moves it on.

The file has two slots of one disk sector, each with a checksum. The one that does not hold the newest head is written:
a write that is torn by a crash leaves the newest head that anybody was told. Another slot names the newest checkpoint,
an entry with sums that somebody with this anchor has added up from the chain; if it is torn, there is none.
"""

from __future__ import annotations

import errno
import os
from functools import lru_cache
from pathlib import Path
from typing import final

from discreet.errors import LedgerDamaged, LedgerUnavailable
from discreet.file_locks import lock_file, unlock_file
from discreet.ledger.budget import digest
from discreet.ledger.charge_record import BEGINNING, Head
from discreet.ledger.private_files import create_private, sync, sync_folder

__all__ = ["Anchor", "anchored_in", "checkpoint_in"]

_SLOT = 512
_MARK = "flushed"  # In a third slot, in place of a hash: how far the anchor is on disk, for those who wait in line.
_CHECKPOINT = (
    3 * _SLOT
)  # Where the fourth slot begins: the newest entry of which this side knows that its sums are right.


@final
class Anchor:
    """Two slots in a small file, for one process."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        # What was read last, where the newest head was in it, and the note of what is flushed.
        self._seen, self._slot, self._head = b"unread", 0, BEGINNING
        self._marked = (b"unread", 0)

    @classmethod
    def create(cls, path: Path) -> Anchor:
        """Make an anchor that says: nothing has happened yet."""
        create_private(path)
        made = cls(path)
        made.replace(BEGINNING)
        sync_folder(path.parent)
        return made

    @staticmethod
    def is_made(path: Path) -> bool:
        """Tell whether an anchor was ever written whole; a crash may have left an empty file."""
        return path.exists() and path.stat().st_size >= 2 * _SLOT

    def read(self) -> Head:
        """Return the newest head that is written whole."""
        written = os.pread(self._file, 2 * _SLOT, 0)
        if written != self._seen:
            self._slot, self._head = _newest(written)
            self._seen = written
        return self._head

    def move(self, head: Head) -> None:
        """Let the anchor be at `head` or beyond it, durably; the caller knows that it is committed, durably.

        Processes wait in line here while others commit; who comes after one that was further on has nothing to do.
        """
        if self._flushed() >= head.index:
            return
        try:
            lock_file(self._file)
            try:
                self._write(head)
            finally:
                unlock_file(self._file)
        except OSError as error:
            raise LedgerUnavailable(
                f"the anchor could not be written ({error.strerror}); nothing was released"
            ) from None

    def _write(self, head: Head) -> None:
        """Write the slot that does not hold the newest head, which a torn write then leaves alone."""
        if self._flushed() >= head.index:
            return
        known = self.read()
        newest = head if head.index > known.index else known
        # Also what somebody wrote whose flush failed: the system has forgotten that, and flushes only what is new.
        slot, place = _written(newest), 1 - self._slot
        os.pwrite(self._file, slot, place * _SLOT)
        sync(self._file)
        if os.pread(self._file, _SLOT, place * _SLOT) != slot:
            raise OSError(errno.EIO, "not written whole")
        self._seen = slot + self._seen[_SLOT:] if place == 0 else self._seen[:_SLOT] + slot
        self._slot, self._head = place, newest
        self._mark(newest.index)

    def _flushed(self) -> int:
        """Return the newest index that is known to be on disk: it is noted after the flush, so it is never too high."""
        written = os.pread(self._file, _SLOT, 2 * _SLOT)
        if written != self._marked[0]:
            mark = _read(written)
            self._marked = written, mark.index if mark is not None and mark.hash == _MARK else 0
        return self._marked[1]

    def _mark(self, index: int) -> None:
        slot = _written(Head(index, _MARK))
        os.pwrite(self._file, slot, 2 * _SLOT)
        self._marked = slot, index

    def replace(self, head: Head) -> None:
        """Forget what was anchored, in both slots: an old copy was accepted. It may not have our checkpoint."""
        if os.fstat(self._file).st_size > _CHECKPOINT:
            os.ftruncate(self._file, _CHECKPOINT)
        os.pwrite(self._file, _written(head) * 2 + _written(Head(0, _MARK)), 0)
        sync(self._file)

    def checkpoint(self) -> Head | None:
        """Return the entry whose sums somebody with this anchor has added up; None if there is none, or it is torn."""
        return checkpoint_in(os.pread(self._file, _SLOT, _CHECKPOINT), start=0)

    def keep_checkpoint(self, head: Head) -> None:
        """Remember an entry whose sums were added up from the chain; the caller knows that it is anchored."""
        try:
            lock_file(self._file)
            try:
                known = self.checkpoint()
                if known is None or known.index < head.index:
                    os.pwrite(self._file, _written(head, "checkpoint"), _CHECKPOINT)
                    sync(self._file)
            finally:
                unlock_file(self._file)
        except OSError as error:
            raise LedgerUnavailable(
                f"the anchor could not be written ({error.strerror}); nothing was released"
            ) from None

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._file)


def anchored_in(written: bytes) -> Head:
    """Return the newest head in the bytes of an anchor, for those who only look."""
    return _newest(written)[1]


def checkpoint_in(written: bytes, *, start: int = _CHECKPOINT) -> Head | None:
    """Return the checkpoint in the bytes of an anchor, for those who only look."""
    return _read(written[start : start + _SLOT], "checkpoint")


def _newest(written: bytes) -> tuple[int, Head]:
    slots = [_read(written[start : start + _SLOT]) for start in (0, _SLOT)]
    heads = [(head.index, slot, head) for slot, head in enumerate(slots) if head is not None]
    if not heads:
        raise LedgerDamaged("the anchor of this ledger cannot be read: restore it from its own backup")
    _, slot, head = max(heads, key=lambda each: each[:2])
    return slot, head


def _written(head: Head, what: str = "anchor") -> bytes:
    return f"{head.index} {head.hash} {_check(head, what)}".ljust(_SLOT).encode("ascii")


@lru_cache(maxsize=16)
def _read(slot: bytes, what: str = "anchor") -> Head | None:
    """Return the head that a slot holds; None for one that is torn or was never written."""
    parts = slot.decode("ascii", "replace").split()
    if len(parts) != 3 or not parts[0].isdecimal():
        return None
    head = Head(int(parts[0]), parts[1])
    return head if parts[2] == _check(head, what) else None


def _check(head: Head, what: str) -> str:
    return digest(f"{what} {head.index} {head.hash}")
