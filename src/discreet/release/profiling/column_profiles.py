"""From released counts to what a profile says of a column. All of it follows from released numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from discreet.query import ReleaseTable
from discreet.release.profiling.cells import ListedCells, Partition, Presence, Ranges, written
from discreet.release.profiling.estimates import Estimate, Law, added, less, quantiles, single
from discreet.release.profiling.profile_queries import UNITS, ColumnSearch, Division, ProfiledColumn, named, share_of
from discreet.release.profiling.profile_results import CellCount, ColumnProfile, Profile, ProfileCost, notes_of, rule_of

if TYPE_CHECKING:
    from discreet.release.profiling.profile_plan import ProfilePlan

__all__ = ["counts_of", "open_ends", "profile_of"]

_TOO_MUCH = Fraction(1, 10)  # of all values beyond an end of the cells: then no bound was found there

_NOT_FOUND = {
    ColumnSearch.NUMBERS: "no bounds: in no range were enough values to be told from noise, so there is no histogram "
    "and no quantile. Declare bounds that are publicly known, or spend more",
    ColumnSearch.VALUES: "no value is named: none is shared by enough people to be told from noise, as with names, "
    "addresses and numbers of documents. Declare categories that are publicly known, or spend more",
}
_NOT_FOUND[ColumnSearch.TIMES] = _NOT_FOUND[ColumnSearch.NUMBERS]


def counts_of(table: ReleaseTable, cells: Partition) -> list[int]:
    """Return the released counts of all cells, that of what is missing first."""
    key = next(column.name for column in table.columns if not column.measured)
    found = {int(row[key]): int(row["n"].value) for row in table}
    return [found[cell] for cell in range(cells.cells + 1)]


def profile_of(plan: ProfilePlan, cells: Mapping[str, Partition], tables: Mapping[str, ReleaseTable]) -> Profile:
    """Put a profile together."""
    units = int(tables[UNITS].single().value)
    law = plan.division.law_of_units
    return Profile(
        dataset=plan.session.ledger.account.dataset,
        table=plan.table.name,
        unit=plan.session.unit,
        units=single(units, law),
        columns=tuple(
            _column(subject, cells[subject.name], tables[named(subject)], plan.division, units)
            for subject in plan.subjects
        ),
        spent=ProfileCost(epsilon=plan.epsilon, delta=plan.delta, allowed=plan.allowed, charges=plan.charges),
        rule=rule_of(plan.subjects, plan.division),
        notes=notes_of(plan.session.unit),
    )


def _column(
    subject: ProfiledColumn, cells: Partition, table: ReleaseTable, division: Division, units: int
) -> ColumnProfile:
    share = share_of(subject, "count")
    assert share is not None
    law = division.law(share, cells.cells + 1)
    missing, *counts = counts_of(table, cells)
    beyond = open_ends(cells, counts)
    return ColumnProfile(
        name=subject.name,
        kind=subject.kind,
        basis=_basis(subject, cells, beyond),
        missing=single(missing, law),
        present=_present(division, units, missing, counts, law),
        cells=tuple(_cell(cells, cell, count, law) for cell, count in enumerate(counts, 1)),
        ordered=isinstance(cells, Ranges),
        quantiles=quantiles(cells, counts, law) if isinstance(cells, Ranges) else (),
        reasons=_reasons(subject, cells, beyond),
        open_ends=tuple(beyond),
    )


def _present(division: Division, units: int, missing: int, counts: list[int], law: Law) -> Estimate:
    """Count what is not missing: all cells together or, where each unit is in one cell once, all units but those.

    Which of both is taken follows from their ±, which is public.
    """
    ways = [added(counts, law)]
    if division.unit.max_groups == division.unit.max_rows_per_group == 1:
        ways.append(less(units, division.law_of_units, missing, law))
    return min(ways, key=lambda way: way.plus_minus)


def _cell(cells: Partition, cell: int, count: int, law: Law) -> CellCount:
    estimate, label = single(count, law), cells.label(cell)
    match cells:
        case Ranges():
            low, high = cells.ends(cell)
            return CellCount(label=label, count=estimate, low=low, high=high)
        case ListedCells():
            rest = cell > len(cells.values)
            value = None if rest else cells.values[cell - 1]
            return CellCount(label=label, count=estimate, value=value, rest=rest)
        case Presence():
            return CellCount(label=label, count=estimate, rest=True)


def open_ends(cells: Partition, counts: Sequence[int]) -> dict[str, str]:
    """Say which part of all values lies below the first cut or above the last one, where that is too much.

    Then the cuts bound nothing: there was too much noise to find where the values end.
    """
    total = sum(max(0, count) for count in counts)
    if not isinstance(cells, Ranges) or not cells.cuts or not total:
        return {}
    ends = (
        ("below", cells.low, counts[0], f"below {written(cells.cuts[0])}"),
        ("above", cells.high, counts[-1], f"at {written(cells.cuts[-1])} or above"),
    )
    return {
        side: f"about {100 * count / total:.0f} % lie {where}"
        for side, end, count, where in ends
        if end is None and count > _TOO_MUCH * total
    }


def _basis(subject: ProfiledColumn, cells: Partition, beyond: Mapping[str, str]) -> str:
    """Say where the cells come from; with the bounds, if these were found."""
    if beyond:
        return f"bounds not found: {' and '.join(beyond.values())}"
    if subject.search in (ColumnSearch.NUMBERS, ColumnSearch.TIMES) and isinstance(cells, Ranges):
        return f"bounds found privately: {written(cells.cuts[0])} to {written(cells.cuts[-1])}"
    return subject.basis


def _reasons(subject: ProfiledColumn, cells: Partition, beyond: Mapping[str, str]) -> tuple[str, ...]:
    """Say what a column lacks, and why."""
    if beyond:
        told = " and ".join(beyond.values())
        return (f"bounds not found: {told}. Declare bounds that are publicly known, or spend more",)
    if subject.is_open:
        return (subject.basis,)
    if isinstance(cells, Presence):
        return (_NOT_FOUND[subject.search],)
    return ()
