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
    """Finds where runs start. It keeps its working memory: fresh memory for every block would cost more than the work.

    It belongs to one thread.
    """

    __slots__ = ("_differing", "_new")

    def __init__(self) -> None:
        self._differing = np.empty(0, np.int64)
        self._new = np.empty(0, np.bool_)

    def starts(self, values: Integers, shift: int) -> Integers:
        """Return where values begin that differ from the one before in a bit from `shift` on."""
        size = values.size
        if size > self._new.size:
            self._differing, self._new = np.empty(size, np.int64), np.empty(size, np.bool_)
        differing, new = self._differing[: max(size - 1, 0)], self._new[:size]
        new[:1] = True
        np.bitwise_xor(values[1:], values[:-1], out=differing)
        np.greater_equal(differing.view(np.uint64), np.uint64(1 << shift), out=new[1:])
        return np.flatnonzero(new)


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
