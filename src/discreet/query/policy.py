"""The policy: whom to protect, which tables are public, and what a query may use of the machine."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, Literal, TypeAlias, final

from discreet.errors import InvalidParameter, Refused
from discreet.exact import Number, positive, positive_integer
from discreet.formatting import enumerated, record, with_article
from discreet.ledger.charge_record import ROW_OR_NONE
from discreet.names import escaped
from discreet.privacy.relation import Relation, read_relation

__all__ = [
    "INFERRED",
    "Chain",
    "FamilyChoice",
    "PublicTable",
    "Resources",
    "Unit",
    "UnitLimits",
    "called_units",
    "check_asked",
    "clock_changes",
    "counted_rows",
    "public",
]

# --- policy ---
# The custodian's word: whom to protect and which tables are public. Columns are declared as in `schema.columns`.


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY = 86_400  # seconds
_COMPOSED = "unit"  # What queries call a unit that is made of several columns, or of a window.
_WINDOWS = ("hour", "day", "week", "month", "quarter", "year")


@final
@dataclass(frozen=True, slots=True)
class Unit:
    """The privacy unit, whom to protect: everybody who shares a value of `column`, or each row by itself.

    With several columns, a unit is who shares all of them: patient 7 of one hospital is not patient 7 of another. With
    a `window` it is what somebody does within one hour, day, week, month, quarter or year: the guarantee is for one
    window, and for k windows of one person its ε is k times as large. Windows are half-open, in UTC or in the local
    time of a `zone`, where days have 23 or 25 hours when clocks change. Queries call such a unit `unit`: private tables
    are joined ON a.unit = b.unit, and a sub-query for each is grouped by it.

    A unit is counted in at most `max_groups` groups of an answer, taken at random if it is in more, and with at most
    `max_rows_per_group` of its rows in each. Fewer mean less noise and more bias.

    Under add-remove, whether somebody is in the data at all is hidden. Under replace-one, neighbours exchange all rows
    of one unit for any others, also for none: what is hidden is what somebody said, and not that they are one of the
    `units` that took part. How many these are is declared and never read; a unit may have no rows.

    Args:
        column: The column that identifies the unit, or several that do so together; "row" protects rows.
        max_groups: In how many groups of an answer a unit is counted at most (contribution bounding).
        max_rows_per_group: With how many of its rows in each at most.
        name: What one unit is called in all texts, such as "household"; the column's own name if left out. Changing it
            changes neither prices nor which answers were paid for.
        plural: What several are called, if that is not the English plural of `name`.
        window: The stretch of time that is protected, such as "day"; all times together if left out.
        time: The date or timestamp that tells the window of a row, in every private table.
        zone: In whose local time windows begin, such as "Europe/Berlin": times are moments then, stored in UTC or with
            their offset. Of days and longer windows, from 1900 to 2099; times beyond belong to nobody.
        rows_at_most: The most rows that one unit has in a private table, as is publicly known: it changes no answer.
            Totals of all rows can then be estimated beside those of the counted rows (`kept_share`).
        relation: The neighbouring relation.
        units: How many units there are, as everybody may know; for replace-one.

    Raises:
        InvalidParameter: If limits, a name or a window are said for rows, limits are not positive, a name is no plain
            words, a window has no time, or replace-one has no number of units.

    Examples:
        >>> dp.Unit("patient", max_groups=2).max_rows_per_group
        1
        >>> dp.Unit("SERIALNO", name="household").nouns
        'households'
        >>> dp.Unit("user", window="day", time="at").noun
        'day of one user'
        >>> dp.Unit("patient", relation=dp.Relation.REPLACE_ONE, units=12_000).known
        '12,000 different values of patient, as declared'
    """

    column: str | Sequence[str]  # "row" protects rows; a column of that name cannot be the unit
    max_groups: int = 1
    max_rows_per_group: int = 1
    name: str | None = field(default=None, kw_only=True)
    plural: str | None = field(default=None, kw_only=True)
    window: str | None = field(default=None, kw_only=True)
    time: str | None = field(default=None, kw_only=True)
    zone: str = field(default="UTC", kw_only=True)
    rows_at_most: int | None = field(default=None, kw_only=True)
    relation: Relation = field(default=Relation.ADD_REMOVE, kw_only=True)
    units: int | None = field(default=None, kw_only=True)

    __repr__ = record

    def __post_init__(self) -> None:
        if not isinstance(self.column, str):
            columns = _read_columns(self.column)
            object.__setattr__(self, "column", columns[0] if len(columns) == 1 else columns)
        if not all(isinstance(column, str) and column for column in (self.called, *self.columns)):
            raise InvalidParameter('unit must name a column, several columns, or be "row"')
        if self.is_composed and "row" in self.columns:
            raise InvalidParameter(
                '"row" protects each row by itself, with its time: leave other columns and window out'
            )
        if self.column == ROW_OR_NONE:
            raise InvalidParameter(
                f'"{ROW_OR_NONE}" is what ledgers call rows under replace-one, so that a column of that name would '
                "share their account: rename the column"
            )
        self._check_window()
        for name in ("max_groups", "max_rows_per_group"):
            # As Python's own: whole numbers of NumPy wrap around where noise is scaled by them.
            object.__setattr__(self, name, int(positive_integer(getattr(self, name), name=name)))
        self._check_most()
        if self.is_row and (self.max_groups, self.max_rows_per_group) != (1, 1):
            raise InvalidParameter(
                "max_groups and max_rows_per_group are for a unit column: a row is in one group, once; leave them out"
            )
        self._check_words()
        self._check_relation()

    def _check_relation(self) -> None:
        object.__setattr__(self, "relation", read_relation(self.relation))
        if self.is_exchanged and self.units is None:
            raise InvalidParameter(
                "replace-one takes the number of units as public, and it is never read from the data: declare it, by "
                'units = 12000 in [unit] or dp.Unit("patient", relation="replace-one", units=12_000), or leave '
                "relation out"
            )
        if self.units is None:
            return
        if not self.is_exchanged:
            raise InvalidParameter(
                'units is how many there are, which add-remove hides: say relation="replace-one" too, or leave it out'
            )
        object.__setattr__(self, "units", int(positive_integer(self.units, name="units")))

    def _check_most(self) -> None:
        if self.rows_at_most is None:
            return
        most = int(positive_integer(self.rows_at_most, name="rows_at_most"))
        object.__setattr__(self, "rows_at_most", most)
        if self.is_row:
            raise InvalidParameter("rows_at_most is for a unit column: a row is one row; leave it out")
        if most < self.max_rows_per_group:
            raise InvalidParameter(
                f"rows_at_most must be at least max_rows_per_group = {self.max_rows_per_group}: it says how many rows "
                "a unit has, not how many are counted"
            )

    def _check_window(self) -> None:
        if (self.window is None) != (self.time is None):
            raise InvalidParameter('a window needs a time, and a time a window: say window="day", time="at"')
        if not isinstance(self.zone, str) or (self.zone != "UTC" and self.window in (None, "hour")):
            raise InvalidParameter(
                'zone says where days, weeks, months, quarters and years begin: say window="day", time="at", '
                'zone="Europe/Berlin", or leave it out'
            )
        if self.zone != "UTC":
            clock_changes(self.zone)  # Refuses what is no zone.
        if self.window is None:
            return
        if self.window not in _WINDOWS:
            raise InvalidParameter(f"window must be one of {', '.join(_WINDOWS)}")
        if not isinstance(self.time, str) or not self.time or self.time in self.columns:
            raise InvalidParameter(
                "time must name the column with the time, beside the columns that tell whom to protect"
            )

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
        return self.column == "row" and self.window is None

    @property
    def is_exchanged(self) -> bool:
        """Whether neighbours exchange the rows of a unit (replace-one), and do not add or remove one."""
        return self.relation is Relation.REPLACE_ONE

    @property
    def known(self) -> str:
        """How many there are, in a few words, where that is public; nothing where it is hidden."""
        return "" if self.units is None else f"{self.units:,} {self.nouns}, as declared"

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the data that tell units apart; none where rows are units."""
        if self.is_row:
            return ()
        return (self.column,) if isinstance(self.column, str) else tuple(self.column)

    @property
    def called(self) -> str:
        """What queries call it: the column, or `unit` where it is made of several or of a window; "row" for rows."""
        return self.column if isinstance(self.column, str) and self.window is None else _COMPOSED

    @property
    def noun(self) -> str:
        """What one unit is called."""
        if self.is_row:
            return self.called
        several = len(self.columns) > 1  # "each hospital and patient" would promise something to hospitals too
        whose = self.name or (f"combination of {enumerated(self.columns)}" if several else self.columns[0])
        return whose if self.window is None else f"{self.window} of one {whose}"

    @property
    def is_composed(self) -> bool:
        """Whether it is made of several columns, or of a window."""
        return not isinstance(self.column, str) or self.window is not None

    @property
    def identity(self) -> str:
        """What tells units apart, in a sentence: the columns, and the time of a window."""
        return enumerated(self.parts) if self.parts else self.called

    @property
    def missing(self) -> str:
        """What a row lacks that belongs to no unit, in a sentence: one of the columns, or the time."""
        return " or ".join(self.parts) if self.parts else self.called

    @property
    def parts(self) -> tuple[str, ...]:
        """The columns of the data that a unit is made of: those that tell units apart, and the time of a window."""
        return (*self.columns, *(() if self.time is None else (self.time,)))

    @property
    def shared(self) -> str:
        """What all rows of a unit have in common, in a sentence that is exact."""
        quoted = enumerated([f"“{column}”" for column in self.columns])
        values = f"one value of the column {quoted}"
        if len(self.columns) > 1:
            values = f"one value of each of the columns {quoted}"
        return values if self.window is None else f"{values} and one {self.window} of “{self.time}” in {self.zone}"

    @property
    def account(self) -> str:
        """What the ledger calls it: the column, or all that it is made of."""
        if self.is_row and self.is_exchanged:
            return ROW_OR_NONE  # Statistics of one call, which take the number of rows as public, charge for "row".
        if not self.is_composed:
            return self.called
        window = "" if self.window is None else f" per {self.window} of {json.dumps(self.time)} in {self.zone}"
        return json.dumps(list(self.columns)) + window

    @property
    def nouns(self) -> str:
        """What several are called."""
        if self.name is None:
            return "rows" if self.is_row else f"different values of {self.noun}"
        several = _plural(self.name) if self.plural is None else self.plural
        return several if self.window is None else f"{several}, each {self.window} by itself"

    @property
    def whom(self) -> str:
        """Who is protected together, in a few words that are exact."""
        if self.is_row:
            return "each row"
        shared = f"everybody who shares {with_article(enumerated(self.columns))}"
        whom = shared if self.name is None else f"each {self.name} ({shared})"
        return whom if self.window is None else f"{whom}, each {self.window} by itself ({self.several_windows})"

    @property
    def several_windows(self) -> str:
        """What the guarantee is for somebody who is in the data in several windows."""
        return f"for k {self.window}s of one person ε is k times as large"


