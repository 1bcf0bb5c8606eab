"""The first look: every column by itself, which also says what joint marginals can tell apart."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np

from discreet.synth.tables.compressing import Grouping, group_cells
from discreet.synth.tables.graphical import Measured
from discreet.synth.tables.measuring import PrivateTable
from discreet.synth.tables.shape import Shape, Zeros

__all__ = ["FirstLook", "look"]


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


def look(table: PrivateTable, shape: Shape, mu_squared: Fraction, *, rare: float, finest: float) -> FirstLook:
    """Measure all columns for `mu_squared` in all and merge their rare codes.

    A group should hold `rare` standard deviations of noise, and one part in `finest` of all rows.
    """
    each = mu_squared / len(shape.sizes)
    counts = [table.measure((column,), each) for column in range(len(shape.sizes))]
    rows = float(np.median([one.values.sum() for one in counts]))
    groupings = tuple(
        group_cells(one.values, least=max(rare * float(one.deviation), rows / finest), ordered=ordered, kinds=kinds)
        for one, ordered, kinds in zip(counts, shape.ordered, shape.kinds, strict=True)
    )
    measured = tuple(_grouped(one, grouping) for one, grouping in zip(counts, groupings, strict=True))
    merged = table.recoded([grouping.groups for grouping in groupings])
    return FirstLook(merged, groupings, measured, tuple(shape.zeros(groupings)))


def _grouped(counts: Measured, grouping: Grouping) -> Measured:
    """Add noisy counts within groups; so do the variances of their noise."""
    members = np.bincount(grouping.groups)
    values = np.bincount(grouping.groups, counts.values)
    return Measured(counts.clique, values, float(counts.deviation) * np.sqrt(members))
