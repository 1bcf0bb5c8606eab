"""The anchor says that it is on disk only when it is: after short writes, failed flushes and torn notes too."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from discreet.errors import LedgerUnavailable
from discreet.ledger import anchor as anchors
from discreet.ledger.anchor import Anchor
from discreet.ledger.charge_record import Head


def head(index: int) -> Head:
    return Head(index, f"{index:064x}")


class Disk:
    """What a system remembers: a page whose flush failed counts as clean, though it never reached the disk."""

    def __init__(self, path: Path) -> None:
        self.path, self.on_disk, self.dirty, self.fails = path, path.read_bytes(), False, False
        self._write: Callable[[int, bytes, int], int] = os.pwrite

    def pwrite(self, file: int, data: bytes, place: int) -> int:
        self.dirty = True
        return self._write(file, data, place)

    def sync(self, file: int) -> None:
        dirty, self.dirty = self.dirty, False
        if self.fails:
            raise OSError(5, "Input/output error")
        if dirty:
            self.on_disk = self.path.read_bytes()

    def anchored(self) -> int:
        """What is anchored after the power was off."""
        copy = self.path.with_name("after")
        copy.write_bytes(self.on_disk)
        found = Anchor(copy)
        try:
            return found.read().index
        finally:
            found.close()


def test_a_flush_that_failed_is_not_taken_for_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    anchor = Anchor.create(tmp_path / "anchor")
    disk = Disk(tmp_path / "anchor")
    monkeypatch.setattr(anchors.os, "pwrite", disk.pwrite)
    monkeypatch.setattr(anchors, "sync", disk.sync)
    anchor.move(head(1))
    assert disk.anchored() == 1
    disk.fails = True
    with pytest.raises(LedgerUnavailable):
        anchor.move(head(2))
    disk.fails = False
    anchor.move(head(2))  # The next one who tells of entry 2 relies on it.
    assert disk.anchored() == 2
    anchor.close()


def test_a_short_write_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    anchor = Anchor.create(tmp_path / "anchor")
    anchor.move(head(1))
    whole = os.pwrite
    monkeypatch.setattr(anchors.os, "pwrite", lambda file, data, place: whole(file, data[:30], place))
    with pytest.raises(LedgerUnavailable, match="whole"):
        anchor.move(head(2))
    monkeypatch.undo()
    assert anchor.read() == head(1)
    anchor.move(head(2))
    assert anchor.read() == head(2)
    anchor.close()


def test_a_torn_note_does_not_stop_the_anchor(tmp_path: Path) -> None:
    """How far it was flushed is a number: half of an old and half of a new one may be far too high."""
    path = tmp_path / "anchor"
    anchor = Anchor.create(path)
    for index in range(1, 12):
        anchor.move(head(index))
    written = path.read_bytes()
    path.write_bytes(written[:1024] + written[1024:].replace(b"11", b"99", 1))
    anchor.move(head(12))
    assert anchor.read() == head(12)
    anchor.close()
