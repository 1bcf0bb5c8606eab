"""What is asked of a source: the columns that stages read, and filters whose meaning is the same everywhere.

A filter that is handed on is one that every counted row fulfils. The engine applies its conditions to the stream all
the same, so a filter too few costs time and nothing else; that none is too many is what has to hold:

    a condition is a conjunction, on a row of one table, before anything else happens to it;
    a whole number or a date is moved to its declared bounds when it is read, which keeps its side of a constant that
    is between them; what takes the place of NULL might fulfil any condition, so such columns have no filter;
    a column that is of the unit is looked up in all of its rows, so such tables have none at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from fractions import Fraction
from typing import Literal as OneOf

from discreet.query.ast import (
    Apply,
    Expression,
    Field,
    Filter,
    Join,
    Literal,
    Operator,
    PerUnit,
    Project,
    Source,
    Table,
    TableColumn,
    UnionAll,
    WithinUnit,
    walk,
)
from discreet.query.engine import Stage
from discreet.query.engines.sql_queries import stored_names
from discreet.query.sources.protocol import ColumnCompares, NotNull, RowFilter, ScanRequest, SourceColumn, TextEquals
from discreet.schema.columns import LONGEST_TEXT, ExpressionFacts, Kind

__all__ = ["READ_AS_STORED", "WHOLE_TYPES", "requests_of", "split", "tables_of", "whole_filter"]

_Sign = OneOf["=", "<", "<=", ">", ">="]
_SIGNS: Mapping[Operator, _Sign] = {
    Operator.EQUAL: "=",
    Operator.LESS: "<",
    Operator.LESS_OR_EQUAL: "<=",
    Operator.GREATER: ">",
    Operator.GREATER_OR_EQUAL: ">=",
}
_TURNED: Mapping[_Sign, _Sign] = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
WHOLE_TYPES = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT")
_EPOCH = date(1970, 1, 1)
# What else must be kept for a comparison to be kept either way: x > v is, if x <= v is, too.
_OPPOSITE: Mapping[_Sign, _Sign] = {"=": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
READ_AS_STORED = {"VARCHAR": Kind.TEXT, "BOOLEAN": Kind.BOOLEAN, "DATE": Kind.DATE}
READ_AS_STORED |= dict.fromkeys(WHOLE_TYPES, Kind.INTEGER)


def tables_of(stages: Iterable[Stage]) -> frozenset[str]:
    """Return the names of all tables that some stages read."""
    return frozenset(table.table for stage in stages for table, _ in _scans(stage.source, ()))


def requests_of(stages: Sequence[Stage], sources: Mapping[str, Mapping[str, SourceColumn]]) -> dict[str, ScanRequest]:
    """Say what is streamed of each table for all of some stages together.

    A table that is read in two places, by one stage or by several, is streamed once and without filters.
    """
    scans: dict[str, list[tuple[Table, tuple[Expression, ...]]]] = {name: [] for name in sources}
    for stage in stages:
        for table, conditions in _scans(stage.source, ()):
            if table.table in scans:
                scans[table.table].append((table, conditions))
    return {name: _request(found, sources[name]) for name, found in scans.items() if found}


def _scans(source: Source, conditions: tuple[Expression, ...]) -> Iterator[tuple[Table, tuple[Expression, ...]]]:
    """Find the tables below a source, each with the conditions that stand right above it."""
    match source:
        case Table():
            yield source, conditions
        case Filter():
            yield from _scans(source.source, (*conditions, *split(source.condition)))
        case Project() | PerUnit() | WithinUnit():
            yield from _scans(source.source, ())
        case Join():
            yield from _scans(source.left, ())
            yield from _scans(source.right, ())
        case UnionAll():
            for part in source.sources:
                yield from _scans(part, ())


def split(condition: Expression) -> Iterator[Expression]:
    """Take a condition apart: a row for which a conjunction is true is one for which each of its parts is."""
    if isinstance(condition, Apply) and condition.operator is Operator.AND:
        for argument in condition.arguments:
            yield from split(argument)
    else:
        yield condition


def _request(scans: Sequence[tuple[Table, tuple[Expression, ...]]], columns: Mapping[str, SourceColumn]) -> ScanRequest:
    read = {name for table, _ in scans for column in table.columns for name in stored_names(column)}
    # Rows are counted even if no column of them is looked at; the first one is as good as any other.
    wanted = tuple(name for name in columns if name in read) or tuple(columns)[:1]
    if len(scans) > 1:
        return ScanRequest(wanted)
    ((table, conditions),) = scans
    return ScanRequest(wanted, tuple(dict.fromkeys(_filters(table, conditions, columns))))


def _filters(
    table: Table, conditions: Iterable[Expression], columns: Mapping[str, SourceColumn]
) -> Iterator[RowFilter]:
    for column in table.columns:
        if column.field.name == table.unit:  # Who is nobody is never counted.
            yield from (NotNull(name) for name in stored_names(column))
    if any(column.of_unit for column in table.columns):
        return
    by_field = {column.field.name: column for column in table.columns}
    for condition in conditions:
        found = _filter(condition, by_field, columns)
        if found is not None:
            yield found


def _filter(
    condition: Expression, by_field: Mapping[str, TableColumn], columns: Mapping[str, SourceColumn]
) -> RowFilter | None:
    match condition:
        case Apply(Operator.NOT, (Apply(Operator.IS_NULL, (Field(name),)),)):
            column = _plain(by_field.get(name))
            return None if column is None else NotNull(column.column)
        case Apply(operator, (Field(name), Literal(value))) if operator in _SIGNS:
            return _compared(_plain(by_field.get(name)), _SIGNS[operator], value, columns)
        case Apply(operator, (Literal(value), Field(name))) if operator in _SIGNS:
            return _compared(_plain(by_field.get(name)), _TURNED[_SIGNS[operator]], value, columns)
    return None


def _plain(column: TableColumn | None) -> TableColumn | None:
    """Return a column that is NULL wherever it is NULL in the data."""
    simple = column is not None and column.unit_key is None and column.missing is None and column.format is None
    return column if simple else None


def _compared(
    column: TableColumn | None, sign: _Sign, value: object, columns: Mapping[str, SourceColumn]
) -> RowFilter | None:
    if column is None:
        return None
    facts, stored = column.field.facts, columns[column.column]
    if stored.arrives != stored.read_as:
        return None
    if stored.arrives in WHOLE_TYPES and facts.kind is Kind.INTEGER and type(value) is int:
        return ColumnCompares(column.column, sign, value) if _keeps_side(sign, Fraction(value), facts) else None
    if stored.arrives == "DATE" and facts.kind is Kind.DATE and isinstance(value, date):
        if isinstance(value, datetime) or not _keeps_side(sign, Fraction((value - _EPOCH).days), facts):
            return None
        return ColumnCompares(column.column, sign, value)
    if stored.arrives == "VARCHAR" and facts.kind is Kind.TEXT and isinstance(value, str) and sign == "=":
        return TextEquals(column.column, value) if _is_whole_text(value) else None
    return None


def _keeps_side(sign: _Sign, value: Fraction, facts: ExpressionFacts) -> bool:
    """Whether a number that is moved to its bounds compares with a constant only if it did so before."""
    low, high = facts.low, facts.high
    above = low is None or (value >= low if sign == ">" else value > low)
    below = high is None or (value <= high if sign == "<" else value < high)
    match sign:
        case ">" | ">=":
            return above
        case "<" | "<=":
            return below
    return above and below


def whole_filter(condition: Expression, table: Table, columns: Mapping[str, SourceColumn]) -> RowFilter | None:
    """Return the filter that says the whole of a condition: a row of the table passes it if and only if it is true.

    So it is narrower than what `requests_of` hands on, which every counted row passes and others may. A number that is
    moved to its bounds must compare as it did before, either way; what is read as NULL must be NULL (of days also:
    those outside of the years 1 to 9999, which whoever writes the filter leaves out).
    """
    by_field = {column.field.name: column for column in table.columns}
    found = _filter(condition, by_field, columns)
    if found is None:
        return None
    facts = next(by_field[node.name] for node in walk(condition) if isinstance(node, Field)).field.facts
    stored = columns[found.column]
    if stored.arrives != stored.read_as or READ_AS_STORED.get(stored.arrives) is not facts.kind:
        return None
    if facts.kind in (Kind.INTEGER, Kind.DATE) and facts.members is not None:
        return None  # Values beyond the list are read as NULL.
    if isinstance(found, ColumnCompares):
        value = found.value if isinstance(found.value, int) else (found.value - _EPOCH).days
        whole = all(bound is None or bound.denominator == 1 for bound in (facts.low, facts.high))
        if not (whole and _keeps_side(_OPPOSITE[found.sign], Fraction(value), facts)):
            return None
    return found


def _is_whole_text(value: str) -> bool:
    """Whether a text that is cut when it is read equals this one only if it did so before, and it can be written."""
    return len(value) < LONGEST_TEXT and "\0" not in value and value.isprintable()
