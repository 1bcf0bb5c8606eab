"""Find neighbouring ranks of a long array in a few passes over it.

A sorted sample tells about where the ranks lie; one pass counts what is below and takes out what is near. If the
sample misled, which only costs time, the array is partitioned.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

__all__ = ["SortedRun", "sorted_run"]

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
