"""A row of a table as one vector of whole numbers: its class's count, its cells, and random waves over its columns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.synth.merf.circle import RADIUS, TURN, turned
from discreet.synth.merf.reach import SumSensitivity

__all__ = ["CellEmbedding"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class CellEmbedding:
    """The public rule by which a row of cells becomes whole numbers; a row's numbers depend on that row alone.

    `turns` holds for each cell of each column, one column below the other, by how many 65536ths of a turn it turns each
    wave. Numbers and categories make one vector with one bound: no part of it is 1 by itself.
    """

    sizes: tuple[int, ...]  # cells of each column
    turns: NDArray[np.int32] = field(repr=False)  # (cells of all columns, waves)
    constant: int  # what a row adds to the count of its class
    weight: int  # what a row adds to the count of its cell, in each column

    def __post_init__(self) -> None:
        if self.turns.ndim != 2 or self.turns.dtype != np.int32 or len(self.turns) != sum(self.sizes):
            raise InvalidParameter("turns must be 32-bit whole numbers with one line for each cell")
        if min(self.constant, self.weight, *self.sizes) < 1 or max(self.constant, self.weight) >= 1 << 30:
            raise InvalidParameter("the weights must be whole numbers from 1 to 2^30, and each column needs a cell")

    @property
    def width(self) -> int:
        """The number of coordinates in the place of one class."""
        return 1 + len(self.turns) + 2 * int(self.turns.shape[1])

    @property
    def reach(self) -> SumSensitivity:
        """The exact bounds on a row's vector: it has one cell in each column."""
        return SumSensitivity(
            constant=self.constant**2,
            positive=len(self.sizes) * self.weight**2,
            turning=int(self.turns.shape[1]) * RADIUS**2,
        )

    @property
    def starts(self) -> NDArray[np.int64]:
        """Where the cells of each column begin among all cells."""
        return np.cumsum((0, *self.sizes))[:-1]

    def vectors(self, codes: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the vector of every row: constant, cells, cosines, sines. This is private."""
        places = codes + self.starts
        found = np.zeros((len(codes), self.width), dtype=np.int32)
        found[:, 0] = self.constant
        np.put_along_axis(found, places + 1, self.weight, axis=1)
        middle = 1 + sum(self.turns.shape)
        found[:, 1 + len(self.turns) : middle], found[:, middle:] = turned(self._angles(places))
        return found

    def _angles(self, places: NDArray[np.int64]) -> NDArray[np.int32]:
        angles = np.zeros((len(places), self.turns.shape[1]), dtype=np.int32)
        for column in places.T:
            angles += self.turns[column] & (TURN - 1)  # At most 1000 columns of 16 bits: 32 bits are enough.
        return angles
