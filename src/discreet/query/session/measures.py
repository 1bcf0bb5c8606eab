"""Statistics of a group, for the builder: `agg(n=count(), total=sum("price"))`."""

from __future__ import annotations

from discreet.exact import Number, exact
from discreet.query.session.words import Expr, col, word

__all__ = [
    "count",
    "count_distinct",
    "deviation",
    "maximum",
    "mean",
    "median",
    "minimum",
    "mode",
    "quantile",
    "sum",
    "variance",
]


def _of(function: str, column: str | Expr) -> Expr:
    return Expr(f"{function}({_column(column)})")


def _column(column: str | Expr) -> str:
    return col(column).sql if isinstance(column, str) else column.sql


def count(column: str | Expr | None = None) -> Expr:
    """How many rows, or how many values that are not NULL."""
    return Expr("COUNT(*)") if column is None else _of("COUNT", column)


def count_distinct(column: str | Expr) -> Expr:
    """How many distinct values; of the unit's column: how many units."""
    return Expr(f"COUNT(DISTINCT {_column(column)})")


def sum(column: str | Expr) -> Expr:
    """The sum of a bounded column."""
    return _of("SUM", column)


def mean(column: str | Expr) -> Expr:
    """The mean over rows of a bounded column."""
    return _of("AVG", column)


def variance(column: str | Expr) -> Expr:
    """The sample variance of a bounded column."""
    return _of("VAR_SAMP", column)


def deviation(column: str | Expr) -> Expr:
    """The sample standard deviation of a bounded column."""
    return _of("STDDEV_SAMP", column)


def minimum(column: str | Expr) -> Expr:
    """A quantile close to the least value."""
    return _of("MIN", column)


def maximum(column: str | Expr) -> Expr:
    """A quantile close to the greatest value."""
    return _of("MAX", column)


def median(column: str | Expr) -> Expr:
    """The median of a bounded column."""
    return _of("MEDIAN", column)


def quantile(column: str | Expr, at: Number) -> Expr:
    """The value below which a share `at` of the rows lies."""
    return Expr(f"QUANTILE({_column(column)}, {word(exact(at, name='at')).sql})")


def mode(column: str | Expr) -> Expr:
    """The most frequent value of a column of categories."""
    return _of("MODE", column)
