"""The first look: every column by itself, which also says what joint marginals can tell apart."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np

from discreet.synth.tables.compressing import Grouping, group_cells
from discreet.synth.tables.graphical import Measured
from discreet.synth.tables.measuring import PrivateTable
from discreet.synth.tables.shape import Shape, Zeros

__all__ = ["MEAN_NOISE", "Fineness", "FirstLook", "look"]

MEAN_NOISE = math.sqrt(2 / math.pi)  # The mean size of Gaussian noise, in standard deviations.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Fineness:
    """How many rows a group of codes should hold, so that noise does not drown what pairs of groups tell."""

    deviation: float  # of the noise that pairs will be measured with, in rows
    rare: float = 3.0  # deviations of a column's own noise that a group should hold
    drowned: float = 0.3  # the share of all rows that the noise of a pair of columns may amount to

    def least(self, rows: float, own_deviation: float) -> float:
        """Return the number of rows: m groups a column make m^2 cells a pair, and noise in each."""
        groups = math.sqrt(self.drowned * rows / (MEAN_NOISE / 2 * self.deviation))
        return max(self.rare * own_deviation, rows / max(groups, 2.0))


@final
@dataclass(frozen=True, slots=True, eq=False)
class FirstLook:
    """What is known after it: groups of codes, and the same table in groups."""

    table: PrivateTable
    groupings: tuple[Grouping, ...]
    measured: tuple[Measured, ...]  # the columns, in groups
    zeros: tuple[Zeros, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        return self.table.sizes


def look(table: PrivateTable, shape: Shape, mu_squared: Fraction, fineness: Fineness | None = None) -> FirstLook:
    """Measure all columns for `mu_squared` in all, and merge codes as far as `fineness` says."""
    each = mu_squared / len(shape.sizes)
    counts = [table.measure((column,), each) for column in range(len(shape.sizes))]
    rows = max(1.0, float(np.median([one.values.sum() for one in counts])))
    groupings = tuple(
        group_cells(
            one.values,
            least=fineness.least(rows, float(one.deviation)) if fineness else 0.0,
            ordered=ordered,
            kinds=kinds,
        )
        for one, ordered, kinds in zip(counts, shape.ordered, shape.kinds, strict=True)
    )
    measured = tuple(_grouped(one, grouping) for one, grouping in zip(counts, groupings, strict=True))
    merged = table.recoded([grouping.groups for grouping in groupings])
    return FirstLook(merged, groupings, measured, tuple(shape.zeros(groupings)))


def _grouped(counts: Measured, grouping: Grouping) -> Measured:
    """Add noisy counts within groups; so do the variances of their noise."""
    members = np.bincount(grouping.groups)
    values = np.bincount(grouping.groups, counts.values).astype(np.float64)
    return Measured(counts.clique, values, float(counts.deviation) * np.sqrt(members))
