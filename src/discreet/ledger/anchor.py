"""The end of the chain, kept a second time outside the ledger file.

A ledger whose chain does not contain the anchored head was rolled back, replaced or cut, and is refused. The order
is always: commit the entry, anchor its head, answer the caller. So the anchor is never ahead of the ledger, and
never behind anything that a caller was told. If a crash comes between the first two steps, the anchor is behind by
an entry of which nobody has heard; the next one moves it on.

The file has two slots of one disk sector, each with a checksum, written in turn: a write that is torn by a crash
leaves the older slot, which is right too.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import final

from discreet.errors import LedgerDamaged, LedgerUnavailable
from discreet.ledger.canonical import digest
from discreet.ledger.entry import BEGINNING, Head
from discreet.ledger.files import create_private, sync, sync_folder

__all__ = ["Anchor"]

_SLOT = 512


@final
class Anchor:
    """Two slots in a small file, for one process."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        self._seen = (b"", BEGINNING)  # What the two slots were when they were last read, and what they said.

    @classmethod
    def create(cls, path: Path) -> Anchor:
        """Make an anchor that says: nothing has happened yet."""
        create_private(path)
        made = cls(path)
        made.replace(BEGINNING)
        sync_folder(path.parent)
        return made

    def read(self) -> Head:
        """Return the newest head that is written whole."""
        written = os.pread(self._file, 2 * _SLOT, 0)
        if written != self._seen[0]:
            heads = [head for start in (0, _SLOT) for head in [_read(written[start : start + _SLOT])] if head]
            if not heads:
                raise LedgerDamaged("the anchor of this ledger cannot be read: restore it from its own backup")
            self._seen = (written, max(heads, key=lambda head: head.index))
        return self._seen[1]

    def move(self, head: Head) -> None:
        """Write a head durably. The caller holds the lock of the ledger, has read this and has committed the head."""
        slot, start = _written(head), head.index % 2 * _SLOT
        try:
            os.pwrite(self._file, slot, start)
            sync(self._file)
        except OSError as error:
            raise LedgerUnavailable(
                f"the anchor could not be written ({error.strerror}); nothing was released"
            ) from None
        known = self._seen[0]
        self._seen = (known[:start] + slot + known[start + _SLOT :], head)

    def replace(self, head: Head) -> None:
        """Forget what was anchored, in both slots: an old copy was accepted."""
        os.pwrite(self._file, _written(head) * 2, 0)
        sync(self._file)

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._file)


def _written(head: Head) -> bytes:
    return f"{head.index} {head.hash} {_check(head)}".ljust(_SLOT).encode("ascii")


def _read(slot: bytes) -> Head | None:
    """Return the head that a slot holds; None for one that is torn or was never written."""
    parts = slot.decode("ascii", "replace").split()
    if len(parts) != 3 or not parts[0].isdecimal():
        return None
    head = Head(int(parts[0]), parts[1])
    return head if parts[2] == _check(head) else None


def _check(head: Head) -> str:
    return digest(f"anchor {head.index} {head.hash}")
