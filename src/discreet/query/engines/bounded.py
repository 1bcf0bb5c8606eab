"""A stage whose units are a column: the engine scans, filters and projects; bounding and adding up are in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import AnswerFailed
from discreet.query.bounding import GroupKeys, KeyColumn, Limits, Measure, MeasureTally, Rows, Tally, Values, tally
from discreet.query.engine import Deadline, Tallied
from discreet.query.engines.stages import Scan
from discreet.query.stage import Stage, StageColumn

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["count_nothing", "known_keys", "run_bounded", "select"]

_BATCH = 1 << 17  # Rows handed over at once.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """How much the counting may use."""

    memory: int
    threads: int


def run_bounded(stage: Stage, scan: Scan, connection: Any, deadline: Deadline, resources: Resources) -> Tallied:
    """Scan, bound each unit's share, add up by group."""
    keys = _found_keys(scan, connection)
    groups = scan.groups if keys is None else keys.size
    lists = [_listed(scan, place, connection) for place in range(len(scan.columns))]
    measures = [_measure(column, scan, place, lists[place]) for place, column in enumerate(stage.columns)]
    if not groups:
        return Tallied(groups=0, tally=count_nothing(measures), keys=lambda _: [])
    counted = tally(
        _chunks(scan, keys, lists, connection, deadline),
        groups=groups,
        limits=Limits(max_groups=min(stage.max_groups, groups), max_rows=stage.max_rows_per_group),
        measures=measures,
        memory=resources.memory,
        threads=resources.threads,
    )
    return Tallied(groups=groups, tally=counted, keys=known_keys(stage) if keys is None else keys.values)


def select(connection: Any, columns: Sequence[str], scan: Scan, *, tail: str = "", distinct: bool = False) -> Any:
    """Start a SELECT of some columns of a scan."""
    word = "SELECT DISTINCT" if distinct else "SELECT"
    text = f"{word} {', '.join(columns)} {scan.origin}{tail}"
    return connection.sql(text, params=scan.parameters) if scan.parameters else connection.sql(text)


def _found_keys(scan: Scan, connection: Any) -> GroupKeys | None:
    """List the combinations of keys that occur, where no public list says which there are."""
    if not scan.keys:
        return None
    table = select(connection, _aliases(scan.keys), scan, distinct=True).to_arrow_table()
    return GroupKeys.found_in(table.columns)


def _aliases(columns: Sequence[str]) -> list[str]:
    return [f"{column} AS o{number}" for number, column in enumerate(columns, 1)]


def _listed(scan: Scan, place: int, connection: Any) -> KeyColumn | None:
    """List the values of an open column."""
    index = scan.columns[place]
    if not index.is_open:
        return None
    table = select(connection, _aliases([index.sql]), scan, distinct=True).to_arrow_table()
    return KeyColumn.of(table.column(0))


def _measure(column: StageColumn, scan: Scan, place: int, values: KeyColumn | None) -> Measure:
    index, wants = scan.columns[place], column.wants
    high = index.high if values is None else max(values.size - 1, 0)
    return Measure(
        low=index.low,
        high=high,
        centre=column.centre,
        total=wants.total,
        squares=wants.squares,
        distinct=wants.distinct,
        values=wants.values,
    )


def _chunks(
    scan: Scan,
    keys: GroupKeys | None,
    lists: Sequence[KeyColumn | None],
    connection: Any,
    deadline: Deadline,
) -> Iterator[Rows]:
    assert scan.unit is not None
    group = [] if scan.group is None else [scan.group]
    columns = [scan.unit, *(index.sql for index in scan.columns), *group, *scan.keys]
    count = len(scan.columns)
    for batch in select(connection, _aliases(columns), scan).to_arrow_reader(_BATCH):
        if not deadline.left:
            raise AnswerFailed
        measured = [_numbers(batch.column(place + 1), lists[place]) for place in range(count)]
        rest = [batch.column(place) for place in range(count + 1, batch.num_columns)]
        yield Rows(
            units=batch.column(0),
            groups=_codes(rest, keys, has_group=bool(group)),
            measures=tuple(values for values, _ in measured),
            valid=tuple(valid for _, valid in measured),
        )


def _codes(columns: list[pa.Array], keys: GroupKeys | None, *, has_group: bool) -> NDArray[np.integer[Any]] | None:
    if keys is not None:
        return keys.codes(columns)
    if not has_group:
        return None
    return np.asarray(columns[0].fill_null(-1) if columns[0].null_count else columns[0])


def _numbers(array: pa.Array, values: KeyColumn | None) -> tuple[NDArray[np.integer[Any]], NDArray[np.bool_] | None]:
    valid = None if array.null_count == 0 else np.asarray(array.is_valid())
    if values is not None:
        return np.maximum(values.codes(array), 0), valid
    return np.asarray(array if valid is None else array.fill_null(0)), valid


def known_keys(stage: Stage) -> Callable[[Sequence[int]], list[tuple[Hashable, ...]]]:
    """Return what tells the keys of groups by their numbers, where all combinations of public values are groups."""
    from discreet.query.engines.domains import plain

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


def count_nothing(measures: Sequence[Measure]) -> Tally:
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
