"""The first look: every column by itself, which also says what joint marginals can tell apart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np

from discreet.synth.tables.compressing import Grouping, group_cells
from discreet.synth.tables.graphical import NoisyMarginal
from discreet.synth.tables.measuring import PrivateTable
from discreet.synth.tables.shape import TableShape, Zeros

__all__ = ["MEAN_NOISE", "Fineness", "FirstLook", "count_columns", "merge_codes"]

MEAN_NOISE = math.sqrt(2 / math.pi)  # The mean size of Gaussian noise, in standard deviations.
_FEWEST = 2.5  # Groups; where pairs can pay for fewer a column, they tell less than their noise hides.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Fineness:
    """How far codes are told apart, so that noise does not drown what pairs of columns tell."""

    deviation: float  # of the noise that pairs will be measured with, in rows
    drowned: float  # the share of all rows that the noise of a pair of columns may amount to
    rare: float = 3.0  # deviations of a column's own noise that a group should hold

    def groups(self, rows: float) -> float:
        """Return how many groups of a column can pay: m of them make m^2 cells a pair, with noise in each."""
        return math.sqrt(self.drowned * rows / (MEAN_NOISE / 2 * self.deviation))


@final
@dataclass(frozen=True, slots=True, eq=False)
class FirstLook:
    """What is known after it: groups of codes, and the same table in groups."""

    table: PrivateTable
    groupings: tuple[Grouping, ...]
    measured: tuple[NoisyMarginal, ...]  # the columns, in groups
    zeros: tuple[Zeros, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        return self.table.sizes

    @property
    def varied(self) -> list[int]:
        """The columns of more than one group: only these have anything to do with each other."""
        return [column for column, size in enumerate(self.sizes) if size > 1]


def count_columns(table: PrivateTable, mu_squared: Fraction) -> list[NoisyMarginal]:
    """Measure every column by itself, for `mu_squared` in all."""
    columns = range(len(table.sizes))
    return [table.measure((column,), mu_squared / len(columns)) for column in columns]


def merge_codes(
    table: PrivateTable, shape: TableShape, counts: Sequence[NoisyMarginal], fineness: Fineness
) -> FirstLook | None:
    """Merge codes as far as noise would drown them; None if pairs of columns are drowned altogether.

    All of it follows from noisy counts and public facts.
    """
    rows = max(1.0, float(np.median([one.values.sum() for one in counts])))
    most = fineness.groups(rows)
    if most < _FEWEST:
        return None
    groupings = tuple(
        group_cells(
            one.values, float(one.deviation), rare=fineness.rare, most=round(most), ordered=ordered, kinds=kinds
        )
        for one, ordered, kinds in zip(counts, shape.ordered, shape.kinds, strict=True)
    )
    measured = tuple(_grouped(one, grouping) for one, grouping in zip(counts, groupings, strict=True))
    merged = table.recoded([grouping.groups for grouping in groupings])
    return FirstLook(merged, groupings, measured, tuple(shape.zeros(groupings)))


def _grouped(counts: NoisyMarginal, grouping: Grouping) -> NoisyMarginal:
    """Add noisy counts within groups; so do the variances of their noise."""
    members = np.bincount(grouping.groups)
    values = np.bincount(grouping.groups, counts.values).astype(np.float64)
    return NoisyMarginal(counts.clique, values, float(counts.deviation) * np.sqrt(members))
