"""A picture as Hermite features in whole numbers: few, ordered by weight, so that little is lost by cutting them off.

The Gaussian kernel of two numbers is a sum over Hermite functions whose weights fall geometrically [VHAP22]. A pixel
has only 256 values, so all of them stand in a table; the bound is the longest line of it, exactly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.synth.domain.images import BRIGHTEST
from discreet.synth.merf.sensitivity import SumSensitivity

__all__ = ["HermiteEmbedding", "hermite_functions", "hermite_table"]


def hermite_functions(x: Any, length: float, order: int) -> list[Any]:
    """Return the weighted Hermite functions 0 … order of x, an array or a tensor: their squares sum to at most 1.

    Theorem     exp(-(x - y)² / (2 length²)) is the sum over c of f_c(x) f_c(y), with rho = sqrt(length⁴ + 1) - length²
                and f_c(x)² = (1 - rho) rho^c sqrt((1 + rho) / (1 - rho)) H_c(x)² exp(-2 rho x² / (1 + rho)) / (2^c c!).
                At x = y the sum is 1, so what is left after cutting it off is below 1. [VHAP22]
    """
    square = length * length
    rho = math.sqrt(square * square + 1) - square
    bell = math.e ** (-rho / (1 + rho) * x * x) * ((1 - rho) ** 2 * (1 + rho) / (1 - rho)) ** 0.25
    found = [bell, math.sqrt(2 * rho) * x * bell]
    for c in range(1, order):
        # H_(c+1) = 2 x H_c - 2 c H_(c-1), each divided by sqrt(2^c c!) and multiplied by sqrt(rho^c).
        after = x * math.sqrt(2 * rho / (c + 1)) * found[c] - rho * math.sqrt(c / (c + 1)) * found[c - 1]
        found.append(after)
    return found[: order + 1]


@lru_cache(maxsize=8)
def hermite_table(radius: int, length: float, order: int) -> NDArray[np.int32]:
    """Return the functions of every brightness, `radius` standing for 1, rounded towards zero: (256, order + 1)."""
    values = np.stack(hermite_functions(np.arange(BRIGHTEST + 1) / BRIGHTEST, length, order), axis=1)
    table: NDArray[np.int32] = np.trunc(radius * values).astype(np.int32)
    table.setflags(write=False)
    return table


def _longest(table: NDArray[np.int32]) -> int:
    whole = table.astype(np.int64)
    return int((whole * whole).sum(axis=1).max())


@final
@dataclass(frozen=True, slots=True, eq=False)
class HermiteEmbedding:
    """The public rule: every pixel alone, and products over some pairs of pixels."""

    pixels: int
    alone: NDArray[np.int32] = field(repr=False)  # (256, functions)
    pairs: NDArray[np.int64] = field(repr=False)  # (pairs, 2), places of pixels
    together: NDArray[np.int32] = field(repr=False)  # (256, functions), of each pixel of a pair
    constant: int

    def __post_init__(self) -> None:
        for table in (self.alone, self.together):
            if table.shape[:1] != (BRIGHTEST + 1,) or _longest(table) >= 1 << 30:
                raise InvalidParameter("a table of features needs a line for each of 256 values, below 2^15")
        if self.pairs.ndim != 2 or self.constant < 1 or not ((self.pairs >= 0) & (self.pairs < self.pixels)).all():
            raise InvalidParameter("pairs must name two pixels each, and the constant must be at least 1")

    @property
    def width(self) -> int:
        """The number of coordinates in the place of one class."""
        return 1 + self.pixels * int(self.alone.shape[1]) + len(self.pairs) * int(self.together.shape[1]) ** 2

    @property
    def reach(self) -> SumSensitivity:
        """The exact bounds on a row's vector; Hermite functions have both signs."""
        # The square of an outer product is the product of the squares.
        turning = self.pixels * _longest(self.alone) + len(self.pairs) * _longest(self.together) ** 2
        return SumSensitivity(constant=self.constant**2, positive=0, turning=turning)

    def vectors(self, pictures: NDArray[np.uint8]) -> NDArray[np.int32]:
        """Return the vector of every picture: constant, pixels, pairs. This is private."""
        found = np.empty((len(pictures), self.width), dtype=np.int32)
        found[:, 0] = self.constant
        end = 1 + self.pixels * self.alone.shape[1]
        found[:, 1:end] = self.alone[pictures].reshape(len(pictures), -1)
        left, right = (self.together[pictures[:, side]] for side in self.pairs.T)
        found[:, end:] = (left[..., :, None] * right[..., None, :]).reshape(len(pictures), -1)
        return found
