"""Order statistics of clamped grid values near the ranks that matter, without sorting or placing everything."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from discreet.frames.column import Column, Data, column_of
from discreet.mechanisms.grid import Grid

__all__ = ["Ranked", "SortedRun", "sorted_run"]

# --- selection: Find neighbouring ranks of a long array in a few passes over it. ---
#
# A sorted sample tells about where the ranks lie; one pass counts what is below and takes out what is near. If the
# sample misled, which only costs time, the array is partitioned.


_SHORT = 1 << 17  # Sorting so few values is as quick as anything else.
_SAMPLE = 1 << 16
_MARGIN = 5 * 128  # Places in the sample: five standard deviations of a rank, sqrt(_SAMPLE) / 2, and never more.


@final
@dataclass(frozen=True, slots=True, eq=False)
class SortedRun:
    """Values of neighbouring ranks, sorted; `first` is the rank of the first one, counted from one."""

    first: int
    numbers: NDArray[Any]

    def holds(self, first: int, last: int) -> bool:
        return self.first <= first and last < self.first + self.numbers.size

    def between(self, first: int, last: int) -> NDArray[Any]:
        return self.numbers[first - self.first : last - self.first + 1]


def sorted_run(numbers: NDArray[Any], first: int, last: int) -> SortedRun:
    """Return a run that holds the ranks `first` to `last`, both between 1 and the number of values."""
    if 4 * (last - first + 1) >= numbers.size or numbers.size <= _SHORT:
        return SortedRun(1, np.sort(numbers))
    found = _guessed(numbers, first, last)
    return found if found.holds(first, last) else _partitioned(numbers, first, last)


def _guessed(numbers: NDArray[Any], first: int, last: int) -> SortedRun:
    """Take out and sort what lies between two values of a sample; whether the ranks are among it is not sure."""
    sample = np.sort(numbers[:: max(1, numbers.size // _SAMPLE)])
    share = sample.size / numbers.size
    low, high = int(first * share) - _MARGIN, int(last * share) + _MARGIN
    near = np.ones(numbers.size, np.bool_)
    below = 0
    if low > 0:
        near = numbers >= sample[low]
        below = numbers.size - int(np.count_nonzero(near))
    if high < sample.size:
        near &= numbers <= sample[high]
    return SortedRun(below + 1, np.sort(numbers[near]))


def _partitioned(numbers: NDArray[Any], first: int, last: int) -> SortedRun:
    parted = np.partition(numbers, (first - 1, last - 1))
    return SortedRun(first, np.sort(parted[first - 1 : last]))


def _as_it_is(numbers: NDArray[Any]) -> NDArray[np.int64]:
    return numbers


@final
@dataclass(frozen=True, slots=True, eq=False)
class Ranked:
    """Values as grid steps between public bounds: x_1 <= … <= x_n, with x_i = low below and high above."""

    numbers: NDArray[Any] = field(repr=False)  # in any order
    low: int
    high: int
    place: Callable[[NDArray[Any]], NDArray[np.int64]] = _as_it_is  # onto the grid; it keeps the order
    _sorted: list[SortedRun] = field(default_factory=list, repr=False)  # The last look; most others are near to it.

    @classmethod
    def of(cls, data: Data | Ranked, grid: Grid) -> Ranked:
        """Rank a column by what its values are on the grid. Numbers are placed once they are looked at."""
        if isinstance(data, Ranked):
            return data
        column = column_of(data)
        if _are_numbers(column):
            return cls(np.asarray(column.values), grid.first, grid.last, grid.indices)
        return cls(grid.indices(column), grid.first, grid.last)

    @classmethod
    def ordered(cls, numbers: NDArray[Any], grid: Grid) -> Ranked:
        """Rank numbers that are in order already, none of them missing."""
        return cls(numbers, grid.first, grid.last, grid.indices, [SortedRun(1, numbers)])

    @property
    def size(self) -> int:
        return self.numbers.size

    @property
    def spread(self) -> int:
        """The distance of the bounds, in grid steps."""
        return self.high - self.low

    @property
    def values(self) -> NDArray[np.int64]:
        """All values, in any order."""
        return self.place(self.numbers)

    def ordered_values(self) -> NDArray[np.int64]:
        """Return all values in order."""
        run = next(iter(self._sorted), None)
        if run is not None and run.numbers.size == self.size:
            return self.place(run.numbers)
        return np.sort(self.values)

    def between(self, first: int, last: int) -> NDArray[np.int64]:
        """Return x_first, …, x_last; ranks count from one."""
        inside = self._inside(max(first, 1), min(last, self.size))
        below = np.full(max(0, min(last, 0) - first + 1), self.low, np.int64)
        above = np.full(max(0, last - max(first, self.size + 1) + 1), self.high, np.int64)
        return np.concatenate([below, inside, above])

    def counts_around(self, point: int) -> tuple[int, int]:
        """Return how many values are below a grid point, and how many are at most equal to it."""
        run = next(iter(self._sorted), None)
        if run is not None and run.numbers.size:
            left, right = (search(run.numbers, point, key=self._placed) for search in (bisect_left, bisect_right))
            last = run.first + run.numbers.size - 1
            # The run tells if no row outside of it can be equal to the point.
            if (left > 0 or run.first == 1) and (right < run.numbers.size or last == self.size):
                return run.first - 1 + left, run.first - 1 + right
        values = self.values
        return int(np.count_nonzero(values < point)), int(np.count_nonzero(values <= point))

    def _placed(self, number: Any) -> int:
        return int(self.place(np.array([number]))[0])

    def _inside(self, first: int, last: int) -> NDArray[np.int64]:
        if first > last:
            return np.empty(0, np.int64)
        # Another thread may put its own look there between any two lines.
        run = next(iter(self._sorted), None)
        if run is None or not run.holds(first, last):
            run = sorted_run(self.numbers, first, last)
            self._sorted[:] = [run]
        return self.place(run.between(first, last))


def _are_numbers(column: Column) -> bool:
    """Tell whether the order of the values is that of their places: all are numbers, and none is missing."""
    values = column.values
    if column.missing is not None or not isinstance(values, np.ndarray) or values.dtype.kind not in "iuf":
        return False
    return values.dtype.kind != "f" or not bool(np.isnan(values).any())
