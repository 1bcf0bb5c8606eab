"""Check a plan: everything that can be found wrong without data, all of it at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, TypeAlias, final

from discreet.errors import InvalidParameter, Refused
from discreet.formatting import with_article
from discreet.ledger import Ledger
from discreet.pages.progress import working
from discreet.query.ast import Key, Query, ReleasedMeasure, Statistic
from discreet.query.catalogue import Catalogue, CatalogueTable
from discreet.query.parse.select import read
from discreet.query.plan.contribution_limits import groups_of_a_unit
from discreet.query.policy import Unit, public
from discreet.query.session.catalogue_builder import check_apart, nearest
from discreet.query.session.policy_file import TablePolicy
from discreet.query.session.row_streams import check_days_apart
from discreet.release.levels_and_families import GroupingColumns, identifier
from discreet.release.plan import (
    Invariant,
    Level,
    ReleasePlan,
    RunningPlan,
    TablePlan,
    catalogue_of,
    located,
    place_of,
    told_at,
)
from discreet.release.pricing.priced_release import PricedRelease, PricedTable
from discreet.release.pricing.quotes import read_table
from discreet.release.pricing.release_price import price
from discreet.schema.toml_document import Place

__all__ = [
    "Checked",
    "check",
    "check_invariant",
    "check_level",
    "check_rows",
    "check_table",
    "check_time",
    "check_window",
]

_Problem: TypeAlias = InvalidParameter | Refused
_SOMEBODY = "somebody"  # A principal for quotas that each person has.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """A plan in which nothing was found wrong, with its price, and what its readers should know."""

    plan: ReleasePlan
    priced: PricedRelease
    notes: tuple[str, ...]

    def __str__(self) -> str:
        tables, series = len(self.plan.tables), len(self.plan.running)
        counted = f"{tables} table{'' if tables == 1 else 's'}" + (f" and {series} running series" if series else "")
        first = f"{self.plan.file or self.plan.name} is right: {counted}, ε = {self.priced.epsilon:.4g} for a release."
        return "\n".join([first, *(f"· {note}" for note in self.notes)])

    __repr__ = __str__


@working("checking", terminal=False)
def check(plan: ReleasePlan, *, tables: Mapping[str, Any] | None = None) -> Checked:
    """Find everything in a plan that can be found wrong without data, or return it with its price.

    Errors name the line and a way out. Public tables are read, private files are never opened; `tables` hands over
    public tables that name no source.

    Args:
        plan: The plan, as `read_release_plan` returns it.
        tables: Public tables that name no source in the plan, by name.

    Returns:
        The plan with its price and with notes; it prints as a list.

    Raises:
        InvalidParameter: If something in the plan is wrong, such as a column of a question that is not declared.
        Refused: If a question cannot be answered, or the first release does not fit into the lifetime budget.

    Examples:
        >>> from pathlib import Path
        >>> files = dp.data.copy("visits", Path())
        >>> draft = dp.release.draft_plan("visits.csv", unit="patient").value
        >>> _ = Path("plan.toml").write_text(draft.confirmed(epsilon=1))
        >>> plan = dp.release.read_release_plan("plan.toml")
        >>> checked = dp.release.check(plan)
        >>> checked.priced.epsilon
        1.0
    """
    catalogue = _catalogue(plan, tables)
    _raise([*_problems(plan, catalogue), *_series_problems(plan, catalogue)])
    priced = price(plan, tables=tables)
    _raise(list(_found(plan, ("invariants",) if plan.invariants else ("publish",), _check_tidy, plan, priced)))
    _check_lifetime(plan, priced)
    return Checked(plan=plan, priced=priced, notes=tuple(_notes(plan, priced)))


def _catalogue(plan: ReleasePlan, tables: Mapping[str, Any] | None) -> Catalogue:
    try:
        sources = {name: table.source or object() for name, table in plan.policy.tables.items()}
        named = {
            name: public(source) if plan.policy.tables[name].public else source for name, source in sources.items()
        }
        check_apart(named, rows=plan.policy.unit.is_row)
        return catalogue_of(plan, tables)
    except InvalidParameter as error:
        raise located(plan, ("tables",), error) from None


def _source(table: TablePolicy) -> Any:
    source = table.source or object()  # What is handed over is no other table.
    return public(source) if table.public else source


def _problems(plan: ReleasePlan, catalogue: Catalogue) -> Iterator[_Problem]:
    """Look at each part by itself, so that one mistake does not hide another."""
    window = list(_found(plan, ("schedule", "column"), check_window, plan, catalogue))
    if window:
        yield from window  # No question can be read within a window that is none.
        return
    for index, level in enumerate(plan.levels):
        yield from _found(plan, ("levels", index), check_level, plan, level)
    questions: dict[str, Query | None] = {table.name: None for table in plan.tables}
    for table in plan.tables:
        try:
            question = read_table(plan, table, catalogue, plan.schedule.period(0)).question
        except (InvalidParameter, Refused) as error:
            yield error
            continue
        questions[table.name] = question
        yield from _found(plan, place_of(plan, table.name, "expected", "delta"), check_table, table, question)
    for index in range(len(plan.invariants)):
        yield from _found(plan, ("invariants", index), check_invariant, plan, index, questions)


def _series_problems(plan: ReleasePlan, catalogue: Catalogue) -> Iterator[_Problem]:
    for index, series in enumerate(plan.running):
        table = catalogue.tables[series.source]
        found = [
            *_found(plan, ("running", index, "day"), check_time, table, series.day),
            *_found(plan, ("running", index, "where"), check_rows, series, catalogue),
        ]
        yield from found
        if series.person_day and not found:
            yield from _found(plan, ("running", index, "person_day"), check_days, series, catalogue)


def _found(plan: ReleasePlan, place: Place, look: Callable[..., None], *looked_at: Any) -> Iterator[_Problem]:
    try:
        look(*looked_at)
    except (InvalidParameter, Refused) as error:
        yield located(plan, place, error)


def _raise(problems: list[_Problem]) -> None:
    """Raise what was found; the same mistake in several tables of a family is told once."""
    distinct = list({str(problem).partition("\n")[0]: problem for problem in reversed(problems)}.values())[::-1]
    if len(distinct) == 1:
        raise distinct[0]
    if distinct:
        made = Refused if any(isinstance(problem, Refused) for problem in distinct) else InvalidParameter
        raise made("\n".join(map(str, distinct)))


def _check_tidy(plan: ReleasePlan, priced: PricedRelease) -> None:
    from discreet.release.tidy.tidy_check import check_tidy

    check_tidy(plan, {table.name: table.priced for table in priced.tables})


def _check_lifetime(plan: ReleasePlan, priced: PricedRelease) -> None:
    budget = plan.policy.budget.describe()
    if priced.lifetime is not None and priced.lifetime < 1:
        raise Refused(
            told_at(plan, ("budget",), "the lifetime budget does not hold one release"),
            reason=f"one release costs ε = {priced.epsilon:.4g}, the lifetime budget is {budget}, and the ledger keeps "
            "part of it for questions that are chosen later",
            way_out="raise [budget], or lower what [release] may spend",
        )
    with Ledger.open("memory", plan.policy.account, quotas=plan.policy.quotas) as book:
        if not book.affords(priced.event, principal=_SOMEBODY, project=_SOMEBODY, nested=priced.nested):
            raise Refused(
                told_at(plan, ("quotas",), "a quota does not hold one release"),
                way_out="raise the quota, or lower what [release] may spend",
            )


def _notes(plan: ReleasePlan, priced: PricedRelease) -> Iterator[str]:
    families: dict[str, list[PricedTable]] = {}
    for table in priced.tables:
        if table.priced.draft.family is not None:
            families.setdefault(table.priced.draft.family, []).append(table)
    for name, tables in families.items():
        yield from _family_notes(plan.policy.unit, name, tables)
    if plan.from_data:
        fields = ", ".join(fact.field for fact in plan.from_data)
        yield (
            f"read from the data, and not protected: {fields}. Every bundle says so; replace them by what is known "
            "without the data, then take them off from_data"
        )
    if plan.schedule.column is None and plan.schedule.first is not None:
        yield "no column is named in [schedule], so every release is about all rows that are there at that time"


_MORE_NOISE = 1.1  # From here on it is told that the one choice of a family costs accuracy.


def _family_notes(unit: Unit, name: str, tables: Sequence[PricedTable]) -> Iterator[str]:
    """Say how many rows of a unit a family counts, where its tables by themselves would count more, and what it costs.

    By itself a table has limits L and M, so that one unit moves it by L M rows at most, and by √L M in the l2 norm.
    """
    rows = tables[0].priced.draft.max_rows
    counted = "one row" if rows == 1 else f"at most {rows} rows"
    yield (
        f"tables of {name!r} count the same rows: {counted} of {with_article(unit.noun)} in all groups together, "
        "chosen at random once for all of them, so that exact totals, margins and levels agree"
    )
    most = max(_own_groups(unit, table) * _own_rows(unit, table) for table in tables)
    if most > rows:
        yield (
            f"a table by itself would count up to {most} rows of {with_article(unit.noun)} in several groups; to count "
            f"more in those of {name!r}, say max_rows, up to {unit.max_groups * unit.max_rows_per_group}: noise grows "
            "with it"
        )
    if tables[0].plan.limits.max_groups is not None:
        yield f"max_groups changes nothing in {name!r}: its tables count the chosen rows in whatever groups these are"
    dearer = {table.name: ratio for table in tables if (ratio := _more_noise(unit, table)) > _MORE_NOISE}
    if dearer:
        listed = ", ".join(f"{table} {ratio:.2g} times" for table, ratio in dearer.items())
        yield (
            f"noise in tables of {name!r} is larger than in tables with choices of their own: {listed} at equal price; "
            f"say a smaller max_rows for less, or publish these tables by their SQL, where they do not add up"
        )


def _own_groups(unit: Unit, table: PricedTable) -> int:
    question = table.priced.question
    most = groups_of_a_unit(question.source, question.keys, table.priced.draft.catalogue)
    return min(table.plan.limits.max_groups or unit.max_groups, most or unit.max_groups)


def _own_rows(unit: Unit, table: PricedTable) -> int:
    return table.plan.limits.max_rows_per_group or unit.max_rows_per_group


def _more_noise(unit: Unit, table: PricedTable) -> float:
    """Return the largest factor by which a number of a table has more noise than by the limits of the table alone."""
    draft, groups, rows = table.priced.draft, _own_groups(unit, table), _own_rows(unit, table)
    pairs = [(spread or 1, 1 if spread else draft.max_rows) for spread in draft.spreads]
    own = [(groups, 1 if spread else rows) for spread in draft.spreads]
    power = 0.5 if draft.noising.gaussian else 1.0
    factors = [(a**power * b) / (c**power * d) for (a, b), (c, d) in zip(pairs, own, strict=True)]
    return max(factors, default=draft.max_rows / (groups * rows))


# --- checking_parts: What can be found wrong in each part of a plan. ---


_ROWS = "*"
_COUNTS = frozenset({Statistic.ROWS, Statistic.UNITS, Statistic.COUNT, Statistic.DISTINCT})
_LARGEST = 10**15  # Of an invariant: numbers that tidy tables still hold exactly.
_BESIDE = ("_low", "_high", "_noise_sd")  # What is written beside a measured column.


def check_window(plan: ReleasePlan, catalogue: Catalogue) -> None:
    """The column of the schedule is a date or timestamp of every private table."""
    if plan.schedule.column is not None:
        for table in catalogue.tables.values():
            if table.private:
                check_time(table, plan.schedule.column)


def check_time(table: CatalogueTable, column: str) -> None:
    """A column is declared as a date or timestamp."""
    found = next((one for name, one in table.columns.items() if name.casefold() == column.casefold()), None)
    if found is None or not found.facts.kind.is_time:
        times = [name for name, one in table.columns.items() if one.facts.kind.is_time]
        said = f"table {table.name!r} declares no date or timestamp {column!r}"
        declare = f"declare {column} = {{ low = …, high = … }} with its first and last day"
        raise InvalidParameter(f"{said}. {nearest(column, times)}" if times else f"{said}: {declare}")


def check_rows(series: RunningPlan, catalogue: Catalogue) -> None:
    """The condition on the rows of a series can be read."""
    where = "" if series.where is None else f" WHERE ({series.where})"
    read(f"SELECT COUNT(*) AS total FROM {identifier(series.source)}{where}", catalogue)


def check_days(series: RunningPlan, catalogue: Catalogue) -> None:
    """One day of a unit changes no other day of a series that protects each by itself: `advance` refuses it too."""
    check_days_apart(catalogue, series.source, series.day, series.where, date.fromisoformat(series.first))


def check_level(plan: ReleasePlan, level: Level) -> None:
    """A level groups every value of a column that some private table declares, each once."""
    levels = {one.name: one for one in plan.levels}
    lowest = level
    while lowest.of in levels:
        lowest = levels[lowest.of]
    keys = {name: values for table in plan.tables for name, values in table.keys.items()}
    for name, table in plan.policy.tables.items():
        has = any(column.casefold() == lowest.of.casefold() for column in table.columns)
        if not table.public and (has or lowest.of in keys):
            GroupingColumns(table=name, columns=table.columns, levels=levels, keys=keys).axis(level.name)
            return
    known = {column for table in plan.policy.tables.values() for column in table.columns}
    raise InvalidParameter(f"no private table declares a column {lowest.of!r}. {nearest(lowest.of, sorted(known))}")


def check_table(table: TablePlan, question: Query) -> None:
    """What is said of a table beside its question is about that question."""
    names = [output.name for output in question.outputs]
    measured = [output.name for output in question.outputs if isinstance(output.value, ReleasedMeasure)]
    for name in table.expected:
        if name != _ROWS and name not in measured:
            raise InvalidParameter(
                f"something is expected of {name!r}, which is no measured column of {table.name!r}. "
                f"{nearest(name, [*measured, _ROWS])}"
            )
    if table.delta is not None and all(key.domain is not None for key in question.keys):
        raise InvalidParameter(f"all groups of {table.name!r} are listed, so no delta is needed: leave it out")
    taken = {f"{name}{ending}".casefold(): name for name in measured for ending in _BESIDE}
    for name in names:
        if name.casefold() in taken:
            raise InvalidParameter(
                f"a column is called {name!r}, and that is what is written beside {taken[name.casefold()]!r}: rename it"
            )


def check_invariant(plan: ReleasePlan, index: int, questions: Mapping[str, Query | None]) -> None:
    """An invariant names a count or a sum in a row that is surely there; a question that is wrong is told elsewhere."""
    said = plan.invariants[index]
    if said.table not in questions:
        raise InvalidParameter(f"no published table is called {said.table!r}. {nearest(said.table, questions)}")
    if any(_same_cell(said, other) for other in plan.invariants[:index]):
        raise InvalidParameter("this number is said twice: leave one out")
    question = questions[said.table]
    if question is not None:
        _check_row(said, question.keys)
        _check_value(said, question)


def _same_cell(one: Invariant, other: Invariant) -> bool:
    return (one.table, one.column, dict(one.where)) == (other.table, other.column, dict(other.where))


def _check_row(said: Invariant, keys: Sequence[Key]) -> None:
    names = [key.name for key in keys]
    for name in said.where:
        if name not in names:
            known = f"{nearest(name, names)}" if names else "It has one row: write where = {}"
            raise InvalidParameter(f"{said.table!r} has no key {name!r}. {known}")
    for key in keys:
        if key.domain is None:
            raise InvalidParameter(f"the rows of {said.table!r} are found in the data: an invariant needs listed ones")
        if key.name not in said.where:
            raise InvalidParameter(f"say which row is meant: where = {{ {key.name} = … }} too")
        if said.where[key.name] not in key.domain:
            raise InvalidParameter(f"{key.name} is never {said.where[key.name]!r}: write one of its listed values")


def _check_value(said: Invariant, question: Query) -> None:
    measures = {
        output.name: question.measures[output.value.measure]
        for output in question.outputs
        if isinstance(output.value, ReleasedMeasure)
    }
    if said.column not in measures:
        raise InvalidParameter(f"{said.table!r} measures no {said.column!r}. {nearest(said.column, measures)}")
    if abs(said.value) > _LARGEST:
        raise InvalidParameter(f"{said.column!r} cannot be so large: write the publicly known number")
    statistic = measures[said.column].statistic
    if statistic not in _COUNTS and statistic is not Statistic.SUM:
        raise InvalidParameter(f"{said.column!r} is no count and no sum: only these can have an invariant")
    if statistic in _COUNTS and (said.value < 0 or said.value.denominator != 1):
        raise InvalidParameter(f"{said.column!r} counts, so its value is a whole number that is not negative")
