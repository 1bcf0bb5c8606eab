"""Write a source of the closed tree as DuckDB's SQL: nested SELECTs, every column under a name of ours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, final

from discreet.errors import InvalidParameter
from discreet.query.engines.expressions import write, write_as
from discreet.query.engines.leaves import layers, unit_layers
from discreet.query.engines.operators import common_kind
from discreet.query.engines.totals import total
from discreet.query.engines.writing import Writer
from discreet.query.expressions import Expression
from discreet.query.sources import Filter, Join, JoinKind, PerUnit, Project, Source, Table, UnionAll, fields_of, unit_of

__all__ = ["SqlRelation", "SqlRelations", "write_source"]


@final
@dataclass(frozen=True, slots=True)
class SqlRelation:
    """A table as a statement sees it: SQL of our own, and the types of its columns by their names in the data."""

    sql: str
    types: Mapping[str, str]


class SqlRelations(Protocol):
    """Where tables are found."""

    def relation(self, table: str, writer: Writer) -> SqlRelation:
        """Return a table by the name that the custodian gave it."""


def write_source(source: Source, relations: SqlRelations, writer: Writer) -> str:
    """Write a SELECT whose columns are the fields of the source."""
    match source:
        case Table():
            return _table(source, relations, writer)
        case Filter():
            inner = write_source(source.source, relations, writer)
            return f"SELECT * FROM ({inner}) WHERE {write(source.condition, writer)}"
        case Project():
            inner = write_source(source.source, relations, writer)
            columns = [(write(named.expression, writer), named.field.name) for named in source.columns]
            return f"SELECT {_named(columns, writer)} FROM ({inner})"
        case Join():
            return _join(source, relations, writer)
        case PerUnit():
            return _per_unit(source, relations, writer)
        case UnionAll():
            return _union(source, relations, writer)


def _named(columns: list[tuple[str, str]], writer: Writer) -> str:
    return ", ".join(f"{value} AS {writer.column(name)}" for value, name in columns) or "NULL AS nothing"


def _table(table: Table, relations: SqlRelations, writer: Writer) -> str:
    relation = relations.relation(table.table, writer)
    names = [writer.column(column.field.name) for column in table.columns]
    if any(column.column not in relation.types for column in table.columns):
        raise InvalidParameter("a table lacks a column that its catalogue has")
    written = [
        (unit_layers if column.field.name == table.unit else layers)(
            column, relation.types[column.column], name, writer
        )
        for column, name in zip(table.columns, names, strict=True)
    ]
    sql = relation.sql
    for layer in zip(*written, strict=True):
        if any(value != name for value, name in zip(layer, names, strict=True)):
            columns = ", ".join(f"{value} AS {name}" for value, name in zip(layer, names, strict=True))
            sql = f"(SELECT {columns} FROM {sql})"
    return f"SELECT {', '.join(names) or 'NULL AS nothing'} FROM {sql}"


def _join(join: Join, relations: SqlRelations, writer: Writer) -> str:
    left = write_source(join.left, relations, writer)
    right = write_source(join.right, relations, writer)
    pairs = " AND ".join(_equal(pair, writer) for pair in join.pairs)
    word = "LEFT JOIN" if join.kind is JoinKind.LEFT else "JOIN"
    names = ", ".join(writer.column(field.name) for field in fields_of(join))
    return f"SELECT {names} FROM ({left}) {word} ({right}) ON {pairs}"


def _equal(pair: tuple[Expression, Expression], writer: Writer) -> str:
    kind = common_kind(pair)
    left, right = (write_as(side, kind, writer) for side in pair)
    return f"{left} = {right}"


def _per_unit(source: PerUnit, relations: SqlRelations, writer: Writer) -> str:
    inner = write_source(source.source, relations, writer)
    unit = writer.column(_unit_name(source))
    keys = [(write(key.expression, writer), key.field.name) for key in source.keys]
    totals = [(total(item, writer), item.field.name) for item in source.totals]
    columns = _named([(unit, source.unit.name), *keys, *totals], writer)
    groups = ", ".join([unit, *(key for key, _ in keys)])
    return f"SELECT {columns} FROM ({inner}) WHERE {unit} IS NOT NULL GROUP BY {groups}"


def _unit_name(source: PerUnit) -> str:
    """Return the field below that identifies the unit."""
    name = unit_of(source.source)
    assert name is not None
    return name


def _union(union: UnionAll, relations: SqlRelations, writer: Writer) -> str:
    parts = []
    for source in union.sources:
        inner = write_source(source, relations, writer)
        columns = [
            (write_as(mine, theirs.facts.kind, writer), theirs.name)
            for mine, theirs in zip(fields_of(source), union.columns, strict=True)
        ]
        parts.append(f"SELECT {_named(columns, writer)} FROM ({inner})")
    return " UNION ALL ".join(parts)
