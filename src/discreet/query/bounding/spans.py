"""Runs of equal values in a sorted array."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["lengths", "spread", "starts_of_runs"]

Integers: TypeAlias = NDArray[np.int64]


def starts_of_runs(values: Integers, shift: int) -> Integers:
    """Return where values begin that differ from the one before in a bit from `shift` on."""
    differ = (values[1:] ^ values[:-1]).view(np.uint64) >> np.uint64(shift)
    starts = np.flatnonzero(differ)
    starts += 1
    return np.concatenate(([0], starts))


def lengths(starts: Integers, size: int) -> Integers:
    """Return how long each run is, the last of which ends at `size`."""
    ends = np.empty_like(starts)
    ends[:-1] = starts[1:]
    ends[-1] = size
    return ends - starts


def spread(starts: Integers, counts: Integers) -> Integers:
    """Return start, start + 1, … for each start, as many as its count says."""
    ends = np.cumsum(counts)
    steps = np.arange(int(ends[-1]) if ends.size else 0)
    steps += np.repeat(starts - ends + counts, counts)
    return steps
