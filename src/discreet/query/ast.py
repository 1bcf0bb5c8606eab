"""The closed tree of a query: operators, expressions of one row, sources of rows, and the query itself."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from datetime import date, datetime
from enum import Enum
from fractions import Fraction
from typing import TypeAlias, final

from discreet.schema.columns import ExpressionFacts, Kind

__all__ = [
    "Apply",
    "Case",
    "Choose",
    "Combine",
    "End",
    "Expression",
    "Field",
    "Filter",
    "Join",
    "JoinKind",
    "Key",
    "KeyValue",
    "Limit",
    "Literal",
    "Measure",
    "Named",
    "Operator",
    "Order",
    "OutputColumn",
    "PerUnit",
    "Post",
    "Project",
    "Query",
    "ReleasedMeasure",
    "RowOrder",
    "Side",
    "Source",
    "Statistic",
    "Table",
    "TableColumn",
    "UnionAll",
    "UnitKey",
    "UnitStatistic",
    "UnitTotal",
    "UnitWindow",
    "Value",
    "WithinUnit",
    "column_names",
    "columns_read",
    "fields_of",
    "is_private",
    "table_column",
    "unit_of",
    "walk",
]

# --- operators ---
# The operators of the closed tree. Each is total and looks at one row: it has a value, perhaps NULL, for all inputs.
#
# What cannot be computed is NULL: division by zero, the root of a negative number, a text that is no date. NULL in
# gives
# NULL out, except where it is said otherwise. Whole numbers never overflow: their bounds are checked before the engine
# sees them. NaN and infinities do not occur: they are NULL where a column is read and where a result would be one.


@final
class Operator(Enum):
    """What a node of an expression does; the arguments in order."""

    # Numbers.
    ADD = "add"
    SUBTRACT = "subtract"
    MULTIPLY = "multiply"
    DIVIDE = "divide"  # always real
    FLOOR_DIVIDE = "floor divide"  # integers; towards minus infinity
    MODULO = "modulo"  # integers; x - y * floor(x / y)
    NEGATE = "negate"
    ABSOLUTE = "absolute"
    SIGN = "sign"
    FLOOR = "floor"  # an integer
    CEILING = "ceiling"  # an integer
    ROUND = "round"  # to a literal number of decimals; half away from zero
    SQUARE_ROOT = "square root"
    LOGARITHM = "logarithm"  # natural
    EXPONENTIAL = "exponential"
    POWER = "power"  # a literal whole exponent from 0 to 8
    LEAST = "least"  # of those that are not NULL
    GREATEST = "greatest"  # of those that are not NULL

    # Comparisons; two texts, two numbers, two times or two truth values.
    EQUAL = "equal"
    NOT_EQUAL = "not equal"
    LESS = "less"
    LESS_OR_EQUAL = "less or equal"
    GREATER = "greater"
    GREATER_OR_EQUAL = "greater or equal"
    IS_NULL = "is null"  # never NULL
    IN = "in"  # the first argument among the literals that follow

    # Truth values, with SQL's three-valued logic.
    AND = "and"
    OR = "or"
    NOT = "not"

    # Choices; CASE is a node of its own.
    COALESCE = "coalesce"  # the first that is not NULL

    # Texts.
    LOWER = "lower"
    UPPER = "upper"
    LENGTH = "length"  # in characters
    TRIM = "trim"
    SUBSTRING = "substring"  # literal start (from 1) and length
    RIGHT = "right"  # a literal number of characters at the end
    CONCAT = "concat"
    LIKE = "like"  # a literal pattern; no escape character
    LIKE_ANY_CASE = "like in any case"
    STARTS_WITH = "starts with"  # a literal text
    REPLACE = "replace"  # two literal texts

    # Times.
    YEAR = "year"
    QUARTER = "quarter"
    MONTH = "month"
    WEEK = "week"  # of the ISO year
    DAY = "day"
    WEEKDAY = "weekday"  # Sunday is 0
    DAY_OF_YEAR = "day of year"
    HOUR = "hour"
    MINUTE = "minute"
    SECOND = "second"
    TRUNCATE_TIME = "truncate time"  # literal unit: year, quarter, month, week, day, hour, minute; then the time
    ADD_DAYS = "add days"  # a literal number of days to a date or a timestamp
    ADD_MONTHS = "add months"  # a literal number of months
    DAYS_BETWEEN = "days between"  # whole days from the first to the second

    # Casts: NULL where there is no such value.
    TO_INTEGER = "to integer"  # half to even
    TO_REAL = "to real"
    TO_TEXT = "to text"
    TO_DATE = "to date"
    TO_TIMESTAMP = "to timestamp"
    TO_BOOLEAN = "to boolean"


# --- expressions: Expressions: what is computed from one row. A closed set of frozen nodes, each with its facts. ---


Value: TypeAlias = bool | int | Fraction | str | date | datetime | None


@final
@dataclass(frozen=True, slots=True)
class Field:
    """A column of a source, by a name that occurs once in the whole question."""

    name: str
    facts: ExpressionFacts


@final
@dataclass(frozen=True, slots=True)
class Literal:
    """A constant that the analyst typed. It reaches an engine as a bound parameter or a number we wrote ourselves."""

    value: Value
    facts: ExpressionFacts


@final
@dataclass(frozen=True, slots=True)
class Apply:
    """An operator on its arguments."""

    operator: Operator
    arguments: tuple[Expression, ...]
    facts: ExpressionFacts


@final
@dataclass(frozen=True, slots=True)
class Case:
    """The value of the first branch whose condition is true, or else `otherwise`."""

    branches: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression
    facts: ExpressionFacts


Expression: TypeAlias = Field | Literal | Apply | Case


def walk(expression: Expression) -> Iterator[Expression]:
    """Visit a node and all nodes below it."""
    yield expression
    match expression:
        case Apply():
            for argument in expression.arguments:
                yield from walk(argument)
        case Case():
            for condition, value in expression.branches:
                yield from walk(condition)
                yield from walk(value)
            yield from walk(expression.otherwise)
        case Field() | Literal():
            pass


# --- sources ---
# Sources: where rows come from. A closed set of frozen nodes; every one but a public table carries its unit along.
#
# The fields that a source offers have names that occur once in the whole question, so that no name is ever looked up in
# two places. `unit_of` tells which of them identifies the unit: whoever is protected owns every row with its value
# there.


@final
@dataclass(frozen=True, slots=True)
class UnitKey:
    """What a unit is made of: columns that tell it apart only together, and the window that a time falls into.

    Times are read as they are stored: neither bounds nor what takes the place of missing ones move a row to another
    window. A row without one of them belongs to nobody, and is left out.
    """

    columns: tuple[str, ...]
    window: str | None = None  # hour, day, week, month, quarter or year: half-open, in UTC unless there is a zone
    time: str | None = None  # the column with the time
    kind: Kind | None = None  # of the time: a date or a timestamp
    format: str | None = None  # declared: how texts write it; None for ISO 8601
    zone: tuple[tuple[int, int], ...] | None = None  # local time: since when it is ahead by how much (`clock_changes`)
    outer: int | None = None  # of a chain: so many of the columns, the first ones, make the outer unit


@final
@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of a table as it is read: cast to its kind, NaN to NULL, clamped to its facts."""

    column: str  # its name in the data
    field: Field
    missing: Fraction | None = None  # declared: what takes the place of NULL, NaN and what does not parse
    format: str | None = None  # declared: how texts write it; None for ISO 8601, and for numbers as in SQL
    unit_key: UnitKey | None = None  # where it is no column of the data, but the unit made of several
    of_unit: bool | None = None  # True: every row has the least of all rows of its unit in the table, before any filter


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
    # Of rows in an order, in `WithinUnit` only:
    FIRST = "first"  # the value of the first row, NULL or not
    LAST = "last"
    PLACE = "place"  # of the row itself, from 1


