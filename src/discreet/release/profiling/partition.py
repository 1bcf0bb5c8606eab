"""A column cut into cells that everybody may know: each row is in one of them, and so in one count.

Cell 0 is for what is missing. A cell that is open has no bound on one side.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from datetime import date, datetime
from fractions import Fraction
from typing import TypeAlias, final

from discreet.mechanisms.text import plain
from discreet.query.session.words import word

__all__ = ["Bound", "ListedCells", "Partition", "Presence", "Ranges", "written"]

_LONG = 10_000  # From here on thousands are set apart: 2020 may be a year.
Bound: TypeAlias = Fraction | date | datetime


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Ranges:
    """Cells between cuts, each from its lower end on and below its upper end; `low` and `high` are None if open."""

    cuts: tuple[Bound, ...]
    low: Bound | None = None
    high: Bound | None = None
    whole: bool = False  # values are whole numbers, or days: a cell from 3 to below 5 has 3 and 4

    @property
    def cells(self) -> int:
        """How many there are besides the one of what is missing."""
        return len(self.cuts) + 1

    def sql(self, value: str) -> str:
        """Write which cell a value is in."""
        return _case(value, [f"{value} < {word(cut).sql}" for cut in self.cuts])

    def ends(self, cell: int) -> tuple[Bound | None, Bound | None]:
        """Return the ends of a cell, which are counted from 1."""
        edges = (self.low, *self.cuts, self.high)
        return edges[cell - 1], edges[cell]

    def label(self, cell: int) -> str:
        """Write what is in a cell."""
        low, high = self.ends(cell)
        if low is None:
            return "everything" if high is None else f"below {written(high)}"
        if high is None:
            return f"{written(low)} and above"
        if self.whole and isinstance(low, Fraction) and isinstance(high, Fraction):
            last = high if high == self.high else high - 1
            return written(low) if last <= low else f"{written(low)} to {written(last)}"
        return f"{written(low)} to {written(high)}"


@final
@dataclass(frozen=True, slots=True)
class ListedCells:
    """A cell for each of some values and, if there may be others, a last one for the rest."""

    values: tuple[Hashable, ...]
    rest: bool = True

    @property
    def cells(self) -> int:
        return len(self.values) + self.rest

    def sql(self, value: str) -> str:
        last = len(self.values) if self.rest else len(self.values) - 1
        return _case(value, [f"{value} = {word(one).sql}" for one in self.values[:last]])  # type: ignore[arg-type]

    def label(self, cell: int) -> str:
        return written(self.values[cell - 1]) if cell <= len(self.values) else "other values"


@final
@dataclass(frozen=True, slots=True)
class Presence:
    """One cell: whatever is not missing."""

    cells: int = 1

    def sql(self, value: str) -> str:
        return _case(value, [])

    def label(self, cell: int) -> str:
        return "any value"


Partition: TypeAlias = Ranges | ListedCells | Presence


def _case(value: str, conditions: list[str]) -> str:
    branches = "".join(f" WHEN {condition} THEN {cell}" for cell, condition in enumerate(conditions, 1))
    return f"CASE WHEN {value} IS NULL THEN 0{branches} ELSE {len(conditions) + 1} END"


def written(value: Hashable) -> str:
    """Write a value as people read it."""
    if isinstance(value, datetime):
        return value.isoformat(sep=" ", timespec="minutes")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, (int, Fraction)):
        return str(value)
    return plain(value).replace(",", "") if -_LONG < value < _LONG else plain(value)
