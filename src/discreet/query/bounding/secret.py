"""Secret words by place: what is drawn for a unit depends on a fresh key, on the unit and on the draw, nothing else.

A stream of random bytes would have to be shared out among threads and partitions, and a unit more or less would shift
everybody's share. Instead a word is AES of the place where it is needed: (unit, stream, number). Under a fresh key,
read from the one source of randomness, AES at distinct places is indistinguishable from independent uniform blocks
without repetition [BKR00]; among 2^40 of them a repetition would be seen with a chance of 2^-49 only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.noise.source import read

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Blocks", "Secret", "Words"]

Words: TypeAlias = NDArray[np.uint64]
Blocks: TypeAlias = NDArray[np.uint64]  # two columns: 128 bits a row

_KEY = 32  # bytes
_BLOCK = 16


@final
class Secret:
    """Two keys: one turns a unit into its name, the other a name and a place into a block. Never kept, never shown."""

    __slots__ = ("_naming", "_placing")

    def __init__(self) -> None:
        self._naming, self._placing = read(_KEY), read(_KEY)

    def __repr__(self) -> str:
        return "Secret()"

    def blocks(self, names: Blocks, stream: Words, number: Words | np.uint64) -> Blocks:
        """Return 128 bits for each name at (stream, number)."""
        place = np.empty_like(names)
        np.bitwise_xor(names[:, 0], stream, out=place[:, 0])
        np.bitwise_xor(names[:, 1], number, out=place[:, 1])
        return _encrypt(self._placing, place)

    def names_of_integers(self, values: NDArray[np.int64]) -> Blocks:
        """Encrypt each integer: distinct ones get distinct names."""
        plain = np.zeros((values.size, 2), np.uint64)
        plain[:, 0] = values.view(np.uint64)
        return _encrypt(self._naming, plain)

    def names_of_bytes(self, values: pa.Array) -> Blocks:
        """Chain the blocks of each value through AES, its length first: CBC-MAC, prefix-free. [PR00]"""
        lengths, blocks = _padded(values)
        state = np.zeros((len(values), 2), np.uint64)
        state[:, 0] = lengths
        state = _encrypt(self._naming, state).copy()
        counts = -(-lengths // _BLOCK)
        starts = np.cumsum(counts) - counts
        for turn in range(int(counts.max(initial=0))):
            more = np.flatnonzero(counts > turn)
            state[more] = _encrypt(self._naming, state[more] ^ blocks[starts[more] + turn])
        return state


def _padded(values: pa.Array) -> tuple[NDArray[np.int64], Blocks]:
    """Return the lengths of byte strings and their blocks, the last of each filled up with zeros."""
    ends = np.frombuffer(values.buffers()[1], np.int64)[values.offset : values.offset + len(values) + 1]
    lengths = np.diff(ends)
    padded = -(-lengths // _BLOCK) * _BLOCK
    data = np.frombuffer(values.buffers()[2] or b"", np.uint8)[ends[0] : ends[-1]]
    shift = np.cumsum(padded) - padded - (ends[:-1] - ends[0])
    room = np.zeros(int(padded.sum()), np.uint8)
    room[np.arange(data.size) + np.repeat(shift, lengths)] = data
    return lengths, room.view("<u8").reshape(-1, 2).astype(np.uint64, copy=False)


def _encrypt(key: bytes, blocks: Blocks) -> Blocks:
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    # Every block is a distinct place and is encrypted once; nothing is decrypted, so no mode is needed on top.
    encryptor = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
    done = encryptor.update(np.ascontiguousarray(blocks, "<u8").data.cast("B")) if blocks.size else b""
    return np.frombuffer(done, "<u8").reshape(-1, 2).astype(np.uint64, copy=False)
