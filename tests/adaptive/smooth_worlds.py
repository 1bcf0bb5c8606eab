"""What the tests of smooth sensitivity share: a median, tables of values and bounds, and worst pairs of neighbours."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.adaptive import order_queries
from discreet.adaptive.noise_recipes import Recipe
from discreet.adaptive.smooth_mechanisms import SmoothSensitivityMechanism
from discreet.adaptive.smooth_query import RELATIVE_ERROR, Peak, SmoothlyBoundedQuery
from discreet.lab.verify import worlds
from discreet.lab.verify.small_worlds import Worlds
from discreet.mechanisms import Grid
from discreet.mechanisms.order_statistics import Ranked
from discreet.privacy.relation import Relation

ADD_REMOVE, REPLACE_ONE = Relation.ADD_REMOVE, Relation.REPLACE_ONE
VALUES = (0, 1, 3, 6, 8)
GRID = Grid(low=Fraction(0), high=Fraction(8), step=Fraction(1), default=Fraction(0))
HALVES = Grid(low=Fraction(0), high=Fraction(4), step=Fraction(1, 2), default=Fraction(0))


@dataclass(frozen=True)
class LowerMedian:
    """x_ceil(n/2) of values on a grid; of nothing, the lower bound."""

    relation: Relation = REPLACE_ONE
    grid: Grid = GRID
    relative_error: Fraction = 2 * RELATIVE_ERROR
    value_error: Fraction = Fraction(0)

    def value(self, data: Any) -> Fraction:
        ranked = sorted(self.grid.indices(list(data)).tolist())
        return Fraction(ranked[(len(ranked) - 1) // 2] if ranked else self.grid.first)

    def smooth_bound(self, data: Any, beta: Fraction) -> Peak:
        sample = Ranked(np.array(self.grid.indices(list(data))), self.grid.first, self.grid.last)
        if self.relation is ADD_REMOVE:
            return order_queries.lower_median_add_remove(sample, beta)
        return order_queries.rank(sample, (sample.size + 1) // 2, beta)


def local_sensitivity(data: Any, distance: int, grid: Grid = GRID) -> Fraction:
    """The largest x_(m+t) - x_(m+t-k-1) over t from 0 to k + 1: of the lower median, k values being replaced."""
    ranked = sorted(grid.indices(list(data)).tolist())
    padded = [grid.first] * (distance + 1) + ranked + [grid.last] * (distance + 1)
    m = (len(ranked) - 1) // 2 + distance + 1
    return Fraction(max(padded[m + t] - padded[m + t - distance - 1] for t in range(distance + 2)))


@dataclass(frozen=True)
class Table:
    """A query of one record, told by a table: the value and the height and distance of the bound."""

    rows: Mapping[str, tuple[int, Peak]]
    grid: Grid
    relation: Relation = REPLACE_ONE
    relative_error: Fraction = Fraction(0)
    value_error: Fraction = Fraction(0)

    def value(self, data: Any) -> Fraction:
        return Fraction(self.rows[data[0]][0])

    def smooth_bound(self, data: Any, beta: Fraction) -> Peak:
        return self.rows[data[0]][1]

    @property
    def worlds(self) -> Worlds:
        return worlds(list(self.rows), [1])


def steps(last: int) -> Grid:
    return Grid(low=Fraction(0), high=Fraction(last), step=Fraction(1), default=Fraction(0))


def worst_pair(recipe: Recipe, *, height: int = 40, reach: int = 8) -> tuple[SmoothSensitivityMechanism, Worlds]:
    """Two data sets that are as far apart, in value and in bound, as a recipe allows.

    The bounds differ by the factor e^beta exactly, and the values by the smaller bound, but for less than a step.
    """
    last = height * reach
    near = last // 2
    far = near + math.floor(height * math.exp(-float(recipe.beta)))
    query = Table({"a": (near, Peak(Fraction(height), 0)), "b": (far, Peak(Fraction(height), 1))}, steps(last))
    return SmoothSensitivityMechanism(query=query, recipe=recipe), query.worlds


def bounded(value: Any, bound: Any, **fields: Any) -> SmoothlyBoundedQuery:
    return SmoothlyBoundedQuery(**{"evaluate": value, "bound": bound, "grid": GRID, "relation": REPLACE_ONE} | fields)