@final
@dataclass(frozen=True, slots=True)
class UnitTotal:
    """A statistic of one unit's rows, under a name."""

    field: Field
    statistic: UnitStatistic
    argument: Expression | None  # None for ROWS and PLACE only
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
class RowOrder:
    """What rows of a unit are ordered by. NULL is last, in either direction."""

    value: Expression
    descending: bool = False


@final
@dataclass(frozen=True, slots=True)
class UnitWindow:
    """A statistic of a unit's rows that each of them gets: SQL's OVER (PARTITION BY unit ORDER BY …).

    `ties` are all other columns: rows that agree in them, too, are the same row to every question. So whatever follows
    from the order follows from the rows of the unit, however an engine stores them.
    """

    total: UnitTotal
    order: tuple[RowOrder, ...] = ()
    ties: tuple[Field, ...] = ()  # for FIRST, LAST and PLACE
    running: bool = False  # of the rows up to this one and its equals in `order`, instead of all


@final
@dataclass(frozen=True, slots=True)
class WithinUnit:
    """All rows of a source, each with statistics of the rows of its own unit."""

    source: Source
    columns: tuple[UnitWindow, ...]


@final
@dataclass(frozen=True, slots=True)
class UnionAll:
    """The rows of all sources, by position. Private sources with one and the same kind of unit."""

    sources: tuple[Source, ...]
    columns: tuple[Field, ...]
    unit: str | None = None


Source: TypeAlias = Table | Filter | Project | Join | PerUnit | WithinUnit | UnionAll


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
        case WithinUnit():
            return fields_of(source.source) + tuple(window.total.field for window in source.columns)
        case UnionAll():
            return source.columns


def table_column(source: Source, expression: Expression) -> tuple[Table, TableColumn] | None:
    """Follow a column down to the table that it is read from; None of what is computed, and of a union."""
    if not isinstance(expression, Field):
        return None
    name = expression.name
    match source:
        case Table():
            return next(((source, column) for column in source.columns if column.field.name == name), None)
        case Filter() | WithinUnit():
            return table_column(source.source, expression)
        case Project() | PerUnit():
            entries = source.columns if isinstance(source, Project) else source.keys
            below = next((entry.expression for entry in entries if entry.field.name == name), None)
            return None if below is None else table_column(source.source, below)
        case Join():
            return table_column(source.left, expression) or table_column(source.right, expression)
        case UnionAll():
            return None


