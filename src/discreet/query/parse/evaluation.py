"""What an expression is for given values, in Python: constants, calendar, and the meaning of every operator."""

from __future__ import annotations

import calendar
import math
import operator as python
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from typing import Any

from discreet.query.ast import Apply, Case, Expression, Field, Literal, Operator, Value
from discreet.query.column_types import ExpressionFacts, Kind
from discreet.query.policy import time_number

__all__ = [
    "DAY",
    "LARGEST",
    "NULL",
    "a",
    "add_months",
    "compute",
    "evaluate",
    "is_null",
    "literal",
    "literal_value",
    "null_of",
    "parse_time",
    "read_time",
    "result_of",
    "time_of",
    "time_or_none",
    "truncate",
    "truth",
]

# --- calendar: Dates and timestamps as numbers and back: days, or microseconds, since the first of January 1970. ---


DAY = 86_400_000_000  # microseconds
_EPOCH = datetime(1970, 1, 1)


def time_of(kind: Kind, number: Fraction) -> date | datetime | None:
    """Return the time that a number stands for; None outside of the years 1 to 9999."""
    try:
        if kind is Kind.DATE:
            return date.fromordinal(_EPOCH.toordinal() + int(number))
        return _EPOCH + timedelta(microseconds=int(number))
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


# --- evaluation ---
# What an expression is for given values, in Python: the meaning of every operator, and the engines' reference.
#
# Used on public values only: to fold constants, to list the values that a key can take, and on released answers.


_O = Operator
_INT64 = 1 << 63


def evaluate(expression: Expression, row: Mapping[str, Any]) -> Any:
    """Compute an expression of one row, given by the names of its fields."""
    match expression:
        case Field():
            return row[expression.name]
        case Literal():
            return literal_value(expression)
        case Apply():
            return result_of(expression, [evaluate(argument, row) for argument in expression.arguments])
        case Case():
            for condition, value in expression.branches:
                if evaluate(condition, row) is True:
                    return evaluate(value, row)
            return evaluate(expression.otherwise, row)


def result_of(expression: Apply, values: Sequence[Any]) -> Any:
    """Compute a node from the values of its arguments."""
    return _as_kind(compute(expression.operator, values), expression.facts.kind)


def literal_value(literal: Literal) -> Any:
    """Return a constant as the engine sees it: a real is a double."""
    return _as_kind(literal.value, literal.facts.kind)


def _as_kind(value: Any, kind: Kind) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if kind is Kind.REAL:
        return float(value)
    return int(value) if kind is Kind.INTEGER else value


def compute(operator: Operator, values: Sequence[Any]) -> Any:
    """Apply an operator to values; None is NULL. What cannot be computed is None."""
    if operator in _OF_NULLS:
        return _OF_NULLS[operator](values)
    if any(value is None for value in values):
        return None
    try:
        return _finite(_STRICT[operator](*values))
    except (ArithmeticError, ValueError):
        return None


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _and(values: Sequence[Any]) -> bool | None:
    if any(value is False for value in values):
        return False
    return None if any(value is None for value in values) else True


def _or(values: Sequence[Any]) -> bool | None:
    if any(value is True for value in values):
        return True
    return None if any(value is None for value in values) else False


def _known(values: Sequence[Any]) -> list[Any]:
    return [value for value in values if value is not None]


_OF_NULLS: Mapping[Operator, Callable[[Sequence[Any]], Any]] = {
    _O.AND: _and,
    _O.OR: _or,
    _O.IS_NULL: lambda values: values[0] is None,
    _O.COALESCE: lambda values: next(iter(_known(values)), None),
    _O.LEAST: lambda values: min(_known(values), default=None),
    _O.GREATEST: lambda values: max(_known(values), default=None),
}


def _divide(one: Any, other: Any) -> Any:
    if isinstance(one, float) or isinstance(other, float):
        return float(one) / float(other)
    return Fraction(one) / Fraction(other)


def _round(value: Any, decimals: int) -> Any:
    if isinstance(value, int):
        return value if decimals >= 0 else int(_round(Fraction(value), decimals))
    exact = Fraction(value)
    scaled = abs(exact) * Fraction(10) ** decimals
    rounded = math.floor(scaled + Fraction(1, 2)) * (1 if exact >= 0 else -1)
    result = Fraction(rounded) / Fraction(10) ** decimals
    return float(result) if isinstance(value, float) else result


def _power(value: Any, exponent: int) -> Any:
    return value**exponent


def _like(text: str, pattern: str) -> bool:
    """Match from left to right; after a failure only the last % takes one letter more, so that nothing takes long."""
    at, place = 0, 0
    star, resume = -1, 0
    while at < len(text):
        letter = pattern[place] if place < len(pattern) else None
        if letter == "%":
            star, resume, place = place, at, place + 1
        elif letter is not None and letter in ("_", text[at]):
            at, place = at + 1, place + 1
        elif star >= 0:
            resume += 1
            at, place = resume, star + 1
        else:
            return False
    return not pattern[place:].strip("%")


