"""The end of the chain, kept a second time outside the ledger file.

A ledger whose chain does not contain the anchored head was rolled back, replaced or cut, and is refused. The order
is always: commit the entry, anchor its head, answer the caller. So the anchor is never ahead of the ledger, and
never behind anything that a caller was told. If a crash comes between the first two steps, the anchor is behind by
an entry of which nobody has heard; the next one moves it on.

The file has two slots of one disk sector, each with a checksum, written in turn: a write that is torn by a crash
leaves the older slot, which is right too.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import final

from discreet.errors import LedgerDamaged, LedgerUnavailable
from discreet.ledger.canonical import canonical, digest
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

    @classmethod
    def create(cls, path: Path) -> Anchor:
        """Make an anchor that says: nothing has happened yet."""
        create_private(path)
        made = cls(path)
        os.pwrite(made._file, b" " * (2 * _SLOT), 0)
        made.move(BEGINNING)
        sync_folder(path.parent)
        return made

    def read(self) -> Head:
        """Return the newest head that is written whole."""
        heads = [head for slot in (0, 1) for head in [self._slot(slot)] if head is not None]
        if not heads:
            raise LedgerDamaged("the anchor of this ledger cannot be read: restore it from its own backup")
        return max(heads, key=lambda head: head.index)

    def _slot(self, slot: int) -> Head | None:
        try:
            index, last, check = json.loads(os.pread(self._file, _SLOT, slot * _SLOT))
        except (ValueError, TypeError):
            return None
        return Head(index, last) if check == _check(index, last) else None

    def move(self, head: Head) -> None:
        """Write a head durably. The caller holds the lock of the ledger and has committed the head."""
        text = canonical([head.index, head.hash, _check(head.index, head.hash)])
        try:
            os.pwrite(self._file, f"{text:<{_SLOT}}".encode("ascii"), head.index % 2 * _SLOT)
            sync(self._file)
        except OSError as error:
            raise LedgerUnavailable(
                f"the anchor could not be written ({error.strerror}); nothing was released"
            ) from None

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._file)


def _check(index: int, last: str) -> str:
    return digest(f"anchor {index} {last}")
