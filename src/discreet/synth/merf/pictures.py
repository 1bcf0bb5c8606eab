"""A picture as one vector of whole numbers: its class's count, its pixels, and random waves over windows of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.synth.domain.images import BRIGHTEST
from discreet.synth.merf.circle import RADIUS, turned
from discreet.synth.merf.reach import SumSensitivity

__all__ = ["PictureEmbedding"]

_EXACT = 1 << 24  # Whole numbers up to here are exact in 32-bit floats, and so are their sums in any order.


@final
@dataclass(frozen=True, slots=True, eq=False)
class PictureEmbedding:
    """The public rule by which a picture becomes whole numbers; a row's numbers depend on that row alone.

    `waves` holds, for each wave, by how many 65536ths of a turn one step of each pixel turns it.
    """

    waves: NDArray[np.int32] = field(repr=False)  # (pixels, waves)
    constant: int  # what a row adds to the count of its class
    brightness: int  # the greatest length of the part that holds the pixels
    darkest: int  # a picture at least so long, in steps of brightness, is scaled down; a darker one keeps its scale

    def __post_init__(self) -> None:
        if self.waves.ndim != 2 or self.waves.dtype != np.int32 or min(self.constant, self.darkest) < 1:
            raise InvalidParameter("waves must be 32-bit whole numbers, (pixels, waves), and the weights at least 1")
        if BRIGHTEST * int(np.abs(self.waves.astype(np.int64)).sum(axis=0).max(initial=0)) >= _EXACT:
            raise InvalidParameter("the waves are too steep to be summed exactly: choose longer ones")
        if not 0 <= self.brightness < 1 << 30:
            raise InvalidParameter("brightness must be a whole number from 0 to 2^30")

    @property
    def pixels(self) -> int:
        """The number of pixels."""
        return int(self.waves.shape[0])

    @property
    def width(self) -> int:
        """The number of coordinates in the place of one class."""
        return 1 + self.pixels + 2 * int(self.waves.shape[1])

    @property
    def reach(self) -> SumSensitivity:
        """The exact bounds on a row's vector."""
        return SumSensitivity(
            constant=self.constant**2,
            positive=self.brightness**2,
            turning=int(self.waves.shape[1]) * RADIUS**2,
        )

    def vectors(self, pictures: NDArray[np.uint8]) -> NDArray[np.int32]:
        """Return the vector of every picture: constant, pixels, cosines, sines. This is private."""
        found = np.empty((len(pictures), self.width), dtype=np.int32)
        found[:, 0] = self.constant
        found[:, 1 : 1 + self.pixels] = self._scaled(pictures)
        middle = 1 + self.pixels + self.waves.shape[1]
        found[:, 1 + self.pixels : middle], found[:, middle:] = turned(self._angles(pictures))
        return found

    def _angles(self, pictures: NDArray[np.uint8]) -> NDArray[np.int32]:
        # All partial sums are whole numbers below 2^24, so 32-bit floats add them exactly in any order.
        turns: NDArray[np.float32] = pictures.astype(np.float32) @ self.waves.astype(np.float32)
        return turns.astype(np.int32)

    def _scaled(self, pictures: NDArray[np.uint8]) -> NDArray[np.int64]:
        """Divide each picture by its own length where that is large, rounding down: at most brightness is left."""
        steps = pictures.astype(np.int64)
        squares = (steps * steps).sum(axis=1)
        # The root of a whole number below 2^52, rounded up: one more than the float's root, cut, is never below it.
        lengths = np.sqrt(squares.astype(np.float64)).astype(np.int64) + 1
        scaled: NDArray[np.int64] = steps * self.brightness // np.maximum(lengths, self.darkest)[:, None]
        return scaled
