"""Draws from released shares that carry no privacy: as even as they can be, still from the one secure source."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from discreet import noise
from discreet.synth.domain.draws import fractions

__all__ = ["spread_evenly"]


def spread_evenly(shares: NDArray[np.float64], count: int) -> NDArray[np.intp]:
    """Draw places with these shares, in random order: each comes up as often as its share says, up to one row."""
    if not count:
        return np.zeros(0, np.intp)
    ladder = np.cumsum(shares)
    # One offset for all makes every count the floor or the ceiling of what is expected.
    points = (np.arange(count) + fractions(1)[0]) / count * ladder[-1]
    drawn = np.minimum(np.searchsorted(ladder, points, side="right"), np.flatnonzero(shares > 0)[-1])
    order = noise.permutation(count)
    return np.asarray(drawn[order], np.intp)
