"""A plan while it is being made: every pass adds what it has decided, from public facts only."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import Protocol, TypeAlias, final

from discreet.mechanisms.grid import Grid
from discreet.query.ast import Query
from discreet.query.catalogue import Catalogue
from discreet.query.engine import StageColumn
from discreet.query.plan.noise_plan import Chooser, Noising
from discreet.query.plan.spend import Spend

__all__ = [
    "Added",
    "Averaged",
    "CountTerm",
    "ModePick",
    "Number",
    "Pass",
    "Pick",
    "Picked",
    "PlanDraft",
    "QuantilePick",
    "Recipe",
    "SpreadTerm",
    "TallySpec",
    "Tighter",
]


class Tighter(Protocol):
    """Limits that an analyst sets below those of the policy."""

    @property
    def max_groups(self) -> int | None: ...

    @property
    def max_rows_per_group(self) -> int | None: ...


@final
class TallySpec(Enum):
    """What is added up in a group."""

    ROWS = "rows"
    UNITS = "units"
    COUNT = "count"  # values that are not NULL
    NULLS = "nulls"  # rows whose value is NULL
    TOTAL = "total"
    SQUARES = "squares"
    DISTINCT = "distinct"


@final
@dataclass(frozen=True, slots=True)
class Number:
    """A whole number of every group that is released with noise. Equal ones are one: they are paid once."""

    tallying: TallySpec
    column: int | None = None  # of the stage
    fold: int = 0  # of SQUARES: taken off every square, so that squares lie about zero


@final
@dataclass(frozen=True, slots=True)
class QuantilePick:
    """A grid point that is chosen in every group."""

    column: int
    quantile: Fraction
    grid: Grid


@final
@dataclass(frozen=True, slots=True)
class ModePick:
    """A value that is chosen in every group, among public ones."""

    column: int
    candidates: tuple[Hashable, ...]
    places: tuple[int, ...]  # of the candidates, as the stage numbers them


Pick: TypeAlias = QuantilePick | ModePick

# How an answer follows from noisy numbers; all of it is post-processing.


@final
@dataclass(frozen=True, slots=True)
class CountTerm:
    """A noisy number itself, or the sum of two."""

    number: int
    also: int | None = None


@final
@dataclass(frozen=True, slots=True)
class Added:
    """A sum: the total about the centre and, where that is not zero, the centre for each value counted."""

    total: int
    count: int | None
    grid: Grid
    centre: int


@final
@dataclass(frozen=True, slots=True)
class Averaged:
    """The centre and the total about it over the count."""

    total: int
    count: int
    grid: Grid
    centre: int


@final
@dataclass(frozen=True, slots=True)
class SpreadTerm:
    """A variance, or its root."""

    squares: int
    total: int
    count: int
    grid: Grid
    centre: int
    fold: int
    sample: bool
    root: bool


@final
@dataclass(frozen=True, slots=True)
class Picked:
    """What was chosen."""

    pick: int


Recipe: TypeAlias = CountTerm | Added | Averaged | SpreadTerm | Picked


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PlanDraft:
    """What is known of a plan so far. Nothing in it comes from private data."""

    question: Query
    catalogue: Catalogue
    spend: Spend
    tighter: Tighter | None
    pure: bool
    max_groups: int = 1  # by `limits`
    max_rows: int = 1
    groups: int | None = None  # how many there are; None if data must tell
    columns: tuple[StageColumn, ...] = ()  # by `measurements`
    numbers: tuple[Number, ...] = ()
    picks: tuple[Pick, ...] = ()
    recipes: tuple[Recipe, ...] = ()  # one for each measure of the question
    changes: tuple[int, ...] = ()  # by `sensitivities`: of each number, in one group, by one unit
    bundles: tuple[tuple[int, ...], ...] = ()  # numbers of which one row moves one at most
    noising: Noising | None = None  # by `choice`
    choosers: tuple[Chooser, ...] = ()  # one for each pick


Pass: TypeAlias = Callable[[PlanDraft], PlanDraft]
