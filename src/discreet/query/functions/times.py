"""Functions of dates and timestamps."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from fractions import Fraction

from discreet.errors import InvalidParameter, Refused
from discreet.query.ast import Apply, Expression, Literal, Operator
from discreet.query.engines.sql_writer import FIRST_DAY, LAST_DAY, SQL_TYPES, Rule, WriteAs, Writer, day, moment
from discreet.query.functions.constants import DAY, a, add_months, time_of, time_or_none, truncate
from discreet.query.functions.intervals import bounds_of
from discreet.query.functions.numbers import literal_integer
from discreet.query.functions.record import Facts, SqlFunction, common_kind
from discreet.schema.columns import ExpressionFacts, Kind

__all__ = ["TIMES", "TRUNCATIONS", "in_range"]

_O = Operator

# --- facts: Kinds and bounds. ---


TRUNCATIONS = ("year", "quarter", "month", "week", "day", "hour", "minute")
_MOST = 4_000_000  # days; more than there are in the calendar


def _require_time(argument: Expression) -> None:
    if not argument.facts.kind.is_time:
        raise Refused(
            f"this needs a date or a timestamp, and it is {a(argument.facts.kind)}",
            reason="every operator has one meaning for each kind of value",
            way_out="CAST it to DATE or TIMESTAMP: what is none becomes NULL",
        )


def _part_facts(low: int, high: int) -> Facts:
    def rule(arguments: Sequence[Expression]) -> ExpressionFacts:
        _require_time(arguments[0])
        nullable = arguments[0].facts.nullable
        return ExpressionFacts(kind=Kind.INTEGER, low=Fraction(low), high=Fraction(high), nullable=nullable)

    return rule


def _year_facts(arguments: Sequence[Expression]) -> ExpressionFacts:
    _require_time(arguments[0])
    facts = arguments[0].facts

    def year(bound: Fraction) -> Fraction | None:
        moment = time_of(facts.kind, bound)
        return None if moment is None else Fraction(moment.year)

    low, high = bounds_of(facts).monotone(year)
    return ExpressionFacts(kind=Kind.INTEGER, low=low, high=high, nullable=facts.nullable)


def _truncated_facts(arguments: Sequence[Expression]) -> ExpressionFacts:
    unit, facts = arguments[0], arguments[1].facts
    _require_time(arguments[1])
    if not isinstance(unit, Literal) or unit.value not in TRUNCATIONS:
        raise Refused(
            "times are cut to a year, quarter, month, week, day, hour or minute",
            reason="only these are defined alike on every engine",
            way_out="choose one of them",
        )
    low, high = bounds_of(facts).monotone(lambda bound: _truncated_bound(str(unit.value), facts.kind, bound))
    return ExpressionFacts(kind=facts.kind, low=low, high=high, nullable=facts.nullable)


def _truncated_bound(unit: str, kind: Kind, bound: Fraction) -> Fraction | None:
    moment = time_of(kind, bound)
    return None if moment is None else time_or_none(truncate(unit, moment))


def _steps(argument: Expression) -> int:
    value = argument.value if isinstance(argument, Literal) and argument.facts.kind is Kind.INTEGER else None
    if isinstance(value, int) and abs(value) <= _MOST:
        return value
    raise Refused(
        "an interval must be a constant, and within the calendar",
        reason="a time that is moved by data may leave the calendar for one row only",
        way_out="write INTERVAL 1 MONTH, or count days with DATE_DIFF",
    )


def _add_days_facts(arguments: Sequence[Expression]) -> ExpressionFacts:
    _require_time(arguments[0])
    facts, days = arguments[0].facts, _steps(arguments[1])
    size = days * (1 if facts.kind is Kind.DATE else DAY)
    low, high = bounds_of(facts).monotone(lambda bound: bound + size)
    return replace(facts, low=low, high=high, members=None, nullable=True)


def _add_months_facts(arguments: Sequence[Expression]) -> ExpressionFacts:
    _require_time(arguments[0])
    facts, months = arguments[0].facts, _steps(arguments[1])

    def moved(bound: Fraction) -> Fraction | None:
        moment = time_of(facts.kind, bound)
        return None if moment is None else time_or_none(add_months(moment, months))

    low, high = bounds_of(facts).monotone(moved)
    if facts.kind is Kind.TIMESTAMP:
        # At the end of a month several days become one, so that a later moment may end up earlier on that day.
        low = None if low is None else Fraction(low // DAY * DAY)
        high = None if high is None else Fraction(high // DAY * DAY + DAY - 1)
    return replace(facts, low=low, high=high, members=None, nullable=True)


def _days_between_facts(arguments: Sequence[Expression]) -> ExpressionFacts:
    for argument in arguments:
        _require_time(argument)
    first, last = (bounds_of(argument.facts) for argument in arguments)
    size = 1 if arguments[0].facts.kind is Kind.DATE else DAY
    low, high = last.minus(first).monotone(lambda bound: Fraction(int(bound / size)))
    return ExpressionFacts(kind=Kind.INTEGER, low=low, high=high, nullable=any(a.facts.nullable for a in arguments))


# --- values: What they mean, in Python; `constants` has the calendar. ---


def _days_between(first: date, last: date) -> int:
    if isinstance(first, datetime) != isinstance(last, datetime):
        raise ValueError
    return (last - first) // timedelta(days=1) if last >= first else -((first - last) // timedelta(days=1))


def _add_days(value: date, days: int) -> date:
    return value + timedelta(days=int(days))


def _clock(name: str) -> Callable[[date], int]:
    return lambda value: int(getattr(value, name, 0))


def _of_times(parts: Sequence[Kind]) -> Kind:
    return common_kind([part for part in parts if part.is_time])


# --- SQL: Dates and timestamps in SQL, all between the years 1 and 9999: what would lie outside is NULL. ---


_UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")


def in_range(value: str, kind: Kind, first: date = FIRST_DAY, last: date = LAST_DAY) -> str:
    """Write that a time lies on or between two days."""
    if kind is Kind.DATE:
        return f"{value} BETWEEN {day(first)} AND {day(last)}"
    low = datetime(first.year, first.month, first.day)
    high = datetime(last.year, last.month, last.day, 23, 59, 59, 999999)
    return f"{value} BETWEEN {moment(low)} AND {moment(high)}"


def _write_part(name: str) -> Rule:
    def rule(node: Apply, writer: Writer, write_as: WriteAs) -> str:
        return f"CAST({name}({write_as(node.arguments[0], Kind.TIMESTAMP, writer)}) AS BIGINT)"

    return rule


def _write_truncate(node: Apply, writer: Writer, write_as: WriteAs) -> str:
    unit, time = node.arguments
    # What is printed into a statement is one of our own words.
    if not isinstance(unit, Literal) or unit.value not in _UNITS:
        raise InvalidParameter("a time is cut to a literal unit: year, quarter, month, week, day, hour, minute")
    cut = f"date_trunc('{unit.value}', {write_as(time, Kind.TIMESTAMP, writer)})"
    return f"CAST({cut} AS {SQL_TYPES[node.facts.kind]})"


def _days_inside(days: int) -> tuple[date, date] | None:
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


def _write_add(inside: Callable[[int], tuple[date, date] | None], make: str) -> Rule:
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


def _write_days_between(node: Apply, writer: Writer, write_as: WriteAs) -> str:
    if all(argument.facts.kind is Kind.DATE for argument in node.arguments):
        first, second = (write_as(argument, Kind.DATE, writer) for argument in node.arguments)
        return f"({second} - {first})"
    first, second = (f"epoch_us({write_as(argument, Kind.TIMESTAMP, writer)})" for argument in node.arguments)
    return f"(({second} - {first}) // {DAY})"  # Towards zero, as the engine divides.


# --- records ---


TIMES = (
    SqlFunction(
        operator=_O.YEAR,
        spelled=("Year: this",),
        date_parts=("YEAR",),
        facts=_year_facts,
        lists_its_bounds=True,
        value=lambda value: value.year,
        duckdb=_write_part("year"),
        kind=Kind.INTEGER,
    ),
    SqlFunction(
        operator=_O.QUARTER,
        spelled=("Quarter: this",),
        date_parts=("QUARTER",),
        facts=_part_facts(1, 4),
        lists_its_bounds=True,
        value=lambda value: (value.month + 2) // 3,
        duckdb=_write_part("quarter"),
        kind=Kind.INTEGER,
    ),
    SqlFunction(
        operator=_O.MONTH,
        spelled=("Month: this",),
        date_parts=("MONTH",),
        facts=_part_facts(1, 12),
        lists_its_bounds=True,
        value=lambda value: value.month,
        duckdb=_write_part("month"),
        kind=Kind.INTEGER,
    ),
    SqlFunction(
        operator=_O.WEEK,
        spelled=("Week: this", "WeekOfYear: this"),
        date_parts=("WEEK",),
        facts=_part_facts(1, 53),
        lists_its_bounds=True,
        value=lambda value: value.isocalendar().week,
        duckdb=_write_part("week"),
        kind=Kind.INTEGER,
    ),
    SqlFunction(
        operator=_O.DAY,
        spelled=("Day: this", "DayOfMonth: this"),
        date_parts=("DAY",),
        facts=_part_facts(1, 31),
        lists_its_bounds=True,
        value=lambda value: value.day,
        duckdb=_write_part("day"),
        kind=Kind.INTEGER,
    ),
    SqlFunction(
        operator=_O.WEEKDAY,
        spelled=("DayOfWeek: this",),
        date_parts=("DOW", "DAYOFWEEK", "WEEKDAY"),
        facts=_part_facts(0, 6),
        lists_its_bounds=True,
        value=lambda value: value.isoweekday() % 7,
        duckdb=_write_part("dayofweek"),
        kind=Kind.INTEGER,
    ),
    SqlFunction(
        operator=_O.DAY_OF_YEAR,
        spelled=("DayOfYear: this",),
        date_parts=("DOY", "DAYOFYEAR"),
        facts=_part_facts(1, 366),
        value=lambda value: value.timetuple().tm_yday,
        duckdb=_write_part("dayofyear"),
        kind=Kind.INTEGER,
    ),
    SqlFunction(
        operator=_O.HOUR,
        spelled=("Hour: this",),
        date_parts=("HOUR",),
        facts=_part_facts(0, 23),
        value=_clock("hour"),
        duckdb=_write_part("hour"),
        kind=Kind.INTEGER,
    ),
    SqlFunction(
        operator=_O.MINUTE,
        spelled=("Minute: this",),
        date_parts=("MINUTE",),
        facts=_part_facts(0, 59),
        value=_clock("minute"),
        duckdb=_write_part("minute"),
        kind=Kind.INTEGER,
    ),
    SqlFunction(
        operator=_O.SECOND,
        spelled=("Second: this",),
        date_parts=("SECOND",),
        facts=_part_facts(0, 59),
        value=_clock("second"),
        duckdb=_write_part("second"),
        kind=Kind.INTEGER,
    ),
    SqlFunction(
        operator=_O.TRUNCATE_TIME,
        facts=_truncated_facts,
        value=truncate,
        duckdb=_write_truncate,
        kind=_of_times,
    ),
    SqlFunction(
        operator=_O.ADD_DAYS,
        facts=_add_days_facts,
        value=_add_days,
        duckdb=_write_add(_days_inside, "to_days"),
        kind=_of_times,
    ),
    SqlFunction(
        operator=_O.ADD_MONTHS,
        facts=_add_months_facts,
        value=lambda value, months: add_months(value, int(months)),
        duckdb=_write_add(_months_inside, "to_months"),
        kind=_of_times,
    ),
    SqlFunction(
        operator=_O.DAYS_BETWEEN,
        facts=_days_between_facts,
        value=_days_between,
        duckdb=_write_days_between,
        kind=Kind.INTEGER,
    ),
)
