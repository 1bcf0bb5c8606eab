"""How a column is declared, for statistics, SQL, learning and synthesis alike: its kind, its bounds, all its values.

Nothing here is ever read from data: a declaration says what is publicly known.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from enum import Enum
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias, final

from discreet.errors import InvalidParameter
from discreet.exact import Number, exact, exact_or_none, positive
from discreet.formatting import one_line, record

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "LONGEST_TEXT",
    "Bound",
    "Bounds",
    "Declared",
    "ExpressionFacts",
    "Kind",
    "arrow_type",
    "as_pairs",
    "between",
    "boolean",
    "categories",
    "check_format",
    "check_of_rows",
    "declaration_of",
    "listed_values",
    "number_format",
    "number_marks",
    "pair_of",
    "text",
    "time_at",
    "time_number",
]

# --- facts ---
# What is publicly known of a value before any data are read. Facts belong to a node of the tree of a query and never
# change: another column, even of the same name, is another node.


LONGEST_TEXT = 10_000  # Characters that functions of texts look at and return; longer texts are cut.


@final
class Kind(Enum):
    """The kinds of values; the engine stores each in one type of its own."""

    BOOLEAN = "boolean"
    INTEGER = "integer"  # 64 bits
    REAL = "real"  # a double
    TEXT = "text"
    DATE = "date"
    TIMESTAMP = "timestamp"  # microseconds, no time zone
    # Of a frame whose types follow from its rows, and are as private as they are:
    UNDECLARED = "not declared"  # a column that cannot be asked about
    IDENTITY = "identity"  # the column of the unit, of which only equality is asked

    @property
    def is_number(self) -> bool:
        return self in (Kind.INTEGER, Kind.REAL)

    @property
    def is_time(self) -> bool:
        return self in (Kind.DATE, Kind.TIMESTAMP)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ExpressionFacts:
    """Public knowledge of one expression. Bounds hold by construction: what is read is clamped, never trusted.

    A date counts in days and a timestamp in microseconds since the first of January 1970.
    """

    kind: Kind
    low: Fraction | None = None
    high: Fraction | None = None
    step: Fraction | None = None  # the declared grid of a real column
    members: tuple[Hashable, ...] | None = None  # every value apart from NULL that counts; others are as if not there
    nullable: bool = True

    __repr__ = record

    def __post_init__(self) -> None:
        if self.low is not None and self.high is not None and self.low > self.high:
            raise InvalidParameter("low must not be above high")

    @property
    def is_bounded(self) -> bool:
        """Whether both bounds are known."""
        return self.low is not None and self.high is not None


def arrow_type(kind: Kind) -> pa.DataType:
    """Return the type of a kind; it never depends on values."""
    import pyarrow as pa

    return {
        Kind.BOOLEAN: pa.bool_(),
        Kind.INTEGER: pa.int64(),
        Kind.REAL: pa.float64(),
        Kind.TEXT: pa.string(),
        Kind.DATE: pa.date32(),
        Kind.TIMESTAMP: pa.timestamp("us"),
        Kind.UNDECLARED: pa.string(),
        Kind.IDENTITY: pa.string(),
    }[kind]


# --- declarations ---


Bound: TypeAlias = Number | date | datetime
_EPOCH = datetime(1970, 1, 1)
_ISO = re.compile(r"\d{4}-\d\d-\d\d")
_DAY = len("2025-01-31")
_DAY_PARTS = ({"%Y", "%y"}, {"%m", "%b", "%B"}, {"%d"})
_PARTS = {"%H", "%I", "%M", "%S", "%f", "%p"}.union(*_DAY_PARTS)
_NUMBER = re.compile("1([., '_\u00a0\u202f]?)234([.,])56")
_MOST_MEMBERS = 1_000_000
_MOST_OF_UNIT = 10_000  # categories; each row is compared with all of them
_LONGEST_LABEL = 200  # characters


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """A declared column: its facts, and what takes the place of a missing value.

    `whole` says whether its numbers are whole; None leaves that to the type that it is stored in.

    Args:
        facts: What is publicly known of the column.
        missing: What takes the place of a missing value; None leaves it NULL.
        whole: Whether its numbers are whole; None leaves that to the type that it is stored in.
        format: How texts write dates and timestamps, as strptime knows it; or numbers, as 1234.56 would be.
        labels: What values of categories mean, as pairs of a value and its label.
        of_unit: Whether it is one value for each unit: the least of all that its rows have.

    Examples:
        >>> declared = dp.between(0, 120, whole=True)
        >>> declared.whole, declared.facts.high
        (True, Fraction(120, 1))
    """

    facts: ExpressionFacts
    missing: Fraction | None = None
    whole: bool | None = None
    format: str | None = None  # of texts: of dates None is ISO 8601, of numbers None is 1234.56
    labels: tuple[tuple[Hashable, str], ...] = ()  # what is shown beside a category; no part of what is asked
    of_unit: bool = False

    def __repr__(self) -> str:
        return _declaration(self)

    @property
    def step(self) -> Fraction | None:
        """The declared grid: a step, or whole numbers; None if neither is said."""
        return Fraction(1) if self.facts.step is None and self.whole else self.facts.step

    def stored_as(self, kind: Kind | None) -> ExpressionFacts:
        """Return the facts of a column that is stored as `kind`, None where its type tells nothing.

        Only what is stored as whole numbers, or said to be whole, is read so: nothing is rounded unless somebody says.
        """
        facts = self.facts
        if facts.kind is not Kind.INTEGER or facts.members is not None or self.whole is not None:
            return facts
        return facts if kind in (Kind.INTEGER, Kind.BOOLEAN) else replace(facts, kind=Kind.REAL)


def _declaration(self: Declared) -> str:
    """Write a declaration as somebody would say it."""
    facts, told = self.facts, {"missing": self.missing, "whole": self.whole, "format": self.format}
    own = "of_unit=True" if self.of_unit else ""
    if facts.kind is Kind.BOOLEAN:
        return f"boolean({own})"
    if facts.members is not None:
        return f"categories({one_line(list(facts.members))}{', ' if own else ''}{own})"
    if facts.low is None or facts.high is None:
        return f"text({own})" if facts.kind is Kind.TEXT else record(self)
    told |= {"of_unit": self.of_unit or None}
    ends = [time_at(facts.kind, end) if facts.kind.is_time else end for end in (facts.low, facts.high)]
    said = [f"{name}={one_line(value)}" for name, value in ({"step": facts.step} | told).items() if value is not None]
    return f"between({', '.join([*(str(e) if facts.kind.is_time else one_line(e) for e in ends), *said])})"


def between(
    low: Bound,
    high: Bound,
    *,
    step: Number | None = None,
    missing: Number | None = None,
    whole: bool | None = None,
    format: str | None = None,
    of_unit: bool = False,
) -> Declared:
    """Declare a column of numbers, dates or timestamps from `low` to `high`. What lies outside is clamped.

    Its numbers are whole if the column is stored as whole numbers and nothing here is a decimal (as 0.0 is), or with
    `whole=True`, which rounds what is not; else they are real, and compared as they are. Real numbers are rounded to
    multiples of `step` only to be added up; without one the step is finer than 2^-40 of the width.
    NULL, NaN and what does not parse stay NULL, or become `missing`. Texts are read as dates and timestamps by ISO
    8601, or by `format` as strptime knows it, such as "%d/%m/%Y"; as numbers by a decimal point, or by `format` as
    1234.56 would be written, such as "1.234,56". Other spellings are missing values.

    Args:
        low: The lower bound: a number, a date or a timestamp; these two also as text, such as "2025-01-31".
        high: The upper bound, of the same kind.
        step: The grid to which real numbers are rounded to be added up.
        missing: What takes the place of a missing value; it stays NULL if not said.
        whole: Whether numbers are whole; the type of the column decides if not said.
        format: How texts write dates and timestamps, as strptime knows it; or numbers, as 1234.56 would be.
        of_unit: Whether a unit has one value of it, such as a year of birth: every row then has the least of all rows
            of its unit in that table, and a group key that is made of such columns costs one group. In sessions only.

    Returns:
        The declaration of the column.

    Raises:
        InvalidParameter: If the bounds are in the wrong order, or something does not go together.

    Examples:
        >>> dp.between(0, 120, whole=True).facts.low
        Fraction(0, 1)
    """
    low, high = _bound(low), _bound(high)
    if isinstance(low, (date, datetime)) or isinstance(high, (date, datetime)):
        times = _between_times(low, high, (step, missing, whole))
        return replace(times, format=check_format(format), of_unit=_flag(of_unit))
    written = None if format is None else number_format(format)
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
    facts = ExpressionFacts(kind=kind, low=first, high=last, step=size)
    return Declared(facts=facts, missing=default, whole=whole, format=written, of_unit=_flag(of_unit))


def _flag(of_unit: bool) -> bool:
    if not isinstance(of_unit, bool):
        raise InvalidParameter("of_unit must be True or False")
    return of_unit


def number_format(format: str) -> str | None:
    """Check how a number is written, as 1234.56 would be: such as "1234,56" or "1.234,56"; None if as in SQL."""
    found = _NUMBER.fullmatch(format) if isinstance(format, str) else None
    if found is None or found[1] == found[2]:
        raise InvalidParameter(
            'the format of numbers must be how 1234.56 is written, such as "1234,56" or "1.234,56": with a point or a '
            "comma, and between thousands nothing, a point, a comma, a blank, ' or _. For dates, say low and high so"
        )
    return None if format == "1234.56" else format


def number_marks(format: str) -> tuple[str, str]:
    """Return what stands between thousands, and before decimals."""
    found = _NUMBER.fullmatch(format)
    assert found is not None
    return found[1], found[2]


def check_format(format: str | None) -> str | None:
    """Check a format of dates: every part of it means the same everywhere, and it names a day."""
    if format is None:
        return None
    parts = re.findall(r"%.?", format) if isinstance(format, str) else []
    if not parts or not set(parts) <= _PARTS or not format.isascii() or not format.isprintable():
        raise InvalidParameter(f"format must be a text of {' '.join(sorted(_PARTS))} and what stands between them")
    named = [len([part for part in parts if part in group]) for group in _DAY_PARTS]
    if named != [1, 1, 1] or len(set(parts)) != len(parts):
        raise InvalidParameter("format must name the year, the month and the day, and nothing twice")
    return format


def _bound(value: Bound) -> Bound:
    """Read a day or a time that is written by ISO 8601; numbers, and what is neither, come back as they are."""
    if not isinstance(value, str) or not _ISO.match(value):
        return value
    try:
        return date.fromisoformat(value) if len(value) == _DAY else datetime.fromisoformat(value)
    except ValueError:
        raise InvalidParameter(
            "a bound is no day of the calendar: write date(2025, 1, 31), datetime(2025, 1, 31, 12, 0) or the same as "
            'text, "2025-01-31" or "2025-01-31 12:00"'
        ) from None


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


def categories(
    values: Iterable[Hashable], *, labels: Mapping[Any, str] | None = None, of_unit: bool = False
) -> Declared:
    """Declare a column whose possible values are public: texts, or whole numbers. Rows with others are in no group.

    The list must be known without the data, as from a code book: one that is read off the rows tells who is in them.
    Where nobody knows it, `private_keys` finds it for a price.

    Values are codes: they are counted and grouped by, and never added up. Texts are compared as they are, so that
    "00100" is not 100.

    Args:
        values: The possible values: all texts, or all whole numbers.
        labels: What values mean, such as `{1: "male", 2: "female"}`: shown beside them, and public like them.
        of_unit: Whether a unit has one value of it, such as a country: every row then has the least of the listed ones
            in all rows of its unit in that table, and a group key that is made of such columns costs one group. In
            sessions only, and of at most 10,000 values.

    Returns:
        The declaration of the column.

    Raises:
        InvalidParameter: If values are of other kinds, or of two, or labels are of other values, or `of_unit` is said
            of too many.

    Examples:
        >>> dp.categories(["f", "m"]).facts.members
        ('f', 'm')
        >>> dp.categories([1, 2], labels={1: "male", 2: "female"}).labels
        ((1, 'male'), (2, 'female'))
    """
    members = _members(values)
    told = _labels(members, labels)
    if _flag(of_unit) and len(members) > _MOST_OF_UNIT:
        raise InvalidParameter(
            f"of_unit=True is for at most {_MOST_OF_UNIT:,} categories: list fewer, or declare text(of_unit=True)"
        )
    if all(isinstance(value, str) for value in members):
        return Declared(facts=ExpressionFacts(kind=Kind.TEXT, members=members), labels=told, of_unit=of_unit)
    if all(isinstance(value, int) and not isinstance(value, bool) for value in members):
        numbers = [Fraction(value) for value in members if isinstance(value, int)]
        facts = ExpressionFacts(kind=Kind.INTEGER, low=min(numbers), high=max(numbers), members=members)
        return Declared(facts=facts, labels=told, of_unit=of_unit)
    raise InvalidParameter("categories must be all texts or all whole numbers; declare `boolean()` for truth values")


def _labels(members: tuple[Hashable, ...], labels: Mapping[Any, str] | None) -> tuple[tuple[Hashable, str], ...]:
    """Check labels: each is one line of text, of a value that is listed."""
    if labels is None:
        return ()
    if not isinstance(labels, Mapping):
        raise InvalidParameter('labels must be a dictionary from values to texts, such as {1: "male", 2: "female"}')
    unknown = [value for value in labels if value not in members or isinstance(value, bool)]
    if unknown:
        raise InvalidParameter(f"labels name {unknown[0]!r}, which is none of the categories")
    for value, label in labels.items():
        if not isinstance(label, str) or not label.strip() or not label.isprintable() or len(label) > _LONGEST_LABEL:
            raise InvalidParameter(
                f"the label of {value!r} must be a text of one line, without control characters, of at most "
                f"{_LONGEST_LABEL} characters"
            )
    return tuple((member, labels[member]) for member in members if member in labels)


def _members(values: Iterable[Hashable]) -> tuple[Hashable, ...]:
    if isinstance(values, (str, bytes)):
        raise InvalidParameter("categories must be a sequence of values, not one text")
    members = tuple(_plain_member(value) for value in values)
    if not members or len(members) > _MOST_MEMBERS:
        raise InvalidParameter("categories must be at least one value, and at most a million")
    if len(set(members)) != len(members):
        raise InvalidParameter("categories must be distinct")
    return members


def _plain_member(value: Any) -> Hashable:
    """Return a text or number of numpy as one of Python; what is neither comes back as it is."""
    found: Hashable = value.item() if hasattr(value, "dtype") and getattr(value, "ndim", None) == 0 else value
    return found


def boolean(*, of_unit: bool = False) -> Declared:
    """Declare a column of truth values.

    Args:
        of_unit: Whether a unit has one value of it: the least of all rows of its unit in that table, false before true.

    Returns:
        The declaration of the column.

    Examples:
        >>> dp.boolean().facts.kind.value
        'boolean'
    """
    facts = ExpressionFacts(kind=Kind.BOOLEAN, low=Fraction(0), high=Fraction(1), members=(False, True))
    return Declared(facts=facts, of_unit=_flag(of_unit))


def text(*, of_unit: bool = False) -> Declared:
    """Declare a column of text of which nothing more is known.

    Args:
        of_unit: Whether a unit has one value of it: the least of all rows of its unit in that table, by its bytes.

    Returns:
        The declaration of the column.

    Examples:
        >>> dp.text().facts.kind.value
        'text'
    """
    return Declared(facts=ExpressionFacts(kind=Kind.TEXT), of_unit=_flag(of_unit))


# --- readers: What the parts of the package take for bounds, values or a column, read from one declaration. ---


Bounds: TypeAlias = tuple[Number, Number] | Declared


def declaration_of(said: object) -> Declared | None:
    """Return a declaration, or that of something that has one, as what was found privately; None of anything else."""
    found = said if isinstance(said, Declared) else getattr(said, "declared", None)
    return found if isinstance(found, Declared) else None


def pair_of(bounds: Any, *, name: str = "bounds", takes_grid: bool = False) -> tuple[Any, Any]:
    """Return low and high as they were said: by a pair, or by the declaration of a column of numbers.

    Whoever `takes_grid` reads step and missing of a declaration too; elsewhere these are refused, not dropped. That
    numbers are whole is a fact of the column, and bounds alone need not know it.
    """
    declared = declaration_of(bounds)
    check_of_rows(declared, name)
    if declared is not None and not takes_grid:
        _check_plain(declared, name)
    if declared is not None and (not declared.facts.is_bounded or declared.facts.kind.is_time):
        raise InvalidParameter(f"{name} must be a pair (low, high), or declare numbers as between(low, high) does")
    try:
        low, high = bounds if declared is None else (declared.facts.low, declared.facts.high)
    except (TypeError, ValueError):
        raise InvalidParameter(f"{name} must be a pair (low, high)") from None
    return low, high


def _check_plain(declared: Declared, name: str) -> None:
    said = {"step": declared.facts.step, "missing": declared.missing}
    unused = [f"{word}=" for word, value in said.items() if value is not None]
    if unused:
        raise InvalidParameter(
            f"{name} is declared with {', '.join(unused)}, which is not used here: declare between(low, high) alone, "
            "and say step= or missing= beside it where there is one, or round and fill in the column, value by value"
        )


def check_of_rows(declared: Declared | None, name: str) -> None:
    """Refuse a column that is said to have one value for each unit where nobody knows units."""
    if declared is not None and declared.of_unit:
        raise InvalidParameter(
            f"{name} is declared with of_unit=True, which sessions alone read: leave it out here, or ask in a session"
        )


def as_pairs(bounds: Any, *, name: str = "bounds") -> Any:
    """Put pairs in place of declarations, alone, in a list or by name; whatever else comes back as it is."""
    if declaration_of(bounds) is not None:
        return pair_of(bounds, name=name)
    if isinstance(bounds, Mapping):
        return {column: as_pairs(one, name=name) for column, one in bounds.items()}
    if isinstance(bounds, (list, tuple)) and any(declaration_of(one) is not None for one in bounds):
        return [as_pairs(one, name=name) for one in bounds]
    return bounds


def listed_values(values: Any, *, name: str = "this declaration") -> Any:
    """Return the values that a declaration lists; whatever else comes back as it is."""
    declared = declaration_of(values)
    if declared is None:
        return values
    check_of_rows(declared, name)
    if declared.facts.members is None:
        raise InvalidParameter(f"{name} does not list values: use categories([…])")
    return declared.facts.members


# --- calendar: Dates and timestamps as numbers: days, or microseconds, since the first of January 1970. ---


def time_number(value: date | datetime) -> Fraction:
    """Count a date in days and a timestamp in microseconds since 1970."""
    if isinstance(value, datetime):
        if value.tzinfo is not None:
            raise InvalidParameter("timestamps have no time zone here")
        return Fraction((value - _EPOCH) // timedelta(microseconds=1))
    return Fraction(value.toordinal() - _EPOCH.toordinal())


def time_at(kind: Kind, number: Fraction | int) -> date | datetime:
    """Return the date or timestamp that a number stands for; an error beyond the years 1 to 9999."""
    if kind is Kind.DATE:
        return date.fromordinal(_EPOCH.toordinal() + int(number))
    return _EPOCH + timedelta(microseconds=int(number))
