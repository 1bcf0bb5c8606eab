"""The policy: whom to protect, what is publicly known, and what a query may use of the machine."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import Any, Literal, TypeAlias, final

from discreet.errors import InvalidParameter
from discreet.exact import Number, exact, exact_or_none, positive, positive_integer
from discreet.query.column_types import ExpressionFacts, Kind

__all__ = [
    "ONLY_ADD_REMOVE",
    "Declared",
    "PublicTable",
    "Resources",
    "Unit",
    "between",
    "boolean",
    "categories",
    "public",
    "text",
]

# --- policy ---
# The custodian's word: whom to protect and what is publicly known. Nothing here is ever read from the data.


Bound: TypeAlias = Number | date | datetime
_EPOCH = datetime(1970, 1, 1)
_DAY_PARTS = ({"%Y", "%y"}, {"%m", "%b", "%B"}, {"%d"})
_PARTS = {"%H", "%I", "%M", "%S", "%f", "%p"}.union(*_DAY_PARTS)
_MOST_MEMBERS = 1_000_000


@final
@dataclass(frozen=True, slots=True)
class Unit:
    """The privacy unit, whom to protect: everybody who shares a value of `column`, or each row by itself.

    A unit is counted in at most `max_groups` groups of an answer, taken at random if it is in more, and with at most
    `max_rows_per_group` of its rows in each. Fewer mean less noise and more bias.

    Args:
        column: The column that identifies the unit; "row" protects rows.
        max_groups: In how many groups of an answer a unit is counted at most (contribution bounding).
        max_rows_per_group: With how many of its rows in each at most.

    Raises:
        InvalidParameter: If limits are said for rows, or are not positive.

    Examples:
        >>> dp.Unit("patient", max_groups=2).max_rows_per_group
        1
    """

    column: str  # "row" protects rows; a column of that name cannot be the unit
    max_groups: int = 1
    max_rows_per_group: int = 1

    def __post_init__(self) -> None:
        if not isinstance(self.column, str) or not self.column:
            raise InvalidParameter('unit must name a column, or be "row"')
        positive_integer(self.max_groups, name="max_groups")
        positive_integer(self.max_rows_per_group, name="max_rows_per_group")
        if self.is_row and (self.max_groups, self.max_rows_per_group) != (1, 1):
            raise InvalidParameter(
                "max_groups and max_rows_per_group are for a unit column: a row is in one group, once; leave them out"
            )

    @property
    def is_row(self) -> bool:
        return self.column == "row"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """A declared column: its facts, and what takes the place of a missing value.

    `whole` says whether its numbers are whole; None leaves that to the type that it is stored in.

    Args:
        facts: What is publicly known of the column.
        missing: What takes the place of a missing value; None leaves it NULL.
        whole: Whether its numbers are whole; None leaves that to the type that it is stored in.
        format: How dates and timestamps are written in texts, as strptime knows it.

    Examples:
        >>> declared = dp.between(0, 120, whole=True)
        >>> declared.whole, declared.facts.high
        (True, Fraction(120, 1))
    """

    facts: ExpressionFacts
    missing: Fraction | None = None
    whole: bool | None = None
    format: str | None = None  # of the texts that a date or timestamp is stored in; None for ISO 8601

    def stored_as(self, kind: Kind | None) -> ExpressionFacts:
        """Return the facts of a column that is stored as `kind`, None where its type tells nothing.

        Only what is stored as whole numbers, or said to be whole, is read so: nothing is rounded unless somebody says.
        """
        facts = self.facts
        if facts.kind is not Kind.INTEGER or facts.members is not None or self.whole is not None:
            return facts
        return facts if kind in (Kind.INTEGER, Kind.BOOLEAN) else replace(facts, kind=Kind.REAL)


def between(
    low: Bound,
    high: Bound,
    *,
    step: Number | None = None,
    missing: Number | None = None,
    whole: bool | None = None,
    format: str | None = None,
) -> Declared:
    """Declare a column of numbers, dates or timestamps from `low` to `high`. What lies outside is clamped.

    Its numbers are whole if the column is stored as whole numbers and nothing here is a decimal (as 0.0 is), or with
    `whole=True`, which rounds what is not; else they are real, and compared as they are. Real numbers are rounded to
    multiples of `step` only to be added up; without one the step is finer than 2^-40 of the width.
    NULL, NaN and what does not parse stay NULL, or become `missing`. Texts are read as dates and timestamps by ISO
    8601, or by `format` as strptime knows it, such as "%d/%m/%Y".

    Args:
        low: The lower bound: a number, a date or a timestamp.
        high: The upper bound, of the same kind.
        step: The grid to which real numbers are rounded to be added up.
        missing: What takes the place of a missing value; it stays NULL if not said.
        whole: Whether numbers are whole; the type of the column decides if not said.
        format: How dates and timestamps are written in texts, as strptime knows it.

    Returns:
        The declaration of the column.

    Raises:
        InvalidParameter: If the bounds are in the wrong order, or something does not go together.

    Examples:
        >>> dp.between(0, 120, whole=True).facts.low
        Fraction(0, 1)
    """
    if isinstance(low, (date, datetime)) or isinstance(high, (date, datetime)):
        return replace(_between_times(low, high, (step, missing, whole)), format=_read_format(format))
    if format is not None:
        raise InvalidParameter("format is for dates and timestamps: say low and high as such")
    first, last = exact(low, name="low"), exact(high, name="high")
    if not first < last:
        raise InvalidParameter("low must be below high")
    size = None if step is None else positive(step, name="step")
    default = exact_or_none(missing, name="missing")
    if default is not None and not first <= default <= last:
        raise InvalidParameter("missing must lie between low and high")
    given = [value for value in (first, last, size, default) if value is not None]
    can_be_whole = all(value.denominator == 1 for value in given)
    if whole and not can_be_whole:
        raise InvalidParameter("whole=True needs whole numbers as low, high, step and missing")
    likely = can_be_whole and isinstance(low, int) and isinstance(high, int)
    kind = Kind.INTEGER if whole or (whole is None and likely) else Kind.REAL
    return Declared(facts=ExpressionFacts(kind=kind, low=first, high=last, step=size), missing=default, whole=whole)


def _read_format(format: str | None) -> str | None:
    """Check a format: every part of it means the same everywhere, and it names a day."""
    if format is None:
        return None
    parts = re.findall(r"%.?", format) if isinstance(format, str) else []
    if not parts or not set(parts) <= _PARTS or not format.isascii() or not format.isprintable():
        raise InvalidParameter(f"format must be a text of {' '.join(sorted(_PARTS))} and what stands between them")
    named = [len([part for part in parts if part in group]) for group in _DAY_PARTS]
    if named != [1, 1, 1] or len(set(parts)) != len(parts):
        raise InvalidParameter("format must name the year, the month and the day, and nothing twice")
    return format


def _between_times(low: Bound, high: Bound, of_numbers: tuple[object, ...]) -> Declared:
    if any(value is not None for value in of_numbers):
        raise InvalidParameter("step, missing and whole are for numbers")
    if (
        not isinstance(low, date)
        or not isinstance(high, date)
        or isinstance(low, datetime) != isinstance(high, datetime)
    ):
        raise InvalidParameter("low and high must be two dates or two timestamps")
    kind = Kind.TIMESTAMP if isinstance(low, datetime) else Kind.DATE
    first, last = time_number(low), time_number(high)
    if not first < last:
        raise InvalidParameter("low must be before high")
    return Declared(facts=ExpressionFacts(kind=kind, low=first, high=last))


def time_number(value: date | datetime) -> Fraction:
    """Count a date in days and a timestamp in microseconds since 1970."""
    if isinstance(value, datetime):
        if value.tzinfo is not None:
            raise InvalidParameter("timestamps have no time zone here")
        return Fraction((value - _EPOCH) // timedelta(microseconds=1))
    return Fraction(value.toordinal() - _EPOCH.toordinal())


def categories(values: Iterable[Hashable]) -> Declared:
    """Declare a column whose possible values are public: texts, or whole numbers. Rows with others are in no group.

    Args:
        values: The possible values: all texts, or all whole numbers.

    Returns:
        The declaration of the column.

    Raises:
        InvalidParameter: If values are of other kinds, or of two.

    Examples:
        >>> dp.categories(["f", "m"]).facts.members
        ('f', 'm')
    """
    members = _members(values)
    if all(isinstance(value, str) for value in members):
        return Declared(facts=ExpressionFacts(kind=Kind.TEXT, members=members))
    if all(isinstance(value, int) and not isinstance(value, bool) for value in members):
        numbers = [Fraction(value) for value in members if isinstance(value, int)]
        return Declared(facts=ExpressionFacts(kind=Kind.INTEGER, low=min(numbers), high=max(numbers), members=members))
    raise InvalidParameter("categories must be all texts or all whole numbers; declare `boolean()` for truth values")


def _members(values: Iterable[Hashable]) -> tuple[Hashable, ...]:
    if isinstance(values, (str, bytes)):
        raise InvalidParameter("categories must be a sequence of values, not one text")
    members = tuple(values)
    if not members or len(members) > _MOST_MEMBERS:
        raise InvalidParameter("categories must be at least one value, and at most a million")
    if len(set(members)) != len(members):
        raise InvalidParameter("categories must be distinct")
    return members


def boolean() -> Declared:
    """Declare a column of truth values.

    Returns:
        The declaration of the column.

    Examples:
        >>> dp.boolean().facts.kind.value
        'boolean'
    """
    return Declared(facts=ExpressionFacts(kind=Kind.BOOLEAN, low=Fraction(0), high=Fraction(1), members=(False, True)))


def text() -> Declared:
    """Declare a column of text of which nothing more is known.

    Returns:
        The declaration of the column.

    Examples:
        >>> dp.text().facts.kind.value
        'text'
    """
    return Declared(facts=ExpressionFacts(kind=Kind.TEXT))


@final
@dataclass(frozen=True, slots=True)
class PublicTable:
    """A table that protects nobody: all of it may be read for free. `public` makes one.

    Args:
        table: The table, or the path of a file.

    Examples:
        >>> dp.public("cities.csv")
        PublicTable(table='cities.csv')
    """

    table: Any


def public(table: Any) -> PublicTable:
    """Mark a table as public: everybody may know every value in it.

    Args:
        table: A pandas, polars or Arrow table, or the path of a file.

    Returns:
        The table, marked.

    Examples:
        >>> dp.public("cities.csv").table
        'cities.csv'
    """
    return PublicTable(table)


UnitName: TypeAlias = Unit | Literal["row"]


# --- resources: How much a question may use of the machine. Part of the policy: an analyst cannot change it. ---


_LEAST_MEMORY = 64 << 20


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """Seconds from the charge to the answer, bytes of memory, threads, and who is told how the time goes.

    Rows are read in a process of its own: one for each question that is under way, which on Linux the kernel holds to
    `memory` and what its libraries take, 320 MB and 32 MB for each thread. It is killed if it overruns.

    `on_progress` gets the seconds that are gone and those that are allowed. It never hears how much is done: that would
    tell how many rows there are.

    Args:
        seconds: How long a question may take, from the charge to the answer.
        memory: How many bytes its rows may use.
        threads: How many threads; as many as the machine has, up to eight, if not said.
        on_progress: A function of the seconds that are gone and those that are allowed.

    Raises:
        InvalidParameter: If there is too little memory for any question.

    Examples:
        >>> dp.query.Resources(seconds=60, threads=2).threads
        2
    """

    seconds: Number = 600
    memory: int = 3 << 30
    threads: int | None = None  # as many as the machine has, up to eight
    on_progress: Callable[[float, float], None] | None = None

    def __post_init__(self) -> None:
        positive(self.seconds, name="seconds")
        if positive_integer(self.memory, name="memory") < _LEAST_MEMORY:
            raise InvalidParameter(f"memory must be at least {_LEAST_MEMORY:,} bytes")
        if self.threads is not None:
            positive_integer(self.threads, name="threads")
        if self.on_progress is not None and not callable(self.on_progress):
            raise InvalidParameter("on_progress must be a function of the seconds gone and the seconds allowed")


# --- refusals: Sentences that refuse, where several places say the same. ---


ONLY_ADD_REMOVE = (
    "a session hides whether somebody is in the data at all (add-remove of units): which rows a question keeps, and "
    "how many, depends on who is there, so replace-one would promise less for the same noise and take the number of "
    "units as public. Leave relation out"
)
