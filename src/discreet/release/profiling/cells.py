"""Where a column is cut into cells: by what is declared, and, step by step, by what was released before.

First a ladder that everybody knows, with rungs at 1, 2 and 5 times powers of ten, or at years of two centuries; then
about fifty cells between the rungs that enough people are on; then those that are shown. Where to cut follows from
noisy counts of the step before and from nothing else, so it costs nothing by itself.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from fractions import Fraction
from typing import TypeAlias, final

from discreet.formatting import plain
from discreet.query.session.builder import word
from discreet.release.round_numbers import calendar_cuts, calendar_step, number_cuts
from discreet.schema.columns import Kind

__all__ = [
    "Bound",
    "ListedCells",
    "Partition",
    "Presence",
    "Ranges",
    "ReleasedCells",
    "declared_cells",
    "ladder",
    "narrowed",
    "shown_cells",
    "written",
]

# --- partition: A column cut into cells that everybody may know: each row is in one of them, and so in one count. ---
#
# Cell 0 is for what is missing. A cell that is open has no bound on one side.


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


_SHOWN = 20  # cells of a histogram, about
_FINE = 50  # cells of a step that narrows bounds, about
_SKEWED = Fraction(1, 2)  # of all values in one cell: then cells of equal width tell little
# Every ten years where dates of birth may lie, and every year where most other things have happened.
_YEARS = (*range(1900, 1970, 10), *range(1970, 2040), *range(2040, 2101, 10))
_POWERS = {Kind.INTEGER: range(13), Kind.REAL: range(-3, 13)}


@final
@dataclass(frozen=True, slots=True)
class ReleasedCells:
    """Released counts of the cells of a partition from cell 1 on, and above which of them a cell is not just noise."""

    cells: Ranges
    counts: tuple[int, ...]
    threshold: int

    @property
    def filled(self) -> tuple[int, ...]:
        """The cells, counted from 1, that somebody is surely in."""
        return tuple(cell for cell, count in enumerate(self.counts, 1) if count > self.threshold)

    @property
    def bounds(self) -> tuple[Bound, Bound] | None:
        """The ends of all filled cells together, None if there are not two of them."""
        filled = self.filled
        if not filled:
            return None
        low, high = self.cells.ends(filled[0])[0], self.cells.ends(filled[-1])[1]
        low = self.cells.cuts[0] if low is None else low
        high = self.cells.cuts[-1] if high is None else high
        return (low, high) if low < high else None  # type: ignore[operator]

    @property
    def largest_share(self) -> Fraction:
        """The largest part of all counts that one cell has."""
        total = sum(count for count in self.counts if count > 0)
        return Fraction(max(self.counts), total) if total else Fraction(0)


def ladder(kind: Kind) -> Ranges:
    """Return the cells that the search begins with: the same for every column of a kind."""
    if kind.is_time:
        cuts: tuple[Bound, ...] = tuple(_moment(date(year, 1, 1), kind) for year in _YEARS)
        return Ranges(cuts=cuts, whole=kind is Kind.DATE)
    rungs = [Fraction(10) ** power * digit for power in _POWERS[kind] for digit in (1, 2, 5)]
    return Ranges(cuts=(*(-rung for rung in reversed(rungs)), Fraction(0), *rungs), whole=kind is Kind.INTEGER)


def declared_cells(low: Bound, high: Bound, kind: Kind) -> Ranges:
    """Cut what lies between declared bounds; what lies outside is counted as if it were at the bound."""
    cuts = _cuts(low, high, kind, _SHOWN)
    return Ranges(cuts=cuts, low=low, high=high, whole=kind in (Kind.INTEGER, Kind.DATE))


def narrowed(found: ReleasedCells, kind: Kind) -> Partition:
    """Return finer cells between the bounds that were found; one cell for all if nothing was."""
    bounds = found.bounds
    return Presence() if bounds is None else _between(*bounds, kind, _FINE)


def shown_cells(found: ReleasedCells, finer: ReleasedCells | None, kind: Kind) -> Partition:
    """Return the cells that are shown: of equal width, or the rungs of the ladder where values are very unequal."""
    if finer is None or finer.bounds is None:
        return narrowed(found, kind)
    rungs = _rungs(found)
    if (
        kind.is_number
        and finer.largest_share > _SKEWED
        and found.largest_share < finer.largest_share
        and len(rungs) > 3
    ):
        return Ranges(cuts=rungs, whole=found.cells.whole)
    return _between(*finer.bounds, kind, _SHOWN)


def _rungs(found: ReleasedCells) -> tuple[Bound, ...]:
    """Return the ends of all filled rungs; what lies between is one cell."""
    ends = [end for cell in found.filled for end in found.cells.ends(cell) if end is not None]
    return tuple(dict.fromkeys(ends))


def _between(low: Bound, high: Bound, kind: Kind, most: int) -> Ranges:
    """Cut between two bounds and at them, with open cells on both sides."""
    return Ranges(cuts=(low, *_cuts(low, high, kind, most), high), whole=kind in (Kind.INTEGER, Kind.DATE))


def _cuts(low: Bound, high: Bound, kind: Kind, most: int) -> tuple[Bound, ...]:
    if isinstance(low, Fraction) and isinstance(high, Fraction):
        return number_cuts(low, high, most, whole=kind is Kind.INTEGER)
    first, last = _day(low), _day(high)
    days: Sequence[date] = calendar_cuts(first, last, calendar_step(first, last, most))
    return tuple(moment for day in days if low < (moment := _moment(day, kind)) < high)  # type: ignore[operator]


def _day(moment: Bound) -> date:
    assert isinstance(moment, date)
    return moment.date() if isinstance(moment, datetime) else moment


def _moment(day: date, kind: Kind) -> Bound:
    return datetime(day.year, day.month, day.day) if kind is Kind.TIMESTAMP else day
