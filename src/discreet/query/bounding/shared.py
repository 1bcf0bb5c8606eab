"""Several counts of the same rows: they are handed over, stored and sorted once, and bounded for each by itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.exact import positive_integer
from discreet.query.bounding.gathered import Shape
from discreet.query.bounding.keys import Layout
from discreet.query.bounding.limits import MOST_GROUPS, Limits, Measure
from discreet.query.bounding.memory import keep_freed_memory
from discreet.query.bounding.partition import Counting
from discreet.query.bounding.payload import Inside
from discreet.query.bounding.reading import Reader
from discreet.query.bounding.rows import Rows, clean
from discreet.query.bounding.secret import Secret
from discreet.query.bounding.selection import Selection
from discreet.query.bounding.store import Store
from discreet.query.bounding.tallying import Tally, Tallying
from discreet.query.bounding.whole_units import Block, WholeUnits, by_unit

__all__ = ["Part", "tally_all"]

Integers: TypeAlias = NDArray[np.int64]
_MEMORY = 1 << 31
_THREADS = 2


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One count of rows that carry columns for several.

    Its groups are all combinations of the values of `keys`, columns by their places and with how many values each, the
    last fastest. A row counts if none of `keys` and none of `needed` is NULL. `measures` name columns by their places.
    """

    limits: Limits
    keys: tuple[tuple[int, int], ...] = ()
    needed: tuple[int, ...] = ()
    measures: tuple[tuple[int, Measure], ...] = ()

    @property
    def groups(self) -> int:
        """How many groups there are."""
        return int(np.prod([size for _, size in self.keys], dtype=object)) if self.keys else 1


def tally_all(
    chunks: Iterable[Rows],
    *,
    carried: Sequence[Measure],
    parts: Sequence[Part],
    memory: int = _MEMORY,
    threads: int = _THREADS,
) -> tuple[Tally, ...]:
    """Bound what each unit gives to each part, at random and in secret, and count what is kept, exactly.

    `chunks` have no groups, and one measure for each column of `carried`. Every part is counted as `tally` would count
    its rows alone.

    Guarantee   That of `tally` for each part. The choices of parts are independent: each has secret keys of its own.
    Theorem     Given its secret, what is kept of a unit for a part is a function of its own rows, and is the same for
                any order and any chunks of the rows, any number of threads, any `memory` and any other parts.
    """
    _check(parts, carried)
    keep_freed_memory()
    shape, sharing, reader = Shape(1, carried), Secret(), Reader()
    with (
        Store(shape, sharing, positive_integer(memory, name="memory")) as store,
        ThreadPoolExecutor(positive_integer(threads, name="threads")) as workers,
    ):
        for chunk in chunks:
            store.add(clean(chunk, 1, carried, reader))
        counters = [_Counter(part, tuple(column.bits for column in carried), workers, threads) for part in parts]
        for rows in store.partitions():
            if rows.bytes:
                _count(by_unit(rows, shape, workers, threads), counters, workers, threads)
        return tuple(counter.whole.finish() for counter in counters)


def _check(parts: Sequence[Part], carried: Sequence[Measure]) -> None:
    for part in parts:
        if part.groups > MOST_GROUPS:
            raise InvalidParameter("groups must be at most 2^31")
        ranges = [(column, measure.low, measure.high) for column, measure in part.measures]
        ranges += [(column, 0, size - 1) for column, size in part.keys]
        if any((carried[column].low, carried[column].high) != (low, high) for column, low, high in ranges):
            raise InvalidParameter("a part must take a column in the range in which it is carried")


def _count(rows: WholeUnits, counters: Sequence[_Counter], workers: ThreadPoolExecutor, threads: int) -> None:
    """Count one partition for all parts, block by block, so that a block is fetched from memory once for all."""
    narrow = [counter for counter in counters if counter.holds(rows)]
    shares = [range(turn, rows.size, threads) for turn in range(threads)]
    for counted in workers.map(lambda share: _share(rows, narrow, share), shares):
        for counter, tallying in zip(narrow, counted, strict=True):
            counter.whole.merge(tallying)
    for counter in counters:
        if counter not in narrow:
            counter.whole.merge(counter.loose(rows))


