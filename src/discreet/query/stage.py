"""The one stage that reads private rows: scan, bound each unit's share, add up whole numbers by group.

A stage is all that an engine sees of a question. What it returns is exact, private, and goes nowhere but into noise.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import final

from discreet.mechanisms.grid import Grid
from discreet.query.expressions import Expression
from discreet.query.sources import Source

__all__ = ["Stage", "StageColumn", "StageKey", "Wants"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Wants:
    """What is needed of a column besides how many of its values are not NULL."""

    total: bool = False  # the sum of grid indices, each less `StageColumn.centre`
    squares: bool = False  # the sum of their squares
    distinct: bool = False  # how many distinct values there are in each group
    values: bool = False  # the kept values themselves


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StageColumn:
    """An argument of some measures.

    Numbers, times and truth values are placed on the grid. Texts are placed among `members`, and are NULL if they are
    not; without members only `distinct` can be asked of them.
    """

    expression: Expression
    wants: Wants
    grid: Grid | None = None
    centre: int = 0  # in grid steps; taken off before adding up
    members: tuple[Hashable, ...] | None = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StageKey:
    """A group key; rows outside of a public domain are dropped before anything is bounded."""

    expression: Expression
    domain: tuple[Hashable, ...] | None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Rows of `source`, each owned by a unit, counted in groups.

    `unit` is the field that identifies the unit; rows where it is NULL are dropped. Without one every row is a unit and
    is in one group: there is nothing to bound.
    """

    source: Source
    unit: str | None
    keys: tuple[StageKey, ...]
    columns: tuple[StageColumn, ...]
    max_groups: int
    max_rows_per_group: int
    wants_units: bool = False  # the number of distinct units of each group
