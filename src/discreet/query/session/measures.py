"""Statistics of a group, for the builder: `agg(n=count(), total=sum("price"))`."""

from __future__ import annotations

from discreet.exact import Number, exact
from discreet.query.session.words import Word, col, word

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


def _of(function: str, column: str | Word) -> Word:
    return Word(f"{function}({_column(column)})")


def _column(column: str | Word) -> str:
    return col(column).sql if isinstance(column, str) else column.sql


def count(column: str | Word | None = None) -> Word:
    """How many rows, or how many values that are not NULL."""
    return Word("COUNT(*)") if column is None else _of("COUNT", column)


def count_distinct(column: str | Word) -> Word:
    """How many distinct values; of the unit's column: how many units."""
    return Word(f"COUNT(DISTINCT {_column(column)})")


def sum(column: str | Word) -> Word:
    """The sum of a bounded column."""
    return _of("SUM", column)


def mean(column: str | Word) -> Word:
    """The mean over rows of a bounded column."""
    return _of("AVG", column)


def variance(column: str | Word) -> Word:
    """The sample variance of a bounded column."""
    return _of("VAR_SAMP", column)


def deviation(column: str | Word) -> Word:
    """The sample standard deviation of a bounded column."""
    return _of("STDDEV_SAMP", column)


def minimum(column: str | Word) -> Word:
    """A quantile close to the least value."""
    return _of("MIN", column)


def maximum(column: str | Word) -> Word:
    """A quantile close to the greatest value."""
    return _of("MAX", column)


def median(column: str | Word) -> Word:
    """The median of a bounded column."""
    return _of("MEDIAN", column)


def quantile(column: str | Word, at: Number) -> Word:
    """The value below which a share `at` of the rows lies."""
    return Word(f"QUANTILE({_column(column)}, {word(exact(at, name='at')).sql})")


def mode(column: str | Word) -> Word:
    """The most frequent value of a column of categories."""
    return _of("MODE", column)
