"""Bytes for tests: the same ones every time, after some that were chosen by hand."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from unittest.mock import patch

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from discreet.noise import source
from discreet.noise.source import _replaced

_BLOCK = 1 << 16


class Recorded:
    """The bytes `first`, then those of SHAKE-256 under a label, which are fixed for ever and in no way special."""

    def __init__(self, label: str, first: bytes = b"") -> None:
        self._label = label
        self._ready = first
        self._blocks = 0
        self.used = 0

    def read(self, count: int) -> bytes:
        """Return the next `count` bytes."""
        end = self.used + count
        if end > len(self._ready):
            self._ready += b"".join(self._more() for _ in range((end - len(self._ready)) // _BLOCK + 1))
        taken = self._ready[self.used : end]
        self.used = end
        return taken

    def _more(self) -> bytes:
        self._blocks += 1
        return hashlib.shake_256(f"{self._label}/{self._blocks}".encode()).digest(_BLOCK)


@contextmanager
def replayed(label: str, first: bytes = b"") -> Iterator[Recorded]:
    """Let the samplers read recorded bytes."""
    recording = Recorded(label, first)
    with _replaced(recording):
        yield recording


def words(values: Iterable[int], size: int = 8) -> bytes:
    """Lay whole numbers out as the samplers read them."""
    return b"".join(value.to_bytes(size, "little") for value in values)


class Keyed:
    """The bytes of AES-256 in counter mode under a label: as fixed as `Recorded`, and fast enough to train with."""

    def __init__(self, label: str) -> None:
        key = hashlib.sha256(label.encode()).digest()
        self._stream = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()

    def read(self, count: int) -> bytes:
        """Return the next `count` bytes."""
        return self._stream.update(bytes(count))


@contextmanager
def keyed(label: str) -> Iterator[None]:
    """Let the samplers read the bytes of a label, with the ledger in a file too: nobody's budget is in it."""
    with _replaced(Keyed(label)), patch.object(source, "hold", nullcontext):
        yield
