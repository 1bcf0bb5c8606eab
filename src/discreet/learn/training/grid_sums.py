"""A private sum that is read once: rounded to the grid, with its noise, scaled, in one pass over memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

__all__ = ["GridSum"]

Integers: TypeAlias = NDArray[np.int64]
_BLOCK = 1 << 14  # Numbers at a time: a few arrays of so many stay in the cache.


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
        self.size = sum(part[0].size for part in parts)

    def whole(self) -> NDArray[np.float64]:
        """Return the sum in whole grid steps, without noise: not for anybody's eyes."""
        found = np.empty(self.size)
        for place, block in self._blocks():
            found[place] = block
        return found

    def noisy(self, noise: Integers, unit: float) -> NDArray[np.float32]:
        """Return sum and noise, added as whole numbers of 64 bits, times `unit`, which is post-processing."""
        found = np.empty(self.size, np.float32)
        for place, block in self._blocks():
            steps = block.astype(np.int64)
            steps += noise[place]
            np.multiply(steps, unit, out=found[place], casting="same_kind")
        return found

    def _blocks(self) -> Iterator[tuple[slice, NDArray[np.float64]]]:
        """Yield the sum in whole grid steps, piece by piece; each is overwritten by the next."""
        room, start = np.empty(_BLOCK), 0
        for part in self._parts:
            for at in range(0, part[0].size, _BLOCK):
                arrays = [array[at : at + _BLOCK] for array in part]
                place = slice(start + at, start + at + arrays[0].size)
                yield place, self._rounded(arrays, place, room[: arrays[0].size])
            start += part[0].size

    def _rounded(self, arrays: list[NDArray[Any]], place: slice, block: NDArray[np.float64]) -> NDArray[np.float64]:
        np.multiply(arrays[0], self._steps, out=block, dtype=np.float64)
        for array in arrays[1:]:
            block += np.multiply(array, self._steps, dtype=np.float64)
        np.rint(block, out=block)
        if self._before is not None:
            block += self._before[place]
        return block
