"""Functions of one row in DuckDB's SQL: numbers, texts, times and casts. Each is total: NULL, never an error."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta

from discreet.errors import InvalidParameter
from discreet.query.ast import Apply, Expression, Field, Literal, Operator
from discreet.query.column_types import LONGEST_TEXT, ExpressionFacts, Kind
from discreet.query.engines.sql_writer import FIRST_DAY, LAST_DAY, SQL_TYPES, Rule, WriteAs, Writer, day, moment, real

__all__ = [
    "CASTS",
    "LONGEST",
    "NUMBERS",
    "TEXTS",
    "TIMES",
    "by_format",
    "cast",
    "cut",
    "days_inside",
    "finite",
    "in_range",
    "literal_integer",
    "shortened",
]

# --- numbers ---
# Arithmetic in SQL. Reals are doubles; a result that is no finite number is NULL. Whole numbers are exact.


_HUGE = 10**300  # Within it no sum, difference or product of the bounds has overflowed on its way.
_LARGEST_EXPONENT = 709.782712893384  # The exponential of a larger double is infinite.
_MOST_DECIMALS = 18


def finite(value: str, facts: ExpressionFacts, writer: Writer) -> str:
    """Turn infinities and NaN into NULL, where the bounds do not tell that there are none."""
    if facts.low is not None and facts.high is not None and max(-facts.low, facts.high) < _HUGE:
        return value
    return writer.let(value, lambda v: f"(CASE WHEN isfinite({v}) THEN {v} END)")


def literal_integer(expression: Expression) -> int:
    """Return a literal whole number of the tree."""
    if not isinstance(expression, Literal) or not isinstance(expression.value, int):
        raise InvalidParameter("an operator needs a literal whole number here")
    return int(expression.value)


def _whole(value: str) -> str:
    return f"TRY({value})"


def _numbers(node: Apply, writer: Writer, write_as: WriteAs) -> list[str]:
    return [write_as(argument, node.facts.kind, writer) for argument in node.arguments]


def _settled(value: str, node: Apply, writer: Writer) -> str:
    return _whole(value) if node.facts.kind is Kind.INTEGER else finite(value, node.facts, writer)


def _infix(sign: str) -> Rule:
    def rule(node: Apply, writer: Writer, write_as: WriteAs) -> str:
        left, right = _numbers(node, writer, write_as)
        return _settled(f"({left} {sign} {right})", node, writer)

    return rule


def _divide(node: Apply, writer: Writer, write_as: WriteAs) -> str:
    over, under = (write_as(argument, Kind.REAL, writer) for argument in node.arguments)
    quotient = f"({over} / {under})"
    if isinstance(node.arguments[1], Literal) and node.arguments[1].value:
        return finite(quotient, node.facts, writer)
    # Whatever the bounds of the quotient are, they say nothing of a division by zero: it is infinite, and then NULL.
    return writer.let(quotient, lambda v: f"(CASE WHEN isfinite({v}) THEN {v} END)")


def _of_two(body: Callable[[str, str], str]) -> Rule:
    def rule(node: Apply, writer: Writer, write_as: WriteAs) -> str:
        left, right = (write_as(argument, Kind.INTEGER, writer) for argument in node.arguments)
        return _whole(writer.let(left, lambda x: writer.let(right, lambda y: body(x, y))))

    return rule


def _uneven(x: str, y: str) -> str:
    """Whether rounding towards zero, as the engine does, is one above rounding down."""
    return f"{x} % {y} <> 0 AND ({x} % {y} < 0) <> ({y} < 0)"


def _floor_divide(x: str, y: str) -> str:
    return f"(CASE WHEN {y} = 0 THEN NULL WHEN {_uneven(x, y)} THEN {x} // {y} - 1 ELSE {x} // {y} END)"


def _modulo(x: str, y: str) -> str:
    return f"(CASE WHEN {y} = 0 THEN NULL WHEN {_uneven(x, y)} THEN {x} % {y} + {y} ELSE {x} % {y} END)"


def _prefix(name: str) -> Rule:
    def rule(node: Apply, writer: Writer, write_as: WriteAs) -> str:
        (value,) = _numbers(node, writer, write_as)
        return _whole(f"{name}({value})") if node.facts.kind is Kind.INTEGER else f"{name}({value})"

    return rule


def _sign(node: Apply, writer: Writer, write_as: WriteAs) -> str:
    (argument,) = node.arguments
    sign = f"sign({write_as(argument, argument.facts.kind, writer)})"
    return f"CAST({sign} AS {'BIGINT' if node.facts.kind is Kind.INTEGER else 'DOUBLE'})"


def _to_whole(name: str) -> Rule:
    def rule(node: Apply, writer: Writer, write_as: WriteAs) -> str:
        (argument,) = node.arguments
        value = write_as(argument, argument.facts.kind, writer)
        if argument.facts.kind is Kind.INTEGER:
            return write_as(argument, node.facts.kind, writer)
        return f"TRY_CAST({name}({value}) AS BIGINT)" if node.facts.kind is Kind.INTEGER else f"{name}({value})"

    return rule


def _round(node: Apply, writer: Writer, write_as: WriteAs) -> str:
    argument = node.arguments[0]
    wanted = literal_integer(node.arguments[1]) if len(node.arguments) > 1 else 0
    decimals = max(-_MOST_DECIMALS, min(_MOST_DECIMALS, wanted))
    value = write_as(argument, argument.facts.kind, writer)
    if argument.facts.kind is Kind.INTEGER:
        rounded = value if decimals >= 0 else _whole(_round_whole(value, 10**-decimals, writer))
        return rounded if node.facts.kind is Kind.INTEGER else f"CAST({rounded} AS DOUBLE)"
    rounded = finite(_round_real(value, decimals, writer), node.facts, writer)
    return rounded if node.facts.kind is Kind.REAL else f"TRY_CAST({rounded} AS BIGINT)"


def _round_whole(value: str, power: int, writer: Writer) -> str:
    half = power // 2

    def body(x: str) -> str:
        return (
            f"(CASE WHEN {x} < 0 THEN ({x} - {half}) // {power} * {power} ELSE ({x} + {half}) // {power} * {power} END)"
        )

    return writer.let(value, body)


def _round_real(value: str, decimals: int, writer: Writer) -> str:
    if decimals == 0:
        return f"round({value})"
    power = real(10.0 ** abs(decimals))
    there, back = ("*", "/") if decimals > 0 else ("/", "*")

    def body(x: str) -> str:
        return f"(CASE WHEN isfinite({x} {there} {power}) THEN round({x} {there} {power}) {back} {power} ELSE {x} END)"

    return writer.let(value, body)


def _where(condition: str, name: str) -> Rule:
    def rule(node: Apply, writer: Writer, write_as: WriteAs) -> str:
        (argument,) = node.arguments
        value = write_as(argument, Kind.REAL, writer)
        return writer.let(value, lambda x: f"(CASE WHEN {x} {condition} THEN {name}({x}) END)")

    return rule


def _power(node: Apply, writer: Writer, write_as: WriteAs) -> str:
    exponent = literal_integer(node.arguments[1])
    value = write_as(node.arguments[0], node.facts.kind, writer)
    one = "CAST(1 AS BIGINT)" if node.facts.kind is Kind.INTEGER else "1e0"

    def body(x: str) -> str:
        return f"({' * '.join([x] * exponent)})" if exponent else f"(CASE WHEN {x} IS NOT NULL THEN {one} END)"

    return _settled(writer.let(value, body), node, writer)


NUMBERS: Mapping[Operator, Rule] = {
    Operator.ADD: _infix("+"),
    Operator.SUBTRACT: _infix("-"),
    Operator.MULTIPLY: _infix("*"),
    Operator.DIVIDE: _divide,
    Operator.FLOOR_DIVIDE: _of_two(_floor_divide),
    Operator.MODULO: _of_two(_modulo),
    Operator.NEGATE: _prefix("-"),
    Operator.ABSOLUTE: _prefix("abs"),
    Operator.SIGN: _sign,
    Operator.FLOOR: _to_whole("floor"),
    Operator.CEILING: _to_whole("ceil"),
    Operator.ROUND: _round,
    Operator.SQUARE_ROOT: _where(">= 0", "sqrt"),
    Operator.LOGARITHM: _where("> 0", "ln"),
    Operator.EXPONENTIAL: _where(f"<= {real(_LARGEST_EXPONENT)}", "exp"),
    Operator.POWER: _power,
}


# --- texts ---
# Texts in SQL. A text is cut at a length that no honest answer needs, before a function and after every step of one.
#
# So no text that is made on the way is much longer than that, and what a row costs is known before it is read.


LONGEST = LONGEST_TEXT
_END = 1 << 31
_CHOICE = Operator.COALESCE


def cut(text: str, expression: Expression) -> str:
    """Write a text no longer than texts may be: only a column as it is stored, or a choice among such, can be."""
    if isinstance(expression, Literal) or (isinstance(expression, Apply) and expression.operator is not _CHOICE):
        return text
    shorter = f"left({text}, {LONGEST})"
    # Most columns pass at once; a long expression is not written twice.
    whole = f"(CASE WHEN strlen({text}) <= {LONGEST} THEN {text} ELSE {shorter} END)"
    return whole if isinstance(expression, Field) else shorter


def _call(name: str, *, kind: Kind = Kind.TEXT) -> Rule:
    def rule(node: Apply, writer: Writer, write_as: WriteAs) -> str:
        parts = [cut(write_as(argument, Kind.TEXT, writer), argument) for argument in node.arguments]
        call = f"{name}({', '.join(parts)})"
        return f"CAST({call} AS BIGINT)" if kind is Kind.INTEGER else call

    return rule


def _substring(node: Apply, writer: Writer, write_as: WriteAs) -> str:
    start = literal_integer(node.arguments[1])
    length = literal_integer(node.arguments[2]) if len(node.arguments) > 2 else _END
    # Places before the first are empty, as in the standard; the engine would count them from the end.
    first = min(max(start, 1), _END)
    count = min(max(start + length - first, 0), _END)
    return f"substring({write_as(node.arguments[0], Kind.TEXT, writer)}, {first}, {count})"


def _concat(node: Apply, writer: Writer, write_as: WriteAs) -> str:
    """Put texts together two by two: each step is cut, and the expression is no deeper than it must be."""
    parts = [cut(write_as(argument, Kind.TEXT, writer), argument) for argument in node.arguments]
    while len(parts) > 1:
        pairs = [
            f"left({first} || {second}, {LONGEST})" for first, second in zip(parts[::2], parts[1::2], strict=False)
        ]
        parts = pairs + parts[len(pairs) * 2 :]
    return parts[0]


def _replace(node: Apply, writer: Writer, write_as: WriteAs) -> str:
    text, old, new = (write_as(argument, Kind.TEXT, writer) for argument in node.arguments)
    by = node.arguments[2]
    # Each character may become as long as the new text: a text is cut before, so that a row stays small.
    longest = len(by.value) if isinstance(by, Literal) and isinstance(by.value, str) else LONGEST
    cut = max(1, LONGEST * 100 // max(1, longest))
    return f"left(replace(left({text}, {cut}), {old}, {new}), {LONGEST})"


def _texts_infix(sign: str) -> Rule:
    def rule(node: Apply, writer: Writer, write_as: WriteAs) -> str:
        left, right = (cut(write_as(argument, Kind.TEXT, writer), argument) for argument in node.arguments)
        return f"({left} {sign} {right})"

    return rule


TEXTS: Mapping[Operator, Rule] = {
    Operator.LOWER: _call("lower"),
    Operator.UPPER: _call("upper"),
    Operator.LENGTH: _call("length", kind=Kind.INTEGER),
    Operator.TRIM: _call("trim"),
    Operator.SUBSTRING: _substring,
    Operator.CONCAT: _concat,
    Operator.LIKE: _texts_infix("LIKE"),
    Operator.LIKE_ANY_CASE: _texts_infix("ILIKE"),
    Operator.STARTS_WITH: _call("starts_with"),
    Operator.REPLACE: _replace,
}


# --- times: Dates and timestamps in SQL, all between the years 1 and 9999: what would lie outside is NULL. ---


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


# --- casts: Casts between kinds in SQL: NULL where there is no such value, never an error. ---


# What a text may look like to be a number, a date or a timestamp: ISO 8601 and decimals, with white space around them.
# `reading.evaluation` and `reading.calendar` say the same in Python.
_SPACE = "chr(32) || chr(9) || chr(10) || chr(13)"
_NUMBER = "[-+]?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][-+]?[0-9]{1,3})?"
_CLOCK = "[T ]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.][0-9]{1,9})?)?"
_ZONE = "(Z|[+-]([01][0-9]|2[0-3])(:?[0-5][0-9])?)"
_DATE = "[0-9]{4}-[0-9]{2}-[0-9]{2}"

_TRUTHS = {"true": "TRUE", "t": "TRUE", "1": "TRUE", "false": "FALSE", "f": "FALSE", "0": "FALSE"}


def cast(value: str, kind: Kind, to: Kind, writer: Writer) -> str:
    """Write a value of one kind as another, NULL where it has none."""
    if kind is to:
        return value
    special = _SPECIAL.get((kind, to))
    if special is not None:
        return special(value, writer)
    if kind.is_time and to is not Kind.TEXT and not to.is_time:
        return f"CAST(NULL AS {SQL_TYPES[to]})"
    return f"TRY_CAST({value} AS {SQL_TYPES[to]})"


def shortened(text: str) -> str:
    """Write no more of a stored text than is read as something else; most pass at once."""
    return f"(CASE WHEN strlen({text}) <= {LONGEST_TEXT} THEN {text} ELSE left({text}, {LONGEST_TEXT}) END)"


def _text_to_integer(value: str, writer: Writer) -> str:
    """Read a text as a real, whose half goes to even; as a whole number where doubles have gaps."""

    def body(text: str) -> str:
        double = f"TRY_CAST({text} AS DOUBLE)"
        small = f"abs({double}) < {1 << 53}"
        large = f"isfinite({double}) THEN TRY_CAST({text} AS BIGINT)"
        read = f"CASE WHEN {small} THEN CAST({double} AS BIGINT) WHEN {large} END"
        return f"(CASE WHEN {_matches(text, _NUMBER)} THEN {read} END)"

    return writer.let(_trimmed(value), body)


def _text_to_real(value: str, writer: Writer) -> str:
    # The engine takes 1_000 for a number, and infinity as well.
    def body(text: str) -> str:
        double = f"TRY_CAST({text} AS DOUBLE)"
        return f"(CASE WHEN {_matches(text, _NUMBER)} AND isfinite({double}) THEN {double} END)"

    return writer.let(_trimmed(value), body)


def _trimmed(value: str) -> str:
    return f"trim({value}, {_SPACE})"


def _matches(text: str, pattern: str) -> str:
    return f"regexp_full_match({text}, '{pattern}')"


def _text_to_boolean(value: str, _: Writer) -> str:
    words = " ".join(f"WHEN '{word}' THEN {truth}" for word, truth in _TRUTHS.items())
    return f"(CASE lower({_trimmed(value)}) {words} END)"


def _text_to_time(kind: Kind) -> Callable[[str, Writer], str]:
    """Read ISO 8601 only: the engine takes 02/01/25 for a day of the year 2. What has an offset is read in UTC."""

    def rule(value: str, writer: Writer) -> str:
        return writer.let(writer.let(_trimmed(value), _moment), lambda v: _in_years(v, kind))

    return rule


def _moment(text: str) -> str:
    local = f"WHEN {_matches(text, f'{_DATE}({_CLOCK})?')} THEN TRY_CAST({text} AS TIMESTAMP)"
    # The engine leaves an offset out where it reads a timestamp without a zone.
    moved = f"make_timestamp(epoch_us(TRY_CAST({text} AS TIMESTAMPTZ)))"
    return f"(CASE {local} WHEN {_matches(text, _DATE + _CLOCK + _ZONE)} THEN {moved} END)"


def _in_years(value: str, kind: Kind) -> str:
    return f"(CASE WHEN {in_range(value, Kind.TIMESTAMP)} THEN CAST({value} AS {SQL_TYPES[kind]}) END)"


def by_format(value: str, kind: Kind, pattern: str, writer: Writer) -> str:
    """Write a text that is read by a declared strptime format as a date or timestamp; NULL where it is none."""
    read = f"try_strptime({_trimmed(value)}, CAST({writer.bind(pattern)} AS VARCHAR))"

    def checked(moment: str) -> str:
        # The engine takes 25 for the year 25 where four digits are declared; bounds would clamp it, and nobody notice.
        inside = _in_years(moment, kind)
        return f"(CASE WHEN year({moment}) >= 1000 THEN {inside} END)" if "%Y" in pattern else inside

    return writer.let(f"CAST({read} AS TIMESTAMP)", checked)


def _real_to_text(value: str, _: Writer) -> str:
    return f"CAST({value} + 0e0 AS VARCHAR)"  # There is one zero only.


def _number_to_time(kind: Kind) -> Callable[[str, Writer], str]:
    return lambda value, writer: f"CAST(NULL AS {SQL_TYPES[kind]})"


_SPECIAL: Mapping[tuple[Kind, Kind], Callable[[str, Writer], str]] = {
    (Kind.TEXT, Kind.INTEGER): _text_to_integer,
    (Kind.TEXT, Kind.REAL): _text_to_real,
    (Kind.TEXT, Kind.BOOLEAN): _text_to_boolean,
    (Kind.REAL, Kind.TEXT): _real_to_text,
    **{(Kind.TEXT, kind): _text_to_time(kind) for kind in (Kind.DATE, Kind.TIMESTAMP)},
    **{
        (kind, to): _number_to_time(to)
        for kind in (Kind.BOOLEAN, Kind.INTEGER, Kind.REAL)
        for to in (Kind.DATE, Kind.TIMESTAMP)
    },
}


def _cut(text: str, expression: Expression) -> str:
    """Cut a text that is read: a long one takes long, and one row would decide whether that fails."""
    return text if isinstance(expression, Literal) else f"left({text}, {LONGEST_TEXT})"


def _to(kind: Kind) -> Rule:
    def rule(node: Apply, writer: Writer, write_as: WriteAs) -> str:
        (argument,) = node.arguments
        here = argument.facts.kind
        value = write_as(argument, here, writer)
        return cast(_cut(value, argument) if here is Kind.TEXT else value, here, kind, writer)

    return rule


CASTS: Mapping[Operator, Rule] = {
    Operator.TO_INTEGER: _to(Kind.INTEGER),
    Operator.TO_REAL: _to(Kind.REAL),
    Operator.TO_TEXT: _to(Kind.TEXT),
    Operator.TO_DATE: _to(Kind.DATE),
    Operator.TO_TIMESTAMP: _to(Kind.TIMESTAMP),
    Operator.TO_BOOLEAN: _to(Kind.BOOLEAN),
}
