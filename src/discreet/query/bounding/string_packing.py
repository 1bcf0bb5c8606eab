"""Short texts as integers: of each byte only the bits that vary are kept, which loses nothing.

Ids such as "user_0012345" share a prefix, and a digit varies in four bits; 28 bits tell ten million of them apart.
That is exact and needs neither a hash nor a sort. What varies is found in one pass over a chunk; chunks that differ
in it are spelled again together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Letters", "Spelling"]

Integers: TypeAlias = NDArray[np.int64]
Words: TypeAlias = NDArray[np.uint64]
_BYTES = 8  # in a word
_ROOM = 63  # bits of a code, which is not negative
_FIRST = np.array([(1 << 8 * count) - 1 for count in range(_BYTES + 1)], np.uint64)  # the first bytes of a word


@final
@dataclass(frozen=True, slots=True, eq=False)
class Letters:
    """Texts as words of eight bytes, filled up with zeros: one row for each word, and the length of each text."""

    words: list[Words]
    lengths: Integers

    @classmethod
    def of(cls, texts: pa.Array) -> Letters:
        """Read an array of large binary values without NULLs."""
        ends = np.frombuffer(texts.buffers()[1], np.int64)[texts.offset : texts.offset + len(texts) + 1]
        lengths = np.diff(ends)
        data = np.frombuffer(texts.buffers()[2] or b"", np.uint8)[ends[0] : ends[-1]]
        room = np.concatenate((data, np.zeros(_BYTES, np.uint8)))
        # The word that starts at each byte, whatever its address.
        sliding: Words = np.ndarray((data.size + 1,), "<u8", room, strides=(1,))
        starts = ends[:-1] - ends[0]
        steps = range(0, int(lengths.max(initial=0)), _BYTES)
        return cls([_word(sliding, starts + step, lengths - step) for step in steps], lengths)

    def bytes(self) -> pa.Array:
        """Return the texts as an Arrow array again."""
        import pyarrow as pa

        width = _BYTES * len(self.words)
        room = np.stack([np.zeros(self.lengths.size, np.uint64), *self.words][1:], axis=1) if self.words else None
        data = np.zeros((self.lengths.size, 0), np.uint8) if room is None else room.astype("<u8").view(np.uint8)
        kept = data[np.arange(width) < self.lengths[:, None]]
        ends = np.concatenate(([0], np.cumsum(self.lengths)))
        buffers = [None, pa.py_buffer(ends.astype(np.int64)), pa.py_buffer(kept)]
        return pa.Array.from_buffers(pa.large_binary(), self.lengths.size, buffers)


def _word(sliding: Words, starts: Integers, left: Integers) -> Words:
    """Return the eight bytes from each start on, those beyond the end as zeros."""
    words = sliding[np.minimum(starts, sliding.size - 1)].astype(np.uint64, copy=False)
    if left.min(initial=_BYTES) < _BYTES:
        words &= _FIRST[np.clip(left, 0, _BYTES)]
    return words


@final
@dataclass(frozen=True, slots=True)
class Spelling:
    """Which bits of which bytes vary, what the others are, and how long texts are."""

    constant: tuple[int, ...]  # for each word
    varying: tuple[int, ...]  # for each word: in every byte the lowest bits, up to the highest that varies
    shortest: int
    longest: int

    @classmethod
    def of(cls, letters: Letters) -> Spelling:
        """Find out what varies among some texts, at least one."""
        constant = [int(word[0]) for word in letters.words]
        pairs = zip(letters.words, constant, strict=True)
        varying = [int(np.bitwise_or.reduce(word ^ np.uint64(first))) for word, first in pairs]
        return cls._made(constant, varying, int(letters.lengths.min()), int(letters.lengths.max()))

    @classmethod
    def _made(cls, constant: list[int], varying: list[int], shortest: int, longest: int) -> Spelling:
        masks = tuple(map(_filled, varying))
        rest = tuple(word & ~mask for word, mask in zip(constant, masks, strict=True))
        return cls(rest, masks, shortest, longest)

    def __or__(self, other: Spelling) -> Spelling:
        """Return the spelling of both: where they are constant but differ, they vary."""
        mine, theirs = (spelling._widened(max(len(self.constant), len(other.constant))) for spelling in (self, other))
        pairs = zip(mine.varying, theirs.varying, mine.constant, theirs.constant, strict=True)
        varying = [a | b | (c ^ d) for a, b, c, d in pairs]
        shortest, longest = min(self.shortest, other.shortest), max(self.longest, other.longest)
        return self._made(list(mine.constant), varying, shortest, longest)

    @property
    def fits(self) -> bool:
        """Whether a code holds all that varies."""
        return sum(mask.bit_count() for mask in self.varying) + self._length_bits <= _ROOM

    def encode(self, letters: Letters) -> Integers:
        """Put what varies of each text side by side; distinct texts get distinct codes."""
        codes = np.zeros(letters.lengths.size, np.uint64)
        if self._length_bits:
            codes |= letters.lengths.view(np.uint64)
        place = self._length_bits
        for word, start, bits in self._fields():
            if word < len(letters.words):
                part = letters.words[word] >> np.uint64(start)
                part &= np.uint64((1 << bits) - 1)
                part <<= np.uint64(place)
                codes |= part
            place += bits
        return codes.view(np.int64)

    def decode(self, codes: Integers) -> Letters:
        """Undo `encode`."""
        left = codes.view(np.uint64)
        words = [np.full(codes.size, word, np.uint64) for word in self.constant]
        lengths = np.full(codes.size, self.longest)
        if self._length_bits:
            lengths = (left & np.uint64((1 << self._length_bits) - 1)).view(np.int64)
        place = self._length_bits
        for word, start, bits in self._fields():
            part = (left >> np.uint64(place)) & np.uint64((1 << bits) - 1)
            words[word] |= part << np.uint64(start)
            place += bits
        return Letters(words, lengths)

    @property
    def _length_bits(self) -> int:
        return 0 if self.shortest == self.longest else self.longest.bit_length()

    def _fields(self) -> Iterator[tuple[int, int, int]]:
        """List where bits vary: the word, the lowest of them, and how many."""
        for number, mask in enumerate(self.varying):
            for start in range(0, 8 * _BYTES, 8):
                bits = (mask >> start & 0xFF).bit_length()
                if bits:
                    yield number, start, bits

    def _widened(self, words: int) -> Spelling:
        more = (0,) * (words - len(self.constant))
        return Spelling(self.constant + more, self.varying + more, self.shortest, self.longest)


def _filled(varying: int) -> int:
    """Set all bits of each byte below the highest one that is set."""
    # So each byte is one field, moved by one shift and one mask; single bits would save room and cost many of both.
    parts = (((1 << (varying >> start & 0xFF).bit_length()) - 1) << start for start in range(0, 8 * _BYTES, 8))
    return reduce(int.__or__, parts)
