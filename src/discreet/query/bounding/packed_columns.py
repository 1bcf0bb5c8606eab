"""Rows packed into 64-bit words, so that one sort moves unit, group and levels together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.query.bounding.contribution_bounds import BoundedColumn
from discreet.query.bounding.rows import Clean, Indices, RowChunk, check_lengths, indices
from discreet.query.bounding.unit_codes import NumberUnits, Reader, Units, Unread, joined

__all__ = [
    "Gathered",
    "Inside",
    "KeyBuffer",
    "KeyLayout",
    "Numbered",
    "PackedField",
    "PackedShape",
    "Packing",
    "Payload",
    "Runs",
    "UnpackedColumns",
    "in_order",
    "lengths",
    "members",
    "spread",
]

# --- spans: Runs of equal values in a sorted array. ---


Integers: TypeAlias = NDArray[np.int64]
_SHORT = 4


@final
class Runs:
    """Finds runs. It keeps its working memory: fresh memory for every block would cost more than the work.

    It belongs to one thread.
    """

    __slots__ = ("_differing", "_flags", "_size")

    def __init__(self) -> None:
        self._differing = np.empty(0, np.uint64)
        self._flags = np.empty((2, 0), np.bool_)
        self._size = 0

    def read(self, values: Integers) -> None:
        """Look at sorted values, of which there is at least one."""
        self._size = values.size
        if self._size > self._differing.size:
            self._differing, self._flags = np.empty(self._size, np.uint64), np.empty((2, self._size + 1), np.bool_)
        # Neighbours differ in a bit from `shift` on if their xor is at least 2^shift: one pass serves every shift.
        words = values.view(np.uint64)
        np.bitwise_xor(words[1:], words[:-1], out=self._differing[: self._size - 1])

    def starts(self, shift: int) -> Integers:
        """Return where values begin that differ from the one before in a bit from `shift` on."""
        return np.flatnonzero(self._new(shift)[:-1])

    def alone(self, shift: int) -> NDArray[np.bool_]:
        """Tell which values differ in such a bit from both of their neighbours; valid until the next call."""
        new = self._new(shift)
        return np.logical_and(new[:-1], new[1:], out=self._flags[1, : self._size])

    def _new(self, shift: int) -> NDArray[np.bool_]:
        """Tell where a run begins, the end of all values included."""
        new = self._flags[0, : self._size + 1]
        new[0] = new[self._size] = True
        np.greater_equal(self._differing[: self._size - 1], np.uint64(1 << shift), out=new[1 : self._size])
        return new


def lengths(starts: Integers, size: int) -> Integers:
    """Return how long each run is, the last of which ends at `size`."""
    ends = np.empty_like(starts)
    ends[:-1] = starts[1:]
    ends[-1:] = size
    ends -= starts
    return ends


def spread(starts: Integers, counts: Integers) -> Integers:
    """Return start, start + 1, … for each start, as many as its count says."""
    ends = np.cumsum(counts)
    steps = np.arange(int(ends[-1]) if ends.size else 0)
    steps += np.repeat(starts - ends + counts, counts)
    return steps


def members(starts: Integers, counts: Integers, most: int) -> tuple[Integers, Integers]:
    """Return the places of all members of runs of length 1 to `most`, in any order, and their ranks in their runs."""
    if most > _SHORT:
        places = spread(starts, counts)
        return places, places - np.repeat(starts, counts)
    parts = [starts]
    for rank in range(1, most):
        longer = np.flatnonzero(counts > rank)
        starts, counts = starts[longer], counts[longer]
        parts.append(starts + rank)
    return np.concatenate(parts), np.repeat(np.arange(len(parts)), [part.size for part in parts])


# --- words: Columns side by side in a few words, so that a row with many of them is moved and sorted as one. ---


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


# --- keys ---
# One word a row: unit, group and what else is counted, side by side in 64 bits, so that a plain sort does it all.
#
# From the top: the code of the unit, with its sign; the code of the group; the payload. The payload is either the
# levels of all measures, if they fit, or the number of the row in columns that stay where they are.


_KEYS_WORD = 64
_ROOMS = (1 << 17, 1 << 24)  # Keys for which there is room at first, and then.


@final
@dataclass(frozen=True, slots=True)
class KeyLayout:
    """How many bits of a key are the group and the payload; the rest, at the top, is the unit."""

    group_bits: int
    payload_bits: int

    @property
    def unit_shift(self) -> int:
        return self.group_bits + self.payload_bits

    def holds(self, low: int, high: int) -> bool:
        """Whether units with codes from `low` to `high` fit."""
        # The unit is signed and on top, so that a plain sort of signed words orders by unit, group and payload.
        width = _KEYS_WORD - self.unit_shift
        return width > 0 and -(1 << width - 1) <= low and high < 1 << width - 1

    def holds_all(self, units: Integers) -> bool:
        """Whether these units fit, of which there is at least one."""
        return self.holds(int(units.min()), int(units.max()))

    def pack(self, units: Integers, groups: Integers, payloads: Iterable[tuple[Integers, int]]) -> Integers:
        """Put fields side by side; `payloads` are arrays with their bits, from the top."""
        keys = units << self.group_bits
        keys |= groups
        for column, bits in payloads:
            keys <<= bits
            keys |= column
        return keys

    def units(self, keys: Integers) -> Integers:
        return keys >> self.unit_shift

    def groups(self, keys: Integers) -> Integers:
        groups = keys >> self.payload_bits
        groups &= (1 << self.group_bits) - 1
        return groups

    def payloads(self, keys: Integers) -> Integers:
        return keys & ((1 << self.payload_bits) - 1)


@final
class KeyBuffer:
    """One array of keys that grows. Room that is not filled is address space only."""

    __slots__ = ("_keys", "size")

    def __init__(self) -> None:
        self._keys = np.empty(0, np.int64)
        self.size = 0

    def more(self, count: int) -> Integers:
        """Return room for `count` more keys, to be filled at once."""
        start, self.size = self.size, self.size + count
        if self.size > self._keys.size:
            room = next((room for room in _ROOMS if room >= self.size), 4 * self.size)
            grown = np.empty(room, np.int64)
            grown[:start] = self._keys[:start]
            self._keys = grown
        return self._keys[start : self.size]

    def take(self) -> Integers:
        """Give all keys away."""
        keys = self._keys[: self.size]
        self._keys, self.size = np.empty(0, np.int64), 0
        return keys


# --- payload ---
# What a key carries besides unit and group: the levels themselves, or the number of a row that has them.


class Payload(Protocol):
    """A way to find the levels of a kept row."""

    def levels(self, payloads: Integers, measure: int) -> Integers:
        """Return the levels of one measure."""

    def arrange(self, keys: Integers, starts: Integers, counts: Integers) -> None:
        """Put the rows of some (unit, group) pairs into an order that depends on their levels only."""


@final
@dataclass(frozen=True, slots=True)
class Inside:
    """All levels are in the payload, the first at the top. Sorted keys are in order already."""

    bits: tuple[int, ...]

    def levels(self, payloads: Integers, measure: int) -> Integers:
        below = sum(self.bits[measure + 1 :])
        levels = payloads >> below if below else payloads
        return levels if measure == 0 else levels & ((1 << self.bits[measure]) - 1)

    def arrange(self, keys: Integers, starts: Integers, counts: Integers) -> None:
        """Nothing is left to do: equal keys are equal rows."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Numbered:
    """The payload is the number of a row in these columns."""

    columns: Sequence[Integers]
    payload_bits: int

    def levels(self, payloads: Integers, measure: int) -> Integers:
        return self.columns[measure][payloads]

    def arrange(self, keys: Integers, starts: Integers, counts: Integers) -> None:
        """Sort each pair's rows by their levels: which row has which number in the scan must not matter."""
        places = spread(starts, counts)
        rows = keys[places] & ((1 << self.payload_bits) - 1)
        pairs = np.repeat(np.arange(starts.size), counts)
        order = in_order([column[rows] for column in self.columns], pairs, starts.size)
        keys[places] = keys[places[order]]


