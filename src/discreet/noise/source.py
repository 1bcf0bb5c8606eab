"""The one door to randomness: AES-256 in counter mode, keyed by the operating system.

Every thread of every process has a key of its own. A forked child drops what it inherited before it reads a byte,
and a key is replaced after a fixed number of bytes. No byte is kept for later: what a call does not use is gone.
There is no seed. Tests put a recorded source in place through `_replaced`, which refuses while anything durable
is open.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol, final

from discreet.errors import Refused

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers import CipherContext

__all__ = ["ByteSource", "hold", "read"]

_KEY_BYTES = 32
_COUNTER_BYTES = 16
_BYTES_PER_KEY = 1 << 32
_BLOCK = memoryview(bytes(1 << 18))  # The plain text is zeros; this much of it stays in the cache.


class ByteSource(Protocol):
    """Where random bytes come from."""

    def read(self, count: int) -> bytes:
        """Return `count` fresh bytes."""


@final
class Keystream:
    """A stream of bytes under one key at a time. It belongs to one thread of one process."""

    __slots__ = ("_left", "_stream", "process")

    def __init__(self) -> None:
        self.process = os.getpid()
        self._stream = _new_stream()
        self._left = _BYTES_PER_KEY

    def read(self, count: int) -> bytes:
        """Return the next `count` bytes, under a new key if the old one has given enough."""
        if count > self._left:
            self._stream = _new_stream()
            self._left = max(_BYTES_PER_KEY, count)
        self._left -= count
        if count <= len(_BLOCK):
            return self._stream.update(_BLOCK[:count])
        whole, rest = divmod(count, len(_BLOCK))
        blocks = [self._stream.update(_BLOCK) for _ in range(whole)]
        return b"".join([*blocks, self._stream.update(_BLOCK[:rest])])


def _new_stream() -> CipherContext:
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    key = algorithms.AES(os.urandom(_KEY_BYTES))
    return Cipher(key, modes.CTR(os.urandom(_COUNTER_BYTES))).encryptor()


class _Local(threading.local):
    stream: Keystream | None = None


_local = _Local()
_replacement: ByteSource | None = None
_holds = 0
_guard = threading.RLock()  # A ledger that is collected while this is held lets go of its hold.


def _forget() -> None:
    """Drop what a forked child inherited: its parent's keys and locks."""
    global _local, _guard
    _local = _Local()
    _guard = threading.RLock()


if hasattr(os, "register_at_fork"):  # Windows does not fork.
    os.register_at_fork(after_in_child=_forget)


def read(count: int) -> bytes:
    """Return `count` fresh random bytes from this thread's own stream."""
    if _replacement is not None:
        return _replacement.read(count)
    stream = _local.stream
    # A process made by a raw system call does not run the fork hook; its number still differs.
    if stream is None or stream.process != os.getpid():
        stream = _local.stream = Keystream()
    return stream.read(count)


@contextmanager
def hold() -> Iterator[None]:
    """Forbid recorded randomness for as long as something durable is open."""
    global _holds
    with _guard:
        if _replacement is not None:
            raise Refused("randomness is replaced by a recording: nothing durable can be opened")
        _holds += 1
    try:
        yield
    finally:
        with _guard:
            _holds -= 1


@contextmanager
def _replaced(source: ByteSource) -> Iterator[None]:
    """Read from `source` instead, for tests only."""
    global _replacement
    with _guard:
        if _holds or _replacement is not None:
            raise Refused("randomness cannot be replaced while a ledger or another recording is open")
        _replacement = source
    try:
        yield
    finally:
        _replacement = None
