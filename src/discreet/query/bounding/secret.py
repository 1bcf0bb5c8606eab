"""Secret words by place: what is drawn for a unit depends on a fresh key, on the unit and on the draw, nothing else.

A stream of random bytes would have to be shared out among threads and partitions, and a unit more or less would shift
everybody's share. Instead words are AES of the place where they are needed: (unit, stream, number). Under a fresh key,
read from the one source of randomness, AES at distinct places is indistinguishable from independent uniform blocks
without repetition [BKR00]; among 2^40 of them a repetition would be seen with a chance of 2^-49 only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.noise.source import read
from discreet.query.bounding.string_packing import Letters

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers import CipherContext

__all__ = ["Blocks", "Secret", "Words"]

Words: TypeAlias = NDArray[np.uint64]
Blocks: TypeAlias = NDArray[np.uint64]  # two columns: 128 bits a row

_KEY = 32  # bytes
_BLOCK = 16
_STREAM = np.uint64(32)  # bits of a number within a stream
_SHARES = np.uint64((1 << 32) - 1)  # A stream that chooses nothing: there are at most 2^31 groups.


@final
class Secret:
    """Two keys: one names units that are longer than a word, the other turns a name and a place into a block.

    It belongs to one thread; another one takes its own, of the same keys, by `again`. Never stored, never shown.
    """

    __slots__ = ("_keys", "_naming", "_placing")

    def __init__(self, keys: tuple[bytes, bytes] | None = None) -> None:
        self._keys = (read(_KEY), read(_KEY)) if keys is None else keys
        self._naming, self._placing = map(_cipher, self._keys)

    def __repr__(self) -> str:
        return "Secret()"

    def again(self) -> Secret:
        return Secret(self._keys)

    def blocks(self, names: Blocks, streams: Words | np.uint64, numbers: Words | np.uint64) -> Blocks:
        """Return 128 bits for each name at its place; streams and numbers are below 2^32."""
        place = names.copy()
        place[:, 1] ^= (streams << _STREAM) | numbers
        return _encrypt(self._placing, place)

    def names_of_integers(self, values: NDArray[np.int64]) -> Blocks:
        """Take the integer itself and leave the second word to the place: distinct units never share a block."""
        names = np.zeros((values.size, 2), np.uint64)
        names[:, 0] = values.view(np.uint64)
        return names

    def names_of_letters(self, letters: Letters) -> Blocks:
        """Chain the blocks of each text through AES, its length first: CBC-MAC, prefix-free. [PR00]"""
        state = np.zeros((letters.lengths.size, 2), np.uint64)
        state[:, 0] = letters.lengths
        state = _encrypt(self._naming, state)
        for number in range(0, len(letters.words), 2):
            more = np.flatnonzero(letters.lengths > _BLOCK * (number // 2))
            block = state[more]
            for half, word in enumerate(letters.words[number : number + 2]):
                block[:, half] ^= word[more]
            state[more] = _encrypt(self._naming, block)
        return state

    def hashes(self, letters: Letters) -> Words:
        """Return a word for each text by which to share texts out: a sum of its words, each times a secret odd number.

        Words of zeros at the end do not matter, so it is the same whatever other texts there are.
        """
        numbers = np.arange(len(letters.words) + 1, dtype=np.uint64)
        factors = self.blocks(np.zeros((numbers.size, 2), np.uint64), _SHARES, numbers)[:, 0] | np.uint64(1)
        total = letters.lengths.view(np.uint64) * factors[0]
        for word, factor in zip(letters.words, factors[1:], strict=True):
            total += word * factor
        top: Words = total >> np.uint64(40)  # It depends on all other bits.
        return top


def _cipher(key: bytes) -> CipherContext:
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    # Every block is a place of its own and is encrypted for its own sake: no mode is needed on top.
    return Cipher(algorithms.AES(key), modes.ECB()).encryptor()


def _encrypt(cipher: CipherContext, blocks: Blocks) -> Blocks:
    done = np.empty(blocks.nbytes + _BLOCK - 1, np.uint8)
    if blocks.size:
        cipher.update_into(np.ascontiguousarray(blocks, "<u8").data.cast("B"), done.data)
    return done[: blocks.nbytes].view("<u8").reshape(-1, 2).astype(np.uint64, copy=False)
