"""Guessing an attribute from counts: read off if they are exact, weighed against what is common if they are not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from discreet.attacks.axes import ALL
from discreet.attacks.counts import CountTable, Floats
from discreet.attacks.cube import Cube
from discreet.attacks.isolating import Target

__all__ = ["Readings", "best", "readings", "trusted"]

_SHARPEST = 1e-3  # A deviation for exact counts: nothing outweighs them.
# The deviation of a normal law over the root mean square of its inner nine tenths, |z| < 1.645.
_INNER, _WIDER = 0.9, 1.267


@final
@dataclass(frozen=True, slots=True, eq=False)
class Readings:
    """Some counts of a cube as sums of published cells: how they are made, and how far off they usually are."""

    counts: Floats  # NaN where unknown
    weights: Floats  # one row for each count, one column for each cell
    cells: tuple[tuple[int, int], ...]  # the table and the number of each cell
    tables: tuple[CountTable, ...]

    @property
    def deviations(self) -> Floats:
        """The deviation of each count by the declared noise, which is independent from cell to cell."""
        each = np.array([self.tables[table].deviation for table, _ in self.cells])
        variances: Floats = (self.weights**2 * each**2).sum(axis=1)
        return np.sqrt(variances)

    def fresh(self, draws: int) -> Floats:
        """Draw the noise of these counts anew, one row for each draw."""
        drawn = np.zeros((draws, len(self.cells)))
        for number, table in enumerate(self.tables):
            mine = [place for place, (other, _) in enumerate(self.cells) if other == number]
            drawn[:, mine] = table.draw(draws * len(mine)).reshape(draws, len(mine))
        return drawn @ self.weights.T


def readings(cube: Cube, places: Sequence[int]) -> Readings:
    """Take some counts of a cube apart into published cells. What is unknown has none."""
    made = [{} if np.isnan(cube.counts[place]) else cube.made_of(place) for place in places]
    cells = tuple(dict.fromkeys(cell for parts in made for cell in parts))
    column = {cell: number for number, cell in enumerate(cells)}
    weights = np.zeros((len(places), len(cells)))
    for row, parts in enumerate(made):
        for cell, times in parts.items():
            weights[row, column[cell]] = times
    return Readings(cube.counts[list(places)], weights, cells, cube.tables)


def best(counts: Floats, deviations: Floats, common: Floats) -> int:
    """Return the likeliest attribute of the one person in a group.

    If the person has attribute a, its count is 1 and the others are 0, each with normal noise; so the log-likelihood
    of a is, up to a constant, (2 x_a - 1) / (2 sd^2), and 0 if the count of a is not known. To that comes the logarithm
    of how common a is in the whole table: the posterior of Bayes.
    """
    sharp = np.maximum(deviations, _SHARPEST)
    evidence = np.where(np.isnan(counts), 0.0, (2 * np.nan_to_num(counts) - 1) / (2 * sharp**2))
    return int(np.argmax(evidence + np.log(np.maximum(common, 0.5))))


def trusted(cube: Cube, target: Target, declared: Floats) -> Floats:
    """Return deviations that an attacker believes in: no larger than the counts of such groups suggest.

    Most groups like the target's are empty. If their counts are hardly off 0, there is less noise than declared.
    """
    nodes = [_alike(axis_number, node, cube) for axis_number, node in enumerate(target.group)]
    attributes = list(range(ALL + 1, cube.shape[-1]))
    alike = cube.counts.reshape(cube.shape)[np.ix_(*nodes, attributes)]
    seen = np.sort(np.abs(alike[~np.isnan(alike)]))[: int(_INNER * np.count_nonzero(~np.isnan(alike)))]
    return np.minimum(declared, _WIDER * float(np.sqrt(np.mean(seen**2)))) if len(seen) else declared


def _alike(axis: int, node: int, cube: Cube) -> list[int]:
    """Return the nodes of an axis that are as deep as one; of a condition, only that one."""
    mine = cube.axes[axis]
    if mine.condition or node == ALL:
        return [node]
    depth = len(mine.above(node))
    return [one for one in range(mine.size) if len(mine.above(one)) == depth]
