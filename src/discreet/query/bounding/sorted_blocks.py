"""Rows sorted by unit with several threads, and looked at in blocks of whole units."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, Protocol, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.query.bounding.packed_columns import Gathered, Inside, KeyLayout, PackedField, PackedShape
from discreet.query.bounding.secret import Blocks, Secret
from discreet.query.bounding.unit_codes import NumberUnits, Units, numbered

__all__ = ["Here", "Present", "UnitBlock", "UnitRanges", "WholeUnits", "blocks", "by_unit", "sort"]

# --- ordering: Sort keys with several threads, and cut what is sorted into blocks of whole units. ---


Integers: TypeAlias = NDArray[np.int64]
_BLOCK = 1 << 17  # Keys looked at together: they and what is made of them stay in the cache.
_WORTH = 1 << 16  # Keys for which a second thread pays.


@final
class Here(Executor):
    """Does the work where it is handed over: in a thread that is one of several already."""

    def submit(self, work: Callable[..., Any], /, *given: Any, **named: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(work(*given, **named))
        return done


def sort(keys: Integers, workers: Executor, threads: int) -> None:
    """Sort in place: split by rank, which is linear, then sort the parts at the same time."""
    parts = _split(keys, threads if keys.size >= _WORTH else 1)
    list(workers.map(np.ndarray.sort, parts))


def _split(keys: Integers, parts: int) -> list[Integers]:
    if parts == 1:
        return [keys]
    left = parts // 2
    middle = keys.size * left // parts
    keys.partition(middle)
    return _split(keys[:middle], left) + _split(keys[middle:], parts - left)


def blocks(keys: Integers, unit_shift: int) -> list[Integers]:
    """Cut sorted keys into blocks of about one size; no unit is in two of them."""
    units = keys[::_BLOCK] >> unit_shift
    cuts = np.unique(np.searchsorted(keys, units << unit_shift))
    return [part for part in np.split(keys, cuts) if part.size]


# --- unit_ranges: Rows shared out by ranges of units, so narrow that a unit, its group and all levels fit one word. ---


_MOST_RANGES = 1 << 16  # Their numbers fit 16 bits, which are put in order by counting.
_LEAST_RANGE = (
    1 << 15
)  # Rows of one, on average: each is sorted and looked at by itself, which costs less than it saves.


@final
@dataclass(frozen=True, slots=True, eq=False)
class _RangeOfUnits:
    """Units of one range, by the lowest bits of their distance from the least of all."""

    units: Units
    start: int
    mask: int

    def names(self, codes: Integers, secret: Secret) -> Blocks:
        return self.units.names((codes & self.mask) + self.start, secret)


@final
@dataclass(frozen=True, slots=True, eq=False)
class UnitRanges:
    """How units are shared out: a range has as many as a key has room for.

    What is kept of a unit depends on its name and its own rows, and all of these are in one range.
    """

    units: Units
    low: int
    width: int  # bits of a unit in a key
    many: int
    layout: KeyLayout

    @classmethod
    def of(cls, units: Units, layout: KeyLayout) -> UnitRanges | None:
        """Return the ranges of units, of which there is at least one; None if they would be too many."""
        width = 64 - layout.unit_shift
        low, high = int(units.codes.min()), int(units.codes.max())
        many = ((high - low) >> max(width, 0)) + 1
        if width <= 0 or high - low >= 1 << 62 or many > min(_MOST_RANGES, units.codes.size // _LEAST_RANGE):
            return None  # Distances from the least one must fit a word, too.
        return cls(units, low, width, many, layout)

    def shared_out(
        self, groups: Integers, fields: Sequence[tuple[Integers, int]], threads: int
    ) -> list[list[tuple[_RangeOfUnits, list[Integers]]]]:
        """Pack all rows, and return the keys of every range in pieces, for each thread some ranges."""
        found: list[list[Integers]] = [[] for _ in range(self.many)]
        for start in range(0, groups.size, _BLOCK):
            rows = slice(start, start + _BLOCK)
            codes = self.units.codes[rows] - self.low
            numbers = (codes >> self.width).astype(np.uint16)
            # Of a unit the key has the lowest bits only; the number of its range is the rest.
            codes &= (1 << self.width) - 1
            codes -= (codes >> (self.width - 1)) << self.width
            keys = self.layout.pack(codes, groups[rows], [(column[rows], bits) for column, bits in fields])
            keys = keys[np.argsort(numbers, kind="stable")]
            ends = np.cumsum(np.bincount(numbers, minlength=self.many)).tolist()
            for number, (first, last) in enumerate(pairwise((0, *ends))):
                if last > first:
                    found[number].append(keys[first:last])
        mask = (1 << self.width) - 1
        parts = [
            (_RangeOfUnits(self.units, self.low + (number << self.width), mask), pieces)
            for number, pieces in enumerate(found)
            if pieces
        ]
        return [parts[turn::threads] for turn in range(threads)]


# --- whole_units: Rows of a few words, sorted by unit once, and looked at in blocks of whole units. ---


Present: TypeAlias = NDArray[np.bool_] | None  # None if everywhere
Keys: TypeAlias = tuple[tuple[int, int], ...]


@final
class UnitBlock:
    """All rows of some units, one unit after the other. It belongs to one thread.

    Units are numbered from 0 on within the block, so that their numbers take few bits; `names` knows who they are.
    """

    def __init__(
        self, units: Units, codes: Integers, word: Callable[[int], Integers], fields: Sequence[PackedField]
    ) -> None:
        self._units, self._all, self._word, self._fields = units, codes, word, fields
        self._words: dict[int, Integers] = {}
        self._levels: dict[int, Integers] = {}
        self._present: dict[int, Present] = {}
        self._groups: dict[Keys, Integers] = {(): np.zeros(1, np.int64)}

    @property
    def size(self) -> int:
        """How many rows there are."""
        return self._all.size

    @cached_property
    def _starts(self) -> Integers:
        new = np.empty(self._all.size, np.bool_)
        new[:1] = True
        np.not_equal(self._all[1:], self._all[:-1], out=new[1:])
        return np.flatnonzero(new)

    @property
    def many(self) -> int:
        """How many units there are."""
        return self._starts.size

    @cached_property
    def numbers(self) -> Integers:
        """The number of the unit of each row."""
        ends = np.append(self._starts[1:], self._all.size)
        return np.repeat(np.arange(self._starts.size), ends - self._starts)

    @property
    def everybody(self) -> Integers:
        """The unit of each row by a code that means the same in all blocks."""
        return self._all

    def names(self, codes: Integers, secret: Secret) -> Blocks:
        """Return the names of units by their numbers in this block."""
        return self._units.names(self._all[self._starts[codes]], secret)

    def levels(self, column: int) -> Integers:
        """Return the levels of a column, 0 for NULL; they are read once for all who ask."""
        if column not in self._levels:
            field = self._fields[column]
            if field.word not in self._words:
                self._words[field.word] = self._word(field.word)
            self._levels[column] = field.read(self._words[field.word])
        return self._levels[column]

    def groups(self, keys: Keys) -> Integers:
        """Return the group of each row by columns and how many values each has, the last fastest; one for all if none.

        It means something only where all of them are present. Those that begin alike are worked out once.
        """
        if keys not in self._groups:
            (column, size), before = keys[-1], self.groups(keys[:-1])
            self._groups[keys] = before * size + (self.levels(column) - 1)
        return self._groups[keys]

    def present(self, column: int) -> Present:
        """Tell where a column is not NULL."""
        if column not in self._present:
            there = self.levels(column) > 0
            self._present[column] = None if there.all() else there
        return self._present[column]


class WholeUnits(Protocol):
    """The rows of one partition, sorted by unit."""

    @property
    def units(self) -> Units:
        """What the codes of units mean."""

    @property
    def size(self) -> int:
        """How many blocks there are."""

    def block(self, number: int, fields: Sequence[PackedField]) -> UnitBlock:
        """Look at a block."""


def by_unit(rows: Gathered, shape: PackedShape, workers: Executor, threads: int) -> WholeUnits:
    """Sort the rows of one partition by unit; they are given away, and there is at least one."""
    if not rows.loose:
        return _packed(rows.packed.take(), NumberUnits(np.zeros(0, np.int64)), shape, workers, threads)
    units, groups, words = rows.columns()
    if not shape.holds(units) and shape.layout.holds(0, units.codes.size - 1):
        units = numbered(units)
    if shape.holds(units):
        keys = shape.layout.pack(units.codes, groups, zip(words, shape.bits, strict=True))
        return _packed(keys, units, shape, workers, threads)
    return _wide(units, words, workers, threads)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Packed:
    """Keys that hold unit and words."""

    units: Units
    parts: Sequence[Integers]
    layout: KeyLayout
    inside: Inside

    @property
    def size(self) -> int:
        return len(self.parts)

    def block(self, number: int, fields: Sequence[PackedField]) -> UnitBlock:
        keys = self.parts[number]
        word = partial(self.inside.levels, self.layout.payloads(keys))
        return UnitBlock(self.units, self.layout.units(keys), word, fields)


def _packed(keys: Integers, units: Units, shape: PackedShape, workers: Executor, threads: int) -> _Packed:
    sort(keys, workers, threads)
    return _Packed(units, blocks(keys, shape.layout.unit_shift), shape.layout, Inside(shape.bits))


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Wide:
    """Words that do not fit one key with their unit, in the order of their units."""

    units: Units
    codes: Integers
    words: Sequence[Integers]
    borders: Sequence[tuple[int, int]]

    @property
    def size(self) -> int:
        return len(self.borders)

    def block(self, number: int, fields: Sequence[PackedField]) -> UnitBlock:
        start, end = self.borders[number]
        return UnitBlock(self.units, self.codes[start:end], lambda word: self.words[word][start:end], fields)


def _wide(units: Units, words: Sequence[Integers], workers: Executor, threads: int) -> _Wide:
    """Sort units with the numbers of their rows, and bring every word into that order."""
    rows = np.arange(units.codes.size)
    layout = KeyLayout(0, (rows.size - 1).bit_length())
    if not layout.holds_all(units.codes):
        units = numbered(units)
    keys = layout.pack(units.codes, np.zeros(1, np.int64), [(rows, layout.payload_bits)])
    sort(keys, workers, threads)
    order = layout.payloads(keys)
    ends = np.cumsum([0, *(part.size for part in blocks(keys, layout.unit_shift))]).tolist()
    return _Wide(units, layout.units(keys), [word[order] for word in words], list(pairwise(ends)))
