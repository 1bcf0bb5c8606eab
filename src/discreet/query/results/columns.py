"""A column of an answer: exact values, where they surely lie, and how far off they may be."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.query.column_types import Kind

__all__ = ["AnswerColumn", "Cell", "ExactNumbers", "Values", "compact", "wide"]

# --- numbers: Exact numbers by the column: whole numbers in an array, and fractions only when somebody asks. ---


_SAFE = 1 << 61  # Sums and differences of two such numbers fit 64 bits.


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


def wide(array: NDArray[Any]) -> NDArray[np.object_]:
    """Return the same numbers as Python integers, which never overflow."""
    return array.astype(object)


def compact(array: NDArray[Any]) -> NDArray[Any]:
    """Return whole numbers in 64 bits if they are far from the limit, else as they are."""
    if array.dtype == np.int64 or not array.size:
        return array.astype(np.int64)
    fits = max(abs(int(array.max())), abs(int(array.min()))) < _SAFE
    return array.astype(np.int64) if fits else array


Values: TypeAlias = ExactNumbers | tuple[Hashable, ...]


class Cell(NamedTuple):
    """A released value with its error: the exact answer lies between `low` and `high` with the table's confidence."""

    value: Any
    plus_minus: Fraction | None = None
    low: Fraction | None = None
    high: Fraction | None = None

    def __str__(self) -> str:
        from discreet.query.results.release_table import cell_text

        return cell_text(self)


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

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, row: int) -> Cell:
        value = self.values[row]
        ends = self._ends(row)
        if ends is None or not isinstance(value, (int, Fraction)):
            return Cell(value)
        low, high = ends
        return Cell(value, max(high - value, value - low), self._inside(low), self._inside(high))

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

    def _ends(self, row: int) -> tuple[Any, Any] | None:
        if self.low is None or self.high is None:
            return None
        low, high = self.low[row], self.high[row]
        return None if low is None or high is None else (low, high)

    def _inside(self, number: Fraction) -> Fraction:
        low, high = self.limits
        if low is not None and number < low:
            return low
        return high if high is not None and number > high else number


def _take(values: Values, rows: NDArray[np.int64]) -> Values:
    return values.take(rows) if isinstance(values, ExactNumbers) else tuple(values[row] for row in rows.tolist())
