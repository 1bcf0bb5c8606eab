"""A release plan: everything that is published, and everything it may cost, said before any data are read.

All of it is public. It is written as one TOML file, and the file is part of what is published.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Literal, final

from discreet.query import Policy
from discreet.release.period import Schedule

__all__ = ["Allowance", "Invariant", "Level", "Output", "ReleasePlan", "RunningPlan", "SeenFact", "TablePlan", "Wish"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """What one release of all tables may spend together: epsilon alone, epsilon with delta, or rho.

    `split` says how it is divided among tables that name neither an error nor a price of their own: so that the worst
    relative error is smallest while each has at least half of an even part, or evenly.
    """

    epsilon: Fraction | None = None
    delta: Fraction | None = None
    rho: Fraction | None = None
    split: Literal["accuracy", "even"] = "accuracy"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What one table should cost or reach: at most one of these; none takes what the split gives it."""

    share: Fraction | None = None  # of what one release may spend
    epsilon: Fraction | None = None
    rho: Fraction | None = None
    error: Fraction | None = None  # the largest ±, at 95 %
    relative_error: Fraction | None = None  # the largest ± as a part of the expected value


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TablePlan:
    """One table that is published. A list of columns to group by has become the SQL that it stands for."""

    name: str
    title: str
    sql: str
    wish: Wish = field(default_factory=Wish)
    expected: Mapping[str, Fraction] = field(default_factory=dict)  # by column; "*" is rows of a typical group
    delta: Fraction | None = None  # for groups that nobody listed
    keys: Mapping[str, tuple[Hashable, ...]] = field(default_factory=dict)  # listed here rather than with the source
    family: str | None = None  # tables of one family count the same rows and add up; None for a table by itself
    by: tuple[str, ...] = ()  # the columns and levels it is grouped by, for a member of a family
    measures: Mapping[str, str] = field(default_factory=dict)  # column to aggregate, for a member of a family


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """A coarser grouping of a column or of another level: `members` lists what each of its values is made of."""

    name: str
    of: str
    members: Mapping[Hashable, tuple[Hashable, ...]]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Invariant:
    """A number that everybody knows: typed into the plan, never read from the data, and named in the guarantee.

    It is the value of a column of a table in the row of `where`; tidy values respect it, raw ones do not know it.
    """

    table: str
    column: str
    value: Fraction
    where: Mapping[str, Hashable]
    reason: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RunningPlan:
    """A series of totals so far, one for each day from `first` on, paid for once for all its days.

    The unit's contributions are bounded over the whole series by `max_days`; or, with `person_day`, each day of a
    unit is protected by itself, and the guarantee says so.
    """

    name: str
    title: str
    source: str
    day: str  # the column with the day
    first: str  # ISO date
    days: int
    where: str | None = None
    max_days: int = 1  # on how many days of the series one unit is counted at most
    person_day: bool = False
    wish: Wish = field(default_factory=Wish)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SeenFact:
    """A field of a plan that was read from the data when it was drafted: exact, not paid for, and not protected."""

    field: str  # its place, such as tables.stays.columns.age
    value: str  # what it says, as it is written in the plan


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """What is written, and where."""

    folder: Path
    formats: tuple[Literal["csv", "parquet"], ...] = ("csv", "parquet")
    tidy: bool = True  # write tidy values beside the raw ones
    zip: bool = True
    key: Path | None = None  # the private key that signs bundles


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasePlan:
    """What is published about a data set, on which schedule, and for which price."""

    name: str  # letters, digits, - and _: it is in names of folders and in keys of the ledger
    title: str
    policy: Policy  # sources, unit, lifetime budget, ledger
    allowance: Allowance
    tables: tuple[TablePlan, ...]
    schedule: Schedule
    output: Output
    publisher: str = ""
    contact: str = ""
    running: tuple[RunningPlan, ...] = ()
    levels: tuple[Level, ...] = ()
    invariants: tuple[Invariant, ...] = ()
    from_data: tuple[SeenFact, ...] = ()  # what was read from the data for this plan, at no price
    written: str = ""  # the file, as it was read
    file: str = ""  # its name, for messages
