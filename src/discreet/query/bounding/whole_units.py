"""Rows with several columns, sorted by unit once, and looked at in blocks of whole units."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Protocol, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.query.bounding.gathered import Gathered, Shape
from discreet.query.bounding.identity import Numbers, Units, numbered
from discreet.query.bounding.keys import Layout
from discreet.query.bounding.ordering import blocks, sort
from discreet.query.bounding.payload import Inside

__all__ = ["Block", "WholeUnits", "by_unit"]

Integers: TypeAlias = NDArray[np.int64]


class ReadLevels(Protocol):
    """Finds the levels of a column: 0 for NULL, else the place of a value in its range, from 1 on."""

    def __call__(self, column: int) -> Integers: ...


@final
class Block:
    """All rows of some units, one unit after the other. It belongs to one thread."""

    __slots__ = ("_found", "_present", "_read", "units")

    def __init__(self, units: Integers, read: ReadLevels) -> None:
        self.units, self._read = units, read
        self._found: dict[int, Integers] = {}
        self._present: dict[int, NDArray[np.bool_] | None] = {}

    def levels(self, column: int) -> Integers:
        """Return the levels of a column, which are read once for all who ask."""
        if column not in self._found:
            self._found[column] = self._read(column)
        return self._found[column]

    def present(self, column: int) -> NDArray[np.bool_] | None:
        """Tell where a column is not NULL; None if it never is."""
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

    @property
    def span(self) -> tuple[int, int]:
        """The lowest and the highest code of a unit."""

    def block(self, number: int) -> Block:
        """Look at a block."""


def by_unit(rows: Gathered, shape: Shape, workers: Executor, threads: int) -> WholeUnits:
    """Sort the rows of one partition by unit; they are given away, and there is at least one."""
    if not rows.loose:
        return _packed(rows.packed.take(), Numbers(np.zeros(0, np.int64)), shape, workers, threads)
    units, groups, levels = rows.columns()
    if not shape.holds(units):
        units = numbered(units)
    if shape.holds(units):
        keys = shape.layout.pack(units.codes, groups, zip(levels, shape.bits, strict=True))
        return _packed(keys, units, shape, workers, threads)
    return _wide(units, levels, workers, threads)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Packed:
    """Words that hold everything."""

    units: Units
    parts: Sequence[Integers]
    layout: Layout
    inside: Inside

    @property
    def size(self) -> int:
        return len(self.parts)

    @property
    def span(self) -> tuple[int, int]:
        first, last = self.layout.units(np.array([self.parts[0][0], self.parts[-1][-1]]))
        return int(first), int(last)

    def block(self, number: int) -> Block:
        keys = self.parts[number]
        return Block(self.layout.units(keys), partial(self.inside.levels, self.layout.payloads(keys)))


def _packed(keys: Integers, units: Units, shape: Shape, workers: Executor, threads: int) -> _Packed:
    sort(keys, workers, threads)
    return _Packed(units, blocks(keys, shape.layout.unit_shift), shape.layout, Inside(shape.bits))


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Wide:
    """Columns that do not fit one word, in the order of their units."""

    units: Units
    codes: Integers
    columns: Sequence[Integers]
    borders: Sequence[tuple[int, int]]

    @property
    def size(self) -> int:
        return len(self.borders)

    @property
    def span(self) -> tuple[int, int]:
        return int(self.codes[0]), int(self.codes[-1])

    def block(self, number: int) -> Block:
        start, end = self.borders[number]
        return Block(self.codes[start:end], lambda column: self.columns[column][start:end])


def _wide(units: Units, levels: Sequence[Integers], workers: Executor, threads: int) -> _Wide:
    """Sort units with the numbers of their rows, and bring every column into that order."""
    rows = np.arange(units.codes.size)
    layout = Layout(0, (rows.size - 1).bit_length())
    keys = layout.pack(units.codes, np.zeros(1, np.int64), [(rows, layout.payload_bits)])
    sort(keys, workers, threads)
    order = layout.payloads(keys)
    ends = np.cumsum([0, *(part.size for part in blocks(keys, layout.unit_shift))]).tolist()
    columns = list(workers.map(lambda column: column[order], levels))
    return _Wide(units, layout.units(keys), columns, list(pairwise(ends)))
