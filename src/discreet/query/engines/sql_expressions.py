"""Expressions of the closed tree as DuckDB's SQL, places on a public grid, and codes of public values."""

from __future__ import annotations

import unicodedata
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from fractions import Fraction
from typing import Any, final

from discreet.query.ast import Apply, Case, Expression, Field, Literal
from discreet.query.engines.sql_writer import SQL_TYPES, Writer, day, moment, real
from discreet.query.functions.table import FUNCTIONS
from discreet.schema.columns import ExpressionFacts, Kind, arrow_type, time_number

__all__ = [
    "CodedDomain",
    "Lookup",
    "coded",
    "number",
    "place",
    "stored",
    "write",
    "write_as",
]

# --- expressions ---
# Write an expression of the closed tree as DuckDB's SQL: total, one row at a time, the same kind of value always.
#
# Where an operator needs an argument twice it says so by `let`, so that a statement grows with the tree and no faster.
# Whole numbers are in TRY on top of their bounds: what would overflow is NULL, not an error that names a value.


def write(expression: Expression, writer: Writer) -> str:
    """Write an expression; its value has the SQL type of its kind."""
    match expression:
        case Field():
            return writer.column(expression.name)
        case Literal():
            return _literal(expression, writer)
        case Case():
            return _case(expression, writer)
        case Apply():
            return FUNCTIONS[expression.operator].duckdb(expression, writer, write_as)


def write_as(expression: Expression, kind: Kind, writer: Writer) -> str:
    """Write an expression as a value of a kind; only casts that always succeed are asked for here."""
    if isinstance(expression, Literal) and kind is Kind.REAL and isinstance(expression.value, (int, Fraction)):
        return real(Fraction(expression.value))
    text = write(expression, writer)
    if isinstance(expression, Field) and kind is Kind.INTEGER and expression.facts.kind is kind:
        return f"CAST({text} AS BIGINT)"  # It may be stored in a narrower type, which would overflow.
    return text if expression.facts.kind is kind else f"TRY_CAST({text} AS {SQL_TYPES[kind]})"


def _literal(literal: Literal, writer: Writer) -> str:
    value, kind = literal.value, literal.facts.kind
    match value:
        case None:
            return "NULL" if kind is Kind.IDENTITY else f"CAST(NULL AS {SQL_TYPES[kind]})"
        case bool():
            return "TRUE" if value else "FALSE"
        case str():
            return f"CAST({writer.bind(value)} AS VARCHAR)"
        case datetime():
            return moment(value)
        case date():
            return day(value) if kind is Kind.DATE else moment(datetime(value.year, value.month, value.day))
        case _:
            return f"CAST({int(value)} AS BIGINT)" if kind is Kind.INTEGER else real(Fraction(value))


def _case(case: Case, writer: Writer) -> str:
    kind = case.facts.kind
    branches = " ".join(
        f"WHEN {write(condition, writer)} THEN {write_as(value, kind, writer)}" for condition, value in case.branches
    )
    return f"(CASE {branches} ELSE {write_as(case.otherwise, kind, writer)} END)"


# --- placing ---
# Place values on a public grid in SQL: the index is clamp(rint(x / step), first, last), half to even; NULL stays NULL.
#
# In IEEE doubles x / step is x times 1 / step if that is a whole number. Whole numbers on whole steps are exact.


_NARROW = 1 << 31
_LARGEST = 1 << 63
_FAR = 1 << 48


def number(value: str, kind: Kind) -> str:
    """Write a time or a truth value as the number it stands for."""
    if kind is Kind.BOOLEAN:
        return f"CAST({value} AS BIGINT)"
    if kind is Kind.DATE:
        return f"({value} - DATE '1970-01-01')"
    if kind is Kind.TIMESTAMP:
        return f"epoch_us({value})"
    return value


def place(value: str, facts: ExpressionFacts, step: Fraction, first: int, last: int, writer: Writer) -> str:
    """Write the index of a value of some facts on the grid of `step`, from `first` to `last`."""
    narrow = "INTEGER" if first > -_NARROW and last < _NARROW else "BIGINT"
    if facts.kind is Kind.REAL:
        return _real(value, facts, step, (first, last), narrow, writer)
    whole = f"CAST({number(value, facts.kind)} AS BIGINT)"
    if step.numerator == 1:
        return _fine(whole, step.denominator, (first, last), narrow, writer)
    if step.denominator == 1:
        return _coarse(whole, step.numerator, (first, last), narrow, writer)
    return _real(f"CAST({whole} AS DOUBLE)", ExpressionFacts(kind=Kind.REAL), step, (first, last), narrow, writer)


def _real(
    value: str, facts: ExpressionFacts, step: Fraction, ends: tuple[int, int], narrow: str, writer: Writer
) -> str:
    ratio = f"{value} * {real(1 / step)}" if step.numerator == 1 else f"{value} / {real(step)}"
    if _is_inside(facts, step, ends):
        return f"TRY_CAST({ratio} AS {narrow})"
    return writer.let(
        f"({ratio})", lambda x: _clamped(x, f"TRY_CAST({x} AS {narrow})", (real(ends[0]), real(ends[1])), ends)
    )


def _is_inside(facts: ExpressionFacts, step: Fraction, ends: tuple[int, int]) -> bool:
    """Whether no value can be placed beyond an end.

    Bound, step and quotient are rounded once each, by 2^-53 of themselves: below 2^48 steps that is no half step.
    """
    if facts.low is None or facts.high is None or max(-ends[0], ends[1]) > _FAR:
        return False
    return ends[0] * step <= facts.low and facts.high <= ends[1] * step