@final
@dataclass(frozen=True, slots=True)
class Chain:
    """Two privacy units, one within the other: a person within a household, a day within a user.

    Each is protected with a budget of its own: every answer is charged to both, and admitted only if both admit it.
    That one is within the other is made true and not trusted: the inner unit names all columns of the outer one.

    Rows are bounded from inside out. Of an inner unit at most its own limits are counted, and of an outer unit at most
    `max_inner` inner units, those with the least secret tags. So one inner unit that leaves lets in at most one other,
    which changes an answer by up to twice its own limits; an outer unit changes it by up to `max_inner` times that.

    Args:
        outer: The unit that contains others, such as `Unit("household")`; it has no limits of its own and no window.
        inner: The unit within it, such as `Unit(["household", "person"])` or `Unit("user", window="day", time="at")`.
        max_inner: How many inner units of an outer one are counted at most.

    Raises:
        InvalidParameter: If the inner unit does not name the columns of the outer one, or limits are said of the outer.

    Examples:
        >>> chain = dp.Chain(dp.Unit("household"), dp.Unit(["household", "person"], name="person"), max_inner=5)
        >>> chain.inner.noun
        'person'
    """

    outer: Unit
    inner: Unit
    max_inner: int = field(kw_only=True)

    __repr__ = record

    def __post_init__(self) -> None:
        if not isinstance(self.outer, Unit) or not isinstance(self.inner, Unit) or self.outer.is_row:
            raise InvalidParameter(
                'a chain is of two units: dp.Chain(dp.Unit("household"), dp.Unit(["household", "person"]), max_inner=5)'
            )
        object.__setattr__(self, "max_inner", int(positive_integer(self.max_inner, name="max_inner")))
        if not set(self.outer.columns) <= set(self.inner.columns):
            raise InvalidParameter(
                f"the inner unit of a chain must name all columns of the outer one, {self.outer.identity}, and it is "
                f"{self.inner.identity}. Units that overlap, such as patient and doctor, cannot be protected together: "
                "whoever leaves changes what is kept of everybody they met. If one is within the other, say so: "
                f"dp.Unit({[*self.outer.columns, *self.inner.columns]!r})"
            )
        if self.outer.is_exchanged or self.inner.is_exchanged:
            raise InvalidParameter(
                "a chain is of units that come and go (add-remove): what an exchange of rows lets in was not shown. "
                "Leave relation and units out, or protect one unit under replace-one"
            )
        # Columns of data are found whatever the case of their names, and in any order they are the same unit.
        outer, inner = ({name.casefold() for name in unit.columns} for unit in (self.outer, self.inner))
        if self.outer.window is not None or (self.inner.window is None and inner == outer):
            raise InvalidParameter(
                "the outer unit of a chain has no window, and the inner one has a window or further columns"
            )
        if (self.outer.max_groups, self.outer.max_rows_per_group) != (1, 1):
            raise InvalidParameter(
                "limits of a chain are said of its inner unit, and max_inner says how many of them an outer unit has: "
                "leave max_groups and max_rows_per_group of the outer unit out"
            )

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the inner unit, those of the outer one first."""
        return (*self.outer.columns, *(one for one in self.inner.columns if one not in self.outer.columns))

    @property
    def whom(self) -> str:
        """Who is protected together, in a few words that are exact."""
        return f"{self.outer.whom}; and {self.inner.whom}"


_FIRST_YEAR, _LAST_YEAR = 1900, 2100  # of local time; rules of the future are those that are known today


@cache
def clock_changes(zone: str) -> tuple[tuple[int, int], ...]:
    """List since when (in UTC) local time is ahead of UTC by how much, in microseconds; the last is the end of it all.

    The list is part of a question: an engine needs no rules of its own, and where rules change the question is another.
    Python's zone data are looked at once a day, and a change is then found to the second.
    """
    from zoneinfo import ZoneInfo

    try:
        local = ZoneInfo(zone)
    except (KeyError, ValueError, OSError):
        raise InvalidParameter(
            f"there is no time zone {escaped(zone)!r} here: name one of the IANA database, such as Europe/Berlin; "
            "where the system has none, install the package tzdata"
        ) from None
    first, last = (int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) for year in (_FIRST_YEAR, _LAST_YEAR))

    def ahead(second: int) -> int:
        offset = (_EPOCH + timedelta(seconds=second)).astimezone(local).utcoffset()
        assert offset is not None
        return offset // timedelta(microseconds=1)

    found = [(first, ahead(first))]
    for day in range(first, last, _DAY):
        known, now = found[-1][1], ahead(day + _DAY)
        before, after = day, day + _DAY
        while now != known and after - before > 1:
            middle = (before + after) // 2
            before, after = (middle, after) if ahead(middle) == known else (before, middle)
        if now != known:
            found.append((after, now))
    return (*((since * 10**6, offset) for since, offset in found), (last * 10**6, 0))


def _read_columns(columns: Sequence[str]) -> tuple[str, ...]:
    if not isinstance(columns, (list, tuple)) or not columns or len(set(columns)) != len(columns):
        raise InvalidParameter('unit must name a column, or several different ones: dp.Unit(["hospital", "patient"])')
    return tuple(columns)


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


def called_units(unit: Unit | Chain) -> dict[str, str]:
    """Return what one unit is called in texts, by what the ledger calls it."""
    units = (unit.outer, unit.inner) if isinstance(unit, Chain) else (unit,)
    return {one.account: one.noun for one in units}


def counted_rows(unit: Unit) -> str:
    """Say of which rows values and confidence intervals are: where limits can cut, of those that are left."""
    return "all rows" if unit.is_row else "the counted rows"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyChoice:
    """One choice of rows for all tables of a family: at most so many of a unit, in all groups of a table together."""

    name: str
    max_rows: int | None = None  # None: as many as are counted in one group


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class UnitLimits:
    """Contribution limits of one question, at most those of the unit; None where the unit's own hold."""

    max_groups: int | None = None
    max_rows_per_group: int | None = None
    max_inner: int | None = None
    family: FamilyChoice | None = None  # whose tables count the same rows; None for a question by itself

    def check(self, unit: Unit, chain: Chain | None = None) -> None:
        """Refuse limits that are no positive whole numbers, are wider than the unit's, or are said of rows."""
        if self.max_inner is not None:
            most = 0 if chain is None else chain.max_inner
            if positive_integer(self.max_inner, name="max_inner") > most:
                said = "there is no chain of units: leave it out" if chain is None else f"it is at most {most}"
                raise InvalidParameter(f"max_inner may only be tightened: {said}")
        self._check_family(unit)
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

    def rows_in_family(self, unit: Unit) -> int | None:
        """Return how many rows of a unit are counted in all groups together; None for a table of no family."""
        if self.family is None or unit.is_row:
            return None
        return self.family.max_rows or self.max_rows_per_group or unit.max_rows_per_group

    def _check_family(self, unit: Unit) -> None:
        said = None if self.family is None else self.family.max_rows
        if said is None:
            return
        if unit.is_row:
            raise InvalidParameter("max_rows is for a unit column: a row is one row; leave it out")
        most = unit.max_groups * unit.max_rows_per_group
        if positive_integer(said, name="max_rows") > most:
            raise InvalidParameter(
                f"max_rows may be at most {most:,}, which is max_groups times max_rows_per_group of the unit: declare "
                "larger ones with the unit"
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
    tell how many rows there are. Without it a notebook shows these seconds by itself.

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


def check_asked(unit: Unit) -> None:
    """Refuse what is no question of a session, and was not shown to hold where the rows of a unit are exchanged."""
    if unit.is_exchanged:
        raise Refused(
            "this data set is under replace-one: a unit may have no rows, and the declared number of them is public",
            reason="what would be charged here takes the number of rows as public, or hides whether a unit is there: "
            "neither was shown to hold for units whose rows are exchanged",
            way_out="ask with session.sql, publish tables of a plan, or open another data set under add-remove",
        )
