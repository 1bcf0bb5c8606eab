"""Units with a single row need no choice, and where ids are dense they are found without a sort.

Only that is asked of a table of counts: whether a unit has exactly one row. Counts are bytes and may run over; then
256 are missing from their sum, which is compared with the number of rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

__all__ = ["Alone", "count_rows"]

Integers: TypeAlias = NDArray[np.int64]
_DENSE = 4  # Codes for each row, up to which a table of counts pays.
_BLOCK = 1 << 16
_WORTH = 1 << 17  # Rows from which on it is quicker than a sort.


@final
@dataclass(frozen=True, slots=True, eq=False)
class Alone:
    """How many rows each unit has, from the lowest code on."""

    low: int
    unit_shift: int
    counts: NDArray[np.uint8]

    def split(self, keys: Integers) -> tuple[Integers, Integers]:
        """Part keys into those of units with one row and the others."""
        alone = self.counts[(keys >> self.unit_shift) - self.low] == 1
        return keys[np.flatnonzero(alone)], keys[np.flatnonzero(~alone)]


def count_rows(keys: Integers, unit_shift: int) -> Alone | None:
    """Count the rows of each unit; None if codes are too far apart or a count ran over."""
    if keys.size < _WORTH:
        return None
    low, high = int(keys.min()) >> unit_shift, int(keys.max()) >> unit_shift
    if high - low >= _DENSE * keys.size:
        return None
    counts, ones = np.zeros(high - low + 1, np.uint8), np.ones(_BLOCK, np.uint8)
    for start in range(0, keys.size, _BLOCK):
        units = (keys[start : start + _BLOCK] >> unit_shift) - low
        np.add.at(counts, units, ones[: units.size])
    whole = int(counts.sum(dtype=np.int64)) == keys.size
    return Alone(low, unit_shift, counts) if whole else None
