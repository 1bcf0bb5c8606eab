"""What contribution limits and value bounds leave out of a table, on rows that anybody may read.

Nothing here sees private rows: an engine is handed in that holds made-up rows, or a public sample.

Theorem     Of a unit in G groups at most M are kept, and of its n rows in one of them at most R, each choice with equal
            chances. So a row is kept with the chance min(1, M / G) min(1, R / n); in a family, which keeps R of all N
            rows of a unit, with min(1, R / N). What is added up row by row is on average the sum of the same numbers
            with these weights, since averages add up. A unit is counted in a group of a family unless none of its n
            rows there is kept: with the chance 1 - C(N - n, R) / C(N, R).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from math import comb
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.query.ast import ReleasedMeasure, Statistic, fields_of, unit_of
from discreet.query.engine import Deadline, Engine, Stage, StageKey
from discreet.query.execute import exact_numbers
from discreet.query.plan.draft import Added, Averaged, CountTerm, FinalDraft
from discreet.query.plan.planner import PricedQuery

__all__ = ["Contributions", "GroupValues", "bias_share", "contributions", "expected_values"]

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
GroupValues: TypeAlias = Mapping[tuple[Hashable, ...], float]  # of one column, by the keys of a group

_SECONDS = 600.0
_ROUNDING = 1e-9  # Sums of floats, and steps of other bounds, differ by less.


@final
@dataclass(frozen=True, slots=True, eq=False)
class Contributions:
    """What every unit adds to every group that it is in, before any limit: one place of each array for such a pair."""

    units: Integers  # numbered from 0
    groups: Integers  # places in `keys`
    rows: Integers
    numbers: tuple[Floats, ...]  # one for each number of the draft, in grid steps
    keys: tuple[tuple[Hashable, ...], ...]

    @property
    def most_rows(self) -> int:
        """The most rows that a unit has in one group."""
        return int(self.rows.max(initial=1))

    @property
    def most_in_all(self) -> int:
        """The most rows that a unit has in all groups together."""
        return int(np.bincount(self.units, self.rows).max(initial=1))

    @property
    def most_groups(self) -> int:
        """The most groups that a unit is in."""
        return int(np.bincount(self.units).max(initial=1))


def contributions(engine: Engine, priced: PricedQuery) -> Contributions:
    """Add up the rows of every unit in every group, on rows that are public or made up."""
    by_unit = priced.stage.unit is not None
    counted = engine.run(_apart(priced.stage), deadline=Deadline.after(_SECONDS))
    found = counted.keys(range(counted.groups))
    there = [place for place, key in enumerate(found) if counted.tally.rows[place] and not (by_unit and key[0] is None)]
    units: dict[Hashable, int] = {}
    groups: dict[tuple[Hashable, ...], int] = {}
    pairs = [(found[place][0], found[place][1:]) if by_unit else (place, found[place]) for place in there]
    codes = [(units.setdefault(unit, len(units)), groups.setdefault(key, len(groups))) for unit, key in pairs]
    coded = np.array(codes, np.int64).reshape(-1, 2)
    numbers = (np.asarray(one)[there].astype(np.float64) for one in exact_numbers(priced.draft, counted.tally))
    return Contributions(coded[:, 0], coded[:, 1], counted.tally.rows[there], tuple(numbers), tuple(groups))


def _apart(stage: Stage) -> Stage:
    """Return a stage that keeps every row, with a group for every unit in every group."""
    columns = tuple(replace(column, wants=replace(column.wants, values=False)) for column in stage.columns)
    keys = stage.keys
    if stage.unit is not None:
        own = next(field for field in fields_of(stage.source) if field.name == unit_of(stage.source))
        keys = (StageKey(expression=own, domain=None), *keys)
    return replace(
        stage,
        unit=None,
        keys=keys,
        columns=columns,
        max_groups=1,
        max_rows_per_group=1,
        wants_units=False,
        family=None,
    )


def expected_values(draft: FinalDraft, found: Contributions, *, limited: bool) -> dict[str, GroupValues]:
    """Return what every group of every column has on average over the choice of rows; `limited`, or with all rows.

    Columns that are no counts, sums or means are left out. That of a mean is the quotient of two averages.
    """
    by_rows, by_units = _kept(draft, found) if limited else (np.ones(found.rows.size), np.ones(found.rows.size))
    sums = [_by_group(found, by_rows * number) for number in found.numbers]
    units = _by_group(found, by_units)
    values: dict[str, GroupValues] = {}
    for output in draft.question.outputs:
        value = output.value
        column = _column(draft, value.measure, sums, units) if isinstance(value, ReleasedMeasure) else None
        if column is not None:
            values[output.name] = {
                key: float(value) for key, value in zip(found.keys, column, strict=True) if not np.isnan(value)
            }
    return values


def _by_group(found: Contributions, numbers: Floats) -> Floats:
    return np.bincount(found.groups, numbers, len(found.keys)).astype(np.float64)


def _column(draft: FinalDraft, measure: int, sums: list[Floats], units: Floats) -> Floats | None:
    """Put a column together from numbers, as an answer does."""
    statistic = draft.question.measures[measure].statistic
    if statistic is Statistic.UNITS:
        return units
    match draft.recipes[measure]:
        case CountTerm() as recipe if statistic is not Statistic.DISTINCT:
            return sums[recipe.number] + (0.0 if recipe.also is None else sums[recipe.also])
        case Added() as recipe:
            beside = 0.0 if recipe.count is None else recipe.centre * sums[recipe.count]
            return float(recipe.grid.step) * (sums[recipe.total] + beside)
        case Averaged() as recipe:
            many = np.where(sums[recipe.count] > 0, sums[recipe.count], np.nan)
            return float(recipe.grid.step) * (recipe.centre + sums[recipe.total] / many)
        case _:
            return None


def _kept(draft: FinalDraft, found: Contributions) -> tuple[Floats, Floats]:
    """Return the chance that a row of each pair is counted, and that its unit is counted in the group at all."""
    if draft.catalogue.unit.is_row:
        return np.ones(found.rows.size), np.ones(found.rows.size)
    if draft.family is not None:
        together = np.bincount(found.units, found.rows).astype(np.int64)[found.units]
        chances = [_seen(int(n), int(rows), draft.max_rows) for n, rows in zip(together, found.rows, strict=True)]
        return np.minimum(1.0, draft.max_rows / together), np.array(chances, np.float64)
    groups = np.bincount(found.units)[found.units]
    chosen = np.minimum(1.0, draft.max_groups / groups)
    return chosen * np.minimum(1.0, draft.max_rows / found.rows), chosen


def _seen(together: int, rows: int, most: int) -> float:
    """Return the chance that `most` of a unit's rows hit one of those that it has in a group."""
    return 1.0 if together <= most else 1.0 - comb(together - rows, most) / comb(together, most)


def bias_share(values: GroupValues, exact: GroupValues) -> float | None:
    """Return how far groups are off on average, as a part of what they have; None where there is nothing to be off."""
    whole = sum(map(abs, exact.values()))
    if not whole:
        return None
    off = sum(abs(values.get(key, 0.0) - value) for key, value in exact.items()) / whole
    return off if off > _ROUNDING else 0.0
