"""Losses on a common grid, so that independent ones add by convolution."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from discreet.privacy.pld.pair import Floats, Pair, Ticks, drift

__all__ = ["GridLoss", "binned", "multiples", "on_grid"]

_ULP = 2.0**-53
_UNDERFLOW = 1e-300  # bounds a mass that became 0, or lost digits, below the smallest normal float


@final
@dataclass(frozen=True, slots=True, eq=False)
class GridLoss:
    """The law of a loss under P, on multiples of a step. The law of the pair is a post-processing of it."""

    step: float
    index: NDArray[np.int64]  # the loss in steps; may repeat
    mass: Floats  # above 0
    infinite: float  # the mass of an infinite loss, from above
    infinite_surely: float  # and from below
    lost: float  # bounds the mass that was cut off
    top: float  # the largest loss of the pair, before the grid; may be infinite
    error: float  # relative, of each mass
    slip: float  # absolute, of each loss
    width: float  # a loss was moved at random, like an interval of this length,
    drift: float  # and up by at most this on average

    @property
    def loss(self) -> Floats:
        return self.index.astype(np.float64) * self.step


def multiples(step: float) -> Ticks:
    """Ask for the multiples of `step`."""

    def inside(low: float, high: float) -> Floats:
        first, last = math.ceil(low / step), math.floor(high / step)
        return np.arange(first, last + 1, dtype=np.float64) * step

    return inside


def on_grid(pair: Pair, step: float) -> GridLoss:
    """Put each atom on the two grid points around it such that its mass under P and under Q is kept. [DGKKM22]

    An atom that lies y above a grid point moves to the next one with probability (1 - e^-y) / (1 - e^-h), h being
    the step.
    """
    position = pair.loss / step
    slip = pair.slip + 24 * _ULP * float(np.abs(pair.loss).max()) + 4 * _ULP * step
    # An atom that is all but on a point is moved there, so that cells which end on the grid stay cells.
    nearest = np.rint(position)
    off = np.abs(position - nearest) * step
    near = off <= slip + 1e-8 * step
    on_points = bool(near.all())
    below = np.where(near, nearest, np.floor(position))
    share = np.where(near, 0.0, np.expm1((below - position) * step) / math.expm1(-step))
    index, mass = _collect(below.astype(np.int64), pair.p, None if on_points else pair.p * share)
    error = pair.error + 1e-14
    return GridLoss(
        step=step,
        index=index,
        mass=mass,
        infinite=pair.infinite * (1 + error),
        infinite_surely=pair.infinite * (1 - error) if pair.infinite > _UNDERFLOW else 0.0,
        lost=pair.lost * (1 + error) + _UNDERFLOW * len(pair.loss),
        top=pair.top,
        error=error,
        slip=slip + float(off[near].max(initial=0.0)),
        # Given where the first move led to, the second one is independent of it.
        width=pair.width if on_points else math.hypot(pair.width, step),
        drift=pair.drift if on_points else pair.drift + drift(step),
    )


def _collect(index: NDArray[np.int64], mass: Floats, rising: Floats | None) -> tuple[NDArray[np.int64], Floats]:
    """Return the indices that have mass, and their masses, after `rising` of each mass has moved up by one.

    Equal indices are added up where they are dense enough for an array.
    """
    low, size = int(index.min()), int(index.max() - index.min()) + 2
    if size > 4 * len(index) + 1000:
        moved = np.zeros_like(mass) if rising is None else rising
        index, mass = np.concatenate((index, index + 1)), np.concatenate((mass - moved, moved))
        return index[mass > 0], mass[mass > 0]
    total = binned(index - low, mass if rising is None else mass - rising, size)
    if rising is not None:
        total[1:] += binned(index - low, rising, size - 1)
    used = np.flatnonzero(total > 0)
    return used + low, total[used]


def binned(index: NDArray[np.int64], mass: Floats, size: int = 0) -> Floats:
    """Add up masses by index, from 0 on, into an array of at least `size` entries."""
    return np.asarray(np.bincount(index, mass, size), dtype=np.float64)
