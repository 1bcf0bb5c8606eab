"""How the weight of each law falls within a block (see `blocks`)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, final

import numpy as np
from numpy.typing import NDArray

from discreet.balls import ball

if TYPE_CHECKING:
    from flint import arb

__all__ = ["ExponentialShape", "GaussianShape", "RoundedGaussianShape"]


def _start(block: int, width: int) -> int:
    """Return the distance from zero of the nearest value of a block: -1 - k is one farther than k."""
    return block * width if block >= 0 else ~block * width + 1


def _starts(blocks: NDArray[np.float64], width: int) -> NDArray[np.float64]:
    return np.where(blocks >= 0, blocks * width, (-1 - blocks) * width + 1).astype(np.float64)


@final
@dataclass(frozen=True, slots=True)
class ExponentialShape:
    """exp(-place / scale), the same in every block."""

    scale: Fraction
    fractional: bool = False

    def exponent(self, block: int, place: arb) -> arb:
        return place / ball(self.scale)

    def exponents(self, blocks: NDArray[np.float64], places: NDArray[np.float64]) -> NDArray[np.float64]:
        return places / float(self.scale)


@final
@dataclass(frozen=True, slots=True)
class GaussianShape:
    """exp(-((start + place)^2 - start^2) / (2 variance)), start being the value nearest to zero."""

    variance: Fraction
    width: int
    fractional: bool = False

    def exponent(self, block: int, place: arb) -> arb:
        return place * (place + 2 * _start(block, self.width)) / ball(2 * self.variance)

    def exponents(self, blocks: NDArray[np.float64], places: NDArray[np.float64]) -> NDArray[np.float64]:
        starts = _starts(blocks, self.width)
        return places * (places + 2 * starts) / float(2 * self.variance)


@final
@dataclass(frozen=True, slots=True)
class RoundedGaussianShape:
    """The same for the real numbers that round into the block; the first of them is half a step lower.

    The first block holds zero, its likeliest real number, half a step inside: y (y - 1) + 1/4 = (y - 1/2)^2.
    """

    variance: Fraction
    width: int
    fractional: bool = True

    def exponent(self, block: int, place: arb) -> arb:
        first = _start(block, self.width) - Fraction(1, 2)
        distance = place + ball(first)
        # As a difference of squares, the enclosure of a place within [0, 1] in the first block is tight as well.
        return (distance * distance - ball(max(first, Fraction(0)) ** 2)) / ball(2 * self.variance)

    def exponents(self, blocks: NDArray[np.float64], places: NDArray[np.float64]) -> NDArray[np.float64]:
        starts = _starts(blocks, self.width)
        squares: NDArray[np.float64] = places * (places + (2 * starts - 1)) + 0.25 * (blocks == 0)
        return squares / float(2 * self.variance)
