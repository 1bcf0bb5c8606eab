"""A private sum that is read once: rounded to the grid, with its noise, scaled, in one pass over memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

__all__ = ["GridSum"]

Integers: TypeAlias = NDArray[np.int32] | NDArray[np.int64]
_BLOCK = 1 << 14  # Numbers at a time: a few arrays of so many stay in the cache.
_EXACT = 2.0**53  # What float64 rounds to less it holds exactly.


@final
class GridSum:
    """The clipped sum of a step, in whole grid steps. It is private until it has its noise.

    The last physical batch is kept as it was added up: coordinates one behind the other in `parts`, each of which is
    some float arrays that together are the sum there. `before` is the sum of all earlier physical batches, in whole
    grid steps already. Adding the arrays of a part in float64 is inside of the proven float error, dividing by a power
    of two is exact, and what is rounded are whole numbers below 2^53 from there on, which float64 adds exactly.
    """

    def __init__(
        self, parts: Sequence[Sequence[NDArray[Any]]], grid: float, before: NDArray[np.float64] | None = None
    ) -> None:
        self._parts, self._steps, self._before = parts, 1 / grid, before
        with np.errstate(over="ignore"):
            # Steps that float32 does not hold would make 0 times infinity of a sum of 0, which tells that it is 0.
            self._in_single = before is None and float(np.float32(self._steps)) == self._steps
        self.size = sum(part[0].size for part in parts)

    def whole(self) -> NDArray[np.float64]:
        """Return the sum in whole grid steps, without noise: not for anybody's eyes."""
        found = np.empty(self.size)
        for place, block in self._blocks():
            found[place] = block
        return found

    def noisy(self, noise: Integers, unit: float) -> NDArray[np.float32]:
        """Return the exact sum of sum and noise, as float64 rounds it, times `unit`, both of which is post-processing.

        Noise that float64 holds exactly is added in it; a vector with more, which nobody will see, as 64-bit integers.
        """
        found, room, other = np.empty(self.size, np.float32), np.empty(_BLOCK), np.empty(_BLOCK)
        for place, block in self._blocks():
            steps, drawn = room[: block.size], other[: block.size]
            # NumPy converts in half the time where nothing else is done.
            steps[:], drawn[:] = block, noise[place]
            if noise.dtype == np.int32 or (drawn.max() < _EXACT and drawn.min() > -_EXACT):
                steps += drawn
            else:
                steps[:] = block.astype(np.int64) + noise[place]
            steps *= unit
            found[place] = steps
        return found

    def _blocks(self) -> Iterator[tuple[slice, NDArray[Any]]]:
        """Yield the sum in whole grid steps, piece by piece; each is overwritten by the next."""
        rooms, start = _Rooms(), 0
        for part in self._parts:
            for at in range(0, part[0].size, _BLOCK):
                arrays = [array[at : at + _BLOCK] for array in part]
                place = slice(start + at, start + at + arrays[0].size)
                yield place, self._rounded(arrays, place, rooms)
            start += part[0].size

    def _rounded(self, arrays: list[NDArray[Any]], place: slice, rooms: _Rooms) -> NDArray[Any]:
        """Round one piece, in float32 if it is one array of that: neither a power of two nor rounding needs more."""
        first, size = arrays[0], arrays[0].size
        if self._in_single and len(arrays) == 1 and first.dtype == np.float32:
            alone = rooms.single[:size]
            np.multiply(first, np.float32(self._steps), out=alone)
            return np.rint(alone, out=alone)
        block, more = rooms.double[:size], rooms.more[:size]
        block[:] = first
        for array in arrays[1:]:
            more[:] = array
            block += more
        block *= self._steps
        np.rint(block, out=block)
        if self._before is not None:
            block += self._before[place]
        return block


class _Rooms:
    """Memory for one piece at a time."""

    def __init__(self) -> None:
        self.single = np.empty(_BLOCK, np.float32)
        self.double, self.more = np.empty(_BLOCK), np.empty(_BLOCK)
