"""Add atoms up to the cells of all tables, and spread cells back to atoms, coarse tables by way of finer ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.release.tidy.layout import Spot

__all__ = ["Adding", "adding"]

Floats: TypeAlias = NDArray[np.float64]
Axes: TypeAlias = tuple[int, ...]


@final
@dataclass(frozen=True, slots=True, eq=False)
class AtomBlock:
    """Atoms added up over some axes, from the smallest block that has all the others."""

    axes: Axes  # that are left
    finer: int | None  # None for all atoms
    over: Axes  # to add up, as the finer block numbers its axes
    shape: tuple[int, ...]  # of the finer block, with these axes of length one


@final
@dataclass(frozen=True, slots=True, eq=False)
class Adding:
    """The linear map from atoms to the cells of all tables, one table after the other, and its transpose."""

    shape: tuple[int, ...]  # of the atoms
    blocks: tuple[AtomBlock, ...]  # finer ones first
    spots: tuple[Spot, ...]
    block_of: tuple[int, ...]  # by table

    @property
    def atoms(self) -> int:
        return prod(self.shape)

    def up(self, atoms: Floats) -> list[Floats]:
        """Add atoms up to the cells of every table."""
        sums: list[Floats] = []
        for block in self.blocks:
            finer = atoms.reshape(self.shape) if block.finer is None else sums[block.finer]
            sums.append(finer.sum(axis=block.over))
        parts = (sums[block].reshape(-1) for block in self.block_of)
        counted = (np.bincount(spot.of_part, part, spot.cells) for spot, part in zip(self.spots, parts, strict=True))
        return [cells.astype(np.float64, copy=False) for cells in counted]

    def down(self, cells: Sequence[Floats]) -> Floats:
        """Give every atom the sum of what its cells have: the transpose."""
        atoms = np.zeros(self.shape)
        sums = [np.zeros([self.shape[axis] for axis in block.axes]) for block in self.blocks]
        for spot, number, part in zip(self.spots, self.block_of, cells, strict=True):
            sums[number] += part[spot.of_part].reshape(sums[number].shape)
        for block, added in zip(reversed(self.blocks), reversed(sums), strict=True):
            finer: Floats = atoms if block.finer is None else sums[block.finer]
            finer += added.reshape(block.shape)
        return atoms.reshape(-1)


def adding(spots: Sequence[Spot], shape: tuple[int, ...]) -> Adding:
    """Find for every table the smallest block that it can be added up from."""
    kept = sorted({spot.axes for spot in spots}, key=lambda axes: -prod(shape[axis] for axis in axes))
    blocks = tuple(_block(axes, kept[:number], shape) for number, axes in enumerate(kept))
    return Adding(shape, blocks, tuple(spots), tuple(kept.index(spot.axes) for spot in spots))


def _block(axes: Axes, before: list[Axes], shape: tuple[int, ...]) -> AtomBlock:
    finer = next((n for n in range(len(before) - 1, -1, -1) if set(before[n]) > set(axes)), None)
    left = tuple(range(len(shape))) if finer is None else before[finer]
    over = tuple(place for place, axis in enumerate(left) if axis not in axes)
    return AtomBlock(axes, finer, over, tuple(shape[axis] if axis in axes else 1 for axis in left))
