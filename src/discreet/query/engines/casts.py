"""Casts between kinds in SQL: NULL where there is no such value, never an error."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from discreet.query.engines.times import in_range
from discreet.query.engines.writing import SQL_TYPES, Rule, WriteAs, Writer
from discreet.query.expressions import Apply, Expression, Literal
from discreet.query.facts import LONGEST_TEXT, Kind
from discreet.query.operators import Operator

__all__ = ["CASTS", "by_format", "cast", "shortened"]

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
