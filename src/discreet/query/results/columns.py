"""A column of an answer: exact values, where they surely lie, and how far off they may be."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.query.facts import Kind
from discreet.query.results.numbers import ExactNumbers

__all__ = ["AnswerColumn", "Cell", "Values"]

Values: TypeAlias = ExactNumbers | tuple[Hashable, ...]


class Cell(NamedTuple):
    """A released value with its error: the exact answer lies between `low` and `high` with the table's confidence."""

    value: Any
    plus_minus: Fraction | None = None
    low: Fraction | None = None
    high: Fraction | None = None

    def __str__(self) -> str:
        from discreet.query.results.text import cell_text

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
