"""Privacy losses on a common grid, so that independent ones add by convolution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from discreet.privacy.pld.pairs import DominatingPair, Floats, RaggedRows, Ticks

__all__ = ["GridLoss", "all_on_grid", "binned", "multiples", "on_grid"]

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
    width: float  # a loss was moved at random, like an interval of this length

    @property
    def loss(self) -> Floats:
        return self.index.astype(np.float64) * self.step


def multiples(step: float) -> Ticks:
    """Ask for the multiples of `step`."""

    def inside(low: float, high: float) -> Floats:
        first, last = math.ceil(low / step), math.floor(high / step)
        return np.arange(first, last + 1, dtype=np.float64) * step

    return inside


def on_grid(pair: DominatingPair, step: float) -> GridLoss:
    """Put one pair on a grid, as `all_on_grid` does."""
    return all_on_grid([pair], step)[0]


def all_on_grid(pairs: Sequence[DominatingPair], step: float) -> list[GridLoss]:
    """Put each atom on the two grid points around it such that its mass under P and under Q is kept. [DGKKM22]

    An atom that lies y above a grid point moves to the next one with probability (1 - e^-y) / (1 - e^-h), h being
    the step. All pairs are done at once, since arrays of a few dozen atoms cost more to call for than to compute.
    """
    rows = RaggedRows.of([len(pair.loss) for pair in pairs])
    loss, mass = (np.concatenate(parts) for parts in zip(*((pair.loss, pair.p) for pair in pairs), strict=True))
    position = loss / step
    slip = np.array([pair.slip for pair in pairs]) + 24 * _ULP * rows.largest(np.abs(loss)) + 4 * _ULP * step
    # An atom that is all but on a point is moved there, so that cells which end on the grid stay cells.
    nearest = np.rint(position)
    off = np.abs(position - nearest) * step
    near = off <= rows.spread(slip + 1e-8 * step)
    off[~near] = 0.0
    moved = slip + rows.largest(off)
    split = rows.largest(~near)
    index = np.where(near, nearest, np.floor(position))
    rising = None
    if split.any():
        # By expm1, since on a fine grid both 1 - e^-y and 1 - e^-h are differences of numbers close to 1.
        rising = mass * np.where(near, 0.0, np.expm1((index - position) * step) / math.expm1(-step))
    placed = _collect(index.astype(np.int64), mass, rising, rows)
    details = zip(pairs, placed, moved.tolist(), split.tolist(), strict=True)
    return [_grid_loss(pair, step, *atoms, slip, is_split) for pair, atoms, slip, is_split in details]


def _grid_loss(
    pair: DominatingPair, step: float, index: NDArray[np.int64], mass: Floats, slip: float, is_split: bool
) -> GridLoss:
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
        slip=slip,
        # Within cells that end on the grid a loss moves once. Else, given where the first move led to, the second one
        # is independent of it.
        width=math.hypot(pair.width, step) if is_split or pair.cut else pair.width,
    )


def _collect(
    index: NDArray[np.int64], mass: Floats, rising: Floats | None, rows: RaggedRows
) -> list[tuple[NDArray[np.int64], Floats]]:
    """Return each row's indices that have mass, and their masses, after `rising` of each mass has moved up by one.

    Equal indices of a row are added up where they are dense enough for an array.
    """
    size = rows.largest(index) - rows.smallest(index) + 2
    dense = size <= 4 * rows.sizes + 1000
    if dense.all():
        return _dense(index, mass, rising, rows)
    moved = np.zeros_like(mass) if rising is None else rising
    inside = np.repeat(dense, rows.sizes)
    summed = iter(
        _dense(index[inside], mass[inside], moved[inside], RaggedRows.of(rows.sizes[dense])) if dense.any() else ()
    )
    parts = zip(rows.split(index), rows.split(mass), rows.split(moved), dense.tolist(), strict=True)
    return [next(summed) if is_dense else _sparse(each, p, up) for each, p, up, is_dense in parts]


def _sparse(index: NDArray[np.int64], mass: Floats, rising: Floats) -> tuple[NDArray[np.int64], Floats]:
    index, mass = np.concatenate((index, index + 1)), np.concatenate((mass - rising, rising))
    return index[mass > 0], mass[mass > 0]


def _dense(
    index: NDArray[np.int64], mass: Floats, rising: Floats | None, rows: RaggedRows
) -> list[tuple[NDArray[np.int64], Floats]]:
    """Give each row a range of one long array, with room for what rises from its largest index."""
    low = rows.smallest(index)
    ends = np.cumsum(rows.largest(index) - low + 2)
    shift = np.concatenate(([0], ends[:-1])) - low
    place = index + rows.spread(shift)
    total = binned(place, mass if rising is None else mass - rising, int(ends[-1]))
    if rising is not None:
        total[1:] += binned(place, rising, int(ends[-1]))[:-1]
    used = np.flatnonzero(total > 0)
    found = RaggedRows.of(np.diff(np.searchsorted(used, ends), prepend=0))
    return list(zip(found.split(used - found.spread(shift)), found.split(total[used]), strict=True))


def binned(index: NDArray[np.int64], mass: Floats, size: int = 0) -> Floats:
    """Add up masses by index, from 0 on, into an array of at least `size` entries."""
    return np.asarray(np.bincount(index, mass, size), dtype=np.float64)