def _days_between(first: date, last: date) -> int:
    if isinstance(first, datetime) != isinstance(last, datetime):
        raise ValueError
    return (last - first) // timedelta(days=1) if last >= first else -((first - last) // timedelta(days=1))


def _add_days(value: date, days: int) -> date:
    return value + timedelta(days=int(days))


def _to_integer(value: Any) -> int | None:
    if isinstance(value, str):
        number = _number(value)
        return None if number is None else _to_integer(number)
    return _fitting(round(value))


def _fitting(whole: int) -> int | None:
    """Return a whole number, or None if it does not fit 64 bits."""
    return whole if -_INT64 <= whole < _INT64 else None


def _number(text: str) -> Fraction | None:
    plain = text.strip(" \t\n\r")
    if not re.fullmatch(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d{1,3})?", plain, re.ASCII):
        return None
    return Fraction(plain)


def _to_real(value: Any) -> float | None:
    number = _number(value) if isinstance(value, str) else value
    return None if number is None else float(number)


def _to_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.isoformat(sep=" ") if isinstance(value, datetime) else str(value)


def _to_date(value: Any) -> date | datetime | None:
    if isinstance(value, str):
        return read_time(value, Kind.DATE)
    return value.date() if isinstance(value, datetime) else value


def _to_timestamp(value: Any) -> date | datetime | None:
    if isinstance(value, str):
        return read_time(value, Kind.TIMESTAMP)
    return value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)


def _to_boolean(value: Any) -> bool | None:
    if isinstance(value, str):
        return {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}.get(
            value.strip(" \t\n\r").lower()
        )
    return bool(value)


def _clock(name: str) -> Callable[[date], int]:
    return lambda value: int(getattr(value, name, 0))


_STRICT: Mapping[Operator, Callable[..., Any]] = {
    _O.ADD: python.add,
    _O.SUBTRACT: python.sub,
    _O.MULTIPLY: python.mul,
    _O.DIVIDE: _divide,
    _O.FLOOR_DIVIDE: lambda one, other: math.floor(Fraction(one) / Fraction(other)),
    _O.MODULO: lambda one, other: one - other * math.floor(Fraction(one) / Fraction(other)),
    _O.NEGATE: python.neg,
    _O.ABSOLUTE: abs,
    _O.SIGN: lambda value: (value > 0) - (value < 0),
    _O.FLOOR: lambda value: _fitting(math.floor(value)),
    _O.CEILING: lambda value: _fitting(math.ceil(value)),
    _O.ROUND: _round,
    _O.SQUARE_ROOT: math.sqrt,
    _O.LOGARITHM: math.log,
    _O.EXPONENTIAL: math.exp,
    _O.POWER: _power,
    _O.EQUAL: python.eq,
    _O.NOT_EQUAL: python.ne,
    _O.LESS: python.lt,
    _O.LESS_OR_EQUAL: python.le,
    _O.GREATER: python.gt,
    _O.GREATER_OR_EQUAL: python.ge,
    _O.IN: lambda value, *others: value in others,
    _O.NOT: python.not_,
    _O.LOWER: str.lower,
    _O.UPPER: str.upper,
    _O.LENGTH: len,
    _O.TRIM: lambda text: text.strip(" "),
    _O.SUBSTRING: lambda text, start, length: text[int(start) - 1 : int(start) - 1 + int(length)],
    _O.CONCAT: lambda *texts: "".join(texts),
    _O.LIKE: _like,
    _O.LIKE_ANY_CASE: lambda text, pattern: _like(text.lower(), pattern.lower()),
    _O.STARTS_WITH: str.startswith,
    _O.REPLACE: str.replace,
    _O.YEAR: lambda value: value.year,
    _O.QUARTER: lambda value: (value.month + 2) // 3,
    _O.MONTH: lambda value: value.month,
    _O.WEEK: lambda value: value.isocalendar().week,
    _O.DAY: lambda value: value.day,
    _O.WEEKDAY: lambda value: value.isoweekday() % 7,
    _O.DAY_OF_YEAR: lambda value: value.timetuple().tm_yday,
    _O.HOUR: _clock("hour"),
    _O.MINUTE: _clock("minute"),
    _O.SECOND: _clock("second"),
    _O.TRUNCATE_TIME: truncate,
    _O.ADD_DAYS: _add_days,
    _O.ADD_MONTHS: lambda value, months: add_months(value, int(months)),
    _O.DAYS_BETWEEN: _days_between,
    _O.TO_INTEGER: _to_integer,
    _O.TO_REAL: _to_real,
    _O.TO_TEXT: _to_text,
    _O.TO_DATE: _to_date,
    _O.TO_TIMESTAMP: _to_timestamp,
    _O.TO_BOOLEAN: _to_boolean,
}