# --- gathered: Rows of all chunks, packed into one word each as they come, as long as that is possible. ---


@final
@dataclass(frozen=True, slots=True, eq=False)
class UnpackedColumns:
    """Rows that are not packed."""

    units: Unread
    groups: Integers
    levels: tuple[Integers, ...]

    @property
    def bytes(self) -> int:
        return 8 * self.groups.size * (2 + len(self.levels))


@final
class PackedShape:
    """How many groups there are and how many bits the levels of each measure take."""

    __slots__ = ("bits", "groups", "layout")

    def __init__(self, groups: int, bits: Sequence[int]) -> None:
        self.groups = groups
        self.bits = tuple(bits)
        self.layout = KeyLayout((groups - 1).bit_length(), sum(self.bits))

    def holds(self, units: Units) -> bool:
        """Whether units, groups and levels fit into one word."""
        return self.layout.holds_all(units.codes)

    def unpack(self, keys: Integers) -> UnpackedColumns:
        """Undo the packing of units that are integers."""
        payloads, inside = self.layout.payloads(keys), Inside(self.bits)
        levels = tuple(inside.levels(payloads, number) for number in range(len(self.bits)))
        return UnpackedColumns(NumberUnits(self.layout.units(keys)), self.layout.groups(keys), levels)


@final
class Gathered:
    """The rows of one partition."""

    __slots__ = ("_shape", "loose", "packed")

    def __init__(self, shape: PackedShape) -> None:
        self._shape = shape
        self.packed = KeyBuffer()
        self.loose: list[UnpackedColumns] = []

    @property
    def bytes(self) -> int:
        return 8 * self.packed.size + self.loose_bytes

    @property
    def loose_bytes(self) -> int:
        return sum(part.bytes for part in self.loose)

    def add(self, rows: Clean) -> None:
        """Take the rows of one chunk."""
        # Texts are numbered chunk by chunk, so their codes mean something only once all chunks are there.
        if isinstance(rows.units, NumberUnits) and self._shape.holds(rows.units):
            self._pack(rows.units, rows)
        else:
            levels = tuple(measure.levels() for measure in rows.measures)
            self.loose.append(UnpackedColumns(rows.units, rows.groups.astype(np.int64, copy=False), levels))

    def _pack(self, units: NumberUnits, rows: Clean) -> None:
        keys = self.packed.more(rows.size)
        np.left_shift(units.codes, self._shape.layout.group_bits, out=keys)
        keys |= rows.groups
        for measure, bits in zip(rows.measures, self._shape.bits, strict=True):
            keys <<= bits
            measure.add_to(keys)

    def columns(self) -> tuple[Units, Integers, tuple[Integers, ...]]:
        """Return the units, groups and levels of all rows; they are given away."""
        parts, self.loose = self.loose, []
        if self.packed.size:
            parts.append(self._shape.unpack(self.packed.take()))
        units = joined([part.units for part in parts])
        levels = zip(*(part.levels for part in parts), strict=True)
        groups = np.concatenate([part.groups for part in parts])
        return units, groups, tuple(np.concatenate(column) for column in levels)


