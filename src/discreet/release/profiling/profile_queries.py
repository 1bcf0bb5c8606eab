"""What a profile asks: its columns, how the budget is divided among them, and the rounds of queries."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import final

from discreet.errors import InvalidParameter
from discreet.ledger import Account, Budget, Ledger
from discreet.noise.laws import DiscreteLaplaceLaw, RoundedGaussianLaw
from discreet.privacy import epsilon as tight_epsilon
from discreet.privacy.events import ApproxDP, Composed, Event, Gaussian, PureDP, Repeated
from discreet.privacy.relation import Relation
from discreet.query import Plan, ReleaseTable, Session, Unit
from discreet.query.catalogue import CatalogueColumn, CatalogueTable
from discreet.query.plan.measurements import plain_value
from discreet.query.policy import INFERRED
from discreet.query.session.builder import name
from discreet.query.session.catalogue_builder import nearest
from discreet.release.profiling.cells import Bound, ListedCells, Partition, Presence, declared_cells
from discreet.schema.columns import ExpressionFacts, Kind, number_marks

__all__ = [
    "ROUNDS",
    "UNITS",
    "ColumnSearch",
    "Division",
    "ProfiledColumn",
    "ask",
    "count_cells",
    "count_units",
    "divide",
    "find_values",
    "named",
    "share_of",
    "subjects_of",
]

# --- subjects ---
# What is profiled: every column but the unit's, with what is publicly known of it. No row is looked at.


_OPEN = Presence()


@final
class ColumnSearch(Enum):
    """What has to be found, and paid for, before a column can be counted."""

    NOTHING = "nothing"
    NUMBERS = "bounds of numbers"
    TIMES = "bounds of times"
    VALUES = "values"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ProfiledColumn:
    """A column: as what it is counted, and either its public cells or what to search for."""

    name: str
    kind: Kind
    value: str  # SQL
    search: ColumnSearch
    cells: Partition = _OPEN
    basis: str  # where the cells come from, in words

    @property
    def is_open(self) -> bool:
        """Whether only how much is missing can be counted."""
        return self.search is ColumnSearch.NOTHING and isinstance(self.cells, Presence)


def subjects_of(
    table: CatalogueTable, *, numbers: Iterable[str], dates: Iterable[str], with_delta: bool
) -> tuple[ProfiledColumn, ...]:
    """List the columns of a table. Texts that hold numbers or dates are read so where the custodian says so."""
    read_as = _read_as(table, numbers, dates)
    columns = (column for column in table.columns.values() if column.name != table.unit)
    format = None if table.csv is None else table.csv.number_format
    found = tuple(_subject(column, read_as.get(column.name), with_delta, format) for column in columns)
    if not found:
        raise InvalidParameter(
            f"table {table.name!r} has no column besides {table.unit!r}: there is nothing to profile"
        )
    return found


def _read_as(table: CatalogueTable, numbers: Iterable[str], dates: Iterable[str]) -> dict[str, Kind]:
    said: dict[str, Kind] = {}
    for kind, names in ((Kind.REAL, numbers), (Kind.DATE, dates)):
        for wanted in names:
            column = _column(table, wanted)
            if column.facts.kind is kind and not column.facts.is_bounded:
                continue  # Its file declares so.
            if column.facts.kind is not Kind.TEXT or column.facts.members is not None:
                raise InvalidParameter(f"column {wanted!r} is no text of which nothing is declared: leave it out here")
            if said.setdefault(column.name, kind) is not kind:
                raise InvalidParameter(f"column {wanted!r} cannot be read as a number and as a date: say one of them")
    return said


def _column(table: CatalogueTable, wanted: str) -> CatalogueColumn:
    for column in table.columns.values():
        if column.name.casefold() == wanted.casefold() and column.name != table.unit:
            return column
    raise InvalidParameter(f"table {table.name!r} has no column {wanted!r}. {nearest(wanted, table.columns)}")


def _subject(column: CatalogueColumn, read_as: Kind | None, with_delta: bool, format: str | None) -> ProfiledColumn:
    facts, value = column.facts, name(column.name)
    if facts.kind is Kind.UNDECLARED:
        raise InvalidParameter(
            f"nothing is declared of column {column.name!r}: {INFERRED}. Declare it in columns=, leave it out of the "
            "frame, or hand the table over as Arrow or polars"
        )
    if read_as is not None:
        written = f"CAST({value} AS DATE)" if read_as is Kind.DATE else f"CAST({_number(value, format)} AS DOUBLE)"
        return _searched(column.name, read_as, written, with_delta)
    if facts.kind is Kind.BOOLEAN:
        cells: Partition = ListedCells((False, True), rest=False)
        return _known(column.name, facts.kind, value, cells, "true or false, by its type")
    if facts.members is not None:
        return _known(column.name, facts.kind, value, ListedCells(facts.members), "the values that were declared")
    if facts.is_bounded:
        low, high = _bounds(facts)
        cells = declared_cells(low, high, facts.kind)
        return _known(column.name, facts.kind, value, cells, "between the bounds that were declared")
    return _searched(column.name, facts.kind, value, with_delta)


def _number(value: str, format: str | None) -> str:
    """Write a text of a declared format so that it is a number in SQL, and none where it is not by that format."""
    if format is None:
        return value
    between, before = number_marks(format)
    if between:
        quoted = between.replace("'", "''")
        value = f"REPLACE({value}, '{quoted}', '')"
    if before == ".":
        return value
    plain = f"REPLACE({value}, ',', '.')"
    return plain if between == "." else f"CASE WHEN {value} LIKE '%.%' THEN NULL ELSE {plain} END"


def _known(column: str, kind: Kind, value: str, cells: Partition, basis: str) -> ProfiledColumn:
    return ProfiledColumn(name=column, kind=kind, value=value, search=ColumnSearch.NOTHING, cells=cells, basis=basis)


def _bounds(facts: ExpressionFacts) -> tuple[Bound, Bound]:
    low, high = (_bound(end, facts.kind) for end in (facts.low, facts.high))
    return low, high


def _bound(end: Fraction | None, kind: Kind) -> Bound:
    assert end is not None
    return plain_value(end, kind) if kind.is_time else end  # type: ignore[return-value]


def _searched(column: str, kind: Kind, value: str, with_delta: bool) -> ProfiledColumn:
    if kind.is_number or kind.is_time:
        search = ColumnSearch.NUMBERS if kind.is_number else ColumnSearch.TIMES
        return ProfiledColumn(
            name=column, kind=kind, value=value, search=search, basis="bounds that were found privately"
        )
    if with_delta:
        basis = "values that enough people share, found privately"
        return ProfiledColumn(name=column, kind=kind, value=value, search=ColumnSearch.VALUES, basis=basis)
    basis = "no value is named: declare categories, or spend a delta, with which values that many share are found"
    return _known(column, kind, value, Presence(), basis)


# --- dividing: How the budget is divided, by a rule that everybody may know. ---
#
# Every column gets one part, and how many people there are gets one part. Of the part of a column whose bounds are not
# declared a sixth is spent on a ladder, a sixth on narrowing it, and two thirds on counting; where values are searched
# for, a third on them. A fifth of delta is divided evenly among the columns whose values are searched for: what a
# ledger
# keeps for events with a delta of their own. Noise is Laplace's or Gaussian, whichever makes the smaller ±.


ROUNDS = ("find", "narrow", "count")
_SHARES = {
    ColumnSearch.NOTHING: {"count": Fraction(1)},
    ColumnSearch.NUMBERS: {"find": Fraction(1, 6), "narrow": Fraction(1, 6), "count": Fraction(2, 3)},
    ColumnSearch.TIMES: {"find": Fraction(1, 6), "narrow": Fraction(1, 6), "count": Fraction(2, 3)},
    ColumnSearch.VALUES: {"find": Fraction(1, 3), "count": Fraction(2, 3)},
}
_LAPLACE_95, _NORMAL_95 = math.log(20), 1.96  # half widths at 95 %, in scales and in standard deviations
_STEPS = 40  # of a bisection
_SEARCHING = Fraction(1, 5)  # of delta: the share for events in the default split of a budget
_SPARE = Fraction(999_999, 1_000_000)  # so that what is rounded up, charge by charge, still fits


def share_of(subject: ProfiledColumn, at: str) -> Fraction | None:
    """Return which share of its part a column spends in a round; None if it takes no part in it."""
    return _SHARES[subject.search].get(at)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Division:
    """What each part spends: an epsilon with Laplace noise, or a rho with Gaussian noise."""

    part: Fraction  # epsilon or rho
    gaussian: bool
    parts: int
    delta: Fraction | None  # of all; None for pure epsilon
    searched: int  # columns whose values are searched for
    unit: Unit

    @property
    def delta_of_searches(self) -> Fraction | None:
        """What all searches for values take of delta; None if there is none."""
        return None if self.delta is None or not self.searched else self.delta * _SEARCHING

    @property
    def delta_each(self) -> Fraction | None:
        """What each search for values takes of delta."""
        return None if self.delta_of_searches is None else self.delta_of_searches / self.searched

    def law(self, share: Fraction, cells: int) -> RoundedGaussianLaw | DiscreteLaplaceLaw:
        """Return the noise of a count: a unit is in at most L cells, with at most M rows in each."""
        groups, rows = min(self.unit.max_groups, cells), self.unit.max_rows_per_group
        if self.gaussian:
            return RoundedGaussianLaw(groups * rows**2 / (2 * self.part * share))
        return DiscreteLaplaceLaw(groups * rows / (self.part * share))

    @property
    def law_of_units(self) -> RoundedGaussianLaw | DiscreteLaplaceLaw:
        """Return the noise of the number of units: one changes it by one."""
        if self.gaussian:
            return RoundedGaussianLaw(1 / (2 * self.part))
        return DiscreteLaplaceLaw(1 / self.part)

    def spent_on(self, shares: Fraction, searches: int) -> Event:
        """Return what some shares of parts and some searches for values spend together."""
        total = self.part * shares
        noise: Event = Gaussian(variance=1, squared_sensitivity=2 * total) if self.gaussian else PureDP(total)
        if self.delta_each is None or not searches:
            return noise
        return Composed((noise, _searches(self.delta_each, searches)))

    @property
    def event(self) -> Event:
        """What all rounds together spend."""
        return self.spent_on(Fraction(self.parts), self.searched)

    @property
    def epsilon(self) -> float:
        """What all rounds together spend at delta, rounded up; it is less than was allowed with Gaussian noise."""
        return tight_epsilon(self.event, self.delta or 0, relation=Relation.ADD_REMOVE)


def divide(subjects: tuple[ProfiledColumn, ...], *, epsilon: Fraction, delta: Fraction | None, unit: Unit) -> Division:
    """Divide what may be spent."""
    parts, searched = len(subjects) + 1, sum(subject.search is ColumnSearch.VALUES for subject in subjects)

    def divided(total: Fraction, *, gaussian: bool) -> Division:
        return Division(part=total / parts, gaussian=gaussian, parts=parts, delta=delta, searched=searched, unit=unit)

    plain = divided(epsilon, gaussian=False)
    if delta is None:
        return plain
    normal = divided(_largest_rho(epsilon, delta, searched), gaussian=True)
    return min(plain, normal, key=_half_width)


def _half_width(division: Division) -> float:
    """Return about the ± of a count, to compare two ways of noise."""
    groups = division.unit.max_groups
    if division.gaussian:
        return _NORMAL_95 * math.sqrt(groups / (2 * division.part))
    return _LAPLACE_95 * groups / float(division.part)


def _largest_rho(epsilon: Fraction, delta: Fraction, searched: int) -> Fraction:
    """Find how much Gaussian noise a new ledger with exactly this budget would take, by bisection.

    A profile is priced as the ledger of its data set prices it, so that one for (epsilon, delta) always fits a budget
    of (epsilon, delta).
    """
    account = Account("profile", "row", Relation.ADD_REMOVE, Budget(epsilon, delta))
    hidden = [_searches(delta * _SEARCHING / searched, searched)] if searched else []
    with Ledger.open("memory", account) as ledger:
        low, high = Fraction(0), epsilon
        for _ in range(_STEPS):
            middle = (low + high) / 2
            fits = ledger.affords(
                Composed((Gaussian(variance=1, squared_sensitivity=2 * middle), *hidden)), at_once=False
            )
            low, high = (middle, high) if fits else (low, middle)
    return (low * _SPARE).limit_denominator(10**12)


def _searches(delta: Fraction, times: int) -> Event:
    event = ApproxDP(0, delta)
    return event if times == 1 else Repeated(event, times)


# --- asking ---
# The questions of a profile, and the rounds in which they are asked: each is one charge, and each can be resumed.


UNITS = "units"
_WHOLE = Fraction(1)


def named(subject: ProfiledColumn) -> str:
    """Return under which name a column is asked; none is the name of the number of units."""
    return f"column {subject.name}"


def count_units(session: Session, table: CatalogueTable, division: Division) -> Plan:
    """Ask how many units, or rows where these are the units, the table has."""
    counted = "COUNT(*)" if table.unit is None else f"COUNT(DISTINCT {name(table.unit)})"
    return _priced(session, f"SELECT {counted} AS n FROM {name(table.name)}", division, _WHOLE)


def find_values(session: Session, table: CatalogueTable, subject: ProfiledColumn, division: Division) -> Plan:
    """Ask for the values that enough units share."""
    share = share_of(subject, "find")
    assert share is not None
    value = subject.value
    found = f"SELECT {value} AS found FROM {name(table.name)} GROUP BY {value}"  # not counted: all goes into finding
    return _priced(session, found, division, share, delta=division.delta_each)


def count_cells(
    session: Session, table: CatalogueTable, subject: ProfiledColumn, cells: Partition, division: Division, *, at: str
) -> Plan:
    """Ask how many rows are in each cell of a column. A row is in one of them, so all of them cost what one does."""
    share = share_of(subject, at)
    assert share is not None
    cell = "cell" if (table.unit or "").casefold() != "cell" else "cell_of_column"
    unit = "" if table.unit is None else f"{name(table.unit)}, "
    rows = f"SELECT {unit}{cells.sql(subject.value)} AS {cell} FROM {name(table.name)}"
    return _priced(session, f"SELECT {cell}, COUNT(*) AS n FROM ({rows}) AS cells GROUP BY {cell}", division, share)


def _priced(
    session: Session, query: str, division: Division, share: Fraction, *, delta: Fraction | None = None
) -> Plan:
    spent = division.part * share
    if division.gaussian:
        return session.sql(query, rho=spent, delta=delta)
    return session.sql(query, epsilon=spent, delta=delta)


def ask(session: Session, plans: Mapping[str, Plan], *, idempotency_key: str, at: str) -> Mapping[str, ReleaseTable]:
    """Pay for a round and answer it, or return what was answered under its key."""
    if not plans:
        return {}
    purpose = f"profile, {at}: {len(plans)} questions"
    return session.batch(plans, idempotency_key=f"{idempotency_key}/{at}", purpose=purpose).release().tables
