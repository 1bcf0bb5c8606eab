"""Order statistics of clamped grid values near the ranks that matter, without sorting everything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

__all__ = ["Ranked"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Ranked:
    """Values as grid steps between public bounds: x_1 <= … <= x_n, with x_i = low below and high above."""

    values: NDArray[np.int64]  # in any order, within the bounds
    low: int
    high: int

    @property
    def size(self) -> int:
        return self.values.size

    @property
    def spread(self) -> int:
        """The distance of the bounds, in grid steps."""
        return self.high - self.low

    def between(self, first: int, last: int) -> NDArray[np.int64]:
        """Return x_first, …, x_last; ranks count from one."""
        inside = self._sorted(max(first, 1), min(last, self.size))
        below = np.full(max(0, min(last, 0) - first + 1), self.low, np.int64)
        above = np.full(max(0, last - max(first, self.size + 1) + 1), self.high, np.int64)
        return np.concatenate([below, inside, above])

    def _sorted(self, first: int, last: int) -> NDArray[np.int64]:
        if first > last:
            return np.empty(0, np.int64)
        if 4 * (last - first + 1) >= self.size:
            return np.sort(self.values)[first - 1 : last]
        # Selection is linear; only what lies between the two ranks is sorted.
        parted = np.partition(self.values, (first - 1, last - 1))
        return np.sort(parted[first - 1 : last])
