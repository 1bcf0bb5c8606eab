"""Run a stage: units of a column are bounded here; where rows are the units, the engine adds up itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import AnswerFailed
from discreet.query.bounding.aggregation import KeptValues, MeasureTally, Tally, Values, tally
from discreet.query.bounding.contribution_bounds import BoundedColumn, ContributionBounds
from discreet.query.bounding.group_codes import GroupKeys, KeyColumn
from discreet.query.bounding.rows import RowChunk
from discreet.query.bounding.secret import Secret
from discreet.query.engine import Deadline, ExactCounts, Stage, StageColumn, known_keys
from discreet.query.engines.sql_expressions import stored
from discreet.query.engines.sql_queries import Index, Scan, select

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "BATCH",
    "EngineResources",
    "count_nothing",
    "measure_of",
    "numbers",
    "run_bounded",
    "run_rows",
]

# --- bounded ---
# A stage whose units are a column: the engine scans, filters and projects; bounding and adding up are in NumPy.


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
    secret = resources.secret()  # First of all: parts of one question must not differ in which secret is whose.
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
        secret=secret,
        max_inner=stage.max_inner,
    )
    return ExactCounts(
        groups=groups,
        tally=counted,
        keys=known_keys(stage) if keys is None else keys.values,
        found=keys,
        lists=tuple(one and one.values for one in lists),
    )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ListedKeys:
    """Values that were found by a scan of their own, numbered, and joined to the next scan."""

    size: int
    code: str
    join: str
    values: pa.Array | None = None  # of an open column, in the order of their numbers


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
    listed = _numbered(f"l{place + 1}", (index.sql,), rows, values.codes(rows.column(0)), values.size, connection)
    return replace(listed, values=values.values)


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


# --- row_units ---
# A stage whose units are rows: there is nothing to bound, so the engine adds up itself, in whole numbers.
#
# Levels count from 0 at the low end of a grid. Whatever is added up, an index or the product of two levels or of their
# parts, is below 2^63 a row, and a data set has fewer than 2^35 rows: every sum fits 128 bits, and none wraps around.


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
    measures, lists = [], []
    for column, index, one in zip(stage.columns, scan.columns, sums, strict=True):
        mine, rest = rest[: len(one.parts)], rest[len(one.parts) :]
        values, listed = _kept(column, index, keys, scan, connection)
        measures.append(_measured(column, index, one, mine, values))
        lists.append(listed)
    whole = rows.astype(np.int64)
    tally = Tally(units=whole, rows=whole, measures=tuple(measures))
    found = None if scan.groups else keys.found
    names = known_keys(stage) if found is None else found.values
    return ExactCounts(groups=keys.groups, tally=tally, keys=names, found=found, lists=tuple(lists))


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
class _StageSums:
    """What is asked of the engine for one column: how many there are, their sum, then sums of squares of levels."""

    parts: tuple[str, ...]
    has_sum: bool
    squares: int


def _sums(column: StageColumn, index: Index) -> _StageSums:
    count = f"count({index.sql})"
    if not (column.wants.total or column.wants.squares):
        return _StageSums((count,), has_sum=False, squares=0)
    level = f"(CAST({index.sql} AS BIGINT) - {index.low})"
    squares = _squares(level, index.high - index.low) if column.wants.squares else []
    return _StageSums((count, f"sum({index.sql})", *squares), has_sum=True, squares=len(squares))


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
    column: StageColumn, index: Index, sums: _StageSums, numbers: Sequence[Exact], values: Values | None
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
        distinct=values.distinct if values is not None and column.wants.distinct else None,
        values=values if column.wants.values else None,
    )


def _kept(
    column: StageColumn, index: Index, keys: _Keys, scan: Scan, connection: Any
) -> tuple[Values | None, pa.Array | None]:
    """Fetch the values of each group as far as they are wanted, and what they number if nobody listed them."""
    if column.wants.values and not index.is_open:
        return _values(index, keys, scan, connection), None
    if column.wants.values or column.wants.distinct:
        return _distinct_values(keys, [*_key_columns(scan), index.sql], scan, connection)
    return None, None


def _distinct_values(
    keys: _Keys, columns: Sequence[str], scan: Scan, connection: Any
) -> tuple[Values, pa.Array | None]:
    """Fetch the distinct values of each group that are not NULL, as their numbers in a list."""
    tail = f" GROUP BY {', '.join(f'o{number}' for number in range(1, len(columns) + 1))}"
    pairs = select(connection, columns, scan, tail=tail).to_arrow_table()
    place, values = keys.place(pairs), pairs.column(len(columns) - 1)
    listed = KeyColumn.of(values)
    codes = listed.codes(values)
    counted = (place >= 0) & np.asarray(values.is_valid())
    order = np.lexsort((codes[counted], place[counted]))
    starts = np.searchsorted(place[counted][order], np.arange(keys.groups + 1)).astype(np.int64)
    return Values(starts=starts, indices=codes[counted][order]), listed.values


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
