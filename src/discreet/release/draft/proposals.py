"""From what was seen to what is proposed: rounded outwards, shared by at least 20 units, nothing that names people."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime
from fractions import Fraction
from typing import Any, TypeAlias, final

from discreet.query import Kind
from discreet.release.draft.custodian_look import FEWEST, SeenColumn, SeenUnit
from discreet.release.round_numbers import outwards

__all__ = ["Declaration", "Proposal", "by_name", "declaration", "limit", "shows_rows", "shows_same_rows", "unit_why"]

# What is declared of a column, as a plan file says it; None leaves it out.
Declaration: TypeAlias = dict[str, Any] | None
_PEOPLE = re.compile(
    r"(^|[_\s-])(person|patient|customer|client|user|member|employee|student|pupil|household|account|subscriber|"
    r"individual|respondent|subject|participant|passenger|driver|donor|patron|citizen)s?($|[_\s-]|id|no|nr|number)|"
    r"(^|[_\s-])(id|uuid|guid|ssn|passport)($|[_\s-])",
    re.IGNORECASE,
)
_NAMES = re.compile(r"name|mail|phone|mobile|address|street|ssn|passport|iban|url|comment|note", re.IGNORECASE)
_LIMITS = (1, 2, 3, 5, 10, 20, 50, 100)
_MOST_CATEGORIES = 40


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """One thing that a plan has to say: what is proposed, why, and what else could be said.

    `why` may tell exact facts of the data: it is for the custodian's eyes.
    """

    field: str  # its place in the plan, such as unit.column or columns.age
    value: Any
    why: str
    choices: tuple[Any, ...] = ()  # empty: anything that fits
    from_data: bool = False  # whether the value depends on the rows, rather than on the names and types of columns
    read: tuple[Any, ...] = ()  # what was proposed from the rows before somebody said something else


def by_name(column: str) -> bool:
    """Whether a name suggests that a column tells people apart."""
    return _PEOPLE.search(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", column)) is not None


def unit_why(seen: SeenUnit) -> str:
    """Say what protecting a unit would mean."""
    left_out = f"; {seen.missing:,} rows have none and would be left out" if seen.missing else ""
    return (
        f"{seen.units:,} different values; rows of most: no more than {seen.usual:,}, of one: {seen.most:,}{left_out}"
    )


def limit(usual: int) -> int:
    """Return the least friendly limit that most units are within."""
    return next((one for one in _LIMITS if one >= usual), _LIMITS[-1])


def declaration(seen: SeenColumn) -> Proposal:
    """Propose what to declare of a column."""
    value, why = _declared(seen)
    others = [one for one in (value, _bounded(seen), _listed(seen), {"kind": "text"}, None) if one is not None]
    choices = [one for place, one in enumerate(others) if one not in others[:place]]
    return Proposal(
        field=f"columns.{seen.name}", value=value, why=why, choices=(*choices, None), from_data=shows_rows(value)
    )


def shows_rows(value: Any) -> bool:
    """Whether a declaration tells values of rows, rather than only what a column is."""
    return bool(_of_rows(value))


def shows_same_rows(one: Any, other: Any) -> bool:
    """Whether a declaration tells values of rows that another tells too, however they say what the column is."""
    said, read = _of_rows(one), _of_rows(other)
    listed, known = said.get("categories"), read.get("categories")
    if listed and known:
        return set(listed) <= set(known)
    return said == read


def _of_rows(value: Any) -> dict[str, Any]:
    names = ("low", "high", "categories")
    return {name: value[name] for name in names if name in value} if isinstance(value, dict) else {}


def _declared(seen: SeenColumn) -> tuple[Declaration, str]:
    if seen.kind is Kind.BOOLEAN:
        return {"kind": "boolean"}, "true or false, by its type"
    if seen.kind.is_number and by_name(seen.name) and seen.distinct > _MOST_CATEGORIES:
        return None, "it looks like a number that names somebody or something: left out"
    bounded = _bounded(seen)
    if bounded is not None:
        return bounded, f"{_rounded_why(seen)} {_range_why(seen)}"
    if seen.kind.is_number or seen.kind.is_time:
        return None, f"fewer than {FEWEST} units have a value, so nothing is proposed"
    return _texts(seen)


def _texts(seen: SeenColumn) -> tuple[Declaration, str]:
    if _NAMES.search(seen.name):
        return None, "its name suggests that its values name people: never proposed"
    listed = _listed(seen)
    if listed is None:
        few = "no value is shared by enough units" if seen.common is not None else f"{seen.distinct:,} different values"
        return None, f"{few}: values that name people must not be in a plan, so none is proposed"
    left = f"; {seen.rare} rarer values are left out, and their rows are in no group" if seen.rare else ""
    return listed, f"values that at least {FEWEST} units have each{left}"


def _listed(seen: SeenColumn) -> Declaration:
    usable = seen.common and len(seen.common) <= _MOST_CATEGORIES and seen.kind in (Kind.TEXT, Kind.INTEGER)
    return {"categories": list(seen.common)} if usable and seen.common else None


def _bounded(seen: SeenColumn) -> Declaration:
    if seen.bounds is None:
        return None
    low, high = seen.bounds
    if isinstance(low, date) and isinstance(high, date):
        return _years(low, high)
    whole = seen.kind is Kind.INTEGER
    below, above = outwards(_exact(low), _exact(high), whole=whole)
    return {"low": _plain(below, whole), "high": _plain(above, whole)} | ({"whole": True} if whole else {})


def _years(low: date, high: date) -> Declaration:
    """Widen to whole years: a day is a person's own more often than a year is."""
    if isinstance(low, datetime):
        return {"low": datetime(low.year, 1, 1), "high": datetime(high.year, 12, 31, 23, 59, 59)}
    return {"low": date(low.year, 1, 1), "high": date(high.year, 12, 31)}


def _exact(value: Any) -> Fraction:
    return Fraction(value) if isinstance(value, int) else Fraction(str(value))


def _plain(value: Fraction, whole: bool) -> int | float:
    """Write a real bound with a point, which is how a plan tells real numbers from whole ones."""
    return int(value) if whole else float(value)


def _rounded_why(seen: SeenColumn) -> str:
    return f"{seen.kind.value}; rounded outwards, leaving out the outermost {FEWEST - 1} units at each end."


def _range_why(seen: SeenColumn) -> str:
    assert seen.bounds is not None
    return f"Without them values lie from {seen.bounds[0]} to {seen.bounds[1]}; what lies outside is clamped."
