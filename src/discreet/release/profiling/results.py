"""A profile: what was released of every column, with its ±, and what that cost. All of it may be shown to anybody."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import final

from discreet.query import Kind, Unit
from discreet.release.profiling.estimates import Estimate
from discreet.release.profiling.partition import Bound
from discreet.release.profiling.quantiles import ProfileQuantile

__all__ = ["CellCount", "ColumnProfile", "Profile", "ProfileCost"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CellCount:
    """How many rows are in one cell of a column: between two ends, or with one value."""

    label: str
    count: Estimate
    low: Bound | None = None
    high: Bound | None = None
    value: Hashable = None
    rest: bool = False  # everything that is in no other cell


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnProfile:
    """What is known of a column now."""

    name: str
    kind: Kind
    basis: str  # where the cells come from, in words
    missing: Estimate
    present: Estimate
    cells: tuple[CellCount, ...]
    ordered: bool  # whether the cells are ranges of numbers or times
    quantiles: tuple[ProfileQuantile, ...] = ()
    reasons: tuple[str, ...] = ()  # what is not there, and why

    @property
    def bounds(self) -> tuple[Bound | None, Bound | None]:
        """Between which numbers or times the cells lie."""
        if not self.ordered or not self.cells:
            return None, None
        lows = [cell.low for cell in self.cells if cell.low is not None]
        highs = [cell.high for cell in self.cells if cell.high is not None]
        return (lows[0] if lows else None), (highs[-1] if highs else None)

    @property
    def top(self) -> tuple[CellCount, ...]:
        """The values with the largest counts first; none for ranges."""
        if self.ordered:
            return ()
        listed = [cell for cell in self.cells if not cell.rest]
        return tuple(sorted(listed, key=lambda cell: (-cell.count.value, cell.label)))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileCost:
    """What a profile cost: at most what was allowed, and by tight accounting the first number."""

    epsilon: float  # at `delta`, rounded up
    delta: Fraction
    allowed: Fraction  # epsilon
    charges: tuple[str, ...]  # the keys of the charges in the ledger


@final
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Profile:
    """All columns of a table. Everything in it was paid for, or follows from what was."""

    dataset: str
    table: str
    unit: Unit
    units: Estimate
    columns: tuple[ColumnProfile, ...]
    spent: ProfileCost
    rule: tuple[str, ...]  # how the budget was divided, in words
    notes: tuple[str, ...]

    def column(self, name: str) -> ColumnProfile:
        """Return a column by its name."""
        from discreet.errors import InvalidParameter
        from discreet.query.session.catalogue_building import nearest

        for column in self.columns:
            if column.name == name:
                return column
        raise InvalidParameter(f"there is no column {name!r}. {nearest(name, [one.name for one in self.columns])}")

    def to_json(self) -> str:
        """Write everything as JSON."""
        from discreet.release.profiling.packing import packed

        return packed(self)

    def write(self, path: str | Path) -> Path:
        """Write one HTML file that opens anywhere, without a script and without a network."""
        from discreet.release.profiling.page import page

        file = Path(path)
        file.write_text(page(self), encoding="utf-8")
        return file

    def __str__(self) -> str:
        from discreet.release.profiling.text import text

        return text(self)

    __repr__ = __str__
