"""A release plan: everything that is published, and everything it may cost, said before any data are read.

All of it is public. It is written as one TOML file, and the file is part of what is published.
"""

from __future__ import annotations

import tomllib
from collections.abc import Hashable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from enum import Enum
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, final

from discreet.errors import InvalidParameter, Refused
from discreet.formatting import enumerated, shortened
from discreet.query.catalogue import Catalogue, CatalogueColumn, CatalogueTable
from discreet.query.policy import PublicTable, UnitLimits, public
from discreet.query.session.catalogue_builder import build_catalogue
from discreet.query.session.engine_choice import open_here
from discreet.query.session.policy_file import Policy
from discreet.schema.columns import Kind, between
from discreet.schema.toml_document import Place, line_of, parse

if TYPE_CHECKING:
    from discreet.query.engine import Engine

__all__ = [
    "Allowance",
    "Every",
    "Invariant",
    "Level",
    "Output",
    "Period",
    "ReleasePlan",
    "RunningPlan",
    "Schedule",
    "SeenFact",
    "TablePlan",
    "Wish",
    "catalogue_in",
    "catalogue_of",
    "located",
    "place_of",
    "release_key",
    "running_key",
    "told_at",
]

# --- period: Periods: a plan that repeats releases once for each stretch of time, and never twice for the same. ---


@final
class Every(Enum):
    """How often a plan releases."""

    ONCE = "once"
    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    QUARTER = "quarter"
    YEAR = "year"


