"""Constants and what is known of them, and the calendar: times as numbers and back."""

from __future__ import annotations

import calendar
import re
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction

from discreet.query.ast import Expression, Literal, Value
from discreet.schema.columns import ExpressionFacts, Kind, time_at, time_number

__all__ = [
    "DAY",
    "LARGEST",
    "NULL",
    "a",
    "add_months",
    "is_null",
    "literal",
    "null_of",
    "parse_time",
    "read_time",
    "time_of",
    "time_or_none",
    "truncate",
    "truth",
]

# --- calendar: Dates and timestamps as numbers and back: days, or microseconds, since the first of January 1970. ---


DAY = 86_400_000_000  # microseconds


def time_of(kind: Kind, number: Fraction) -> date | datetime | None:
    """Return the time that a number stands for; None outside of the years 1 to 9999."""
    try:
        return time_at(kind, number)
    except (OverflowError, ValueError):
        return None


def time_or_none(value: date | datetime | None) -> Fraction | None:
    """Return the number of a time, or pass None on."""
    return None if value is None else time_number(value)


_SPACE = " \t\n\r"


_ISO = re.compile(
    r"\d{4}-\d{2}-\d{2}([T ]([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d{1,9})?)?(Z|[+-]([01]\d|2[0-3])(:?[0-5]\d)?)?)?",
    re.ASCII,
)


def read_time(text: str, kind: Kind) -> date | datetime | None:
    """Read a text as a cast does: ISO 8601, an offset in UTC, digits below microseconds cut off; None if it is none."""
    plain = text.strip(_SPACE)
    if not _ISO.fullmatch(plain):
        return None
    try:
        moment = datetime.fromisoformat(re.sub(r"(\.\d{6})\d+", r"\1", plain))
        local = moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        return None
    return local.date() if kind is Kind.DATE else local


def parse_time(text: str, kind: Kind) -> date | datetime | None:
    """Read a date or a timestamp as ISO 8601 writes it; None if it is none."""
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    if moment.tzinfo is not None:
        return None
    return moment.date() if kind is Kind.DATE else moment


def add_months(value: date, months: int) -> date | None:
    """Move by whole months; a day that the new month lacks becomes its last."""
    year, month = divmod(value.year * 12 + value.month - 1 + months, 12)
    if not 1 <= year <= 9999:
        return None
    return value.replace(year=year, month=month + 1, day=min(value.day, calendar.monthrange(year, month + 1)[1]))


def truncate(unit: str, value: date) -> date:
    """Return the first moment of the year, quarter, month, week (from Monday), day, hour or minute."""
    if unit == "week":
        start = value - timedelta(days=value.weekday()) if value.toordinal() > value.weekday() else value
        return truncate("day", start)
    clock = dict.fromkeys(("hour", "minute", "second", "microsecond"), 0) if isinstance(value, datetime) else {}
    if unit in ("hour", "minute"):
        kept = ("hour",) if unit == "hour" else ("hour", "minute")
        return value.replace(**{name: 0 for name in clock if name not in kept})
    return value.replace(**_first_day(unit, value), **clock)


def _first_day(unit: str, value: date) -> dict[str, int]:
    match unit:
        case "year":
            return {"month": 1, "day": 1}
        case "quarter":
            return {"month": (value.month - 1) // 3 * 3 + 1, "day": 1}
        case "month":
            return {"day": 1}
    return {}


# --- constants: Constants, and the facts that a constant has of itself. ---


LARGEST = Fraction(1 << 62)  # Whole numbers stay within it, half of what 64 bits hold.
NULL = Literal(None, ExpressionFacts(kind=Kind.TEXT))  # Of any kind: whoever takes it chooses.


def a(kind: Kind) -> str:
    """Return a kind with its article."""
    return f"an {kind.value}" if kind is Kind.INTEGER else f"a {kind.value}"


def literal(value: Value, kind: Kind | None = None) -> Literal:
    """Return a constant; a whole number is an integer unless `kind` says that it is real."""
    match value:
        case None:
            return NULL
        case bool():
            return Literal(value, truth(nullable=False))
        case str():
            return Literal(value, ExpressionFacts(kind=Kind.TEXT, members=(value,), nullable=False))
        case date():
            return _point(value, time_number(value), Kind.TIMESTAMP if isinstance(value, datetime) else Kind.DATE)
        case int() | Fraction():
            number = Fraction(value)
            whole = number.denominator == 1 and abs(number) <= LARGEST
            settled = kind or (Kind.INTEGER if whole else Kind.REAL)
            return _point(int(number) if settled is Kind.INTEGER else number, number, settled)


def _point(value: Value, number: Fraction, kind: Kind) -> Literal:
    return Literal(value, ExpressionFacts(kind=kind, low=number, high=number, nullable=False))


def null_of(kind: Kind) -> Literal:
    """Return NULL of a kind."""
    return Literal(None, ExpressionFacts(kind=kind))


def is_null(expression: Expression) -> bool:
    """Whether an expression is the word NULL."""
    return isinstance(expression, Literal) and expression.value is None


def truth(*, nullable: bool) -> ExpressionFacts:
    """Return the facts of a truth value."""
    return ExpressionFacts(
        kind=Kind.BOOLEAN, low=Fraction(0), high=Fraction(1), members=(False, True), nullable=nullable
    )
