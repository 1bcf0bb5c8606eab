"""A stage whose units are a column: the engine scans, filters and projects; bounding and adding up are in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import AnswerFailed
from discreet.query.bounding import (
    BoundedColumn,
    ContributionBounds,
    GroupKeys,
    KeyColumn,
    MeasureTally,
    RowChunk,
    Tally,
    Values,
    tally,
)
from discreet.query.bounding.secret import Secret
from discreet.query.engine import Deadline, ExactCounts
from discreet.query.engines.domains import plain
from discreet.query.engines.stages import Index, Scan, select
from discreet.query.stage import Stage, StageColumn

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["BATCH", "EngineResources", "count_nothing", "known_keys", "measure_of", "numbers", "run_bounded"]

BATCH = 1 << 17  # Rows handed over at once.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class EngineResources:
    """How much the counting may use, and where the keys of its secret choices come from."""

    memory: int
    threads: int
    secret: Callable[[], Secret] = Secret


def run_bounded(
    stage: Stage, scan: Scan, connection: Any, deadline: Deadline, resources: EngineResources
) -> ExactCounts:
    """Scan, bound each unit's share, add up by group."""
    keys, group = _found_keys(scan, connection)
    groups = scan.groups if keys is None else keys.size
    lists = [_listed(scan, place, connection) for place in range(len(scan.columns))]
    measures = [
        measure_of(column, index, one) for column, index, one in zip(stage.columns, scan.columns, lists, strict=True)
    ]
    if not groups:
        return ExactCounts(groups=0, tally=count_nothing(measures), keys=lambda _: [])
    counted = tally(
        _chunks(scan, group, lists, connection, deadline),
        groups=groups,
        limits=ContributionBounds(max_groups=min(stage.max_groups, groups), max_rows=stage.max_rows_per_group),
        measures=measures,
        memory=resources.memory,
        threads=resources.threads,
        secret=resources.secret(),
    )
    return ExactCounts(groups=groups, tally=counted, keys=known_keys(stage) if keys is None else keys.values)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ListedKeys:
    """Values that were found by a scan of their own, numbered, and joined to the next scan."""

    size: int
    code: str
    join: str


def _found_keys(scan: Scan, connection: Any) -> tuple[GroupKeys | None, ListedKeys | None]:
    """List the combinations of keys that occur, where no public list says which there are."""
    if not scan.keys:
        return None, None
    rows = _distinct(scan, scan.keys, connection)
    keys = GroupKeys.found_in(rows.columns)
    codes = keys.codes(rows.columns)
    assert codes is not None
    return keys, _numbered("g", scan.keys, rows, codes, keys.size, connection)


def _listed(scan: Scan, place: int, connection: Any) -> ListedKeys | None:
    """List the values of an open column."""
    index = scan.columns[place]
    if not index.is_open:
        return None
    rows = _distinct(scan, (index.sql,), connection)
    values = KeyColumn.of(rows.column(0))
    return _numbered(f"l{place + 1}", (index.sql,), rows, values.codes(rows.column(0)), values.size, connection)


def _distinct(scan: Scan, columns: Sequence[str], connection: Any) -> pa.Table:
    tail = f" GROUP BY {', '.join(columns)}"
    return select(connection, columns, scan, tail=tail).to_arrow_table()


def _numbered(
    name: str, columns: Sequence[str], rows: pa.Table, codes: NDArray[np.int64], size: int, connection: Any
) -> ListedKeys:
    """Register values with their numbers, to be joined; NULL is a value like others."""
    import pyarrow as pa

    connection.register(name, rows.append_column("i", pa.array(codes.astype(np.int32))))
    pairs = [f"{column} IS NOT DISTINCT FROM {name}.o{number}" for number, column in enumerate(columns, 1)]
    return ListedKeys(size=size, code=f"{name}.i", join=f" LEFT JOIN {name} ON {' AND '.join(pairs)}")


def measure_of(column: StageColumn, index: Index, values: ListedKeys | None = None) -> BoundedColumn:
    """Say what is counted of a column."""
    wants = column.wants
    return BoundedColumn(
        low=index.low,
        high=index.high if values is None else max(values.size - 1, 0),
        centre=column.centre,
        total=wants.total,
        squares=wants.squares,
        distinct=wants.distinct,
        values=wants.values,
    )


def _chunks(
    scan: Scan, group: ListedKeys | None, lists: Sequence[ListedKeys | None], connection: Any, deadline: Deadline
) -> Iterator[RowChunk]:
    assert scan.unit is not None
    columns = [_code(index, one) for index, one in zip(scan.columns, lists, strict=True)]
    code = scan.group if group is None else group.code
    join = "".join(one.join for one in (group, *lists) if one is not None)
    wanted = [scan.unit, *columns, *([] if code is None else [code])]
    for batch in select(connection, wanted, scan, join=join).to_arrow_reader(BATCH):
        if not deadline.left:
            raise AnswerFailed
        measured = [numbers(batch.column(place)) for place in range(1, 1 + len(columns))]
        yield RowChunk(
            units=batch.column(0),
            groups=None if code is None else _codes(batch.column(1 + len(columns))),
            measures=tuple(values for values, _ in measured),
            valid=tuple(valid for _, valid in measured),
        )


def _code(index: Index, values: ListedKeys | None) -> str:
    """Write the number of a value; what is NULL has none."""
    return index.sql if values is None else f"(CASE WHEN {index.sql} IS NOT NULL THEN {values.code} END)"


def _codes(array: pa.Array) -> NDArray[np.integer[Any]]:
    return np.asarray(array.fill_null(-1) if array.null_count else array)


def numbers(array: pa.Array) -> tuple[NDArray[np.integer[Any]], NDArray[np.bool_] | None]:
    """Return whole numbers, and where there is one; None if everywhere."""
    valid = None if array.null_count == 0 else np.asarray(array.is_valid())
    return np.asarray(array if valid is None else array.fill_null(0)), valid


def known_keys(stage: Stage) -> Callable[[Sequence[int]], list[tuple[Hashable, ...]]]:
    """Return what tells the keys of groups by their numbers, where all combinations of public values are groups."""
    domains = [tuple(plain(value) for value in key.domain) for key in stage.keys if key.domain is not None]

    def keys(groups: Sequence[int]) -> list[tuple[Hashable, ...]]:
        return [_of(int(group)) for group in groups]

    def _of(group: int) -> tuple[Hashable, ...]:
        values: list[Hashable] = []
        for domain in reversed(domains):
            group, place = divmod(group, len(domain))
            values.append(domain[place])
        return tuple(reversed(values))

    return keys


def count_nothing(measures: Sequence[BoundedColumn]) -> Tally:
    """Return the tally of no groups at all."""
    none = np.zeros(0, np.int64)
    exact = np.zeros(0, object)
    empty = Values(starts=np.zeros(1, np.int64), indices=none)
    return Tally(
        units=none,
        rows=none,
        measures=tuple(
            MeasureTally(
                counts=none,
                total=exact if measure.total else None,
                squares=exact if measure.squares else None,
                distinct=none if measure.distinct else None,
                values=empty if measure.values else None,
            )
            for measure in measures
        ),
    )
