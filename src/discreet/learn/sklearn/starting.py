"""Where a search for clusters begins: at heavy cells of a noisy grid, or evenly spread where these say nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

__all__ = ["StartGrid", "Starts", "grid_shape", "heavy_starts", "spread_points"]

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

_TRIED = 64  # Points to choose from, for each that is chosen.
_CUTS = (32, 16, 8, 5)  # Of each column, by how many columns are cut: 32 to 625 cells.
_WIDE = 2.5  # Deviations from the mean that the grid reaches; rows beyond are in its outermost cells.
_SEEN = 5.0  # Deviations of noise above which a cell is taken to have rows.
_STARTS = 24  # Of the search on the grid, which costs nothing.
_ROUNDS = 30
_REACH = 3.0  # Deviations from a centre within which rows are not clamped.


def grid_shape(dimension: int) -> tuple[int, int]:
    """Return how many columns are cut, and into how many parts each: a public fact."""
    cut = min(dimension, len(_CUTS))
    return cut, _CUTS[cut - 1]


@final
@dataclass(frozen=True, slots=True, eq=False)
class StartGrid:
    """Cells about the noisy mean of all rows, in the columns that spread most. All of it is public."""

    means: Floats
    deviations: Floats

    @property
    def columns(self) -> Integers:
        found: Integers = np.sort(np.argsort(-self.deviations, kind="stable")[: grid_shape(len(self.means))[0]])
        return found

    @property
    def ends(self) -> tuple[Floats, Floats]:
        middle, reach = self.means[self.columns], _WIDE * self.deviations[self.columns]
        return np.clip(middle - reach, -1, 1), np.clip(middle + reach, -1, 1)

    def places(self, rows: Floats) -> Integers:
        """Return the cell of each row, which depends on that row alone. This is private."""
        parts = grid_shape(len(self.means))[1]
        found = np.zeros(len(rows), dtype=np.int64)
        for column, low, high in zip(self.columns, *self.ends, strict=True):
            cut = np.floor((rows[:, column] - low) * (parts / max(high - low, 1e-300)))
            found = found * parts + np.clip(cut, 0, parts - 1).astype(np.int64)
        return found

    def widths(self) -> Floats:
        """Return how wide a cell is in each column, 0 in those that are not cut."""
        low, high = self.ends
        found = np.zeros_like(self.means)
        found[self.columns] = (high - low) / grid_shape(len(self.means))[1]
        return found

    def centres(self) -> Floats:
        """Return the middle of each cell; in columns that are not cut, the mean of all rows."""
        cut, parts = grid_shape(len(self.means))
        places = np.stack(np.unravel_index(np.arange(parts**cut), (parts,) * cut), axis=1)
        low, high = self.ends
        found = np.tile(self.means, (parts**cut, 1))
        found[:, self.columns] = low + (places + 0.5) * (high - low) / parts
        return found


class Starts(NamedTuple):
    """The first centres, and how far from its centre a row may reach in each column before it is clamped."""

    centres: Floats
    reaches: Floats


def heavy_starts(grid: StartGrid, counts: Floats, deviation: float, others: Floats) -> Starts:
    """Return as many centres as `others` from noisy counts: the best of many searches, all free of charge.

    What seems empty counts for nothing. Where fewer cells are seen than centres are wanted, the rest are `others`, and
    rows may reach as far as they spread altogether.
    """
    seen = counts > _SEEN * deviation
    points, weights = grid.centres()[seen], counts[seen]
    wanted = min(len(others), len(points))
    everywhere = np.minimum(_REACH * grid.deviations, 1.0)
    if not wanted:
        return Starts(others, everywhere)
    firsts = np.argsort(-weights, kind="stable")[:_STARTS]
    found = [_searched(points, weights, _far_apart(points, weights, int(first), wanted)) for first in firsts]
    best = min(found, key=lambda centres: _spread(points, weights, centres))
    if wanted < len(others):
        return Starts(np.concatenate([best, others[wanted:]]), everywhere)
    widths = grid.widths()
    near = _REACH * _deviations_within(points, weights, best) + widths
    return Starts(best, np.where(widths > 0, np.minimum(near, everywhere), everywhere))


def _deviations_within(points: Floats, weights: Floats, centres: Floats) -> Floats:
    """Return the largest spread of a cluster in each column."""
    share = _shares(points, weights, centres)
    squares = np.einsum("pk,pkd->kd", share, (points[:, None, :] - centres[None, :, :]) ** 2)
    found: Floats = np.sqrt(squares / np.maximum(share.sum(axis=0), 1e-300)[:, None]).max(axis=0)
    return found


def _far_apart(points: Floats, weights: Floats, first: int, count: int) -> Floats:
    """Choose points one after the other, each where weight times squared distance to those before is largest."""
    chosen = [first]
    apart = _squares(points, points[chosen])[:, 0]
    while len(chosen) < count:
        chosen.append(int((weights * apart).argmax()))
        apart = np.minimum(apart, _squares(points, points[chosen[-1:]])[:, 0])
    return points[chosen]


def _searched(points: Floats, weights: Floats, centres: Floats) -> Floats:
    """Take Lloyd's steps on weighted points."""
    for _ in range(_ROUNDS):
        share = _shares(points, weights, centres)
        total = share.sum(axis=0)
        means = share.T @ points / np.maximum(total, 1e-300)[:, None]
        moved = np.where(total[:, None] > 0, means, centres)
        if np.array_equal(moved, centres):
            break
        centres = moved
    return centres


def _shares(points: Floats, weights: Floats, centres: Floats) -> Floats:
    """Return the weight of each point in the column of its nearest centre."""
    near = _squares(points, centres).argmin(axis=1)
    found: Floats = (near[:, None] == np.arange(len(centres))) * weights[:, None]
    return found


def _spread(points: Floats, weights: Floats, centres: Floats) -> float:
    return float((weights * _squares(points, centres).min(axis=1)).sum())


def _squares(points: Floats, centres: Floats) -> Floats:
    found: Floats = ((points[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2)
    return found


def spread_points(count: int, dimension: int) -> Floats:
    """Return points of [-1, 1]^d that are far from each other: no chance, and no data, is in them.

    Each is the farthest from those before it, out of many that fill the cube evenly: multiples of powers of the root of
    x^(d + 1) = x + 1, without their whole parts.
    """
    root = 2.0
    for _ in range(64):
        root = (1 + root) ** (1 / (dimension + 1))
    steps = (1 / root) ** np.arange(1, dimension + 1)
    cloud = 2 * ((0.5 + np.arange(_TRIED * count)[:, None] * steps) % 1) - 1
    chosen = [cloud[1 % len(cloud)]]
    apart = np.full(len(cloud), np.inf)
    for _ in range(count - 1):
        apart = np.minimum(apart, ((cloud - chosen[-1]) ** 2).sum(axis=1))
        chosen.append(cloud[apart.argmax()])
    return np.array(chosen)
