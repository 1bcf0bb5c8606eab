"""Check a plan: everything that can be found wrong without data, all of it at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, final

from discreet.errors import InvalidParameter, Refused
from discreet.ledger import Account, Ledger
from discreet.privacy.relation import Relation
from discreet.query.catalogue import Catalogue
from discreet.query.policy import public
from discreet.query.question import Query
from discreet.query.session.policy_file import TablePolicy
from discreet.query.session.tables import check_apart
from discreet.query.session.toml_lines import Place
from discreet.release.declared import catalogue_of
from discreet.release.places import located, place_of, told_at
from discreet.release.plan import ReleasePlan
from discreet.release.pricing.checking_parts import (
    check_invariant,
    check_level,
    check_rows,
    check_table,
    check_time,
    check_window,
)
from discreet.release.pricing.priced_release import PricedRelease
from discreet.release.pricing.pricing import price
from discreet.release.pricing.readings import read_table

__all__ = ["Checked", "check"]

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


def check(plan: ReleasePlan, *, tables: Mapping[str, Any] | None = None) -> Checked:
    """Find everything in a plan that can be found wrong without data, or return it with its price.

    Errors name the line and a way out. Public tables are read, private files are never opened; `tables` hands over
    public tables that name no source.
    """
    catalogue = _catalogue(plan, tables)
    _raise([*_problems(plan, catalogue), *_series_problems(plan, catalogue)])
    priced = price(plan, tables=tables)
    _raise(list(_found(plan, ("invariants",) if plan.invariants else ("publish",), _check_tidy, plan, priced)))
    _check_lifetime(plan, priced)
    return Checked(plan=plan, priced=priced, notes=tuple(_notes(plan)))


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
        yield from _found(plan, ("running", index, "day"), check_time, table, series.day)
        yield from _found(plan, ("running", index, "where"), check_rows, series, catalogue)


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
    from discreet.release.tidy import check_tidy

    check_tidy(plan, {table.name: table.priced for table in priced.tables})


def _check_lifetime(plan: ReleasePlan, priced: PricedRelease) -> None:
    budget = plan.policy.budget.describe()
    if priced.lifetime < 1:
        raise Refused(
            told_at(plan, ("budget",), "the lifetime budget does not hold one release"),
            reason=f"one release costs ε = {priced.epsilon:.4g}, the lifetime budget is {budget}, and the ledger keeps "
            "part of it for questions that are chosen later",
            way_out="raise [budget], or lower what [release] may spend",
        )
    account = Account(plan.policy.dataset, plan.policy.unit.column, Relation.ADD_REMOVE, plan.policy.budget)
    with Ledger.open("memory", account, quotas=plan.policy.quotas) as book:
        if not book.affords(priced.event, principal=_SOMEBODY, project=_SOMEBODY):
            raise Refused(
                told_at(plan, ("quotas",), "a quota does not hold one release"),
                way_out="raise the quota, or lower what [release] may spend",
            )


def _notes(plan: ReleasePlan) -> Iterator[str]:
    unit = plan.policy.unit
    if not unit.is_row and any(table.family for table in plan.tables):
        yield (
            f"which rows of a {unit.column} with several rows are counted is chosen for each table anew: tables of a "
            f"family add up as far as each {unit.column} has one row in a period"
        )
    if plan.from_data:
        fields = ", ".join(fact.field for fact in plan.from_data)
        yield (
            f"read from the data, and not protected: {fields}. Every bundle says so; replace them by what is known "
            "without the data, then take them off from_data"
        )
    if plan.schedule.column is None and plan.schedule.first is not None:
        yield "no column is named in [schedule], so every release is about all rows that are there at that time"
