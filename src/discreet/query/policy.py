"""The policy: whom to protect, which tables are public, and what a query may use of the machine."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, final

from discreet.errors import InvalidParameter
from discreet.exact import Number, positive, positive_integer
from discreet.formatting import record

__all__ = [
    "INFERRED",
    "ONLY_ADD_REMOVE",
    "PublicTable",
    "Resources",
    "Unit",
    "UnitLimits",
    "counted_rows",
    "public",
]

# --- policy ---
# The custodian's word: whom to protect and which tables are public. Columns are declared as in `schema.columns`.


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
        name: What one unit is called in all texts, such as "household"; the column's own name if left out. Changing it
            changes neither prices nor which answers were paid for.
        plural: What several are called, if that is not the English plural of `name`.

    Raises:
        InvalidParameter: If limits or a name are said for rows, limits are not positive, or a name is no plain words.

    Examples:
        >>> dp.Unit("patient", max_groups=2).max_rows_per_group
        1
        >>> dp.Unit("SERIALNO", name="household").nouns
        'households'
    """

    column: str  # "row" protects rows; a column of that name cannot be the unit
    max_groups: int = 1
    max_rows_per_group: int = 1
    name: str | None = field(default=None, kw_only=True)
    plural: str | None = field(default=None, kw_only=True)

    __repr__ = record

    def __post_init__(self) -> None:
        if not isinstance(self.column, str) or not self.column:
            raise InvalidParameter('unit must name a column, or be "row"')
        positive_integer(self.max_groups, name="max_groups")
        positive_integer(self.max_rows_per_group, name="max_rows_per_group")
        if self.is_row and (self.max_groups, self.max_rows_per_group) != (1, 1):
            raise InvalidParameter(
                "max_groups and max_rows_per_group are for a unit column: a row is in one group, once; leave them out"
            )
        self._check_words()

    def _check_words(self) -> None:
        if self.plural is not None and self.name is None:
            raise InvalidParameter('plural is of a name: say name="household" too, or leave it out')
        for what, said in (("name", self.name), ("plural", self.plural)):
            if said is None:
                continue
            if self.is_row:
                raise InvalidParameter(
                    f'{what} is for a unit column: unit="row" protects rows, and a text that calls a row a person '
                    "would promise what does not hold. Leave it out, or name the column that tells people apart"
                )
            _check_noun(what, said)

    @property
    def is_row(self) -> bool:
        return self.column == "row"

    @property
    def noun(self) -> str:
        """What one unit is called."""
        return self.column if self.name is None else self.name

    @property
    def nouns(self) -> str:
        """What several are called."""
        if self.name is None:
            return "rows" if self.is_row else f"different values of {self.column}"
        return _plural(self.name) if self.plural is None else self.plural

    @property
    def whom(self) -> str:
        """Who is protected together, in a few words that are exact."""
        if self.is_row:
            return "each row"
        shared = f"everybody who shares a {self.column}"
        return shared if self.name is None else f"each {self.name} ({shared})"


_LONGEST_NOUN = 40
_JOINS = " -'’"


def _check_noun(what: str, said: str) -> None:
    """Take words only: a number, a sign or an invisible letter could make a promise of a text that it stands in."""
    if not isinstance(said, str) or not 0 < len(said) <= _LONGEST_NOUN:
        raise InvalidParameter(f"{what} must be a text of at most {_LONGEST_NOUN} letters, such as household")
    joined = any(letter in _JOINS for letter in (said[0], said[-1])) or "  " in said
    if joined or not all(letter in _JOINS or unicodedata.category(letter)[0] in "LM" for letter in said):
        raise InvalidParameter(
            f"{what} must be plain words, such as household: letters, with single spaces, hyphens or apostrophes "
            "between them"
        )


def _plural(noun: str) -> str:
    """Return the regular plural of an English noun."""
    if noun.endswith("y") and noun[-2:-1] not in tuple("aeiou"):
        return f"{noun[:-1]}ies"
    return f"{noun}es" if noun.endswith(("s", "x", "z", "ch", "sh")) else f"{noun}s"


def counted_rows(unit: Unit) -> str:
    """Say of which rows values and confidence intervals are: where limits can cut, of those that are left."""
    return "all rows" if unit.is_row else "the counted rows"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class UnitLimits:
    """Contribution limits of one question, at most those of the unit; None where the unit's own hold."""

    max_groups: int | None = None
    max_rows_per_group: int | None = None

    def check(self, unit: Unit) -> None:
        """Refuse limits that are no positive whole numbers, are wider than the unit's, or are said of rows."""
        for name in ("max_groups", "max_rows_per_group"):
            said = getattr(self, name)
            if said is None:
                continue
            if unit.is_row:
                raise InvalidParameter(f"{name} is for a unit column: a row is in one group, once; leave it out")
            most = getattr(unit, name)
            if positive_integer(said, name=name) > most:
                raise InvalidParameter(
                    f"{name} may only be tightened: the unit allows at most {most}. Declare a larger {name} with the "
                    "unit, and smaller ones where fewer are enough"
                )


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

    __repr__ = record

    def __post_init__(self) -> None:
        positive(self.seconds, name="seconds")
        if positive_integer(self.memory, name="memory") < _LEAST_MEMORY:
            raise InvalidParameter(f"memory must be at least {_LEAST_MEMORY:,} bytes")
        if self.threads is not None:
            positive_integer(self.threads, name="threads")
        if self.on_progress is not None and not callable(self.on_progress):
            raise InvalidParameter("on_progress must be a function of the seconds gone and the seconds allowed")


# --- refusals: Sentences that refuse, where several places say the same. ---


INFERRED = "the types of a pandas frame follow from its rows: one missing value or one text changes them, and so tells"
ONLY_ADD_REMOVE = (
    "a session hides whether somebody is in the data at all (add-remove of units): which rows a question keeps, and "
    "how many, depends on who is there, so replace-one would promise less for the same noise and take the number of "
    "units as public. Leave relation out"
)
