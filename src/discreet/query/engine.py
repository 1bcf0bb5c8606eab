"""The seam between planner and engines: the one stage that reads private rows, and the methods of an engine."""

from __future__ import annotations

import time
import unicodedata
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, final, runtime_checkable

from discreet.mechanisms.grid import Grid
from discreet.query.ast import Expression, Source
from discreet.query.bounding.aggregation import Tally
from discreet.query.bounding.group_codes import GroupKeys
from discreet.query.catalogue import CatalogueColumn
from discreet.schema.columns import Kind

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "Deadline",
    "Engine",
    "ExactCounts",
    "LimitedEngine",
    "RowEngine",
    "Stage",
    "StageColumn",
    "StageKey",
    "Wants",
    "known_keys",
]

# --- stage: The one stage that reads private rows: scan, bound each unit's share, add up whole numbers by group. ---
#
# A stage is all that an engine sees of a question. What it returns is exact, private, and goes nowhere but into noise.


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
    is in one group: there is nothing to bound. Of a chain, `unit` is the inner unit, whose field tells the outer too.
    """

    source: Source
    unit: str | None
    keys: tuple[StageKey, ...]
    columns: tuple[StageColumn, ...]
    max_groups: int
    max_rows_per_group: int
    wants_units: bool = False  # the number of distinct units of each group
    max_inner: int | None = None  # of a chain: so many units of an outer one are counted, chosen by secret tags
    family: str | None = None  # stages of one family count the same rows: `max_rows_per_group` of a unit in all groups


# --- engine ---
# The seam between the planner and where the data live: a few methods, one contract suite for all engines.


@final
@dataclass(frozen=True, slots=True)
class Deadline:
    """A moment, fixed when a question is admitted, after which its work is stopped."""

    ends: float  # on the monotonic clock

    @classmethod
    def after(cls, seconds: float) -> Deadline:
        return cls(time.monotonic() + seconds)

    @property
    def left(self) -> float:
        """How many seconds are left, none below zero."""
        return max(0.0, self.ends - time.monotonic())


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ExactCounts:
    """Exact whole numbers of every group. Private: they go nowhere but into noise.

    With public domains the groups are all combinations of key values, the last key fastest, empty ones included;
    otherwise those that rows fall into, in the canonical order of their keys, so that order tells nothing.
    """

    groups: int
    tally: Tally
    keys: Callable[[Sequence[int]], list[tuple[Hashable, ...]]]  # of some groups; asked for released groups only
    found: GroupKeys | None = None  # the same, where the data tell which groups there are
    lists: tuple[pa.Array | None, ...] = ()  # of columns without public indices: the values that indices stand for


def known_keys(stage: Stage) -> Callable[[Sequence[int]], list[tuple[Hashable, ...]]]:
    """Return what tells the keys of groups by their numbers, where all combinations of public values are groups."""
    domains = [tuple(_plain(value) for value in key.domain) for key in stage.keys if key.domain is not None]

    def keys(groups: Sequence[int]) -> list[tuple[Hashable, ...]]:
        return [_of(int(group)) for group in groups]

    def _of(group: int) -> tuple[Hashable, ...]:
        values: list[Hashable] = []
        for domain in reversed(domains):
            group, place = divmod(group, len(domain))
            values.append(domain[place])
        return tuple(reversed(values))

    return keys


def _plain(member: Hashable) -> Hashable:
    """Return a member as a plain Python value, in canonical form."""
    if isinstance(member, str):
        return unicodedata.normalize("NFC", member)
    if isinstance(member, float):
        return member + 0.0
    return member


class Engine(Protocol):
    """Where the data live. It gets closed trees, never a user's text."""

    def columns(self, table: str) -> Mapping[str, Kind]:
        """Return the public schema of a table: names and kinds of columns, never looked up in rows."""

    def infers_types(self, table: str) -> bool:
        """Whether the types of a table follow from its rows, so that they are private themselves."""

    def public_columns(self, table: str) -> Mapping[str, CatalogueColumn]:
        """Return what can be known of a public table by reading it: bounds, and all values where they are few."""

    def public_is_unique(self, table: str, columns: frozenset[str]) -> bool:
        """Whether no two rows of a public table agree in these columns."""

    def public_rows(self, table: str) -> int:
        """Return the number of rows of a public table."""

    def check_unchanged(self) -> None:
        """Refuse if a table has other columns than at the opening, or a public one is not the same.

        It reads no row and depends on nothing private, so it is asked before a charge; what changes later is the
        constant failure.
        """

    def run(self, stage: Stage, *, deadline: Deadline) -> ExactCounts:
        """Read, bound and add up. Raises only errors whose text does not depend on the data."""

    def run_all(self, stages: Sequence[Stage], *, deadline: Deadline) -> tuple[ExactCounts, ...]:
        """Do the same for several stages, reading what they have in common once.

        Each answer follows the law that `run` follows, with secret choices of its own, independent of the others'; but
        one choice is made for all stages of a family.
        """

    def close(self) -> None:
        """Let go of the data."""


@runtime_checkable
class LimitedEngine(Engine, Protocol):
    """An engine that cannot run every stage."""

    def check_stages(self, stages: Sequence[Stage]) -> None:
        """Refuse what it cannot run. It reads no row and depends on nothing private: it is asked before a charge."""


@runtime_checkable
class RowEngine(Engine, Protocol):
    """An engine that can hand rows over as well, to what is fitted to a whole table or follows units over time."""

    def first_groups(self, stage: Stage, most: int, *, deadline: Deadline) -> pa.Table:
        """Return of every unit its first groups, in the order of a public key. It names units: it is private."""

    def rows(self, table: str, columns: Sequence[str], numbers: Sequence[str], *, deadline: Deadline) -> pa.Table:
        """Return columns of every row as they are stored, texts of `numbers` as doubles or NULL. It is private."""