_MONTHS = {Every.MONTH: 1, Every.QUARTER: 3, Every.YEAR: 12}
_DAYS = {Every.DAY: 1, Every.WEEK: 7}
_SHOWN = 300  # Characters of the names of tables in what a plan shows of itself.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """A stretch of time: its first day, and the day after its last. A plan that releases once has neither."""

    label: str  # such as 2026-10, unique within a plan; in names of folders and in keys of the ledger
    first: date | None = None
    end: date | None = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """When a plan releases: periods follow each other from `first` on, without gaps and without overlap.

    With `column`, a date or timestamp of every private source, a release is about rows of its period only.
    """

    every: Every = Every.ONCE
    first: date | None = None  # the first day of the first period
    column: str | None = None

    def __post_init__(self) -> None:
        if (self.every is Every.ONCE) != (self.first is None):
            raise InvalidParameter('say the first day of the first period, or every = "once" without one')
        if self.every is Every.ONCE and self.column is not None:
            raise InvalidParameter("a plan that releases once has no periods: leave the column out")
        if self.first is not None and self.every in _MONTHS and self.first.day > 28:
            raise InvalidParameter("a period of months begins on a day from 1 to 28")

    @property
    def another(self) -> str:
        """How to release again, to whoever tries what was released already."""
        if self.every is Every.ONCE:
            return "for another release, add [schedule], or give the plan another `name`"
        return "for another release, say another --period, or give the plan another `name`"

    def period(self, number: int) -> Period:
        """Return a period by its number, the first being 0."""
        if self.first is None:
            if number:
                raise InvalidParameter("this plan releases once")
            return Period(label="once")
        return self._labelled(self._start(number), self._start(number + 1))

    def containing(self, day: date) -> Period:
        """Return the period that a day is in."""
        return self.period(self._number(day))

    def until(self, day: date) -> tuple[Period, ...]:
        """Return all periods that have ended before a day, in order."""
        if self.first is None:
            return (self.period(0),)
        if day <= self.first:
            return ()
        return tuple(self.period(number) for number in range(self._number(day)))

    def _number(self, day: date) -> int:
        if self.first is None:
            return 0
        if day < self.first:
            raise InvalidParameter(f"the first period begins on {self.first}")
        number = (day - self.first).days // (_DAYS[self.every] if self.every in _DAYS else 28 * _MONTHS[self.every])
        while self._start(number) > day:
            number -= 1
        return number

    def _start(self, number: int) -> date:
        assert self.first is not None
        if self.every in _DAYS:
            return self.first + timedelta(days=number * _DAYS[self.every])
        months = self.first.month - 1 + number * _MONTHS[self.every]
        return self.first.replace(year=self.first.year + months // 12, month=months % 12 + 1)

    def _labelled(self, start: date, end: date) -> Period:
        return Period(label=self._label(start), first=start, end=end)

    def _label(self, start: date) -> str:
        if start.day != 1 or self.every in _DAYS:
            return start.isoformat()
        match self.every:
            case Every.YEAR if start.month == 1:
                return f"{start.year}"
            case Every.QUARTER if start.month % 3 == 1:
                return f"{start.year}-Q{start.month // 3 + 1}"
        return f"{start.year}-{start.month:02d}"


# --- keys ---
# Under which keys the ledger has what a plan releases: a release of a period is charged once, and so is a series.


def release_key(plan: object, label: object) -> str:
    """Return the key of the release of a period, from the name of the plan and the label of the period."""
    return f"release/{plan}/{label}"


def running_key(plan: object, series: object) -> str:
    """Return the key of a series, from the name of the plan and its own."""
    return f"running/{plan}/{series}"


# --- plan_declarations ---
# What a plan declares, as a catalogue: private files are never opened, so a plan is priced where there are no data.


def catalogue_of(plan: ReleasePlan, tables: Mapping[str, Any] | None = None) -> Catalogue:
    """Describe the tables of a plan from what it declares. Public tables are read, from their source or as handed over.

    A private table has the columns that are declared, and the one that tells units apart, which is taken for text.
    """
    policy, given = plan.policy, dict(tables or {})
    sources = {name: _source(policy, name, given) for name in policy.tables}
    with ExitStack() as opened:
        schemas = _DeclaredSchemas(policy, _public_engine(sources, opened))
        columns = {name: table.columns for name, table in policy.tables.items()}
        return build_catalogue(schemas, sources, unit=policy.counted, columns=columns, chain=policy.chain)


def catalogue_in(catalogue: Catalogue, plan: ReleasePlan, period: Period) -> Catalogue:
    """Narrow the column of the schedule to a period. It is for made-up rows: real ones would be clamped into it."""
    column = (plan.schedule.column or "").casefold()
    if not column or period.first is None or period.end is None:
        return catalogue
    bounds = {
        Kind.DATE: between(period.first, period.end - timedelta(days=1)),
        Kind.TIMESTAMP: between(_moment(period.first), _moment(period.end) - timedelta(microseconds=1)),
    }

    def narrowed(table: CatalogueTable) -> CatalogueTable:
        columns = {
            name: replace(one, facts=bounds[one.facts.kind].facts) if name.casefold() == column else one
            for name, one in table.columns.items()
        }
        return replace(table, columns=columns) if table.private else table

    return replace(catalogue, tables={name: narrowed(table) for name, table in catalogue.tables.items()})


def _moment(day: date) -> datetime:
    return datetime(day.year, day.month, day.day)


def _source(policy: Policy, name: str, given: Mapping[str, Any]) -> Any:
    """Return a public table; of a private one nothing is needed but that it is one."""
    if not policy.tables[name].public:
        return None
    source = policy.tables[name].handed(given.get(name))
    if source is None:
        raise InvalidParameter(f"public table {name!r} has no source in the plan: name one, or hand it over in tables=")
    return public(source)


def _public_engine(sources: Mapping[str, Any], opened: ExitStack) -> Engine | None:
    known = {name: table for name, table in sources.items() if isinstance(table, PublicTable)}
    if not known:
        return None
    engine = open_here(known)
    opened.callback(engine.close)
    return engine


@final
class _DeclaredSchemas:
    """Schemas of private tables as they are declared, and of public ones as they are."""

    def __init__(self, policy: Policy, engine: Engine | None) -> None:
        self._policy, self._engine = policy, engine

    def columns(self, table: str) -> Mapping[str, Kind]:
        unit, declared = self._policy.counted, self._policy.tables[table].columns
        # A format is for texts: a column that has one is stored so.
        kinds = {name: column.facts.kind if column.format is None else Kind.TEXT for name, column in declared.items()}
        if not kinds and unit.is_row:
            raise InvalidParameter(
                f"nothing is declared of table {table!r}: declare the columns that questions name, such as "
                'age = { low = 0, high = 120 } or note = { kind = "text" }'
            )
        return dict.fromkeys(unit.columns, Kind.TEXT) | kinds

    def infers_types(self, table: str) -> bool:
        return False

    def public_columns(self, table: str) -> Mapping[str, CatalogueColumn]:
        return self._public.public_columns(table)

    def public_is_unique(self, table: str, columns: frozenset[str]) -> bool:
        return self._public.public_is_unique(table, columns)

    def public_rows(self, table: str) -> int:
        return self._public.public_rows(table)

    @property
    def _public(self) -> Engine:
        assert self._engine is not None
        return self._engine


# --- places: Where a plan file says something, so that what is found wrong later still names the line. ---


def place_of(plan: ReleasePlan, table: str, *words: str) -> Place:
    """Return where a published table is said, down to the first of the words that is there; () if it is not."""
    said = next((one for one in plan.tables if one.name == table), None)
    if said is not None and said.kept_of is not None:
        return place_of(plan, said.kept_of, "kept_share", *words)
    name = table if said is None or said.family is None else said.family
    for part in ("publish", "running"):
        for index, entry in enumerate(_document(plan).get(part, ())):
            if entry.get("name") == name:
                word = next((word for word in words if word in entry), None)
                return (part, index) if word is None else (part, index, word)
    return ()


def told_at(plan: ReleasePlan, place: Place, text: str, *, below: int = 0) -> str:
    """Say something of a place; `below` is how many lines further down it stands, in a text of many lines."""
    if not plan.written:
        return text
    where = ".".join(map(str, place)) or "the file"
    line = line_of(plan.written, place) + below
    return f"{plan.file or 'plan'}, line {line}, {where}: {text}"


def located(plan: ReleasePlan, place: Place, error: InvalidParameter | Refused) -> InvalidParameter | Refused:
    """Return the same error with its place in the plan file."""
    if isinstance(error, InvalidParameter):
        return InvalidParameter(told_at(plan, place, str(error)))
    below = 0 if error.line is None else _first_line(plan, place) + error.line - 1
    return Refused(
        told_at(plan, place, error.problem, below=below),
        reason=error.reason,
        way_out=error.way_out,
        line=error.line,
        column=error.column,
        excerpt=error.excerpt,
        caret=error.caret,
    )


def _first_line(plan: ReleasePlan, place: Place) -> int:
    """Return how many lines below its name a text begins: one if it begins on a line of its own."""
    if not plan.written:
        return 0
    line = plan.written.splitlines()[line_of(plan.written, place) - 1]
    return 1 if line.rstrip().endswith(('"""', "'''")) else 0


def _document(plan: ReleasePlan) -> dict[str, Sequence[dict[str, object]]]:
    try:
        return parse(plan.written)
    except tomllib.TOMLDecodeError:
        return {}


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
    limits: UnitLimits = field(default_factory=UnitLimits)  # tighter than the unit's, where fewer rows are enough
    quantile_intervals: bool = False  # whether quantiles pay for a ±
    population: bool = False  # whether that of means and quantiles is for what rows were drawn from
    aim: str | None = None  # what the noise that a family shares is best for; "apart" if it shares none
    weight: Fraction = Fraction(1)  # of this table in it
    kept_of: str | None = None  # the table whose kept share this is: what contribution limits leave out of it

    def kept(self, share: Fraction) -> TablePlan:
        """Return the table that tells how much of this one's rows limits leave out, for a share of a release."""
        return replace(
            self,
            name=f"{self.name}_kept",
            title=f"{self.title}: what is counted",
            wish=Wish(share=share),
            expected={},
            delta=None,
            family=None,
            by=(),
            measures={},
            quantile_intervals=False,
            population=False,
            aim=None,
            weight=Fraction(1),
            kept_of=self.name,
        )


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

    def __repr__(self) -> str:
        names = enumerated([repr(one.name) for one in self.tables] or ["no tables"])
        return f"ReleasePlan({self.name!r}, {self.title!r}: {shortened(names, _SHOWN)})"