# --- rowsort: Sort rows by their values, set by set, by one sort of single words. ---
#
# A word is (set, beginning of the values, number of the row). Where the beginning does not tell rows apart, all their
# values are compared, and where those differ, the rows that share it are sorted by the values themselves. So the order
# is exact, whatever values somebody chose.


Words: TypeAlias = NDArray[np.uint64]
_ROWSORT_WORD = 63


def in_order(columns: Sequence[Integers], sets: Integers, many: int) -> Integers:
    """Return the rows by their set, of which there are `many`, and within a set by their values, exactly."""
    set_bits = (many - 1).bit_length()
    beginnings = _beginnings(columns, sets.size, _room(sets.size, set_bits))
    return _sorted(beginnings | (sets.view(np.uint64) << np.uint64(_room(sets.size, set_bits))), columns)


def _room(size: int, set_bits: int) -> int:
    """Return how many bits of a word are left: some, since a set has several rows and there are fewer than 2^31."""
    return _ROWSORT_WORD - (size - 1).bit_length() - set_bits


def _beginnings(columns: Sequence[Integers], size: int, room: int) -> Words:
    """Return as many bits as there is room for, of columns counted from their least values, from the top."""
    keys = np.zeros(size, np.uint64)
    for column in columns:
        low = int(column.min())
        bits = (int(column.max()) - low).bit_length()
        taken = min(bits, room)
        keys <<= np.uint64(taken)
        keys |= (column - low).view(np.uint64) >> np.uint64(bits - taken)
        room -= taken
        if not room:
            return keys
    return keys << np.uint64(room)


def _sorted(keys: Words, columns: Sequence[Integers]) -> Integers:
    """Sort by key, and by value where keys are equal."""
    row_bits = np.uint64((keys.size - 1).bit_length())
    # With the row's number below its key, sorting the words in place gives the order: no slower argsort is needed.
    words = (keys << row_bits) | np.arange(keys.size, dtype=np.uint64)
    words.sort()
    order = (words & ((np.uint64(1) << row_bits) - np.uint64(1))).view(np.int64)
    words >>= row_bits
    shared = words[1:] == words[:-1]
    clash = np.flatnonzero(_new(order, columns)[1:] & shared)
    return _settled(order, shared, clash, columns) if clash.size else order


def _new(order: Integers, columns: Sequence[Integers]) -> NDArray[np.bool_]:
    """Tell which rows differ from the one before, in this order."""
    new = np.zeros(order.size, np.bool_)
    new[:1] = True
    for column in columns:
        values = column[order]
        new[1:] |= values[1:] != values[:-1]
    return new


def _settled(order: Integers, shared: NDArray[np.bool_], clash: Integers, columns: Sequence[Integers]) -> Integers:
    """Sort by their values the rows that share their key with a row that differs from them."""
    runs = np.cumsum(np.concatenate(([0], ~shared)))
    clashing = np.zeros(int(runs[-1]) + 1, np.bool_)
    clashing[runs[clash]] = True
    places = np.flatnonzero(clashing[runs])
    rows = order[places]
    order[places] = rows[np.lexsort((*(column[rows] for column in reversed(columns)), runs[places]))]
    return order
