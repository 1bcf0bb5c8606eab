"""Exact whole numbers of every group, from the rows that were kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.query.bounding.limits import BoundedColumn
from discreet.query.bounding.payload import Payload
from discreet.query.bounding.selection import Kept
from discreet.query.bounding.sums import Exact, GroupSums, SquareSums
from discreet.query.bounding.values import KeptValues, Values

__all__ = ["Aggregation", "MeasureTally", "Tally"]

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
        self._columns = [_Column(groups, measure) for measure in measures]

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
class _Column:
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

    def merge(self, other: _Column) -> None:
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
