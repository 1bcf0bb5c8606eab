"""Runs of equal values in a sorted array."""

from __future__ import annotations

from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

__all__ = ["Runs", "lengths", "members", "spread"]

Integers: TypeAlias = NDArray[np.int64]
_SHORT = 4


@final
class Runs:
    """Finds runs. It keeps its working memory: fresh memory for every block would cost more than the work.

    It belongs to one thread.
    """

    __slots__ = ("_differing", "_flags", "_size")

    def __init__(self) -> None:
        self._differing = np.empty(0, np.uint64)
        self._flags = np.empty((2, 0), np.bool_)
        self._size = 0

    def read(self, values: Integers) -> None:
        """Look at sorted values, of which there is at least one."""
        self._size = values.size
        if self._size > self._differing.size:
            self._differing, self._flags = np.empty(self._size, np.uint64), np.empty((2, self._size + 1), np.bool_)
        words = values.view(np.uint64)
        np.bitwise_xor(words[1:], words[:-1], out=self._differing[: self._size - 1])

    def starts(self, shift: int) -> Integers:
        """Return where values begin that differ from the one before in a bit from `shift` on."""
        return np.flatnonzero(self._new(shift)[:-1])

    def alone(self, shift: int) -> NDArray[np.bool_]:
        """Tell which values differ in such a bit from both of their neighbours; valid until the next call."""
        new = self._new(shift)
        return np.logical_and(new[:-1], new[1:], out=self._flags[1, : self._size])

    def _new(self, shift: int) -> NDArray[np.bool_]:
        """Tell where a run begins, the end of all values included."""
        new = self._flags[0, : self._size + 1]
        new[0] = new[self._size] = True
        np.greater_equal(self._differing[: self._size - 1], np.uint64(1 << shift), out=new[1 : self._size])
        return new


def lengths(starts: Integers, size: int) -> Integers:
    """Return how long each run is, the last of which ends at `size`."""
    ends = np.empty_like(starts)
    ends[:-1] = starts[1:]
    ends[-1:] = size
    ends -= starts
    return ends


def spread(starts: Integers, counts: Integers) -> Integers:
    """Return start, start + 1, … for each start, as many as its count says."""
    ends = np.cumsum(counts)
    steps = np.arange(int(ends[-1]) if ends.size else 0)
    steps += np.repeat(starts - ends + counts, counts)
    return steps


def members(starts: Integers, counts: Integers, most: int) -> tuple[Integers, Integers]:
    """Return the places of all members of runs of length 1 to `most`, in any order, and their ranks in their runs."""
    if most > _SHORT:
        places = spread(starts, counts)
        return places, places - np.repeat(starts, counts)
    parts = [starts]
    for rank in range(1, most):
        longer = np.flatnonzero(counts > rank)
        starts, counts = starts[longer], counts[longer]
        parts.append(starts + rank)
    return np.concatenate(parts), np.repeat(np.arange(len(parts)), [part.size for part in parts])
