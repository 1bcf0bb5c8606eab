"""Dates and timestamps in SQL, all between the years 1 and 9999: what would lie outside is NULL."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta

from discreet.errors import InvalidParameter
from discreet.query.engines.numbers import literal_integer
from discreet.query.engines.writing import FIRST_DAY, LAST_DAY, SQL_TYPES, Rule, WriteAs, Writer, day, moment
from discreet.query.expressions import Apply, Literal
from discreet.query.facts import Kind
from discreet.query.operators import Operator

__all__ = ["TIMES", "days_inside", "in_range"]

_DAY = 86_400_000_000  # microseconds
_UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")


def in_range(value: str, kind: Kind, first: date = FIRST_DAY, last: date = LAST_DAY) -> str:
    """Write that a time lies on or between two days."""
    if kind is Kind.DATE:
        return f"{value} BETWEEN {day(first)} AND {day(last)}"
    low = datetime(first.year, first.month, first.day)
    high = datetime(last.year, last.month, last.day, 23, 59, 59, 999999)
    return f"{value} BETWEEN {moment(low)} AND {moment(high)}"


def _part(name: str) -> Rule:
    def rule(node: Apply, writer: Writer, write_as: WriteAs) -> str:
        return f"CAST({name}({write_as(node.arguments[0], Kind.TIMESTAMP, writer)}) AS BIGINT)"

    return rule


def _truncate(node: Apply, writer: Writer, write_as: WriteAs) -> str:
    unit, time = node.arguments
    # What is printed into a statement is one of our own words.
    if not isinstance(unit, Literal) or unit.value not in _UNITS:
        raise InvalidParameter("a time is cut to a literal unit: year, quarter, month, week, day, hour, minute")
    cut = f"date_trunc('{unit.value}', {write_as(time, Kind.TIMESTAMP, writer)})"
    return f"CAST({cut} AS {SQL_TYPES[node.facts.kind]})"


def days_inside(days: int) -> tuple[date, date] | None:
    """Return the first and the last day that stay in range when `days` are added."""
    if abs(days) > (LAST_DAY - FIRST_DAY).days:
        return None
    shift = timedelta(days=abs(days))
    return (FIRST_DAY, LAST_DAY - shift) if days >= 0 else (FIRST_DAY + shift, LAST_DAY)


def _months_inside(months: int) -> tuple[date, date] | None:
    """Return the first and the last day that stay in range when `months` are added; a month's end may be cut off."""
    first, last = FIRST_DAY.year * 12, LAST_DAY.year * 12 + 11
    low, high = max(first, first - months), min(last, last - months)
    if low > high:
        return None
    (year, month), (last_year, last_month) = divmod(low, 12), divmod(high, 12)
    return date(year, month + 1, 1), date(last_year, last_month + 1, monthrange(last_year, last_month + 1)[1])


def _add(inside: Callable[[int], tuple[date, date] | None], make: str) -> Rule:
    def rule(node: Apply, writer: Writer, write_as: WriteAs) -> str:
        time, number = sorted(node.arguments, key=lambda argument: argument.facts.kind is Kind.INTEGER)
        amount, kind = literal_integer(number), node.facts.kind
        days = inside(amount)
        if days is None:
            return f"CAST(NULL AS {SQL_TYPES[kind]})"

        def body(value: str) -> str:
            moved = f"CAST({value} + {make}({amount}) AS {SQL_TYPES[kind]})"
            return f"(CASE WHEN {in_range(value, kind, *days)} THEN {moved} END)"

        return writer.let(write_as(time, kind, writer), body)

    return rule


def _days_between(node: Apply, writer: Writer, write_as: WriteAs) -> str:
    if all(argument.facts.kind is Kind.DATE for argument in node.arguments):
        first, second = (write_as(argument, Kind.DATE, writer) for argument in node.arguments)
        return f"({second} - {first})"
    first, second = (f"epoch_us({write_as(argument, Kind.TIMESTAMP, writer)})" for argument in node.arguments)
    return f"(({second} - {first}) // {_DAY})"  # Towards zero, as the engine divides.


TIMES: Mapping[Operator, Rule] = {
    Operator.YEAR: _part("year"),
    Operator.QUARTER: _part("quarter"),
    Operator.MONTH: _part("month"),
    Operator.WEEK: _part("week"),
    Operator.DAY: _part("day"),
    Operator.WEEKDAY: _part("dayofweek"),
    Operator.DAY_OF_YEAR: _part("dayofyear"),
    Operator.HOUR: _part("hour"),
    Operator.MINUTE: _part("minute"),
    Operator.SECOND: _part("second"),
    Operator.TRUNCATE_TIME: _truncate,
    Operator.ADD_DAYS: _add(days_inside, "to_days"),
    Operator.ADD_MONTHS: _add(_months_inside, "to_months"),
    Operator.DAYS_BETWEEN: _days_between,
}
