"""A column of an answer: exact values, where they surely lie, and how far off they may be."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.exact import estimate_of, number_of
from discreet.formatting import decimal, decimal_up, labelled, places_for, plain, printable, shortened
from discreet.mechanisms.grid import compact, wide
from discreet.schema.columns import Kind

__all__ = ["AnswerColumn", "Cell", "ExactNumbers", "Values", "cell_text", "shown"]

# Whole numbers are held in an array; fractions are made only when somebody asks.


@final
@dataclass(frozen=True, slots=True, eq=False)
class ExactNumbers:
    """offset + step * over / under, row by row."""

    over: NDArray[Any]  # int64, or Python integers where they do not fit
    under: NDArray[Any] | None = None  # above zero; None for one
    step: Fraction = Fraction(1)
    offset: Fraction = Fraction(0)

    def __len__(self) -> int:
        return len(self.over)

    def __getitem__(self, row: int) -> Fraction:
        under = 1 if self.under is None else int(self.under[row])
        return self.offset + self.step * Fraction(int(self.over[row]), under)

    @property
    def is_whole(self) -> bool:
        """Whether all numbers are whole by how they are made."""
        return self.under is None and self.step.denominator == 1 and self.offset.denominator == 1

    def take(self, rows: NDArray[np.int64]) -> ExactNumbers:
        """Return some of the rows, in their order."""
        under = None if self.under is None else self.under[rows]
        return ExactNumbers(self.over[rows], under, self.step, self.offset)

    def plus(self, offset: Fraction) -> ExactNumbers:
        """Move all numbers by the same."""
        return ExactNumbers(self.over, self.under, self.step, self.offset + offset)

    def floats(self) -> NDArray[np.float64]:
        """Return the nearest floats, or next to them: for charts and data frames, after the fact."""
        step, offset = float(self.step), float(self.offset)
        over = self.over.astype(np.float64)
        return offset + step * (over if self.under is None else over / self.under.astype(np.float64))

    def integers(self) -> NDArray[np.int64] | None:
        """Return whole numbers of 64 bits, None where they are no such."""
        if not self.is_whole:
            return None
        exact = compact(wide(self.over) * int(self.step) + int(self.offset))
        return exact if exact.dtype == np.int64 else None


Values: TypeAlias = ExactNumbers | tuple[Hashable, ...]


class Cell(NamedTuple):
    """A released value with its error: the exact answer lies between `low` and `high` with the table's confidence.

    Args:
        value: The released value.
        plus_minus: The larger distance to an end of the interval; None where there is no interval.
        low: The lower end of the interval.
        high: The upper end of the interval.
    """

    value: Any
    plus_minus: Fraction | None = None
    low: Fraction | None = None
    high: Fraction | None = None

    @property
    def estimate(self) -> Any:
        """The value in plain numbers: a float for a fraction."""
        return estimate_of(self.value)

    def __float__(self) -> float:
        return float(number_of(self.value))

    def __int__(self) -> int:
        return int(number_of(self.value))

    def interval(self) -> tuple[Fraction, Fraction] | None:
        """Return both ends, between which the exact answer lies; None where there is no interval."""
        return None if self.low is None or self.high is None else (self.low, self.high)

    def __str__(self) -> str:
        return cell_text(self)

    def __repr__(self) -> str:
        return cell_text(self)

    def __format__(self, spec: str) -> str:
        return format(self.estimate, spec) if spec and self.value is not None else str(self)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AnswerColumn:
    """Values by row. Those that were measured have ends, or a reason why there are none."""

    name: str
    kind: Kind  # by public facts, whatever the values are
    values: Values
    low: Values | None = None  # before they are moved inside the limits
    high: Values | None = None
    limits: tuple[Fraction | None, Fraction | None] = (None, None)  # where the exact answer surely lies
    grain: Fraction | None = None  # of which the exact answer is a multiple
    no_interval: str = ""  # why there is no ±; empty for keys
    measured: bool = True
    labels: Mapping[Any, str] | None = None  # what keys mean; public, and never stored with an answer

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, row: int) -> Cell:
        value = self.values[row]
        ends = self.ends(row)
        if ends is None or not isinstance(value, (int, Fraction)):
            # A measure that tells nothing is NULL, but its interval holds: it is part of what the confidence is about.
            return (
                Cell(value) if ends is None or not self._tells_nothing(row) else Cell(value, None, *self._within(ends))
            )
        low, high = ends
        return Cell(value, max(high - value, value - low), *self._within(ends))

    def __repr__(self) -> str:
        cells = [shown(self, row) for row in range(min(len(self), _FEW))]
        more = [f"… {len(self) - _FEW:,} more"] if len(self) > _FEW else []
        return f"{printable(self.name)}: {', '.join([*map(printable, cells), *more])}"

    @property
    def has_interval(self) -> bool:
        return self.low is not None

    def take(self, rows: NDArray[np.int64]) -> AnswerColumn:
        """Return some of the rows, in their order."""
        low = None if self.low is None else _take(self.low, rows)
        high = None if self.high is None else _take(self.high, rows)
        return replace(self, values=_take(self.values, rows), low=low, high=high)

    def tidied(self) -> AnswerColumn:
        """Move values to where the exact answer surely is: no negative count, no half person. Free, but biased."""
        if not self.measured or (self.limits == (None, None) and self.grain is None):
            return self
        return replace(self, values=tuple(self._tidy(self.values[row]) for row in range(len(self))))

    def _tidy(self, value: Any) -> Any:
        if not isinstance(value, (int, Fraction)) or isinstance(value, bool):
            return value
        moved = self._inside(Fraction(value))
        return moved if self.grain is None else round(moved / self.grain) * self.grain

    def ends(self, row: int) -> tuple[Any, Any] | None:
        """Return both ends as measured, before they are moved inside the limits; the value lies between them."""
        if self.low is None or self.high is None:
            return None
        low, high = self.low[row], self.high[row]
        return None if low is None or high is None else (low, high)

    def _tells_nothing(self, row: int) -> bool:
        """Whether a measure is NULL; what is computed of measures is NULL for reasons of its own, with other ends."""
        return self.values[row] is None and isinstance(self.low, ExactNumbers)

    def _within(self, ends: tuple[Any, Any]) -> tuple[Fraction, Fraction]:
        return self._inside(ends[0]), self._inside(ends[1])

    def _inside(self, number: Fraction) -> Fraction:
        low, high = self.limits
        if low is not None and number < low:
            return low
        return high if high is not None and number > high else number


def _take(values: Values, rows: NDArray[np.int64]) -> Values:
    return values.take(rows) if isinstance(values, ExactNumbers) else tuple(values[row] for row in rows.tolist())


# --- text: A value with its error, as people read it. ---


_LONGEST = 60  # Characters of a cell.
_FEW = 8  # Cells in a line of text.


def cell_text(cell: Cell) -> str:
    """Write a value with its error."""
    if not isinstance(cell.value, (int, Fraction)) or isinstance(cell.value, bool):
        return _word(cell.value)
    if cell.plus_minus is None:
        return plain(cell.value)
    places = places_for(cell.plus_minus, Fraction(cell.value))
    return f"{decimal(cell.value, places)} ± {decimal_up(cell.plus_minus, places)}"


def shown(column: AnswerColumn, row: int) -> str:
    """Write a value of a column; keys as they are, with their labels: 2020 is a year, not 2,020."""
    cell = column[row]
    if column.labels and cell.value in column.labels:
        return labelled(cell.value, column.labels, _LONGEST)
    whole = isinstance(cell.value, int) and not column.measured
    return _word(cell.value) if whole else cell_text(cell)


def _word(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    written = value.isoformat() if isinstance(value, date) else str(value)
    return shortened(written, _LONGEST)
