"""Sources and stages of the closed tree as DuckDB's SQL: nested SELECTs under names of our own."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import Any, Protocol, final

from discreet.errors import InvalidParameter
from discreet.query.ast import (
    Expression,
    Field,
    Filter,
    Join,
    JoinKind,
    PerUnit,
    Project,
    Source,
    Table,
    TableColumn,
    UnionAll,
    UnitStatistic,
    UnitTotal,
    UnitWindow,
    WithinUnit,
    fields_of,
    unit_of,
)
from discreet.query.engine import Stage, StageColumn, StageKey
from discreet.query.engines.clamped_columns import layers, unit_key_layers, unit_layers
from discreet.query.engines.sql_expressions import (
    CodedDomain,
    Lookup,
    coded,
    place,
    stored,
    write,
    write_as,
)
from discreet.query.engines.sql_writer import SQL_TYPES, Writer, real
from discreet.query.functions.logic import wider_kind
from discreet.query.functions.texts import cut_text
from discreet.schema.columns import Kind

__all__ = [
    "Index",
    "Scan",
    "SqlRelation",
    "SqlRelations",
    "domain_of",
    "index_of",
    "projected",
    "select",
    "stored_names",
    "total",
    "write_source",
    "write_stage",
    "write_unit",
]

# --- sources: Write a source of the closed tree as DuckDB's SQL: nested SELECTs, every column under a name of ours. ---


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
        case WithinUnit():
            return _within_unit(source, relations, writer)
        case UnionAll():
            return _union(source, relations, writer)


def _named(columns: list[tuple[str, str]], writer: Writer) -> str:
    return ", ".join(f"{value} AS {writer.column(name)}" for value, name in columns) or "NULL AS nothing"


def _table(table: Table, relations: SqlRelations, writer: Writer) -> str:
    relation = relations.relation(table.table, writer)
    names = [writer.column(column.field.name) for column in table.columns]
    if any(name not in relation.types for column in table.columns for name in stored_names(column)):
        raise InvalidParameter("a table lacks a column that its catalogue has")
    written = [
        _column(column, column.field.name == table.unit, relation.types, name, writer)
        for column, name in zip(table.columns, names, strict=True)
    ]
    sql = relation.sql
    for layer in zip(*written, strict=True):
        if any(value != name for value, name in zip(layer, names, strict=True)):
            columns = ", ".join(f"{value} AS {name}" for value, name in zip(layer, names, strict=True))
            sql = f"(SELECT {columns} FROM {sql})"
    return _of_units(table, f"SELECT {', '.join(names) or 'NULL AS nothing'} FROM {sql}", writer)


def write_unit(table: Table, relation: SqlRelation, row: str, writer: Writer) -> str:
    """Write a SELECT of the number of every row, a column of the data, and of its unit as every question reads it."""
    column = next(column for column in table.columns if column.field.name == table.unit)
    sql = relation.sql
    for layer in _column(column, True, relation.types, "u", writer):
        sql = f"(SELECT {row}, {layer} AS u FROM {sql})"
    return f"SELECT {row}, u FROM {sql}"


def _of_units(table: Table, rows: str, writer: Writer) -> str:
    """Give every row the least value of its unit, of columns that are declared so. Here, before anything else.

    All rows of the unit count, whichever a question keeps: so the value is one in every question, and follows from this
    unit's rows alone. NULL is left out, so it is the value only where there is no other.
    """
    if not any(column.of_unit for column in table.columns):
        return rows
    assert table.unit is not None
    unit, listed = writer.column(table.unit), []
    for column in table.columns:
        name = writer.column(column.field.name)
        counting = _counting(name, column.field, writer) if column.of_unit else ""
        listed.append(f"min({counting}) OVER (PARTITION BY {unit}) AS {name}" if column.of_unit else name)
    return f"SELECT {', '.join(listed)} FROM ({rows}) WHERE {unit} IS NOT NULL"


def _counting(name: str, field: Field, writer: Writer) -> str:
    """Write a value that counts: categories that are not listed are as if not there."""
    facts = field.facts
    if facts.members is None or facts.kind is Kind.BOOLEAN:
        return f"({name} + 0.0e0)" if facts.kind is Kind.REAL else name  # -0 and 0 are one, whichever comes first
    if facts.kind is not Kind.TEXT:
        return f"(CASE WHEN {name} IN ({', '.join(str(int(str(one))) for one in facts.members)}) THEN {name} END)"
    known = [writer.bind(str(one)) for one in stored(facts.members, facts.kind)[0]]
    return f"(CASE WHEN nfc_normalize({cut_text(name, field)}) IN ({', '.join(known)}) THEN {name} END)"


def stored_names(column: TableColumn) -> tuple[str, ...]:
    """Name the columns of the data that a column is read from."""
    key = column.unit_key
    if key is None:
        return (column.column,)
    return key.columns if key.time is None else (*key.columns, key.time)


def _column(
    column: TableColumn, is_unit: bool, types: Mapping[str, str], name: str, writer: Writer
) -> tuple[str, str, str]:
    if column.unit_key is not None:
        return unit_key_layers(column.unit_key, types, name, writer)
    return (unit_layers if is_unit else layers)(column, types[column.column], name, writer)


def _join(join: Join, relations: SqlRelations, writer: Writer) -> str:
    left = write_source(join.left, relations, writer)
    right = write_source(join.right, relations, writer)
    pairs = " AND ".join(_equal(pair, writer) for pair in join.pairs)
    word = "LEFT JOIN" if join.kind is JoinKind.LEFT else "JOIN"
    names = ", ".join(writer.column(field.name) for field in fields_of(join))
    return f"SELECT {names} FROM ({left}) {word} ({right}) ON {pairs}"


def _equal(pair: tuple[Expression, Expression], writer: Writer) -> str:
    kind = wider_kind(pair)
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


def _within_unit(source: WithinUnit, relations: SqlRelations, writer: Writer) -> str:
    inner = write_source(source.source, relations, writer)
    unit = writer.column(_unit_name(source))
    names = [writer.column(field.name) for field in fields_of(source.source)]
    names += [f"{_window(one, unit, writer)} AS {writer.column(one.total.field.name)}" for one in source.columns]
    return f"SELECT {', '.join(names)} FROM ({inner}) WHERE {unit} IS NOT NULL"


def _window(window: UnitWindow, unit: str, writer: Writer) -> str:
    order = [_ordered(one.value, one.descending, writer) for one in window.order]
    order += [_ordered(field, False, writer) for field in window.ties]
    last = "CURRENT ROW" if window.running else "UNBOUNDED FOLLOWING"
    # Rows that are equal in the order are in or out together, so that a running total follows from rows alone.
    frame = f" RANGE BETWEEN UNBOUNDED PRECEDING AND {last}" if order else ""
    ordered = f" ORDER BY {', '.join(order)}{frame}" if order else ""
    return total(window.total, writer, over=f" OVER (PARTITION BY {unit}{ordered})")


def _ordered(value: Expression, descending: bool, writer: Writer) -> str:
    written = write(value, writer)
    direction = f"{' DESC' if descending else ''} NULLS LAST"
    # -0 and 0 are equal, and yet two: which comes first must not be left to the engine.
    return f"{written}{direction}{f', signbit({written})' if value.facts.kind is Kind.REAL else ''}"


def _unit_name(source: PerUnit | WithinUnit) -> str:
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


# --- totals ---
# Statistics of one unit's own rows in SQL: exact whole numbers on the grid, saturated, then the kind of the field.


_MOST = 1 << 62  # Steps; a sum beyond them stays there.


def total(item: UnitTotal, writer: Writer, *, over: str = "") -> str:
    """Write a statistic of the rows of one unit: of a group, or `over` its rows."""
    if item.statistic is UnitStatistic.ROWS:
        return f"count(*){over}"
    if item.statistic is UnitStatistic.PLACE:
        return f"row_number(){over}"
    argument = item.argument
    assert argument is not None
    match item.statistic:
        case UnitStatistic.COUNT:
            return f"count({write(argument, writer)}){over}"
        case UnitStatistic.DISTINCT:
            return f"count(DISTINCT {write(argument, writer)})"
        case UnitStatistic.LEAST:
            return _plain_zero(f"min({write_as(argument, item.field.facts.kind, writer)}){over}", item)
        case UnitStatistic.GREATEST:
            return _plain_zero(f"max({write_as(argument, item.field.facts.kind, writer)}){over}", item)
        case UnitStatistic.FIRST | UnitStatistic.LAST:
            return f"{item.statistic.value}_value({write_as(argument, item.field.facts.kind, writer)}){over}"
        case _:
            return _sum_or_mean(item, writer, over)


def _plain_zero(value: str, item: UnitTotal) -> str:
    """Write -0 as 0: the two are equal, and which of them comes out must not be left to the engine."""
    return f"({value} + 0.0e0)" if item.field.facts.kind is Kind.REAL else value


def _sum_or_mean(item: UnitTotal, writer: Writer, over: str) -> str:
    index, step = _index(item, writer)
    if item.statistic is UnitStatistic.SUM:
        added = f"sum({index}){over}"
        ends = f"WHEN {added} > {_MOST} THEN {_MOST} WHEN {added} < {-_MOST} THEN {-_MOST}"
        steps = f"CAST(CASE {ends} ELSE {added} END AS BIGINT)"
    else:
        steps = f"(CAST(sum({index}){over} AS DOUBLE) / count({index}){over})"
    kind = item.field.facts.kind
    if kind is Kind.INTEGER:
        return steps if step == 1 else f"TRY_CAST({steps} * CAST({step.numerator} AS HUGEINT) AS BIGINT)"
    double = steps if item.statistic is UnitStatistic.MEAN else f"CAST({steps} AS {SQL_TYPES[Kind.REAL]})"
    return f"({double} / {real(step.denominator)})" if step.numerator == 1 else f"({double} * {real(step)})"


def _index(item: UnitTotal, writer: Writer) -> tuple[str, Fraction]:
    argument = item.argument
    assert argument is not None
    facts = argument.facts
    step = item.step if item.step is not None else (Fraction(1) if facts.kind is not Kind.REAL else facts.step)
    if step is None:
        raise InvalidParameter("a sum of reals for each unit needs a step")
    return place(write(argument, writer), facts, step, -_MOST, _MOST, writer), step


# --- stages: Write a stage as parts of a SELECT: the unit, the group and the index of every column on its grid. ---


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """A column as whole numbers from `low` to `high`; open if its values must be listed before they have numbers."""

    sql: str
    low: int = 0
    high: int = 0
    is_open: bool = False


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """What is selected, from where, and what a connection must know for it."""

    origin: str  # what stands behind FROM
    where: str
    unit: str | None
    group: str | None  # the code of a group, NULL if it is in none; None where `keys` tell it, or if there is one only
    groups: int  # 0 where data must tell them
    keys: tuple[str, ...]  # the keys themselves, where there is no code of their combinations
    columns: tuple[Index, ...]
    lookups: tuple[Lookup, ...]
    parameters: dict[str, str]


def select(connection: Any, columns: Sequence[str], scan: Scan, *, join: str = "", tail: str = "") -> Any:
    """Start a SELECT of some columns of a scan, called o1, o2, …"""
    named = ", ".join(f"{column} AS o{number}" for number, column in enumerate(columns, 1))
    text = f"SELECT {named} FROM {scan.origin}{join}{scan.where}{tail}"
    return connection.sql(text, params=scan.parameters) if scan.parameters else connection.sql(text)


def write_stage(stage: Stage, relations: SqlRelations, writer: Writer) -> Scan:
    """Write a stage. Rows without a unit are left out; those outside of the public domain of a key have no group."""
    unit = None if stage.unit is None else writer.column(stage.unit)
    inner = projected(stage.keys, stage.columns, unit, write_source(stage.source, relations, writer), writer)
    domains = [domain_of(key, f"k{number}", writer) for number, key in enumerate(stage.keys, 1)]
    indices = [index_of(column, f"c{number}", writer) for number, column in enumerate(stage.columns, 1)]
    sizes = [len(key.domain) for key in stage.keys if key.domain is not None]
    is_known = len(sizes) == len(stage.keys)
    known = [domain for domain in domains if domain is not None]
    # Where rows are only added up, looking texts up is left for the few groups that come out.
    has_code = is_known and not (unit is None and any(domain.lookup for domain in known) and _are_apart(stage.keys))
    used = [domain for _, domain in indices if domain is not None] + (known if has_code or not is_known else [])
    needed = ([] if unit is None else ["u IS NOT NULL"]) + [f"{one.code} IS NOT NULL" for one in known if not is_known]
    return Scan(
        origin=f"({inner}){''.join(domain.join for domain in used)}",
        where=f" WHERE {' AND '.join(needed)}" if needed else "",
        unit=None if unit is None else "u",
        group=_radix([domain.code for domain in known], sizes) if has_code and sizes else None,
        groups=prod(sizes) if is_known else 0,
        keys=() if has_code else tuple(f"k{number}" for number in range(1, len(stage.keys) + 1)),
        columns=tuple(index for index, _ in indices),
        lookups=tuple(domain.lookup for domain in used if domain.lookup is not None),
        parameters=writer.parameters,
    )


def projected(
    keys: Sequence[StageKey],
    columns: Sequence[StageColumn],
    unit: str | None,
    rows: str,
    writer: Writer,
    conditions: Sequence[Expression] = (),
    canonical: Container[StageKey] = (),
) -> str:
    """Write what is needed of every row, under names of its own: keys k1, k2, …, columns c1, c2, … and the unit u.

    Conditions w1, w2, … are 0 where they are true, else NULL. Keys that count only where they are canonical are written
    as they are.
    """
    written = [(write if key in canonical else _canonical)(key.expression, writer) for key in keys]
    listed = [f"{value} AS k{number}" for number, value in enumerate(written, 1)]
    listed += [f"{_canonical(one.expression, writer)} AS c{number}" for number, one in enumerate(columns, 1)]
    listed += [f"(CASE WHEN {write(one, writer)} THEN 0 END) AS w{number}" for number, one in enumerate(conditions, 1)]
    listed += [] if unit is None else [f"{unit} AS u"]
    return f"SELECT {', '.join(listed) or 'NULL AS nothing'} FROM ({rows})"


def _canonical(expression: Expression, writer: Writer) -> str:
    """Write a value; texts that look alike are made alike."""
    value = write(expression, writer)
    return f"nfc_normalize({cut_text(value, expression)})" if expression.facts.kind is Kind.TEXT else value


def _are_apart(keys: Sequence[StageKey]) -> bool:
    """Whether no two members of a domain are one to the engine, such as two ways to write an accent."""
    domains = [stored(key.domain, key.expression.facts.kind)[0] for key in keys if key.domain is not None]
    return all(len(set(members)) == len(members) for members in domains)


def domain_of(key: StageKey, name: str, writer: Writer) -> CodedDomain | None:
    """Write the code of a key; None if nobody listed its values."""
    return None if key.domain is None else coded(name, key.expression.facts, key.domain, writer)


def _radix(codes: list[str], sizes: list[int]) -> str:
    """Put codes together, the last fastest."""
    if len(codes) == 1:
        return codes[0]
    weights = [prod(sizes[number + 1 :]) for number in range(len(sizes))]
    return " + ".join(f"CAST({code} AS INTEGER) * {weight}" for code, weight in zip(codes, weights, strict=True))


def index_of(column: StageColumn, name: str, writer: Writer) -> tuple[Index, CodedDomain | None]:
    """Write the index of a column, and the list of values that it is looked up in, if there is one."""
    facts = column.expression.facts
    if column.members is not None:
        domain = coded(name, facts, column.members, writer)
        return Index(sql=domain.code, high=len(column.members) - 1), domain
    if column.grid is None and not column.wants.distinct:  # It is only counted: whether it is there is all there is.
        return Index(sql=f"(CASE WHEN {name} IS NULL THEN NULL ELSE 0 END)"), None
    if column.grid is None:
        return Index(sql=name, is_open=True), None
    grid = column.grid
    sql = place(name, facts, grid.step, grid.first, grid.last, writer)
    return Index(sql=sql, low=grid.first, high=grid.last), None
