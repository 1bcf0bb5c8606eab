"""Sources: where rows come from. A closed set of frozen nodes; every one but a public table carries its unit along.

The fields that a source offers have names that occur once in the whole question, so that no name is ever looked up in
two places. `unit_of` tells which of them identifies the unit: whoever is protected owns every row with its value there.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import TypeAlias, final

from discreet.query.expressions import Expression, Field

__all__ = [
    "Filter",
    "Join",
    "JoinKind",
    "Named",
    "PerUnit",
    "Project",
    "Source",
    "Table",
    "TableColumn",
    "UnionAll",
    "UnitStatistic",
    "UnitTotal",
    "column_names",
    "fields_of",
    "is_private",
    "unit_of",
]


@final
@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of a table as it is read: cast to its kind, NaN to NULL, clamped to its facts."""

    column: str  # its name in the data
    field: Field
    missing: Fraction | None = None  # declared: what takes the place of NULL, NaN and what does not parse
    format: str | None = None  # declared: how texts write a date or timestamp; None for ISO 8601


@final
@dataclass(frozen=True, slots=True)
class Table:
    """A table that the custodian named. `unit` is the name of the field that identifies whom we protect.

    A private table without a unit field protects its rows: each is a unit of its own.
    """

    table: str
    private: bool
    columns: tuple[TableColumn, ...]
    unit: str | None = None


@final
@dataclass(frozen=True, slots=True)
class Filter:
    """The rows for which the condition is true."""

    source: Source
    condition: Expression


@final
@dataclass(frozen=True, slots=True)
class Named:
    """A field and what it is computed from."""

    field: Field
    expression: Expression


@final
@dataclass(frozen=True, slots=True)
class Project:
    """Computed columns, one row for one row. `unit` names the field among them that is the unit, unchanged."""

    source: Source
    columns: tuple[Named, ...]
    unit: str | None = None


@final
class JoinKind(Enum):
    INNER = "inner"
    LEFT = "left"


@final
@dataclass(frozen=True, slots=True)
class Join:
    """Rows of the left with each matching row of the right: all pairs are equal, and NULL matches nothing.

    The left is private. The right is public; or private, and then one of the pairs equates the two units, so that every
    joined row belongs to one unit.
    """

    left: Source
    right: Source
    kind: JoinKind
    pairs: tuple[tuple[Expression, Expression], ...]  # of the left, of the right


@final
class UnitStatistic(Enum):
    """What can be computed of one unit's own rows, exactly. NULL values are left out, as in SQL."""

    ROWS = "rows"
    COUNT = "count"
    DISTINCT = "distinct"
    SUM = "sum"  # of the argument on the grid of its facts; saturates at ±2^62 steps
    MEAN = "mean"  # the exact sum over the count, then a double
    LEAST = "least"
    GREATEST = "greatest"


@final
@dataclass(frozen=True, slots=True)
class UnitTotal:
    """A statistic of one unit's rows, under a name."""

    field: Field
    statistic: UnitStatistic
    argument: Expression | None  # None for ROWS only
    step: Fraction | None = None  # the grid on which reals are added up


@final
@dataclass(frozen=True, slots=True)
class PerUnit:
    """One row for each unit, or for each unit and combination of keys: SQL's GROUP BY with the unit among its keys."""

    source: Source
    unit: Field  # the unit's column under its new name
    keys: tuple[Named, ...]  # other than the unit
    totals: tuple[UnitTotal, ...]


@final
@dataclass(frozen=True, slots=True)
class UnionAll:
    """The rows of all sources, by position. Private sources with one and the same kind of unit."""

    sources: tuple[Source, ...]
    columns: tuple[Field, ...]
    unit: str | None = None


Source: TypeAlias = Table | Filter | Project | Join | PerUnit | UnionAll


def fields_of(source: Source) -> tuple[Field, ...]:
    """Return what a source offers."""
    match source:
        case Table():
            return tuple(column.field for column in source.columns)
        case Filter():
            return fields_of(source.source)
        case Project():
            return tuple(named.field for named in source.columns)
        case Join():
            return fields_of(source.left) + fields_of(source.right)
        case PerUnit():
            totals = tuple(total.field for total in source.totals)
            return (source.unit, *(key.field for key in source.keys), *totals)
        case UnionAll():
            return source.columns


def unit_of(source: Source) -> str | None:
    """Return the name of the field that identifies the unit; None for rows as units and for public sources."""
    match source:
        case Table() | Project() | UnionAll():
            return source.unit
        case Filter():
            return unit_of(source.source)
        case Join():
            return unit_of(source.left)
        case PerUnit():
            return source.unit.name


def is_private(source: Source) -> bool:
    """Whether somebody's rows are in it."""
    match source:
        case Table():
            return source.private
        case Filter() | Project() | PerUnit():
            return is_private(source.source)
        case Join():
            return is_private(source.left) or is_private(source.right)
        case UnionAll():
            return any(is_private(part) for part in source.sources)


def column_names(source: Source) -> dict[str, str]:
    """Return what people call the fields that are columns of tables, unchanged; computed ones have no such name."""
    match source:
        case Table():
            return {column.field.name: column.column for column in source.columns}
        case Filter():
            return column_names(source.source)
        case Project() | PerUnit():
            inside = column_names(source.source)
            named = source.columns if isinstance(source, Project) else source.keys
            plain = {one.field.name: one.expression.name for one in named if isinstance(one.expression, Field)}
            return {field: inside[name] for field, name in plain.items() if name in inside}
        case Join():
            return column_names(source.left) | column_names(source.right)
        case UnionAll():
            parts = [(column_names(part), fields_of(part)) for part in source.sources]
            found = [{names.get(fields[place].name) for names, fields in parts} for place in range(len(source.columns))]
            return {
                field.name: str(min(names, key=str))
                for field, names in zip(source.columns, found, strict=True)
                if _one(names)
            }


def _one(names: set[str | None]) -> bool:
    return len(names) == 1 and None not in names
