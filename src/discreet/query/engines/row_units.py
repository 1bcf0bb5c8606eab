"""A stage whose units are rows: there is nothing to bound, so the engine adds up itself, in whole numbers.

Levels count from 0 at the low end of a grid. Whatever is added up, an index or the product of two levels or of their
parts, is below 2^63 a row, and a data set has fewer than 2^35 rows: every sum fits 128 bits, and none wraps around.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.query.bounding import BoundedColumn, GroupKeys, KeyColumn, MeasureTally, Tally, Values
from discreet.query.bounding.values import KeptValues
from discreet.query.engine import ExactCounts
from discreet.query.engines.bounded import count_nothing, known_keys
from discreet.query.engines.domains import stored
from discreet.query.engines.stages import Index, Scan, select
from discreet.query.stage import Stage, StageColumn

__all__ = ["run_rows"]

Integers: TypeAlias = NDArray[np.int64]
Exact: TypeAlias = NDArray[np.object_]
_LIMB = 27
_MASK = (1 << _LIMB) - 1
_BATCH = 1 << 17


def run_rows(stage: Stage, scan: Scan, connection: Any) -> ExactCounts:
    """Add up by group, every row once."""
    sums = [_sums(column, index) for column, index in zip(stage.columns, scan.columns, strict=True)]
    result = _grouped(connection, ["count(*)", *(sql for column in sums for sql in column.parts)], scan)
    keys = _Keys.of(stage, scan, result)
    if not keys.groups:
        return ExactCounts(groups=0, tally=count_nothing(_measures(stage, scan)), keys=lambda _: [])
    place = keys.place(result)
    added = result.columns[len(_key_columns(scan)) :]
    rows, *rest = (_added(column, place, keys.groups) for column in added)
    measures = []
    for column, index, one in zip(stage.columns, scan.columns, sums, strict=True):
        mine, rest = rest[: len(one.parts)], rest[len(one.parts) :]
        measures.append(_measured(column, index, one, mine, keys, scan, connection))
    whole = rows.astype(np.int64)
    tally = Tally(units=whole, rows=whole, measures=tuple(measures))
    names = known_keys(stage) if scan.groups or keys.found is None else keys.found.values
    return ExactCounts(groups=keys.groups, tally=tally, keys=names)


@final
@dataclass(frozen=True, slots=True)
class _Keys:
    """The groups of a result."""

    scan: Scan
    groups: int
    found: GroupKeys | None  # None if they are public

    @classmethod
    def of(cls, stage: Stage, scan: Scan, result: Any) -> _Keys:
        if not scan.keys:
            return cls(scan, scan.groups, None)
        if scan.groups:
            listed = [
                KeyColumn.listed(*stored(key.domain, key.expression.facts.kind)) for key in stage.keys if key.domain
            ]
            return cls(scan, scan.groups, GroupKeys.all_of(listed))
        found = GroupKeys.found_in(result.columns[: len(scan.keys)])
        return cls(scan, found.size, found)

    def place(self, result: Any) -> Integers:
        """Return the group of each row of a result, -1 if it is in none."""
        if self.found is not None:
            codes = self.found.codes(result.columns[: len(self.scan.keys)])
            assert codes is not None
            return codes
        if self.scan.group is None:
            return np.zeros(result.num_rows, np.int64)
        groups = result.column(0)
        return np.asarray(groups.fill_null(-1) if groups.null_count else groups).astype(np.int64)


def _key_columns(scan: Scan) -> list[str]:
    return list(scan.keys) or ([] if scan.group is None else [scan.group])


def _grouped(connection: Any, parts: Sequence[str], scan: Scan) -> Any:
    keys = _key_columns(scan)
    tail = f" GROUP BY {', '.join(f'o{number}' for number in range(1, len(keys) + 1))}" if keys else ""
    return select(connection, [*keys, *parts], scan, tail=tail).to_arrow_table()


@final
@dataclass(frozen=True, slots=True)
class _Sums:
    """What is asked of the engine for one column: how many there are, their sum, then sums of squares of levels."""

    parts: tuple[str, ...]
    has_sum: bool
    squares: int


def _sums(column: StageColumn, index: Index) -> _Sums:
    count = f"count({index.sql})"
    if not (column.wants.total or column.wants.squares):
        return _Sums((count,), has_sum=False, squares=0)
    level = f"(CAST({index.sql} AS BIGINT) - {index.low})"
    squares = _squares(level, index.high - index.low) if column.wants.squares else []
    return _Sums((count, f"sum({index.sql})", *squares), has_sum=True, squares=len(squares))


def _squares(level: str, highest: int) -> list[str]:
    if highest < 1 << 31:
        return [f"sum({level} * {level})"]
    high, low = f"({level} >> {_LIMB})", f"({level} & {_MASK})"
    return [f"sum({low} * {low})", f"sum({high} * {low})", f"sum({high} * {high})"]


def _added(column: Any, place: Integers, groups: int) -> Exact:
    """Add up the rows of a result by group; usually there is one each, and there may be one in none."""
    whole = np.zeros(groups, object)
    values = np.array([0 if value is None else int(value) for value in column.to_pylist()], object)
    np.add.at(whole, place[place >= 0], values[place >= 0])
    return whole


def _measured(
    column: StageColumn,
    index: Index,
    sums: _Sums,
    numbers: Sequence[Exact],
    keys: _Keys,
    scan: Scan,
    connection: Any,
) -> MeasureTally:
    """Turn sums of indices and of levels into those of indices less the centre: each is its level plus `offset`."""
    counts, rest = numbers[0], numbers[1:]
    offset = index.low - column.centre
    total = rest[0] - column.centre * counts if column.wants.total else None
    squares = None
    if column.wants.squares:
        levels = rest[0] - index.low * counts
        own = rest[1] if sums.squares == 1 else rest[1] + rest[2] * (2 << _LIMB) + rest[3] * (1 << 2 * _LIMB)
        squares = own + 2 * offset * levels + offset * offset * counts
    return MeasureTally(
        counts=counts.astype(np.int64),
        total=total,
        squares=squares,
        distinct=_distinct(index, keys, scan, connection) if column.wants.distinct else None,
        values=_values(index, keys, scan, connection) if column.wants.values else None,
    )


def _distinct(index: Index, keys: _Keys, scan: Scan, connection: Any) -> Integers:
    """Count the distinct values of each group that are not NULL."""
    columns = [*_key_columns(scan), index.sql]
    tail = f" GROUP BY {', '.join(f'o{number}' for number in range(1, len(columns) + 1))}"
    pairs = select(connection, columns, scan, tail=tail).to_arrow_table()
    place = keys.place(pairs)
    counted = (place >= 0) & np.asarray(pairs.column(len(columns) - 1).is_valid())
    return np.bincount(place[counted], minlength=keys.groups)


def _values(index: Index, keys: _Keys, scan: Scan, connection: Any) -> Values:
    """Fetch the values of each group, sorted."""
    kept = KeptValues(keys.groups, BoundedColumn(low=index.low, high=index.high, values=True))
    columns = [*_key_columns(scan), index.sql]
    for batch in select(connection, columns, scan).to_arrow_reader(_BATCH):
        place, values = keys.place(batch), batch.column(len(columns) - 1)
        levels = np.asarray(values.fill_null(index.low - 1)).astype(np.int64) - (index.low - 1)
        levels = np.minimum(levels, index.high - index.low + 1)
        kept.add(place[place >= 0], levels[place >= 0])
    return kept.finish()


def _measures(stage: Stage, scan: Scan) -> list[BoundedColumn]:
    return [
        BoundedColumn(
            low=index.low,
            high=index.high,
            total=column.wants.total,
            squares=column.wants.squares,
            distinct=column.wants.distinct,
            values=column.wants.values,
        )
        for column, index in zip(stage.columns, scan.columns, strict=True)
    ]
