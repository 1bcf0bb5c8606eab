"""Aggregation: from a scan to exact whole numbers of every group, and the kept values behind quantiles."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.exact import positive_integer
from discreet.query.bounding.contribution_bounds import MOST_GROUPS, BoundedColumn, ContributionBounds
from discreet.query.bounding.nested_units import OuterLimit, pair_numbers
from discreet.query.bounding.packed_columns import Gathered, Inside, KeyLayout, Numbered, PackedShape, Payload, Runs
from discreet.query.bounding.row_store import RowStore, keep_freed_memory
from discreet.query.bounding.rows import RowChunk, clean
from discreet.query.bounding.secret import Secret
from discreet.query.bounding.selection import Kept, Selection
from discreet.query.bounding.sorted_blocks import UnitRanges, blocks, sort
from discreet.query.bounding.unit_codes import ListedUnits, NumberUnits, Reader, Units, numbered

__all__ = [
    "Aggregation",
    "Counting",
    "Exact",
    "GroupSums",
    "KeptValues",
    "MeasureTally",
    "SquareSums",
    "Tally",
    "Values",
    "tally",
]

# --- tallies: From a scan to exact whole numbers of every group: the one call of this package. ---


_MEMORY = 1 << 31
_THREADS = 2


def tally(
    chunks: Iterable[RowChunk],
    *,
    groups: int,
    limits: ContributionBounds,
    measures: Sequence[BoundedColumn] = (),
    memory: int = _MEMORY,
    threads: int = _THREADS,
    secret: Secret | None = None,
    max_inner: int | None = None,
) -> Tally:
    """Bound what each unit gives, at random and in secret, and count what is kept, exactly.

    Guarantee   One unit more or less changes at most `max_groups` groups of the tally, and in each of them `units` by
                at most 1, `rows`, `counts` and `distinct` by `max_rows`, `total` and `squares` by `max_rows` times the
                largest |index - centre| or its square, and `values` by `max_rows` values added or removed.
    Theorem     What is kept of a unit is a function of its own rows and of fresh secret randomness; see `selection`.
                It is the same for any order and any chunks of the rows, any number of threads and any `memory`.
    Utility     A unit's kept groups are a uniform subset, and so are its kept rows in each of them.

    `groups` is public or will be released by a threshold; beyond `memory` bytes rows wait in files without a name.
    A `secret` is drawn here, or was drawn for this call alone by whoever asks from another process. With `max_inner`
    units are pairs, and so many inner ones of each outer one are counted: see `nested_units`.
    """
    if not 1 <= positive_integer(groups, name="groups") <= MOST_GROUPS:
        raise InvalidParameter("groups must be at most 2^31")
    keep_freed_memory()
    shape = PackedShape(groups, [measure.bits for measure in measures])
    secret, reader = secret or Secret(), Reader()
    outer = None
    if max_inner is not None:
        chunks, outer = pair_numbers(chunks, positive_integer(max_inner, name="max_inner"), shape, memory, secret)
    with (
        RowStore(shape, secret, positive_integer(memory, name="memory")) as store,
        ThreadPoolExecutor(positive_integer(threads, name="threads")) as workers,
    ):
        for chunk in chunks:
            store.add(clean(chunk, groups, measures, reader))
        counting = Counting(limits, measures, shape, secret, workers, threads, outer)
        whole = Aggregation(groups, measures)
        for number, partition in enumerate(store.partitions()):
            if outer is not None and (number or partition.loose):
                raise OverflowError("an outer unit could be in two places")  # There was room for all, word by word.
            whole.merge(counting.count(partition))
        return whole.finish()


# --- sums ---
# Exact sums by group: 64-bit integers that provably do not overflow, put together as integers of any size.


Exact: TypeAlias = NDArray[np.object_]  # Python integers
_LIMB = 27  # A limb is below 2^27; 2^35 rows of it stay below 2^62.
_MASK = (1 << _LIMB) - 1


@final
class GroupSums:
    """Sums of integers from 0 to below 2^54, by group, as two sums of limbs.

    Each limb is below 2^27 and a data set has fewer than 2^35 rows, so no sum reaches 2^62.
    """

    __slots__ = ("_bits", "_high", "_low")

    def __init__(self, groups: int, bits: int) -> None:
        if bits > 2 * _LIMB:
            raise OverflowError(f"values of {bits} bits do not fit into two limbs of {_LIMB}")
        self._bits = bits
        self._low = np.zeros(groups, np.int64)
        self._high = np.zeros(groups if bits > _LIMB else 0, np.int64)

    def add(self, groups: Integers, values: Integers) -> None:
        """Add each value to its group."""
        if self._bits <= _LIMB:
            np.add.at(self._low, groups, values)
            return
        np.add.at(self._low, groups, values & _MASK)
        np.add.at(self._high, groups, values >> _LIMB)

    def merge(self, other: GroupSums) -> None:
        """Add what another thread or partition has summed."""
        self._low += other._low
        self._high += other._high

    def total(self) -> Exact:
        low = self._low.astype(object)
        return low if self._bits <= _LIMB else low + self._high.astype(object) * (1 << _LIMB)


@final
class SquareSums:
    """Sums of squares of integers from 0 to below 2^54, by group: (a 2^27 + b)^2 = a^2 2^54 + 2 a b 2^27 + b^2."""

    __slots__ = ("_bits", "_parts")

    def __init__(self, groups: int, bits: int) -> None:
        self._bits = bits
        if bits <= _LIMB:
            self._parts = [GroupSums(groups, 2 * bits)]
        else:
            self._parts = [GroupSums(groups, 2 * _LIMB) for _ in range(3)]

    def add(self, groups: Integers, values: Integers) -> None:
        """Add the square of each value to its group."""
        if self._bits <= _LIMB:
            self._parts[0].add(groups, values * values)
            return
        high, low = values >> _LIMB, values & _MASK
        for part, product in zip(self._parts, (low * low, high * low, high * high), strict=True):
            part.add(groups, product)

    def merge(self, other: SquareSums) -> None:
        """Add what another thread or partition has summed."""
        for mine, theirs in zip(self._parts, other._parts, strict=True):
            mine.merge(theirs)

    def total(self) -> Exact:
        totals = [part.total() for part in self._parts]
        if len(totals) == 1:
            return totals[0]
        low, mixed, high = totals
        total: Exact = low + mixed * (2 << _LIMB) + high * (1 << 2 * _LIMB)
        return total


# --- values: The kept values of a measure, by group: for quantiles, modes and counts of distinct values. ---


_WORD = 63


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Values:
    """Indices that are not NULL, sorted within each group, one group after the other."""

    starts: Integers  # one more than there are groups: those of group g are from starts[g] to starts[g + 1]
    indices: Integers

    def of(self, group: int) -> Integers:
        """Return the sorted indices of one group."""
        return self.indices[self.starts[group] : self.starts[group + 1]]

    @property
    def distinct(self) -> Integers:
        """How many distinct indices each group has."""
        return np.diff(self.apart().starts)

    def apart(self) -> Values:
        """Take every index of a group once."""
        first = np.ones(self.indices.size, np.bool_)
        first[1:] = self.indices[1:] != self.indices[:-1]
        borders = self.starts[:-1]
        first[borders[borders < self.indices.size]] = True
        before = np.concatenate(([0], np.cumsum(first)))
        return Values(starts=np.asarray(before[self.starts], np.int64), indices=self.indices[first])


@final
class KeptValues:
    """Values on their way: group and level in one word where both fit."""

    __slots__ = ("_groups", "_measure", "_parts")

    def __init__(self, groups: int, measure: BoundedColumn) -> None:
        self._groups = groups
        self._measure = measure
        self._parts: list[tuple[Integers, Integers]] = []

    def add(self, groups: Integers, levels: Integers) -> None:
        """Take those that are not NULL."""
        present = levels != 0
        whole = bool(present.all())
        self._parts.append((groups, levels) if whole else (groups[present], levels[present]))

    def merge(self, other: KeptValues) -> None:
        self._parts += other._parts

    def finish(self) -> Values:
        """Sort by group, then by value, which forgets who gave what."""
        none = np.zeros(0, np.int64)
        groups = np.concatenate([none, *(part for part, _ in self._parts)])
        levels = np.concatenate([none, *(part for _, part in self._parts)])
        bits = self._measure.bits
        if (self._groups - 1).bit_length() + bits <= _WORD:
            packed = (groups << bits) | levels
            packed.sort()
            groups, levels = packed >> bits, packed & ((1 << bits) - 1)
        else:
            order = np.lexsort((levels, groups))
            groups, levels = groups[order], levels[order]
        starts = np.searchsorted(groups, np.arange(self._groups + 1))
        return Values(starts=starts.astype(np.int64), indices=levels + (self._measure.low - 1))


# --- tallying: Exact whole numbers of every group, from the rows that were kept. ---


Integers: TypeAlias = NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MeasureTally:
    """What is known of one measure in each group, over kept rows where it is not NULL."""

    counts: Integers  # how many are not NULL
    total: Exact | None  # sum of indices less the centre, exact Python integers
    squares: Exact | None  # sum of squares of the same
    distinct: Integers | None  # how many distinct indices
    values: Values | None


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tally:
    """Exact and private: it goes nowhere but into noise."""

    units: Integers  # distinct units with a kept row, by group
    rows: Integers  # kept rows, by group
    measures: tuple[MeasureTally, ...]


@final
class Aggregation:
    """A tally in the making. One belongs to one thread; they are merged at the end."""

    __slots__ = ("_columns", "_groups", "_rows", "_units")

    def __init__(self, groups: int, measures: Sequence[BoundedColumn]) -> None:
        self._groups = groups
        self._units = np.zeros(groups, np.int64)
        self._rows = np.zeros(groups, np.int64)
        self._columns = [_AggregatedColumn(groups, measure) for measure in measures]

    def add(self, kept: Kept, payload: Payload) -> None:
        """Count kept rows."""
        _count(self._units, kept.pairs)
        _count(self._rows, kept.groups)
        for number, column in enumerate(self._columns):
            column.add(kept.groups, payload.levels(kept.payloads, number))

    def merge(self, other: Aggregation) -> None:
        """Add what another thread or partition has counted."""
        self._units += other._units
        self._rows += other._rows
        for mine, theirs in zip(self._columns, other._columns, strict=True):
            mine.merge(theirs)

    def finish(self) -> Tally:
        measures = tuple(column.finish(self._rows) for column in self._columns)
        return Tally(units=self._units, rows=self._rows, measures=measures)


@final
class _AggregatedColumn:
    """The sums of one measure. Levels count from 1, at the low end; 0 is NULL and adds nothing to any sum."""

    __slots__ = ("_groups", "_measure", "_nulls", "_squares", "_sums", "_values")

    def __init__(self, groups: int, measure: BoundedColumn) -> None:
        self._groups = groups
        self._measure = measure
        self._nulls = np.zeros(groups, np.int64)
        wanted = measure.total or measure.squares
        self._sums = GroupSums(groups, measure.bits) if wanted else None
        self._squares = SquareSums(groups, measure.bits) if measure.squares else None
        self._values = KeptValues(groups, measure) if measure.values or measure.distinct else None

    def add(self, groups: Integers, levels: Integers) -> None:
        null = levels == 0
        if null.any():
            _count(self._nulls, groups[null])
        for part in (self._sums, self._squares, self._values):
            if part is not None:
                part.add(groups, levels)

    def merge(self, other: _AggregatedColumn) -> None:
        self._nulls += other._nulls
        if self._sums is not None and other._sums is not None:
            self._sums.merge(other._sums)
        if self._squares is not None and other._squares is not None:
            self._squares.merge(other._squares)
        if self._values is not None and other._values is not None:
            self._values.merge(other._values)

    def finish(self, rows: Integers) -> MeasureTally:
        """Turn sums of levels into sums of indices less the centre: each is its level plus `offset`."""
        counts = rows - self._nulls
        offset = self._measure.low - 1 - self._measure.centre
        sums = None if self._sums is None else self._sums.total()
        many = counts.astype(object)
        squares = None
        if self._squares is not None and sums is not None:
            squares = self._squares.total() + 2 * offset * sums + offset * offset * many
        total = sums + offset * many if sums is not None and self._measure.total else None
        values = None if self._values is None else self._values.finish()
        return MeasureTally(
            counts=counts,
            total=total,
            squares=squares,
            distinct=values.distinct if values is not None and self._measure.distinct else None,
            values=values if self._measure.values else None,
        )


def _count(counts: Integers, groups: Integers) -> None:
    # A histogram of all groups is quicker, unless there are many more of them than rows.
    if counts.size <= groups.size:
        counts += np.bincount(groups, minlength=counts.size)
    else:
        np.add.at(counts, groups, np.ones(groups.size, np.int64))


# --- partition: Bound and count one partition: all rows of some units. ---


@final
@dataclass(frozen=True, slots=True, eq=False)
class Counting:
    """How to count partitions: everything public, the secret, and who does the work."""

    limits: ContributionBounds
    measures: Sequence[BoundedColumn]
    shape: PackedShape
    secret: Secret
    workers: Executor
    threads: int
    outer: OuterLimit | None = None

    def count(self, rows: Gathered) -> Aggregation:
        """Count the rows of one partition; they are given away."""
        if rows.loose:
            return self.loose(*rows.columns())
        return self._packed(rows.packed.take(), NumberUnits(np.zeros(0, np.int64)))

    def _nothing(self) -> Aggregation:
        return Aggregation(self.shape.groups, self.measures)

    def _packed(self, keys: Integers, units: Units) -> Aggregation:
        """Count keys that hold everything."""
        return self._sorted(keys, units, self.shape.layout, Inside(self.shape.bits))

    def loose(self, units: Units, groups: Integers, levels: Sequence[Integers]) -> Aggregation:
        """Pack rows into one word each, after numbering the units anew where that helps; else number the rows."""
        if not self.shape.holds(units) and self.shape.layout.holds(0, units.codes.size - 1):
            units = numbered(units)
        if self.shape.holds(units):
            fields = zip(levels, self.shape.bits, strict=True)
            return self._packed(self.shape.layout.pack(units.codes, groups, fields), units)
        ranges = None if self.outer is not None else UnitRanges.of(units, self.shape.layout)
        return self._numbered(units, groups, levels) if ranges is None else self._ranged(ranges, groups, levels)

    def _ranged(self, ranges: UnitRanges, groups: Integers, levels: Sequence[Integers]) -> Aggregation:
        """Share rows out by ranges of units that are narrow enough for one word a row; sort and count each range."""
        fields = [*zip(levels, self.shape.bits, strict=True)]
        shares = ranges.shared_out(groups, fields, self.threads)
        done = list(self.workers.map(self._ranges, shares))
        for other in done[1:]:
            done[0].merge(other)
        return done[0]

    def _ranges(self, share: Sequence[tuple[Units, list[Integers]]]) -> Aggregation:
        """Count ranges of units, one after the other, in one thread."""
        tallying, layout, inside = self._nothing(), self.shape.layout, Inside(self.shape.bits)
        secret, runs = self.secret.again(), Runs()
        for units, parts in share:
            keys = np.concatenate(parts)
            parts.clear()
            keys.sort()
            selection = Selection(self.limits, secret, units, layout, inside, runs)
            for block in blocks(keys, layout.unit_shift):
                for kept in selection.keep(block):
                    tallying.add(kept, inside)
        return tallying

    def _numbered(self, units: Units, groups: Integers, levels: Sequence[Integers]) -> Aggregation:
        """Sort by unit, group and the number of the row; if even that is too wide, one half of the units at a time."""
        size = units.codes.size
        layout = KeyLayout(self.shape.layout.group_bits, (size - 1).bit_length())
        if not layout.holds_all(units.codes):
            units = numbered(units)
            if not layout.holds_all(units.codes):
                return self._halves(units, groups, levels)
        keys = layout.pack(units.codes, groups, [(np.arange(size), layout.payload_bits)])
        return self._sorted(keys, units, layout, Numbered(levels, layout.payload_bits))

    def _halves(self, units: ListedUnits, groups: Integers, levels: Sequence[Integers]) -> Aggregation:
        tallying, many = self._nothing(), units.size
        for first, last in ((0, many // 2), (many // 2, many)):
            rows = (units.codes >= first) & (units.codes < last)
            if rows.any():
                half = units.part(first, last, rows)
                tallying.merge(self._numbered(half, groups[rows], [column[rows] for column in levels]))
        return tallying

    def _sorted(self, keys: Integers, units: Units, layout: KeyLayout, payload: Payload) -> Aggregation:
        """Sort keys; bound and count them in blocks of whole units."""
        sort(keys, self.workers, self.threads)
        parts = blocks(keys, layout.unit_shift + (0 if self.outer is None else self.outer.bits))
        shares = [parts[turn :: self.threads] for turn in range(self.threads)]
        chosen = [Selection(self.limits, self.secret.again(), units, layout, payload) for _ in shares]
        done = list(self.workers.map(self._share, shares, chosen))
        for other in done[1:]:
            done[0].merge(other)
        return done[0]

    def _share(self, parts: Sequence[Integers], selection: Selection) -> Aggregation:
        tallying = self._nothing()
        for part in parts:
            keys = part
            if self.outer is not None:
                keys = self.outer.keep(part, selection.layout.unit_shift, selection.secret)
            for kept in selection.keep(keys):
                tallying.add(kept, selection.payload)
        return tallying
