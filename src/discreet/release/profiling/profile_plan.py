"""A profile before it is paid: what will be asked, and what all of it costs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, final

from discreet.errors import InvalidParameter, Refused
from discreet.exact import Number, exact_or_none, positive
from discreet.formatting import printable
from discreet.ledger import Budget
from discreet.ledger.inspect import declared_budget
from discreet.pages.progress import working
from discreet.privacy.events import Event
from discreet.query import Plan, ReleaseTable, Resources, Session, Unit
from discreet.query.catalogue import CatalogueTable
from discreet.query.policy import check_asked
from discreet.query.session.catalogue_builder import Columns
from discreet.query.session.private_bounds_and_keys import private_table
from discreet.release.profiling.cells import (
    ListedCells,
    Partition,
    Presence,
    Ranges,
    ReleasedCells,
    ladder,
    narrowed,
    shown_cells,
)
from discreet.release.profiling.column_profiles import counts_of, profile_of
from discreet.release.profiling.profile_queries import (
    ROUNDS,
    UNITS,
    ColumnSearch,
    Division,
    ProfiledColumn,
    ask,
    count_cells,
    count_units,
    divide,
    find_values,
    named,
    share_of,
    subjects_of,
)
from discreet.release.profiling.profile_results import Profile
from discreet.schema.columns import Kind

__all__ = ["ProfilePlan", "plan_profile", "profile"]

_MOST_EPSILON = 100
_MOST_VALUES = 1000  # that are counted, of those that were found
_WRONG = Fraction(1, 1000)  # how probable it may be that any empty cell of any column is taken for a filled one
Found = Mapping[str, ReleaseTable]


@final
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ProfilePlan:
    """What a profile asks and costs. Looking at it is free; `release` is paid, round by round."""

    session: Session
    table: CatalogueTable
    subjects: tuple[ProfiledColumn, ...]
    division: Division
    allowed: Fraction  # epsilon
    idempotency_key: str

    @property
    def event(self) -> Event:
        """What all rounds together spend."""
        return self.division.event

    @property
    def epsilon(self) -> float:
        """What all rounds together spend at delta, by tight accounting, rounded up."""
        return self.division.epsilon

    @property
    def delta(self) -> Fraction:
        """The delta at which that holds."""
        return self.division.delta or Fraction(0)

    @property
    def rounds(self) -> tuple[str, ...]:
        """The rounds that are asked, in order; the last one is always there."""
        return tuple(at for at in ROUNDS if any(share_of(subject, at) for subject in self.subjects))

    @property
    def charges(self) -> tuple[str, ...]:
        """The keys under which the rounds are charged."""
        return tuple(f"{self.idempotency_key}/{at}" for at in self.rounds)

    def amount_of(self, at: str) -> Fraction:
        """Return the epsilon, or the rho of Gaussian noise, of one round."""
        return self.division.part * self._shares(at)

    def _shares(self, at: str) -> Fraction:
        units = Fraction(at == "count")  # how many there are is asked last
        return sum((share_of(subject, at) or Fraction(0) for subject in self.subjects), units)

    def price_of(self, rounds: Iterable[str]) -> Event:
        """Return what some of the rounds spend together."""
        asked = list(rounds)
        searches = self.division.searched if "find" in asked else 0
        return self.division.spent_on(sum(map(self._shares, asked), Fraction(0)), searches)

    @property
    def hidden(self) -> tuple[str, ...]:
        """Which values stay hidden, in words; nothing where no values are searched for."""
        searched = next((subject for subject in self.subjects if subject.search is ColumnSearch.VALUES), None)
        if searched is None:
            return ()
        notes = find_values(self.session, self.table, searched, self.division).notes
        return tuple(f"values: {note.split('. ')[0]}" for note in notes if "hidden" in note)

    @property
    def read_as_text(self) -> str:
        """Say which columns are texts of which nothing is declared, and how to say what they are; empty for none."""
        texts = [one.name for one in self.subjects if one.kind is Kind.TEXT and not isinstance(one.cells, ListedCells)]
        if not texts:
            return ""
        return (
            f"read as text, so without quantiles: {', '.join(map(printable, texts))}. For those that hold numbers or "
            'dates say numbers=["…"] or dates=["…"] (--number NAME, --date NAME), or declare their bounds in a policy '
            "or plan, and profile that file"
        )

    @property
    def unpaid(self) -> tuple[str, ...]:
        """The rounds that were not charged yet: of a profile that stopped midway, those that are left."""
        return tuple(at for at in self.rounds if self.session.ledger.charged(f"{self.idempotency_key}/{at}") is None)

    @property
    def affordable(self) -> bool:
        """Whether what is not paid yet fits the budget and all quotas; what is paid is read again for nothing."""
        return not self.unpaid or self.session.affords(self.price_of(self.unpaid), at_once=len(self.unpaid) == 1)

    @working("profiling", terminal=False)
    def release(self) -> Profile:
        """Pay and ask, round by round; or read what was answered before, and go on from there."""
        if not self.affordable:
            self._refuse()
        first = ask(self.session, self._finding(), idempotency_key=self.idempotency_key, at="find")
        second = ask(self.session, self._narrowing(first), idempotency_key=self.idempotency_key, at="narrow")
        cells = {subject.name: self._shown(subject, first, second) for subject in self.subjects}
        last = ask(self.session, self._counting(cells), idempotency_key=self.idempotency_key, at="count")
        return profile_of(self, cells, last)

    def _refuse(self) -> None:
        """Let the ledger say that the whole does not fit, before a part of it is paid."""
        from discreet.errors import BudgetExceeded

        raise BudgetExceeded(asked=self.cost, left=self.session.left)

    @property
    def cost(self) -> str:
        """What is spent, in a few words."""
        from discreet.ledger.budget import readable

        allowed = f"ε = {readable(self.allowed)}"
        return f"{allowed}, δ = {readable(self.delta)}" if self.delta else allowed

    def _finding(self) -> dict[str, Plan]:
        return {named(subject): self._find(subject) for subject in self.subjects if share_of(subject, "find")}

    def _find(self, subject: ProfiledColumn) -> Plan:
        if subject.search is ColumnSearch.VALUES:
            return find_values(self.session, self.table, subject, self.division)
        return self._count(subject, ladder(subject.kind), at="find")

    def _count(self, subject: ProfiledColumn, cells: Partition, *, at: str) -> Plan:
        return count_cells(self.session, self.table, subject, cells, self.division, at=at)

    def _narrowing(self, first: Found) -> dict[str, Plan]:
        searched = [subject for subject in self.subjects if share_of(subject, "narrow")]
        return {named(subject): self._count(subject, self._finer(subject, first), at="narrow") for subject in searched}

    def _finer(self, subject: ProfiledColumn, first: Found) -> Partition:
        return narrowed(self._counted(subject, ladder(subject.kind), first, at="find"), subject.kind)

    def _counted(self, subject: ProfiledColumn, cells: Ranges, tables: Found, *, at: str) -> ReleasedCells:
        """Read the counts of a round, and above which of them a cell is surely not empty."""
        share = share_of(subject, at)
        assert share is not None
        law = self.division.law(share, cells.cells + 1)
        wrong = _WRONG / len(self.subjects) / (cells.cells + 1)
        _, *counts = counts_of(tables[named(subject)], cells)
        return ReleasedCells(cells, tuple(counts), law.half_width(1 - wrong))

    def _shown(self, subject: ProfiledColumn, first: Found, second: Found) -> Partition:
        """Return the cells of a column that are counted in the last round."""
        if subject.search is ColumnSearch.NOTHING:
            return subject.cells
        if subject.search is ColumnSearch.VALUES:
            return _named(first[named(subject)])
        found = self._counted(subject, ladder(subject.kind), first, at="find")
        finer = narrowed(found, subject.kind)
        again = self._counted(subject, finer, second, at="narrow") if isinstance(finer, Ranges) else None
        return shown_cells(found, again, subject.kind)

    def _counting(self, cells: Mapping[str, Partition]) -> dict[str, Plan]:
        columns = {named(one): self._count(one, cells[one.name], at="count") for one in self.subjects}
        return {UNITS: count_units(self.session, self.table, self.division)} | columns

    def __str__(self) -> str:
        from discreet.release.profiling.profile_results import price_text

        return price_text(self)

    def __repr__(self) -> str:
        return f"Profile of {self.table.name}; closed" if self.session.is_closed else str(self)


def _named(found: ReleaseTable) -> Partition:
    """Return a cell for each of the values that were found; beyond a thousand they are among the others."""
    values = tuple(row["found"] for row in found if row["found"] is not None)[:_MOST_VALUES]
    return ListedCells(values) if values else Presence()


@working("planning", terminal=False)
def plan_profile(
    session: Session,
    *,
    epsilon: Number,
    delta: Number | None = None,
    table: str | None = None,
    numbers: Iterable[str] = (),
    dates: Iterable[str] = (),
    idempotency_key: str = "profile",
) -> ProfilePlan:
    """Price a profile of a private table of a session. Nothing is spent and nothing is read.

    `numbers` and `dates` name columns of texts to be read so: whether they look like it is not looked up. Under a
    `idempotency_key` a profile is paid once; for new data, or to pay again, say another one.

    Args:
        session: Who pays, and has the private table.
        epsilon: What the whole profile may spend.
        delta: The delta that goes with it; without one, no text is named that was not declared.
        table: The name of the private table, if there are several.
        numbers: Columns of texts that are read as numbers.
        dates: Columns of texts that are read as dates.
        idempotency_key: A name for the charge: the same profile under it is paid once.

    Returns:
        The plan, which prints its price; `release()` makes the profile.

    Raises:
        InvalidParameter: If a number is out of range, or there is no such column.

    Examples:
        >>> from pathlib import Path
        >>> files = dp.data.copy("visits", Path())
        >>> with dp.Session(
        ...     "visits.csv", unit=dp.Unit("patient"), budget=dp.Budget(epsilon=4), ledger="memory", dataset="visits",
        ...     principal="ana",
        ... ) as session:
        ...     plan = dp.release.plan_profile(session, epsilon=1, numbers=["age"])
        ...     done = plan.release()
        >>> done.column("age").name
        'age'
    """
    allowed, most = positive(epsilon, name="epsilon"), _MOST_EPSILON
    if allowed > most:
        raise InvalidParameter(f"epsilon must be at most {most}: beyond it nobody is protected")
    if not isinstance(idempotency_key, str) or not idempotency_key.strip():
        raise InvalidParameter("idempotency_key must be a text that is not empty, such as profile-2026-10")
    check_asked(session.unit)
    if session.chain is not None:
        raise Refused(
            "a profile is divided among rounds that are charged to one unit, and two are protected here, one within "
            "the other",
            way_out="ask with session.sql, or profile in a session on one of the two units, with a ledger of its own",
        )
    known = private_table(session.catalogue, table)
    small = exact_or_none(delta, name="delta") or None
    subjects = subjects_of(known, numbers=numbers, dates=dates, with_delta=small is not None)
    division = divide(subjects, epsilon=allowed, delta=small, unit=session.unit)
    return ProfilePlan(
        session=session,
        table=known,
        subjects=subjects,
        division=division,
        allowed=allowed,
        idempotency_key=idempotency_key,
    )


# --- profile: `profile`: a whole table in one call. ---


_USUAL = Resources()


def profile(
    source: Any,
    *,
    unit: Unit | str,
    epsilon: Number,
    delta: Number | None = None,
    ledger: str | Path,
    dataset: str,
    principal: str,
    columns: Columns | None = None,
    numbers: Iterable[str] = (),
    dates: Iterable[str] = (),
    budget: Budget | None = None,
    idempotency_key: str = "profile",
    project: str = "",
    version: str | None = None,
    resources: Resources = _USUAL,
) -> Profile:
    """Profile a table: how many, how much is missing, histograms, quantiles and frequent values of every column.

    Guarantee   All of it together is (epsilon, delta)-differentially private for one unit more or less, and is
                charged to the ledger before anything is read. What is not declared in `columns` is found privately.

    A unit that is only the name of a column is counted with one row each. Without a `budget` it is the one that the
    ledger has; a new data set is opened with exactly what this profile may spend, which can be raised. Under the same
    `idempotency_key` a profile is paid once, and is resumed if it was interrupted.

    Args:
        source: The private table: a file, or a data frame.
        unit: Whom to protect: a `Unit`, or the column whose values tell people apart.
        epsilon: What the whole profile may spend.
        delta: The delta that goes with it; without one, no text is named that was not declared.
        ledger: The file of the ledger, or "memory".
        dataset: The name of the data set in the ledger.
        principal: Who asks.
        columns: What is publicly known of columns, such as `{"age": dp.between(0, 120)}`.
        numbers: Columns of texts that are read as numbers.
        dates: Columns of texts that are read as dates.
        budget: The lifetime budget of the data set; by default what the ledger has, or else `epsilon` and `delta`.
        idempotency_key: A name for the charge: the same profile under it is paid once.
        project: For what, in the ledger.
        version: The version of the data, in the ledger.
        resources: The limits of memory and time.

    Returns:
        The profile; `write` makes a page of it, `to_json` has every number.

    Raises:
        InvalidParameter: If a number is out of range, or there is no such column.
        BudgetExceeded: If the budget does not hold it; nothing is read.

    Examples:
        >>> from pathlib import Path
        >>> files = dp.data.copy("visits", Path())
        >>> done = dp.release.profile(
        ...     "visits.csv", unit="patient", epsilon=1, columns={"age": dp.between(0, 120, whole=True)},
        ...     ledger="visits.ledger", dataset="visits", principal="ana",
        ... )
        >>> done.write("profile.html").name
        'profile.html'
    """
    with Session(
        source,
        unit=_unit(unit),
        budget=budget or declared_budget(ledger, dataset) or Budget(epsilon=epsilon, delta=delta),
        ledger=ledger,
        dataset=dataset,
        principal=principal,
        columns=columns,
        project=project,
        version=version,
        resources=resources,
    ) as session:
        return plan_profile(
            session, epsilon=epsilon, delta=delta, numbers=numbers, dates=dates, idempotency_key=idempotency_key
        ).release()


def _unit(unit: Unit | str) -> Unit | Literal["row"]:
    if isinstance(unit, Unit):
        return unit
    return "row" if unit == "row" else Unit(unit)