def _share(rows: WholeUnits, counters: Sequence[_Counter], share: range) -> list[Tallying]:
    """Count some blocks, in one thread."""
    chosen = [(counter, counter.selection(rows), counter.nothing()) for counter in counters]
    for number in share:
        block = rows.block(number)
        for counter, selection, tallying in chosen:
            counter.add(block, selection, tallying)
    return [tallying for _, _, tallying in chosen]


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Counter:
    """One part: how its keys are made, its secret, and what was counted so far."""

    part: Part
    carried: tuple[int, ...]  # bits of every column
    workers: ThreadPoolExecutor
    threads: int
    secret: Secret = field(default_factory=Secret)
    whole: Tallying = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "whole", self.nothing())

    def nothing(self) -> Tallying:
        return Tallying(self.part.groups, self.measures)

    @property
    def measures(self) -> list[Measure]:
        return [measure for _, measure in self.part.measures]

    @property
    def shape(self) -> Shape:
        return Shape(self.part.groups, self.measures)

    def holds(self, rows: WholeUnits) -> bool:
        """Whether unit, group and levels of this part fit one word."""
        return self.shape.layout.holds(*rows.span)

    def selection(self, rows: WholeUnits) -> Selection:
        shape = self.shape
        return Selection(self.part.limits, self.secret.again(), rows.units, shape.layout, Inside(shape.bits))

    def add(self, block: Block, selection: Selection, tallying: Tallying) -> None:
        """Bound and count a block."""
        keys = self._keys(block, selection.layout)
        if not keys.size:
            return
        keys.sort()
        for kept in selection.keep(keys):
            tallying.add(kept, selection.payload)

    def _keys(self, block: Block, layout: Layout) -> Integers:
        """Pack what this part needs of a block, without the rows that do not count."""
        groups, present = self._groups(block)
        keys = block.units << layout.group_bits
        if groups is not None:
            keys |= groups
        for column, _ in self.part.measures:
            keys <<= self.carried[column]
            keys |= block.levels(column)
        return keys if present is None else keys[present]

    def _groups(self, block: Block) -> tuple[Integers | None, NDArray[np.bool_] | None]:
        """Return the group of each row that counts, and which do; None if there is one group, or if all do."""
        groups: Integers | None = None
        present: NDArray[np.bool_] | None = None
        for column, size in self.part.keys:
            levels = block.levels(column)
            groups = levels - 1 if groups is None else groups * size + (levels - 1)
        for column in self._needed():
            there = block.present(column)
            if there is not None:
                present = there if present is None else present & there
        return groups, present

    def _needed(self) -> Iterator[int]:
        yield from (column for column, _ in self.part.keys)
        yield from self.part.needed

    def loose(self, rows: WholeUnits) -> Tallying:
        """Count a partition whose words would be too long, from its columns."""
        blocks = [rows.block(number) for number in range(rows.size)]
        picked = [(block, *self._groups(block)) for block in blocks]
        units = np.concatenate([_where(block.units, present) for block, _, present in picked])
        if not units.size:
            return self.nothing()
        groups = np.concatenate([_where(_or_zeros(codes, block), present) for block, codes, present in picked])
        levels = [
            np.concatenate([_where(block.levels(column), present) for block, _, present in picked])
            for column, _ in self.part.measures
        ]
        counting = Counting(
            self.part.limits, self.measures, self.shape, self.secret.again(), self.workers, self.threads
        )
        return counting.loose(replace(rows.units, codes=units), groups, levels)


def _or_zeros(groups: Integers | None, block: Block) -> Integers:
    return np.zeros(block.units.size, np.int64) if groups is None else groups


def _where(values: Integers, present: NDArray[np.bool_] | None) -> Integers:
    return values if present is None else values[present]
