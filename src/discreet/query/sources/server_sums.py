"""What a server may add up itself: stages whose units are rows, and whose numbers are whole.

*Theorem.* The numbers of a stage with rows as units are sums over rows of f(row). If rows that agree in some columns
agree in whatever f looks at besides the values that are added up, then adding up within each combination of these
columns first, and adding up the sums then, gives the same. *Proof.* Whole numbers are added up exactly, in any order.

So a server groups by columns as they are stored, whose equality is finer than any of ours (bytes of texts, whole
numbers, days, truth values), and everything that puts groups together (normal forms of texts, bounds, lists of members,
functions of keys) is done to the sums that arrive, by the same engine as for rows: the stage is asked again, of the
table of sums, as sums of sums. What a server decides by itself is which rows count and where a number is moved to its
bounds; the first only where a filter of the closed set says the whole of a condition, the second as exact arithmetic of
64 bits that overflows for no row. Whatever else a stage asks for is streamed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import final

import numpy as np

from discreet.mechanisms.grid import Grid
from discreet.query.ast import Expression, Field, Filter, Source, Table, TableColumn, walk
from discreet.query.bounding.aggregation import Exact, MeasureTally, Tally
from discreet.query.engine import ExactCounts, Stage, StageColumn, Wants
from discreet.query.engines.sql_queries import stored_names
from discreet.query.sources.protocol import RowFilter, ServerSum, SourceColumn, SumRequest
from discreet.query.sources.scan_requests import READ_AS_STORED, WHOLE_TYPES, split, whole_filter
from discreet.schema.columns import ExpressionFacts, Kind

__all__ = ["LIMB", "ServerStage", "added_by_servers"]

LIMB = 52  # Bits of the rest that a sum arrives as: an index on a grid is no larger.
_WIDEST_SQUARED = 1 << 31  # Squares of levels below it fit 64 bits.
_MOST_STAGES = 4  # Each reads the table once more; beyond that it is quicker to stream it once.
_FEW_VALUES = (Kind.BOOLEAN, Kind.DATE)  # Kinds of which there are few values, so that any function may be a key.


@final
@dataclass(frozen=True, slots=True)
class ServerStage:
    """A stage, what a server is asked for it, and the stage that is asked of what arrives."""

    stage: Stage
    name: str  # of the table of sums
    request: SumRequest
    columns: Mapping[str, SourceColumn]  # of the table of sums
    asked: Stage

    def counts(self, found: ExactCounts) -> ExactCounts:
        """Return what the stage counts, from the sums of sums."""
        sums = [_put_together(*found.tally.measures[2 * place : 2 * place + 2]) for place in range(len(self._sums))]
        rows, *rest = sums
        measures = []
        for column in self.stage.columns:
            taken = 1 + column.wants.squares + (column.wants.total or column.wants.squares)
            mine, rest = rest[:taken], rest[taken:]
            measures.append(self._measure(column, mine))
        whole = rows.astype(np.int64)
        return replace(found, tally=Tally(units=whole, rows=whole, measures=tuple(measures)))

    @property
    def _sums(self) -> tuple[ServerSum, ...]:
        return self.request.sums

    def _measure(self, column: StageColumn, sums: Sequence[Exact]) -> MeasureTally:
        """Turn sums of levels into sums of indices less the centre: each is its level plus `offset`."""
        counts, total, squares = sums[0], None, None
        if len(sums) > 1:
            levels, offset = sums[1], _ends(column)[0] - column.centre
            total = levels + offset * counts if column.wants.total else None
            squares = sums[2] + 2 * offset * levels + offset * offset * counts if column.wants.squares else None
        return MeasureTally(counts=counts.astype(np.int64), total=total, squares=squares, distinct=None, values=None)


def _put_together(rest: MeasureTally, often: MeasureTally) -> Exact:
    assert rest.total is not None
    assert often.total is not None
    whole: Exact = rest.total + often.total * (1 << LIMB)
    return whole


def added_by_servers(
    stages: Sequence[Stage], sources: Mapping[str, Mapping[str, SourceColumn]]
) -> tuple[ServerStage, ...] | None:
    """Say what servers add up for all of some stages; None if one of them must be streamed, and so all are."""
    if not 0 < len(stages) <= _MOST_STAGES:
        return None
    found = [_added(stage, f"sums{number}", sources) for number, stage in enumerate(stages, 1)]
    whole = tuple(one for one in found if one is not None)
    return whole if len(whole) == len(found) else None


def _added(stage: Stage, name: str, sources: Mapping[str, Mapping[str, SourceColumn]]) -> ServerStage | None:
    table, conditions = _peeled(stage.source)
    if stage.unit is not None or table is None or table.unit is not None or table.table not in sources:
        return None
    columns = sources[table.table]
    grouped = _grouped(stage, table, columns)
    if grouped is None or any(column.of_unit for column in table.columns):
        return None
    parts = _divided(conditions, table, columns, grouped)
    sums = [] if parts is None else [_sums(column, table, columns) for column in stage.columns]
    if parts is None or any(not one for one in sums):
        return None
    filters, kept = parts
    names = tuple(dict.fromkeys(name for column in grouped for name in stored_names(column)))
    whole = (ServerSum("rows"), *(one for column in sums for one in column or ()))
    numbers = _names(2 * len(whole), columns)
    request = SumRequest(table.table, names, whole, numbers, tuple(dict.fromkeys(filters)))
    arriving = {one: columns[one] for one in names} | dict.fromkeys(numbers, SourceColumn("bigint", "BIGINT", "BIGINT"))
    return ServerStage(stage, name, request, arriving, _asked(stage, name, grouped, kept, numbers))


def _peeled(source: Source) -> tuple[Table | None, tuple[Expression, ...]]:
    """Take filters off a table; None if it is anything else."""
    conditions: tuple[Expression, ...] = ()
    while isinstance(source, Filter):
        conditions, source = (*split(source.condition), *conditions), source.source
    return (source if isinstance(source, Table) and source.private else None), conditions


def _grouped(stage: Stage, table: Table, columns: Mapping[str, SourceColumn]) -> list[TableColumn] | None:
    """Return the columns that keys are made of: each is a key itself, or has few values."""
    found: dict[str, TableColumn] = {}
    for key in stage.keys:
        read = _read(key.expression, table)
        few = isinstance(key.expression, Field) or all(column.field.facts.kind in _FEW_VALUES for column in read)
        if not few or not all(_can_be_grouped(column, columns) for column in read):
            return None
        found |= {column.field.name: column for column in read}
    return list(found.values())


def _read(expression: Expression, table: Table) -> list[TableColumn]:
    names = {node.name for node in walk(expression) if isinstance(node, Field)}
    return [column for column in table.columns if column.field.name in names]


def _can_be_grouped(column: TableColumn, columns: Mapping[str, SourceColumn]) -> bool:
    """Whether two values that a server takes for one are one: of floats -0 and 0 are not."""
    return column.unit_key is None and _arrives(columns[column.column]) in READ_AS_STORED


def _arrives(column: SourceColumn) -> str | None:
    """Return the type of a column that is read as it arrives."""
    return column.arrives if column.arrives == column.read_as else None


def _divided(
    conditions: Iterable[Expression], table: Table, columns: Mapping[str, SourceColumn], grouped: list[TableColumn]
) -> tuple[list[RowFilter], list[Expression]] | None:
    """Divide conditions into filters of the server, and those that are left for the sums: they read keys alone.

    None if there is one that is neither. Truth values become keys for it: there are few.
    """
    filters: list[RowFilter] = []
    kept: list[Expression] = []
    for condition in conditions:
        found = whole_filter(condition, table, columns)
        if found is not None:
            filters.append(found)
            continue
        more = [column for column in _read(condition, table) if column not in grouped]
        if not all(column.field.facts.kind is Kind.BOOLEAN and _can_be_grouped(column, columns) for column in more):
            return None
        grouped += more
        kept.append(condition)
    return filters, kept


def _sums(column: StageColumn, table: Table, columns: Mapping[str, SourceColumn]) -> tuple[ServerSum, ...] | None:
    """Say what is added up for a column of a stage: how many there are, levels, their squares. None if it cannot be."""
    wants, read = column.wants, _read(column.expression, table)
    if not isinstance(column.expression, Field) or len(read) != 1 or wants.distinct or wants.values or column.members:
        return None
    (found,) = read
    facts, arrives = found.field.facts, _arrives(columns[found.column]) if found.unit_key is None else None
    plain = found.missing is None and found.format is None and facts == column.expression.facts
    if not plain or arrives is None or READ_AS_STORED.get(arrives) is not facts.kind:
        return None
    if facts.kind in (Kind.INTEGER, Kind.DATE) and facts.members is not None:
        return None  # Values beyond the list are read as NULL.
    count = ServerSum("values", found.column)
    if not (wants.total or wants.squares):
        return (count,)
    if arrives not in WHOLE_TYPES or column.grid is None or column.grid.step != 1 or not _is_whole(facts):
        return None
    levels = ServerSum("levels", found.column, *_ends(column))
    if not wants.squares:
        return count, levels
    if levels.most >= _WIDEST_SQUARED:
        return None
    return count, levels, replace(levels, of="squares")


def _is_whole(facts: ExpressionFacts) -> bool:
    return all(bound is None or bound.denominator == 1 for bound in (facts.low, facts.high))


def _ends(column: StageColumn) -> tuple[int, int]:
    """Return where the index of a number ends that is moved to its own bounds first, and to those of the grid then."""
    grid, facts = column.grid, column.expression.facts
    assert grid is not None
    low, high = (
        end if bound is None else max(grid.first, min(grid.last, int(bound)))
        for end, bound in ((grid.first, facts.low), (grid.last, facts.high))
    )
    return low, high


def _names(count: int, columns: Iterable[str]) -> tuple[str, ...]:
    """Make up names of columns that no column of the data has, in any case."""
    taken = {name.casefold() for name in columns}
    return tuple(_free(f"sum{number}", taken) for number in range(1, count + 1))


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _asked(
    stage: Stage, name: str, grouped: Sequence[TableColumn], kept: Iterable[Expression], numbers: Sequence[str]
) -> Stage:
    """Ask the same keys of the table of sums, and the sums of its numbers."""
    added = list(_number_columns(numbers))
    source: Source = Table(name, True, (*grouped, *added))
    for condition in kept:
        source = Filter(source, condition)
    grid = Grid(low=Fraction(0), high=Fraction((1 << LIMB) - 1), step=Fraction(1), default=Fraction(0))
    columns = tuple(StageColumn(expression=one.field, wants=Wants(total=True), grid=grid) for one in added)
    return replace(stage, source=source, columns=columns)


def _number_columns(numbers: Iterable[str]) -> Iterator[TableColumn]:
    facts = ExpressionFacts(kind=Kind.INTEGER, low=Fraction(0), high=Fraction((1 << LIMB) - 1))
    for name in numbers:
        yield TableColumn(name, Field(f"+{name}", facts))
