"""Build a query in Python: expressions, measures and steps, which write the SQL that would be written by hand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, NoReturn, TypeAlias, final

from discreet.errors import InvalidParameter
from discreet.exact import Number, exact, integer
from discreet.formatting import record
from discreet.query.session.requests import Expectation, Keys

if TYPE_CHECKING:
    from discreet.query.session.plans import Plan
    from discreet.query.session.session import Session

__all__ = [
    "Expr",
    "Operand",
    "QueryBuilder",
    "col",
    "correlation",
    "count",
    "count_distinct",
    "covariance",
    "deviation",
    "maximum",
    "mean",
    "median",
    "minimum",
    "mode",
    "name",
    "quantile",
    "sum",
    "variance",
    "word",
]

# --- words ---
# Expressions for people who would rather write Python: each writes the SQL that would be written by hand.
#
# Nothing is computed here. What is written goes the way of all SQL, so there is one set of rules and no second door.


@final
@dataclass(frozen=True, slots=True, eq=False)
class Expr:
    """A piece of SQL that stands for one value of a row, or for a statistic of a group.

    Args:
        sql: The expression, as SQL. `col` and the statistics make one.

    Examples:
        >>> dp.query.col("age").between(18, 65).sql
        '("age" BETWEEN 18 AND 65)'
    """

    sql: str

    __repr__ = record

    def __add__(self, other: Operand) -> Expr:
        return _between(self, "+", other)

    def __radd__(self, other: Operand) -> Expr:
        return _between(other, "+", self)

    def __sub__(self, other: Operand) -> Expr:
        return _between(self, "-", other)

    def __rsub__(self, other: Operand) -> Expr:
        return _between(other, "-", self)

    def __mul__(self, other: Operand) -> Expr:
        return _between(self, "*", other)

    def __rmul__(self, other: Operand) -> Expr:
        return _between(other, "*", self)

    def __truediv__(self, other: Operand) -> Expr:
        return _between(self, "/", other)

    def __rtruediv__(self, other: Operand) -> Expr:
        return _between(other, "/", self)

    def __mod__(self, other: Operand) -> Expr:
        return _between(self, "%", other)

    def __neg__(self) -> Expr:
        return Expr(f"(- {self.sql})")

    def __eq__(self, other: object) -> Expr:  # type: ignore[override]
        return _between(self, "=", other)  # type: ignore[arg-type]

    def __ne__(self, other: object) -> Expr:  # type: ignore[override]
        return _between(self, "<>", other)  # type: ignore[arg-type]

    def __lt__(self, other: Operand) -> Expr:
        return _between(self, "<", other)

    def __le__(self, other: Operand) -> Expr:
        return _between(self, "<=", other)

    def __gt__(self, other: Operand) -> Expr:
        return _between(self, ">", other)

    def __ge__(self, other: Operand) -> Expr:
        return _between(self, ">=", other)

    def __and__(self, other: Operand) -> Expr:
        return _between(self, "AND", other)

    def __or__(self, other: Operand) -> Expr:
        return _between(self, "OR", other)

    def __invert__(self) -> Expr:
        return Expr(f"(NOT {self.sql})")

    __hash__ = None  # type: ignore[assignment]  # Comparing makes a condition, so a set could not tell two apart.

    def __bool__(self) -> bool:
        raise InvalidParameter("a condition has no truth value yet: join conditions by & and |, not by and, or")

    def isin(self, values: Iterable[Operand]) -> Expr:
        """Whether the value is one of these."""
        listed = [word(value).sql for value in values]
        if not listed:
            raise InvalidParameter("isin needs at least one value")
        return Expr(f"({self.sql} IN ({', '.join(listed)}))")

    def between(self, low: Operand, high: Operand) -> Expr:
        """Whether the value lies from `low` to `high`, ends included."""
        return Expr(f"({self.sql} BETWEEN {word(low).sql} AND {word(high).sql})")

    def like(self, pattern: str) -> Expr:
        """Whether the text matches a constant pattern of SQL."""
        return Expr(f"({self.sql} LIKE {word(pattern).sql})")

    def is_null(self) -> Expr:
        """Whether there is no value."""
        return Expr(f"({self.sql} IS NULL)")

    def or_else(self, default: Operand) -> Expr:
        """The value, or a default where there is none."""
        return Expr(f"COALESCE({self.sql}, {word(default).sql})")


Operand: TypeAlias = Expr | bool | int | float | Fraction | Decimal | str | date | datetime


def col(column: str, *, table: str | None = None) -> Expr:
    """A column of the table that is asked, or of one that was joined.

    Args:
        column: The name of the column.
        table: The table, where two have such a column.

    Returns:
        An expression; comparing and calculating with it makes others.

    Examples:
        >>> (dp.query.col("age") >= 65).sql
        '("age" >= 65)'
    """
    return Expr(name(column) if table is None else f"{name(table)}.{name(column)}")


def name(text: str) -> str:
    """Write a name in quotes, so that it is nothing but a name."""
    if not isinstance(text, str) or not text or "\0" in text:
        raise InvalidParameter("a name must be a text that is not empty")
    return '"' + text.replace('"', '""') + '"'


def word(value: Operand) -> Expr:
    """Write a constant exactly."""
    match value:
        case Expr():
            return value
        case bool():
            return Expr("TRUE" if value else "FALSE")
        case str():
            return Expr("'" + value.replace("'", "''") + "'")
        case datetime():
            return Expr(f"TIMESTAMP '{value.isoformat(sep=' ')}'")
        case date():
            return Expr(f"DATE '{value.isoformat()}'")
        case int() | float() | Decimal() | Fraction():
            return Expr(_decimal(value))
    raise InvalidParameter(f"{type(value).__name__} cannot be used in a query")


def _decimal(value: int | float | Decimal | Fraction) -> str:
    """Write a number with all of its digits; SQL has no other way to say it exactly."""
    from discreet.exact import exact

    number = exact(value, name="a constant")
    denominator = number.denominator
    places = 0
    while denominator % 10 == 0 or denominator % 2 == 0 or denominator % 5 == 0:
        denominator = denominator // 10 if denominator % 10 == 0 else denominator // (2 if denominator % 2 == 0 else 5)
        places += 1
    if denominator != 1:
        raise InvalidParameter("a constant must be a decimal number")
    digits = str(abs(number.numerator) * 10**places // number.denominator).rjust(places + 1, "0")
    written = digits if places == 0 else f"{digits[:-places]}.{digits[-places:]}"
    return f"(- {written})" if number < 0 else written


def _between(left: Operand, operator: str, right: Operand) -> Expr:
    return Expr(f"({word(left).sql} {operator} {word(right).sql})")


# --- builder ---
# Ask in Python: a question is put together step by step, and becomes the same plan as the SQL it writes.


# What users of data frames say, and what it is called here.
_OTHERWISE = {
    "groupby": '.group_by("city")',
    "sort_values": '.order_by("n", descending=True)',
    "sort_by": '.order_by("n", descending=True)',
    "sort": '.order_by("n", descending=True)',
    "head": ".limit(10)",
    "aggregate": ".agg(n=count())",
    "filter": '.where(col("age") > 30)',
    "query": '.where(col("age") > 30)',
    "merge": '.join("cities", on="city")',
    "release": ".plan(epsilon=…).release()",
    "explain": ".plan(epsilon=…).explain()",
    "count": ".agg(n=count())",
    "size": ".agg(n=count())",
    "sum": '.agg(total=sum("price"))',
    "mean": '.agg(price=mean("price"))',
    "nunique": '.agg(n=count_distinct("city"))',
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class QueryBuilder:
    """A question under construction. Every step returns a new one; `plan` hands it to the session.

    Args:
        session: The session that answers.
        table: The table that is asked.
        joined: The joins, as SQL.
        conditions: Conditions that rows must meet.
        groups: The keys of groups, with their names.
        measures: The statistics, with their names.
        shown_if: Conditions that released values must meet.
        order: How rows are sorted.
        most: How many rows are shown at most.

    Examples:
        >>> import pyarrow as pa
        >>> session = dp.Session(
        ...     pa.table({"city": ["A", "B"] * 500, "age": [30, 50] * 500}),
        ...     unit="row",
        ...     budget=dp.Budget(epsilon=4, delta=1e-6),
        ...     columns={"city": dp.categories(["A", "B"]), "age": dp.between(0, 120, whole=True)},
        ...     ledger="memory",
        ...     dataset="people",
        ...     principal="ana",
        ... )
        >>> query = session.table("people").group_by("city").agg(n=dp.query.count())
        >>> query.plan(epsilon=0.5).cost
        'ε = 0.5'
    """

    session: Session
    table: str
    joined: tuple[str, ...] = ()
    conditions: tuple[Expr, ...] = ()
    groups: tuple[tuple[str, Expr], ...] = ()
    measures: tuple[tuple[str, Expr], ...] = ()
    shown_if: tuple[Expr, ...] = ()
    order: tuple[str, ...] = ()
    most: int | None = None

    def __repr__(self) -> str:
        return self.sql if self.measures else f"a question to table {self.table!r}; say .agg(n=count()), then .plan(…)"

    def __getattr__(self, asked: str) -> NoReturn:
        """Name the step that does what a data frame calls otherwise."""
        hint = _OTHERWISE.get(asked)
        told = "" if hint is None else f": say {hint}"
        raise AttributeError(f"a question has no {asked!r}{told}", name=asked, obj=self)

    def where(self, *conditions: Expr) -> QueryBuilder:
        """Keep the rows for which all conditions hold."""
        return replace(self, conditions=self.conditions + _words(conditions))

    def join(self, table: str, *, on: str | Mapping[str, str], how: str = "inner") -> QueryBuilder:
        """Join another table: on a column of both, or on pairs of columns, ours and theirs."""
        if how not in ("inner", "left"):
            raise InvalidParameter("how must be 'inner' or 'left'")
        pairs = {on: on} if isinstance(on, str) else dict(on)
        if not pairs:
            raise InvalidParameter("on must name at least one column")
        matches = " AND ".join(f"{name(self.table)}.{name(a)} = {name(table)}.{name(b)}" for a, b in pairs.items())
        kind = "LEFT JOIN" if how == "left" else "JOIN"
        return replace(self, joined=(*self.joined, f"{kind} {name(table)} ON {matches}"))

    def group_by(self, *columns: str, **computed: Expr) -> QueryBuilder:
        """Ask for each group: by columns, and by computed values under the names they are given."""
        plain = tuple((column, col(column)) for column in columns)
        return replace(self, groups=self.groups + plain + _named(computed))

    def agg(self, **measures: Expr) -> QueryBuilder:
        """Ask for these statistics of each group, or of all rows."""
        return replace(self, measures=self.measures + _named(measures))

    def having(self, *conditions: Expr) -> QueryBuilder:
        """Show the groups whose released values meet all conditions."""
        return replace(self, shown_if=self.shown_if + _words(conditions))

    def order_by(self, column: str, *, descending: bool = False) -> QueryBuilder:
        """Sort by a released column."""
        return replace(self, order=(*self.order, name(column) + (" DESC" if descending else "")))

    def limit(self, rows: int) -> QueryBuilder:
        """Show this many rows at most."""
        return replace(self, most=integer(rows, name="rows"))

    @property
    def sql(self) -> str:
        """The question as SQL."""
        if not self.measures:
            raise InvalidParameter("name at least one aggregate: .agg(n=count())")
        shown = ", ".join(f"{word.sql} AS {name(label)}" for label, word in self.groups + self.measures)
        parts = [
            f"SELECT {shown}",
            " ".join([f"FROM {name(self.table)}", *self.joined]),
            _all("WHERE", self.conditions),
            "GROUP BY " + ", ".join(word.sql for _, word in self.groups) if self.groups else "",
            _all("HAVING", self.shown_if),
            "ORDER BY " + ", ".join(self.order) if self.order else "",
            "" if self.most is None else f"LIMIT {self.most}",
        ]
        return "\n".join(part for part in parts if part)

    def plan(
        self,
        *,
        epsilon: Number | None = None,
        rho: Number | None = None,
        share: Number | None = None,
        error: Number | None = None,
        relative_error: Number | None = None,
        expected: Expectation | None = None,
        delta: Number | None = None,
        keys: Keys | None = None,
        max_groups: int | None = None,
        max_rows_per_group: int | None = None,
        kept_share: Number | None = None,
        quantile_intervals: bool = False,
        population: bool = False,
        idempotency_key: str | None = None,
    ) -> Plan:
        """Make the plan, as `Session.sql` would: say what to spend in the same words."""
        return self.session.sql(
            self.sql,
            epsilon=epsilon,
            rho=rho,
            share=share,
            error=error,
            relative_error=relative_error,
            expected=expected,
            delta=delta,
            keys=keys,
            max_groups=max_groups,
            max_rows_per_group=max_rows_per_group,
            kept_share=kept_share,
            quantile_intervals=quantile_intervals,
            population=population,
            idempotency_key=idempotency_key,
        )


def _words(conditions: tuple[Expr, ...]) -> tuple[Expr, ...]:
    if not all(isinstance(condition, Expr) for condition in conditions):
        raise InvalidParameter("conditions are written with col: col('price') > 5")
    return conditions


def _named(words: Mapping[str, Expr]) -> tuple[tuple[str, Expr], ...]:
    if not all(isinstance(word, Expr) for word in words.values()):
        raise InvalidParameter("each must be an expression: n=count(), total=sum('price'), decade=col('age') / 10")
    return tuple(words.items())


def _all(clause: str, conditions: tuple[Expr, ...]) -> str:
    return f"{clause} {' AND '.join(condition.sql for condition in conditions)}" if conditions else ""


# --- measures: Statistics of a group, for the builder: `agg(n=count(), total=sum("price"))`. ---


def _of(function: str, column: str | Expr) -> Expr:
    return Expr(f"{function}({_column(column)})")


def _column(column: str | Expr) -> str:
    return col(column).sql if isinstance(column, str) else column.sql


def count(column: str | Expr | None = None) -> Expr:
    """How many rows, or how many values that are not NULL.

    Args:
        column: The name of a column, or an expression; rows are counted if not said.

    Returns:
        The statistic, for `agg`.

    Examples:
        >>> dp.query.count().sql
        'COUNT(*)'
    """
    return Expr("COUNT(*)") if column is None else _of("COUNT", column)


def count_distinct(column: str | Expr) -> Expr:
    """How many distinct values; of the unit's column: how many units.

    Args:
        column: The name of a column, or an expression.

    Returns:
        The statistic, for `agg`.

    Examples:
        >>> dp.query.count_distinct("patient").sql
        'COUNT(DISTINCT "patient")'
    """
    return Expr(f"COUNT(DISTINCT {_column(column)})")


def sum(column: str | Expr) -> Expr:
    """The sum of a bounded column.

    Args:
        column: The name of a column, or an expression.

    Returns:
        The statistic, for `agg`.

    Examples:
        >>> dp.query.sum("price").sql
        'SUM("price")'
    """
    return _of("SUM", column)


def mean(column: str | Expr) -> Expr:
    """The mean over rows of a bounded column.

    Args:
        column: The name of a column, or an expression.

    Returns:
        The statistic, for `agg`.

    Examples:
        >>> dp.query.mean("age").sql
        'AVG("age")'
    """
    return _of("AVG", column)


def variance(column: str | Expr) -> Expr:
    """The sample variance of a bounded column.

    Args:
        column: The name of a column, or an expression.

    Returns:
        The statistic, for `agg`.

    Examples:
        >>> dp.query.variance("age").sql
        'VAR_SAMP("age")'
    """
    return _of("VAR_SAMP", column)


def deviation(column: str | Expr) -> Expr:
    """The sample standard deviation of a bounded column.

    Args:
        column: The name of a column, or an expression.

    Returns:
        The statistic, for `agg`.

    Examples:
        >>> dp.query.deviation("age").sql
        'STDDEV_SAMP("age")'
    """
    return _of("STDDEV_SAMP", column)


def covariance(column: str | Expr, other: str | Expr) -> Expr:
    """The sample covariance of two bounded columns, of the rows in which both have a value.

    Args:
        column: The name of a column, or an expression.
        other: Another one.

    Returns:
        The statistic, for `agg`.

    Examples:
        >>> dp.query.covariance("age", "income").sql
        'COVAR_SAMP("age", "income")'
    """
    return Expr(f"COVAR_SAMP({_column(column)}, {_column(other)})")


def correlation(column: str | Expr, other: str | Expr) -> Expr:
    """The correlation of two bounded columns, of the rows in which both have a value.

    Args:
        column: The name of a column, or an expression.
        other: Another one.

    Returns:
        The statistic, for `agg`.

    Examples:
        >>> dp.query.correlation("age", "income").sql
        'CORR("age", "income")'
    """
    return Expr(f"CORR({_column(column)}, {_column(other)})")


def minimum(column: str | Expr) -> Expr:
    """A quantile close to the least value.

    Args:
        column: The name of a column, or an expression.

    Returns:
        The statistic, for `agg`.

    Examples:
        >>> dp.query.minimum("age").sql
        'MIN("age")'
    """
    return _of("MIN", column)


def maximum(column: str | Expr) -> Expr:
    """A quantile close to the greatest value.

    Args:
        column: The name of a column, or an expression.

    Returns:
        The statistic, for `agg`.

    Examples:
        >>> dp.query.maximum("age").sql
        'MAX("age")'
    """
    return _of("MAX", column)


def median(column: str | Expr) -> Expr:
    """The median of a bounded column.

    Args:
        column: The name of a column, or an expression.

    Returns:
        The statistic, for `agg`.

    Examples:
        >>> dp.query.median("age").sql
        'MEDIAN("age")'
    """
    return _of("MEDIAN", column)


def quantile(column: str | Expr, at: Number | Sequence[Number]) -> Expr:
    """The value below which a share `at` of the rows lies; of a list of shares all of them, chosen together.

    Args:
        column: The name of a column, or an expression.
        at: The share of rows below, from 0 to 1, or a list of such; `agg(age=…)` then has columns age_q25, age_q50, ….

    Returns:
        The statistic, for `agg`.

    Examples:
        >>> dp.query.quantile("age", 0.9).sql
        'QUANTILE("age", 0.9)'
        >>> dp.query.quantile("age", [0.25, 0.5, 0.75]).sql
        'QUANTILE("age", [0.25, 0.5, 0.75])'
    """
    if isinstance(at, Sequence) and not isinstance(at, str):
        listed = ", ".join(word(exact(one, name="at")).sql for one in at)
        return Expr(f"QUANTILE({_column(column)}, [{listed}])")
    return Expr(f"QUANTILE({_column(column)}, {word(exact(at, name='at')).sql})")


def mode(column: str | Expr) -> Expr:
    """The most frequent value of a column of categories.

    Args:
        column: The name of a column, or an expression.

    Returns:
        The statistic, for `agg`.

    Examples:
        >>> dp.query.mode("city").sql
        'MODE("city")'
    """
    return _of("MODE", column)
