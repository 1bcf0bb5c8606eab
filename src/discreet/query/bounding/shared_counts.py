"""Several counts of the same rows: they are handed over, stored and sorted once, and bounded for each by itself.

Counts of one family are bounded once for all of them: every one counts the same kept rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.exact import positive_integer
from discreet.query.bounding.aggregation import Aggregation, Counting, Tally
from discreet.query.bounding.contribution_bounds import MOST_GROUPS, BoundedColumn, ContributionBounds
from discreet.query.bounding.packed_columns import (
    Inside,
    KeyLayout,
    Numbered,
    PackedShape,
    Packing,
    Payload,
    Runs,
    in_order,
    lengths,
    spread,
)
from discreet.query.bounding.row_store import RowStore, keep_freed_memory
from discreet.query.bounding.rows import RowChunk
from discreet.query.bounding.secret import Secret
from discreet.query.bounding.selection import Kept, Selection, choose
from discreet.query.bounding.sorted_blocks import Here, Present, UnitBlock, WholeUnits, by_unit
from discreet.query.bounding.unit_codes import Reader, Units

__all__ = ["SharedCount", "tally_all"]

Integers: TypeAlias = NDArray[np.int64]
_MEMORY = 1 << 31
_THREADS = 2


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SharedCount:
    """One count of rows that carry columns for several.

    Its groups are all combinations of the values of `keys`, columns by their places and with how many values each, the
    last fastest. A row counts if none of `keys` and none of `needed` is NULL. `measures` name columns by their places.
    Parts of one `family` count the rows that count for all of them, `limits.max_rows` of a unit in all groups together.
    """

    limits: ContributionBounds
    keys: tuple[tuple[int, int], ...] = ()
    needed: tuple[int, ...] = ()
    measures: tuple[tuple[int, BoundedColumn], ...] = ()
    family: str | None = None

    @property
    def groups(self) -> int:
        """How many groups there are."""
        return int(np.prod([size for _, size in self.keys], dtype=object)) if self.keys else 1

    @property
    def columns(self) -> tuple[int, ...]:
        """The columns that a row must have."""
        return (*(column for column, _ in self.keys), *self.needed)


def tally_all(
    chunks: Iterable[RowChunk],
    *,
    carried: Sequence[BoundedColumn],
    parts: Sequence[SharedCount],
    memory: int = _MEMORY,
    threads: int = _THREADS,
    secret: Callable[[], Secret] = Secret,
) -> tuple[Tally, ...]:
    """Bound what each unit gives to each part, at random and in secret, and count what is kept, exactly.

    `chunks` have no groups, and one measure for each column of `carried`. Every part is counted as `tally` would count
    its rows alone.

    Guarantee   That of `tally` for each part that is of no family. For a part of a family: one unit more or less
                changes `rows`, `counts` and `distinct` by at most `max_rows` in all groups together, sums and squares
                by as many rows' worth, and `units` by 1 in each of at most `max_rows` groups.
                The choices of parts, of families for those in one, are independent: each has secret keys of its own.
    Theorem     Given its secret, what is kept of a unit for a part is a function of its own rows, and is the same for
                any order and any chunks of the rows, any number of threads, any `memory` and any other parts; for a
                part of a family, any parts that are not of it.
    Corollary   All parts of a family add up the same rows. So the exact numbers of a group are the sums of those of
                its parts in any finer grouping of the family, whatever the limits cut.
    """
    _check(parts, carried)
    keep_freed_memory()
    packing, sharing, reader = Packing.of(carried), secret(), Reader()
    shape = PackedShape(1, packing.bits)
    with (
        RowStore(shape, sharing, positive_integer(memory, name="memory")) as store,
        ThreadPoolExecutor(positive_integer(threads, name="threads")) as workers,
    ):
        for chunk in chunks:
            store.add(packing.clean(chunk, reader))
        counters = _counters(parts, secret)
        for rows in store.partitions():
            if rows.bytes:
                _count(by_unit(rows, shape, workers, threads), packing, counters, workers, threads)
        return tuple(counter.whole.finish() for counter in counters)


def _check(parts: Sequence[SharedCount], carried: Sequence[BoundedColumn]) -> None:
    for part in parts:
        if part.groups > MOST_GROUPS:
            raise InvalidParameter("groups must be at most 2^31")
        ranges = [(column, measure.low, measure.high) for column, measure in part.measures]
        ranges += [(column, 0, size - 1) for column, size in part.keys]
        if any((carried[column].low, carried[column].high) != (low, high) for column, low, high in ranges):
            raise InvalidParameter("a part must take a column in the range in which it is carried")
    limits = {(part.family, part.limits.max_rows) for part in parts if part.family is not None}
    if len(limits) > len({family for family, _ in limits}):
        raise InvalidParameter("all parts of a family keep the same number of rows")


def _counters(parts: Sequence[SharedCount], secret: Callable[[], Secret]) -> list[_Counter]:
    """Draw a secret for each part, or one for each family."""
    choices: dict[str, _FamilyRows] = {}
    counters = []
    for part in parts:
        if part.family is not None and part.family not in choices:
            together = [one for one in parts if one.family == part.family]
            choices[part.family] = _FamilyRows(tuple(together), part.limits.max_rows, secret())
        choice = None if part.family is None else choices[part.family]
        counters.append(_Counter(part, secret() if choice is None else choice.secret, choice))
    return counters


def _count(
    rows: WholeUnits, packing: Packing, counters: Sequence[_Counter], workers: ThreadPoolExecutor, threads: int
) -> None:
    """Count one partition for all parts, block by block, so that a block is fetched from memory once for all."""

    def share(turn: int) -> list[_ThreadWork]:
        runs = Runs()
        own = [_ThreadWork(rows.units, counter.secret.again(), counter.nothing(), runs) for counter in counters]
        for number in range(turn, rows.size, threads):
            block = rows.block(number, packing.fields)
            kept: dict[str, Integers] = {}
            for counter, work in zip(counters, own, strict=True):
                counter.add(block, work, kept)
        return own

    for done in workers.map(share, range(threads)):
        for counter, work in zip(counters, done, strict=True):
            counter.whole.merge(work.tallying)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _ThreadWork:
    """What one thread has for one part: who units are, the secret, its own count, and working memory."""

    units: Units
    secret: Secret
    tallying: Aggregation
    runs: Runs


@final
@dataclass(frozen=True, slots=True, eq=False)
class _FamilyRows:
    """Which rows are kept for all parts of a family: `most` of a unit, of those that count for every part.

    Theorem     Given the secret, what is kept of a unit is a function of its name and of its own rows, as far as the
                family looks at them; every subset of `most` of its rows is equally likely.
    Proof       Rows of a unit that has more are put in an order that the columns of the family decide, in which equal
                rows are alike to all of its parts, and `choose` takes places by (name, stream) and their number.
    """

    parts: tuple[SharedCount, ...]
    most: int
    secret: Secret

    def rows(self, block: UnitBlock, secret: Secret) -> Integers:
        """Return the places of the kept rows in a block, in any order."""
        there = _present(block, [column for part in self.parts for column in part.columns])
        rows = np.arange(block.size) if there is None else np.flatnonzero(there)
        units = block.numbers[rows]
        starts = np.flatnonzero(np.diff(units, prepend=-1))
        counts = lengths(starts, rows.size)
        many = np.flatnonzero(counts > self.most)
        if not many.size:
            return rows
        few = np.repeat(counts <= self.most, counts)
        own = rows[spread(starts[many], counts[many])]
        chosen = self._chosen(block, own, counts[many], units[starts[many]], secret)
        return np.concatenate((rows[few], chosen))

    def _chosen(self, block: UnitBlock, rows: Integers, counts: Integers, units: Integers, secret: Secret) -> Integers:
        """Choose among the rows of units that have too many."""
        sets = np.repeat(np.arange(counts.size), counts)
        order = in_order([block.levels(column)[rows] for column in self._looked_at], sets, counts.size)
        names, streams = block.names(units, secret), np.ones(counts.size, np.int64)
        places = choose(counts, self.most, names, streams, secret) + (np.cumsum(counts) - counts)
        return rows[order[places.ravel()]]

    @property
    def _looked_at(self) -> list[int]:
        """All columns of the family, in an order that parts outside of it do not change."""
        return list(dict.fromkeys(column for part in self.parts for column, _ in (*part.keys, *part.measures)))


def _present(block: UnitBlock, columns: Iterable[int]) -> Present:
    """Tell which rows have none of these columns NULL; None if all rows."""
    present: Present = None
    for column in dict.fromkeys(columns):
        there = block.present(column)
        if there is not None:
            present = there if present is None else present & there
    return present


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Counter:
    """One part: how its keys are made, its secret, the choice of its family, and what was counted so far."""

    part: SharedCount
    secret: Secret
    choice: _FamilyRows | None
    shape: PackedShape = field(init=False)
    whole: Aggregation = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", PackedShape(self.part.groups, [measure.bits for measure in self.measures]))
        object.__setattr__(self, "whole", self.nothing())

    @property
    def measures(self) -> list[BoundedColumn]:
        return [measure for _, measure in self.part.measures]

    def nothing(self) -> Aggregation:
        return Aggregation(self.part.groups, self.measures)

    def add(self, block: UnitBlock, work: _ThreadWork, kept: dict[str, Integers]) -> None:
        """Bound and count a block; `kept` has what was chosen of it for families."""
        if self.choice is None or self.part.family is None:
            self._add_alone(block, work)
            return
        if self.part.family not in kept:
            kept[self.part.family] = self.choice.rows(block, work.secret)
        self._add_kept(block, kept[self.part.family], work)

    def _add_kept(self, block: UnitBlock, rows: Integers, work: _ThreadWork) -> None:
        """Count rows that were chosen for the whole family."""
        groups = np.broadcast_to(block.groups(self.part.keys), block.size)[rows]
        # The group of each pair of a unit and a group: both fit one word, as a block has fewer than 2^32 units.
        pairs = block.numbers[rows] << self.shape.layout.group_bits
        pairs |= groups
        pairs.sort()
        new = np.ones(pairs.size, np.bool_)
        np.not_equal(pairs[1:], pairs[:-1], out=new[1:])
        owned = pairs[new] & ((1 << self.shape.layout.group_bits) - 1)
        levels = [block.levels(column) for column, _ in self.part.measures]
        work.tallying.add(Kept(owned, groups, rows), Numbered(levels, (block.size - 1).bit_length()))

    def _add_alone(self, block: UnitBlock, work: _ThreadWork) -> None:
        """Bound and count a block: in keys with all levels if they fit, else with the numbers of rows."""
        levels = [block.levels(column) for column, _ in self.part.measures]
        inside, numbered = self.shape.layout, KeyLayout(self.shape.layout.group_bits, (block.size - 1).bit_length())
        if inside.holds(0, block.many - 1):
            fields = list(zip(levels, self.shape.bits, strict=True))
            self._add(block, fields, inside, Inside(self.shape.bits), work)
        elif numbered.holds(0, block.many - 1):
            fields = [(np.arange(block.size), numbered.payload_bits)]
            self._add(block, fields, numbered, Numbered(levels, numbered.payload_bits), work)
        else:
            self._add_loose(block, levels, work)

    def _add(
        self,
        block: UnitBlock,
        fields: Sequence[tuple[Integers, int]],
        layout: KeyLayout,
        payload: Payload,
        work: _ThreadWork,
    ) -> None:
        groups, present = self._groups(block)
        keys = layout.pack(block.numbers, groups, fields)
        keys = keys if present is None else keys[present]
        keys.sort()
        selection = Selection(self.part.limits, work.secret, block, layout, payload, work.runs)
        for kept in selection.keep(keys) if keys.size else ():
            work.tallying.add(kept, payload)

    def _add_loose(self, block: UnitBlock, levels: Sequence[Integers], work: _ThreadWork) -> None:
        """Count a block whose keys would be too long in any case, as `tally` does."""
        groups, present = self._groups(block)
        rows = np.arange(block.size) if present is None else np.flatnonzero(present)
        if not rows.size:
            return
        codes = np.broadcast_to(groups, block.size)[rows]
        counting = Counting(self.part.limits, self.measures, self.shape, work.secret, Here(), 1)
        own = replace(work.units, codes=block.everybody[rows])
        work.tallying.merge(counting.loose(own, codes, [column[rows] for column in levels]))

    def _groups(self, block: UnitBlock) -> tuple[Integers, Present]:
        """Return the group of each row that counts, one for all if there is one only, and which rows count."""
        return block.groups(self.part.keys), _present(block, self.part.columns)
