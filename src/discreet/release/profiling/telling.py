"""What a profile says in words: how the budget was divided, and what its numbers mean."""

from __future__ import annotations

from discreet.query import Unit
from discreet.release.profiling.dividing import Division
from discreet.release.profiling.subjects import ColumnSearch, ProfiledColumn

__all__ = ["notes_of", "rule_of"]


def rule_of(subjects: tuple[ProfiledColumn, ...], division: Division) -> tuple[str, ...]:
    """Say how the budget is divided. It follows from the schema and from what is declared, never from rows."""
    searches = {subject.search for subject in subjects}
    told = [
        f"The budget is divided into {division.parts} equal parts: one for each of {len(subjects)} columns, and one "
        f"for how many {_whom(division.unit)}."
    ]
    if searches & {ColumnSearch.NUMBERS, ColumnSearch.TIMES}:
        told.append(
            "A column without declared bounds spends a sixth of its part on a ladder of ranges that is the same for "
            "every column, a sixth on narrowing it, and two thirds on counting."
        )
    if ColumnSearch.VALUES in searches:
        told.append(
            "A column of texts without declared categories spends a third of its part on finding values that many "
            "share, and two thirds on counting them. Half of δ is for these, in equal parts."
        )
    return (*told, f"Noise is {'Gaussian' if division.gaussian else 'Laplace'}: here its ± is the smaller one.")


def notes_of(unit: Unit) -> tuple[str, ...]:
    """Say what every number of a profile means."""
    counted = (
        "Each row is protected by itself and counted once."
        if unit.is_row
        else f"Everybody who shares a {unit.column} is protected together. {_limits(unit)}, taken at random if there "
        f"are more; rows without a {unit.column} are left out."
    )
    return (
        counted,
        "± is for one number at a time, at 95 %. Values outside of declared bounds are counted at the bound.",
        "The largest of many noisy counts is likely one with much noise: the order of values that are close is chance.",
    )


def _limits(unit: Unit) -> str:
    groups, rows = unit.max_groups, unit.max_rows_per_group
    if groups == rows == 1:
        return "In each column one row of each is counted"
    each = f"{rows} row{'s' * (rows > 1)}"
    spread = "of one range or value" if groups == 1 else f"of each of {groups} ranges or values"
    return f"In each column at most {each} {spread} are counted for each"


def _whom(unit: Unit) -> str:
    return "rows there are" if unit.is_row else f"different values {unit.column} has"
