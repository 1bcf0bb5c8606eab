"""How a column is read: from the type it is stored in to its kind, missing values filled, clamped to its bounds.

So the bounds of a column hold whatever the data are, and everything that is computed from them holds as well. A whole
number may keep a narrower type than that of its kind; whoever computes with it casts it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from discreet.errors import InvalidParameter
from discreet.query.ast import Field, TableColumn, UnitKey
from discreet.query.engines.sql_writer import SQL_TYPES, Writer, binary, quote, real
from discreet.query.functions.casts import shortened, write_cast, write_number_by_format, write_time_by_format
from discreet.query.functions.times import in_range
from discreet.schema.columns import ExpressionFacts, Kind

__all__ = ["kind_of", "layers", "unit_key_layers", "unit_layers"]

_KINDS = {
    "BOOLEAN": Kind.BOOLEAN,
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "BIGINT"), Kind.INTEGER),
    **dict.fromkeys(("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "HUGEINT", "UHUGEINT"), Kind.INTEGER),
    "FLOAT": Kind.REAL,
    "DOUBLE": Kind.REAL,
    "VARCHAR": Kind.TEXT,
    "UUID": Kind.TEXT,
    "DATE": Kind.DATE,
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"), Kind.TIMESTAMP),
    "TIMESTAMP WITH TIME ZONE": Kind.TIMESTAMP,
}
_WIDE = ("UBIGINT", "HUGEINT", "UHUGEINT")
_NARROW = ("TINYINT", "SMALLINT", "INTEGER", "UTINYINT", "USMALLINT")  # Kept as they are: half of the memory.
_WHOLE = (*_NARROW, "UINTEGER", "BIGINT")
_LARGEST = (1 << 63) - 1
_LARGEST_REAL = "1.7976931348623157e308"
_LARGEST_DOUBLE = Fraction(float(_LARGEST_REAL))


def kind_of(sql_type: str) -> Kind | None:
    """Return the kind of a column by its type; None for types that are not offered."""
    if sql_type.startswith("DECIMAL("):
        return Kind.INTEGER if sql_type.endswith(",0)") else Kind.REAL
    if sql_type.startswith("ENUM("):
        return Kind.TEXT
    return _KINDS.get(sql_type)


def layers(column: TableColumn, sql_type: str, name: str, writer: Writer) -> tuple[str, str, str]:
    """Write how a column is read, in three layers, each of which is a SELECT around the one before.

    The first reads what is stored, the second casts `name` to the kind of the facts, the third fills and clamps it.
    The result is finite and within its bounds, or NULL.
    """
    kind = kind_of(sql_type)
    assert kind is not None
    facts = _known(column.field.facts, kind)
    read = quote(column.column)
    if kind is facts.kind and facts.is_bounded and (kind is Kind.REAL or sql_type in _WHOLE):
        return _filled(_inside(read, sql_type, facts), kind, column.missing), name, name
    stored = _stored(read, sql_type, kind)
    if kind is Kind.TEXT and facts.kind is not Kind.TEXT:
        stored = shortened(stored)
        if column.format is not None and facts.kind.is_number:
            stored = write_number_by_format(stored, column.format, writer)
    if kind is Kind.REAL and facts.kind is Kind.INTEGER and facts.is_bounded:
        # Clamped before it is cast, a real that no whole number can hold is at its bound, too.
        bounds = ExpressionFacts(kind=Kind.REAL, low=facts.low, high=facts.high, members=facts.members)
        whole = _whole(name) if facts.members is None else f"(CASE WHEN trunc({name}) = {name} THEN {_whole(name)} END)"
        return stored, _clamped(name, bounds), _clamped(_filled(whole, facts.kind, column.missing), facts)
    read_as = write_cast(name, kind, facts.kind, writer)
    if column.format is not None and kind is Kind.TEXT and facts.kind.is_time:
        read_as = write_time_by_format(name, facts.kind, column.format, writer)
    if kind is Kind.TEXT and facts.kind is Kind.INTEGER and facts.members is not None:
        double = write_cast(name, kind, Kind.REAL, writer)
        read_as = f"(CASE WHEN trunc({double}) = {double} THEN {read_as} END)"
    elif kind is Kind.TEXT and facts.kind is Kind.INTEGER and facts.is_bounded:
        # What no whole number can hold is at its bound, as it is where it is stored as a real.
        double = write_cast(name, kind, Kind.REAL, writer)
        beyond = f"WHEN {double} >= {_LARGEST} THEN {_LARGEST} WHEN {double} <= {-_LARGEST} THEN {-_LARGEST}"
        read_as = f"coalesce({read_as}, CASE {beyond} END)"
    return stored, read_as, _clamped(_filled(name, facts.kind, column.missing), facts)


def _known(facts: ExpressionFacts, stored: Kind) -> ExpressionFacts:
    """Read a column of which nothing is declared as it is stored."""
    return ExpressionFacts(kind=stored) if facts.kind in (Kind.UNDECLARED, Kind.IDENTITY) else facts


def _inside(read: str, sql_type: str, facts: ExpressionFacts) -> str:
    """Read a number within its bounds at once: most values pass the first test, and nothing else is done to them."""
    assert facts.low is not None
    assert facts.high is not None
    value = read if sql_type in _WHOLE else _double(read, sql_type)
    low, high = _number(facts.low, facts.kind), _number(facts.high, facts.kind)
    inside = f"WHEN {value} BETWEEN {low} AND {high} THEN {value}"
    if facts.members is not None:
        return f"(CASE {inside} END)"
    above, below = f"{value} > {high}", f"{value} < {low}"
    if facts.kind is Kind.REAL:
        # The engine takes NaN for larger than everything: it must not end up at the upper bound.
        above, below = f"{above} AND {value} <= {_LARGEST_REAL}", f"{below} AND {value} >= -{_LARGEST_REAL}"
    return f"(CASE {inside} WHEN {above} THEN {high} WHEN {below} THEN {low} END)"


def unit_layers(column: TableColumn, sql_type: str, name: str, writer: Writer) -> tuple[str, str, str]:
    """Write how the column is read that identifies the unit: nothing is filled or clamped, which would merge units.

    Who has no exact value of the kind is as if not there.
    """
    kind = kind_of(sql_type)
    assert kind is not None
    facts = _known(column.field.facts, kind)
    read = quote(column.column)
    stored = _stored(read, sql_type, kind)
    if sql_type not in (SQL_TYPES[kind], *_NARROW) and kind is not Kind.TEXT:
        stored = f"(CASE WHEN TRY_CAST({stored} AS {sql_type}) = {read} THEN {stored} END)"
    inside = [
        f"{name} {sign} {_number(bound, facts.kind)}"
        for sign, bound in ((">=", facts.low), ("<=", facts.high))
        if bound is not None
    ]
    limited = f"(CASE WHEN {' AND '.join(inside)} THEN {name} END)" if inside else name
    return stored, write_cast(name, kind, facts.kind, writer), limited


_WINDOWS = ("hour", "day", "week", "month", "quarter", "year")


def unit_key_layers(key: UnitKey, types: Mapping[str, str], name: str, writer: Writer) -> tuple[str, str, str]:
    """Write the unit that several columns make together, as one text: each part with its length in front of it.

    Lengths keep ("a", "bc") and ("ab", "c") apart. A part that is NULL makes the whole NULL, and the row nobody's.
    The unit of a chain is a pair: the outer unit o, and what tells apart those within it, i.
    """
    parts = [_part(column, types[column], writer) for column in key.columns]
    if key.time is not None:
        parts.append(_window(key, types[key.time], writer))
    if key.outer is None:
        return _together([_text(part) for part in parts]), name, name
    outer, inner = (_one(side) for side in (parts[: key.outer], parts[key.outer :]))
    known = f"({outer}) IS NOT NULL AND ({inner}) IS NOT NULL"
    return f"(CASE WHEN {known} THEN {{'o': {outer}, 'i': {inner}}} END)", name, name


def _together(texts: Sequence[str]) -> str:
    return " || ".join(f"CAST(strlen({text}) AS VARCHAR) || ':' || {text}" for text in texts)


def _one(parts: Sequence[tuple[str, bool]]) -> str:
    """Write one side of a pair: a column as it is, several as one text."""
    return parts[0][0] if len(parts) == 1 else _together([_text(part) for part in parts])


def _text(part: tuple[str, bool]) -> str:
    value, is_text = part
    return value if is_text else f"CAST({value} AS VARCHAR)"


def _part(column: str, sql_type: str, writer: Writer) -> tuple[str, bool]:
    """Write a column that tells units apart, and say whether it is a text. Equal values of these have equal texts."""
    kind = kind_of(sql_type)
    if kind not in (Kind.INTEGER, Kind.TEXT):
        raise InvalidParameter("the columns of a unit must be whole numbers or texts")
    stored = unit_layers(TableColumn(column, Field("x", ExpressionFacts(kind=kind))), sql_type, "x", writer)[0]
    return stored, kind is Kind.TEXT


def _window(key: UnitKey, sql_type: str, writer: Writer) -> tuple[str, bool]:
    """Write the window of a time, which is no text: its first day, or its hour."""
    kind, window = kind_of(sql_type), key.window
    assert kind is not None
    assert key.time is not None
    assert key.kind is not None
    if window not in _WINDOWS:  # It is written into the SQL, so nothing else may come through.
        raise InvalidParameter(f"a window is one of {', '.join(_WINDOWS)}")
    time = _stored(quote(key.time), sql_type, kind)
    if kind is Kind.TEXT:
        time = shortened(time)
    if kind is Kind.TEXT and key.format is not None:
        time = write_time_by_format(time, key.kind, key.format, writer)
    elif kind is not key.kind:
        time = write_cast(time, kind, key.kind, writer)
    if key.zone is not None:
        time = _local(time, key.zone, writer)
    if window == "hour":
        return f"date_trunc('hour', {time})", False
    return f"CAST(date_trunc('{window}', CAST({time} AS DATE)) AS DATE)", False


def _local(time: str, zone: Sequence[tuple[int, int]], writer: Writer) -> str:
    """Write a moment in local time, by a public list of clock changes; NULL where there is none for it."""
    first, last = zone[0][0], zone[-1][0]

    def body(moment: str) -> str:
        known = f"{moment} >= make_timestamp({first}) AND {moment} < make_timestamp({last})"
        return f"(CASE WHEN {known} THEN {moment} + to_microseconds({_ahead(moment, zone[:-1])}) END)"

    return writer.let(time, body)


def _ahead(moment: str, zone: Sequence[tuple[int, int]]) -> str:
    """Write how far local time is ahead, found by halves."""
    if len(zone) == 1:
        return str(zone[0][1])
    half = len(zone) // 2
    sides = _ahead(moment, zone[:half]), _ahead(moment, zone[half:])
    return f"(CASE WHEN {moment} < make_timestamp({zone[half][0]}) THEN {sides[0]} ELSE {sides[1]} END)"


def _whole(value: str) -> str:
    return f"TRY_CAST({value} AS BIGINT)"


def _double(value: str, sql_type: str) -> str:
    """Write a real in double precision: one of single precision as the number that it is written as.

    Cast by itself 0.1 becomes 0.10000000149011612, and v = 0.1 counts nobody.
    """
    if sql_type == "FLOAT":
        return f"CAST(CAST({value} AS VARCHAR) AS DOUBLE)"
    return value if sql_type == "DOUBLE" else f"CAST({value} AS DOUBLE)"


def _stored(value: str, sql_type: str, kind: Kind) -> str:
    if sql_type in _WIDE or (kind is Kind.INTEGER and sql_type.startswith("DECIMAL")):
        above, below = f"WHEN {value} > {_LARGEST} THEN {_LARGEST}", f"WHEN {value} < {-_LARGEST} THEN {-_LARGEST}"
        return f"(CASE {above} {below} ELSE TRY_CAST({value} AS BIGINT) END)"
    if kind is Kind.REAL:
        double = _double(value, sql_type)
        return f"(CASE WHEN isfinite({double}) THEN {double} END)"
    if kind.is_time:
        return _time(value, sql_type, kind)
    if sql_type == SQL_TYPES[Kind.TEXT]:
        return binary(value)
    return value if sql_type in (SQL_TYPES[kind], *_NARROW) else f"CAST({value} AS {SQL_TYPES[kind]})"


def _time(value: str, sql_type: str, kind: Kind) -> str:
    """Leave out what lies beyond the years 1 to 9999, in the type it is stored in: a cast of it might fail."""
    if sql_type == "TIMESTAMP_NS":
        # Rounded down, as a text is: a cast rounds to the nearest, which may be the next day.
        count = f"epoch_ns({value})"
        micros = f"{count} // 1000 - CASE WHEN {count} % 1000 < 0 THEN 1 ELSE 0 END"
        return f"(CASE WHEN isfinite({value}) THEN make_timestamp({micros}) END)"
    if sql_type in ("TIMESTAMP_S", "TIMESTAMP_MS"):
        low, high = (f"CAST('{text}' AS {sql_type})" for text in ("0001-01-01 00:00:00", "9999-12-31 23:59:59"))
        return f"(CASE WHEN {value} BETWEEN {low} AND {high} THEN CAST({value} AS TIMESTAMP) END)"
    if sql_type == "TIMESTAMP WITH TIME ZONE":
        low, high = (f"CAST('{text}+00' AS TIMESTAMPTZ)" for text in ("0001-01-02 00:00:00", "9999-12-30 00:00:00"))
        return f"(CASE WHEN {value} BETWEEN {low} AND {high} THEN CAST({value} AS TIMESTAMP) END)"
    return f"(CASE WHEN {in_range(value, kind)} THEN {value} END)"


def _filled(value: str, kind: Kind, missing: Fraction | None) -> str:
    if missing is None:
        return value
    return f"coalesce({value}, {_number(missing, kind)})"


def _clamped(value: str, facts: ExpressionFacts) -> str:
    """Write a value moved to the nearest bound; NULL stays NULL, and so becomes what is beyond a list of categories."""
    if facts.kind in (Kind.TEXT, Kind.BOOLEAN) or (facts.low is None and facts.high is None):
        return value
    clamped = ""
    for sign, bound in ((">", facts.high), ("<", facts.low)):
        if bound is not None:
            number = _number(bound, facts.kind)
            clamped += f" WHEN {value} {sign} {number} THEN {'NULL' if facts.members is not None else number}"
    return f"(CASE{clamped} ELSE {value} END)"


def _number(value: Fraction, kind: Kind) -> str:
    """Print a bound: a number, or the time that it counts to."""
    if kind is Kind.REAL:
        return real(max(-_LARGEST_DOUBLE, min(_LARGEST_DOUBLE, value)))
    whole = max(-_LARGEST, min(_LARGEST, round(value)))
    if kind is Kind.DATE:
        return f"(DATE '1970-01-01' + {whole})"
    if kind is Kind.TIMESTAMP:
        return f"make_timestamp({whole})"
    return str(whole) if whole >= 0 else f"({whole})"
