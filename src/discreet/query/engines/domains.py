"""Public values as codes in SQL: arithmetic where they are a range of numbers, else a join with a table of ours."""

from __future__ import annotations

import unicodedata
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from fractions import Fraction
from typing import Any, final

from discreet.query.arrow_types import arrow_type
from discreet.query.engines.placing import number
from discreet.query.engines.writing import Writer
from discreet.query.facts import ExpressionFacts, Kind
from discreet.query.policy import time_number

__all__ = ["CodedDomain", "Lookup", "coded", "plain", "stored"]


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
    domain = _range(value, facts, known) or _joined(value, facts, known, writer)
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


def _joined(value: str, facts: ExpressionFacts, known: dict[Any, int], writer: Writer) -> CodedDomain:
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


def plain(member: Hashable) -> Hashable:
    """Return a member as a plain Python value, in canonical form."""
    if isinstance(member, str):
        return unicodedata.normalize("NFC", member)
    if isinstance(member, float):
        return member + 0.0
    return member
