"""Columns side by side in a few words, so that a row with many of them is moved and sorted as one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.query.bounding.limits import BoundedColumn
from discreet.query.bounding.reading import Reader
from discreet.query.bounding.rows import Clean, Indices, RowChunk, check_lengths, indices

__all__ = ["PackedField", "Packing"]

Integers: TypeAlias = NDArray[np.int64]
_WORD = 62  # Bits of columns in one word, at most.


@final
@dataclass(frozen=True, slots=True)
class PackedField:
    """Where the levels of a column are: in which word, how far up, and how many bits of it."""

    word: int
    shift: int
    bits: int

    def read(self, word: Integers) -> Integers:
        """Return the levels."""
        levels = word >> self.shift if self.shift else word
        return levels & ((1 << self.bits) - 1)


@final
@dataclass(frozen=True, slots=True)
class Packing:
    """How columns share words."""

    columns: tuple[BoundedColumn, ...]
    fields: tuple[PackedField, ...]
    bits: tuple[int, ...]  # of every word

    @classmethod
    def of(cls, columns: Sequence[BoundedColumn]) -> Packing:
        """Fill one word after the other."""
        fields: list[PackedField] = []
        taken: list[int] = []
        for column in columns:
            if not taken or taken[-1] + column.bits > _WORD:
                taken.append(0)
            fields.append(PackedField(len(taken) - 1, taken[-1], column.bits))
            taken[-1] += column.bits
        return cls(tuple(columns), tuple(fields), tuple(taken) or (0,))

    def clean(self, rows: RowChunk, reader: Reader) -> Clean:
        """Drop the rows that belong to no unit, and put the levels of the others into words."""
        check_lengths(rows, len(rows.units), len(self.columns))
        units, known = reader.read(rows.units)
        words = self._words(rows)
        if known is not None and not known.all():
            units, words = units.where(known), [word[known] for word in words]
        return Clean(units, np.zeros(len(words[0]), np.int8), tuple(Indices(word, 1, None) for word in words))

    def _words(self, rows: RowChunk) -> list[Integers]:
        words = [np.zeros(len(rows.units), np.int64) for _ in self.bits]
        # From the last column to the first: each pushes those after it in its word further up.
        for number in reversed(range(len(self.columns))):
            field = self.fields[number]
            words[field.word] <<= field.bits
            indices(rows, self.columns[number], number).add_to(words[field.word])
        return words