def _fine(value: str, per_unit: int, ends: tuple[int, int], narrow: str, writer: Writer) -> str:
    """Place a whole number on a grid of which one is a multiple: no rounding."""
    scale = "" if per_unit == 1 else f" * {per_unit}"
    # Outside of these the index is beyond the end; inside the product is no larger than the ends.
    low, high = -(-ends[0] // per_unit), ends[1] // per_unit
    return writer.let(value, lambda x: _clamped(x, f"CAST({x}{scale} AS {narrow})", (str(low), str(high)), ends))


def _coarse(value: str, step: int, ends: tuple[int, int], narrow: str, writer: Writer) -> str:
    """Round a whole number to a multiple of a whole step, half to even."""

    def body(x: str) -> str:
        # Shifted by a multiple of two steps everything is above zero, where division rounds down.
        shift = -ends[0] + (ends[0] % 2)
        # Whatever of a sum does not fit 64 bits would fail for that row.
        fits = max(ends[1] + shift, shift) * step < _LARGEST
        moved = f"({x if fits else f'CAST({x} AS HUGEINT)'} + {shift * step})"
        whole, rest = f"({moved} // {step})", f"({moved} % {step})"
        up = f"{rest} * 2 > {step} OR ({rest} * 2 = {step} AND {whole} % 2 = 1)"
        index = f"CAST({whole} - {shift} + CASE WHEN {up} THEN 1 ELSE 0 END AS {narrow})"
        return _clamped(x, index, (str(ends[0] * step), str(ends[1] * step)), ends)

    return writer.let(value, body)


def _clamped(value: str, index: str, bounds: tuple[str, str], ends: tuple[int, int]) -> str:
    low, high = bounds
    return f"(CASE WHEN {value} > {high} THEN {ends[1]} WHEN {value} < {low} THEN {ends[0]} ELSE {index} END)"


# --- domains ---
# Public values as codes in SQL: arithmetic where they are a range of numbers, else a join with a table of ours.


@final
@dataclass(frozen=True, slots=True, eq=False)
class Lookup:
    """A table of values and their codes, to be joined under a name of ours."""

    name: str
    table: Any  # Arrow


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CodedDomain:
    """SQL for the code of a value, NULL if it is none of them, and the join it needs."""

    code: str
    join: str = ""
    lookup: Lookup | None = None


def coded(value: str, facts: ExpressionFacts, members: Sequence[Hashable], writer: Writer) -> CodedDomain:
    """Write the place of a value among public members, of which one may be None."""
    known = {_storable(member, facts.kind): place for place, member in enumerate(members) if member is not None}
    null = next((place for place, member in enumerate(members) if member is None), None)
    domain = _range(value, facts, known) or _domains_joined(value, facts, known, writer)
    if null is None:
        return domain
    code = f"(CASE WHEN {value} IS NULL THEN {null} ELSE {domain.code} END)"
    return CodedDomain(code=code, join=domain.join, lookup=domain.lookup)


def _range(value: str, facts: ExpressionFacts, known: dict[Any, int]) -> CodedDomain | None:
    """Write the code as a difference, if the members are a range of whole numbers, days or truth values in order."""
    if facts.kind not in (Kind.BOOLEAN, Kind.INTEGER, Kind.DATE) or not known:
        return None
    numbers = {int(_number(member)): place for member, place in known.items()}
    low, high = min(numbers), max(numbers)
    first = numbers[low]
    if any(place - first != member - low for member, place in numbers.items()) or high - low + 1 != len(numbers):
        return None
    plain_number = number(value, facts.kind)
    shift = low - first
    code = (
        f"CAST({plain_number} AS INTEGER)"
        if not shift
        else f"CAST(CAST({plain_number} AS BIGINT) - {shift} AS INTEGER)"
    )
    if facts.low is not None and facts.high is not None and low <= facts.low and facts.high <= high:
        return CodedDomain(code=code)
    return CodedDomain(code=f"(CASE WHEN {plain_number} BETWEEN {low} AND {high} THEN {code} END)")


def _number(member: Any) -> Fraction:
    return time_number(member) if isinstance(member, date) else Fraction(member)


def _domains_joined(value: str, facts: ExpressionFacts, known: dict[Any, int], writer: Writer) -> CodedDomain:
    import pyarrow as pa

    name = writer.fresh("d")
    table = pa.table(
        {"v": pa.array(list(known), arrow_type(facts.kind)), "i": pa.array(list(known.values()), pa.int32())}
    )
    return CodedDomain(code=f"{name}.i", join=f" LEFT JOIN {name} ON {value} = {name}.v", lookup=Lookup(name, table))


def _storable(member: Hashable, kind: Kind) -> Any:
    """Return a member as the engine stores it, in canonical form."""
    if kind is Kind.TEXT:
        return unicodedata.normalize("NFC", str(member))
    if kind is Kind.REAL:
        return float(member) + 0.0  # type: ignore[arg-type]
    return _moment(member) if kind is Kind.TIMESTAMP and isinstance(member, date) else member


def _moment(member: date) -> datetime:
    """Return a plain moment in whole microseconds: members that the engine takes for one must be one here as well."""
    if not isinstance(member, datetime):
        return datetime(member.year, member.month, member.day)
    naive = member if member.tzinfo is None else member.astimezone(UTC).replace(tzinfo=None)
    return datetime.combine(naive.date(), naive.time())


def stored(members: Sequence[Hashable], kind: Kind) -> tuple[list[Any], Any]:
    """Return members as the engine stores them, and their Arrow type."""
    return [None if member is None else _storable(member, kind) for member in members], arrow_type(kind)
