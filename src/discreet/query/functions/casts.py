"""Casts between kinds: what has no value of the new kind becomes NULL."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from fractions import Fraction
from typing import Any

from discreet.errors import Refused
from discreet.query.ast import Apply, Expression, Literal, Operator
from discreet.query.engines.sql_writer import SQL_TYPES, Rule, WriteAs, Writer
from discreet.query.functions.constants import DAY, LARGEST, a, read_time, truth
from discreet.query.functions.intervals import EVERYTHING, Interval, as_double, bounds_of, number_facts
from discreet.query.functions.numbers import fitting
from discreet.query.functions.record import SqlFunction
from discreet.query.functions.times import in_range
from discreet.schema.columns import LONGEST_TEXT, ExpressionFacts, Kind, number_marks

__all__ = ["CASTS", "shortened", "write_cast", "write_number_by_format", "write_time_by_format"]

_O = Operator
_K = Kind

# --- facts: Kinds and bounds. ---


def _refuse(argument: Expression, kind: Kind) -> Refused:
    return Refused(
        f"{a(argument.facts.kind)} is not cast to {a(kind)}",
        reason="engines disagree about the result",
        way_out="CASE says what each value shall become",
    )


def _integer_facts(arguments: Sequence[Expression]) -> ExpressionFacts:
    facts = arguments[0].facts
    if facts.kind.is_time:
        raise _refuse(arguments[0], _K.INTEGER)
    if facts.kind is _K.TEXT:
        return number_facts(_K.INTEGER, EVERYTHING, nullable=True)
    interval = bounds_of(facts).monotone(_rounded)
    fits = interval.within(-LARGEST, LARGEST)
    return number_facts(_K.INTEGER, interval if fits else EVERYTHING, nullable=facts.nullable or not fits)


def _rounded(bound: Fraction) -> Fraction | None:
    number = as_double(bound)
    return None if number is None else Fraction(round(Fraction(number)))


def _real_facts(arguments: Sequence[Expression]) -> ExpressionFacts:
    facts = arguments[0].facts
    if facts.kind.is_time:
        raise _refuse(arguments[0], _K.REAL)
    if facts.kind is _K.TEXT:
        return number_facts(_K.REAL, EVERYTHING, nullable=True)
    step = facts.step if facts.kind is _K.REAL else Fraction(1)
    return number_facts(_K.REAL, bounds_of(facts), nullable=facts.nullable, step=step)


def _text_facts(arguments: Sequence[Expression]) -> ExpressionFacts:
    if arguments[0].facts.kind in (_K.REAL, _K.TIMESTAMP):
        raise _refuse(arguments[0], _K.TEXT)
    return ExpressionFacts(kind=_K.TEXT, nullable=arguments[0].facts.nullable)


def _date_facts(arguments: Sequence[Expression]) -> ExpressionFacts:
    facts = arguments[0].facts
    if facts.kind is _K.TEXT:
        return ExpressionFacts(kind=_K.DATE)
    if not facts.kind.is_time:
        raise _refuse(arguments[0], _K.DATE)
    size = DAY if facts.kind is _K.TIMESTAMP else 1
    low, high = bounds_of(facts).monotone(lambda bound: Fraction(bound // size))
    return ExpressionFacts(kind=_K.DATE, low=low, high=high, nullable=facts.nullable)


def _timestamp_facts(arguments: Sequence[Expression]) -> ExpressionFacts:
    facts = arguments[0].facts
    if facts.kind is _K.TEXT:
        return ExpressionFacts(kind=_K.TIMESTAMP)
    if not facts.kind.is_time:
        raise _refuse(arguments[0], _K.TIMESTAMP)
    size = DAY if facts.kind is _K.DATE else 1
    interval: Interval = bounds_of(facts).monotone(lambda bound: bound * size)
    return ExpressionFacts(kind=_K.TIMESTAMP, low=interval.low, high=interval.high, nullable=facts.nullable)


def _boolean_facts(arguments: Sequence[Expression]) -> ExpressionFacts:
    facts = arguments[0].facts
    if facts.kind.is_time or facts.kind is _K.REAL:
        raise _refuse(arguments[0], _K.BOOLEAN)
    return truth(nullable=facts.nullable or facts.kind is _K.TEXT)


# --- values: What they mean, in Python. ---


def _to_integer(value: Any) -> int | None:
    if isinstance(value, str):
        number = _number(value)
        return None if number is None else _to_integer(number)
    return fitting(round(value))


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


# --- SQL ---
# What a text may look like to be a number, a date or a timestamp: ISO 8601 and decimals, with white space around them.
# The values above, and the calendar, say the same in Python.


_SPACE = "chr(32) || chr(9) || chr(10) || chr(13)"
_NUMBER = "[-+]?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][-+]?[0-9]{1,3})?"
_CLOCK = "[T ]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.][0-9]{1,9})?)?"
_ZONE = "(Z|[+-]([01][0-9]|2[0-3])(:?[0-5][0-9])?)"
_DATE = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TRUTHS = {"true": "TRUE", "t": "TRUE", "1": "TRUE", "false": "FALSE", "f": "FALSE", "0": "FALSE"}


def write_cast(value: str, kind: Kind, to: Kind, writer: Writer) -> str:
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


def write_time_by_format(value: str, kind: Kind, pattern: str, writer: Writer) -> str:
    """Write a text that is read by a declared strptime format as a date or timestamp; NULL where it is none."""
    read = f"try_strptime({_trimmed(value)}, CAST({writer.bind(pattern)} AS VARCHAR))"

    def checked(moment: str) -> str:
        # The engine takes 25 for the year 25 where four digits are declared; bounds would clamp it, and nobody notice.
        inside = _in_years(moment, kind)
        return f"(CASE WHEN year({moment}) >= 1000 THEN {inside} END)" if "%Y" in pattern else inside

    return writer.let(f"CAST({read} AS TIMESTAMP)", checked)


def write_number_by_format(value: str, format: str, writer: Writer) -> str:
    """Write a text that has a number in a declared format as one that has it as in SQL; NULL where it has none."""
    between, before = number_marks(format)
    point = f"[{before}]"
    # Digits are grouped by three or not at all: 1.5 is no number where a point groups thousands, and never 15.
    whole = f"([0-9]{{1,3}}([{between}][0-9]{{3}})+|[0-9]+)" if between else "[0-9]+"
    pattern = f"[-+]?({whole}({point}[0-9]*)?|{point}[0-9]+)([eE][-+]?[0-9]{{1,3}})?".replace("'", "''")
    grouping = between.replace("'", "''")

    def read(text: str) -> str:
        joined = f"replace({text}, '{grouping}', '')" if between else text
        return f"(CASE WHEN {_matches(text, pattern)} THEN replace({joined}, '{before}', '.') END)"

    return writer.let(_trimmed(value), read)


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


def _write_to(kind: Kind) -> Rule:
    def rule(node: Apply, writer: Writer, write_as: WriteAs) -> str:
        (argument,) = node.arguments
        here = argument.facts.kind
        value = write_as(argument, here, writer)
        return write_cast(_cut(value, argument) if here is Kind.TEXT else value, here, kind, writer)

    return rule


# --- records ---


_NUMBER_LENGTH = 40  # characters of a number or a time that is written as a text
CASTS = (
    SqlFunction(
        operator=_O.TO_INTEGER,
        facts=_integer_facts,
        value=_to_integer,
        duckdb=_write_to(Kind.INTEGER),
        kind=Kind.INTEGER,
        ends=lambda part: part.monotone(lambda end: Fraction(round(end))),
    ),
    SqlFunction(
        operator=_O.TO_REAL,
        facts=_real_facts,
        value=_to_real,
        duckdb=_write_to(Kind.REAL),
        kind=Kind.REAL,
        ends=lambda part: part,
    ),
    SqlFunction(
        operator=_O.TO_TEXT,
        facts=_text_facts,
        value=_to_text,
        duckdb=_write_to(Kind.TEXT),
        kind=Kind.TEXT,
        length=lambda arguments, lengths: _NUMBER_LENGTH,
    ),
    SqlFunction(
        operator=_O.TO_DATE,
        facts=_date_facts,
        value=_to_date,
        duckdb=_write_to(Kind.DATE),
        kind=Kind.DATE,
    ),
    SqlFunction(
        operator=_O.TO_TIMESTAMP,
        facts=_timestamp_facts,
        value=_to_timestamp,
        duckdb=_write_to(Kind.TIMESTAMP),
        kind=Kind.TIMESTAMP,
    ),
    SqlFunction(
        operator=_O.TO_BOOLEAN,
        facts=_boolean_facts,
        value=_to_boolean,
        duckdb=_write_to(Kind.BOOLEAN),
        kind=Kind.BOOLEAN,
    ),
)