def unit_of(source: Source) -> str | None:
    """Return the name of the field that identifies the unit; None for rows as units and for public sources."""
    match source:
        case Table() | Project() | UnionAll():
            return source.unit
        case Filter() | WithinUnit():
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
        case Filter() | Project() | PerUnit() | WithinUnit():
            return is_private(source.source)
        case Join():
            return is_private(source.left) or is_private(source.right)
        case UnionAll():
            return any(is_private(part) for part in source.sources)


def columns_read(source: Source) -> Iterator[tuple[str, TableColumn]]:
    """Return all columns of tables that are read, with the names of their tables."""
    match source:
        case Table():
            yield from ((source.table, column) for column in source.columns)
        case Filter() | Project() | PerUnit() | WithinUnit():
            yield from columns_read(source.source)
        case Join():
            yield from columns_read(source.left)
            yield from columns_read(source.right)
        case UnionAll():
            for part in source.sources:
                yield from columns_read(part)


def column_names(source: Source) -> dict[str, str]:
    """Return what people call the fields that are columns of tables, unchanged; computed ones have no such name."""
    match source:
        case Table():
            return {column.field.name: column.column for column in source.columns}
        case Filter() | WithinUnit():
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


# --- question ---
# A question: what is asked of which rows, after reading and before planning. Equal trees ask the same.


@final
class Statistic(Enum):
    """What can be asked of a group."""

    ROWS = "rows"  # COUNT(*)
    UNITS = "units"  # COUNT(DISTINCT unit)
    COUNT = "count"  # COUNT(x): values that are not NULL
    DISTINCT = "distinct"  # COUNT(DISTINCT x)
    SUM = "sum"
    MEAN = "mean"
    VARIANCE = "variance"
    DEVIATION = "deviation"
    COVARIANCE = "covariance"  # of the rows in which both arguments have a value
    CORRELATION = "correlation"
    QUANTILE = "quantile"
    MODE = "mode"


@final
@dataclass(frozen=True, slots=True)
class Measure:
    """One statistic of one expression."""

    statistic: Statistic
    argument: Expression | None = None  # None for ROWS and UNITS only
    quantile: Fraction | None = None  # for QUANTILE only
    sample: bool = True  # for VARIANCE, DEVIATION and COVARIANCE: divide by n - 1
    called: str = ""  # as the analyst wrote it, such as MAX for an extreme quantile; for notes only
    weight: int | None = None  # how many parts of the price it has where others have one; None for one
    among: tuple[Fraction, ...] | None = None  # of a list of quantiles: all of them, in order, chosen together
    other: Expression | None = None  # the second argument, for COVARIANCE and CORRELATION only

    @property
    def arguments(self) -> tuple[Expression, ...]:
        return tuple(argument for argument in (self.argument, self.other) if argument is not None)


@final
@dataclass(frozen=True, slots=True)
class Key:
    """A group key. `domain` lists its public values in the order of the answer; None if data must tell them."""

    name: str
    expression: Expression
    domain: tuple[Hashable, ...] | None = None  # None as a member counts what is NULL


# What is done to released values only: post-processing, free, and the same whatever the data were.


@final
@dataclass(frozen=True, slots=True)
class ReleasedMeasure:
    """The released value of a measure."""

    measure: int


@final
class Side(Enum):
    LOW = "low"
    HIGH = "high"


@final
@dataclass(frozen=True, slots=True)
class End:
    """An end of the interval of a measure: DP_LOW and DP_HIGH."""

    measure: int
    side: Side


@final
@dataclass(frozen=True, slots=True)
class KeyValue:
    """The value of a key."""

    key: int


@final
@dataclass(frozen=True, slots=True)
class Combine:
    """An operator on released values."""

    operator: Operator
    arguments: tuple[Post, ...]


@final
@dataclass(frozen=True, slots=True)
class Choose:
    """The value of the first branch whose condition is true, or else `otherwise`."""

    branches: tuple[tuple[Post, Post], ...]
    otherwise: Post


Post: TypeAlias = ReleasedMeasure | End | KeyValue | Combine | Choose | Literal


@final
@dataclass(frozen=True, slots=True)
class OutputColumn:
    """A column of the answer."""

    name: str
    value: Post


@final
@dataclass(frozen=True, slots=True)
class Order:
    """A column to sort the answer by."""

    value: Post
    descending: bool = False


@final
@dataclass(frozen=True, slots=True)
class Limit:
    """How many rows of the answer are shown, and how many are skipped before them."""

    count: int | None
    offset: int = 0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """Statistics of the groups of a private source, and what is shown of them."""

    source: Source
    keys: tuple[Key, ...]
    measures: tuple[Measure, ...]  # distinct
    outputs: tuple[OutputColumn, ...]
    having: Post | None = None
    order: tuple[Order, ...] = ()
    limit: Limit | None = None
