"""Exact coins: heads with any real probability that can be enclosed."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import final

import numpy as np
from numpy.typing import NDArray

from discreet.balls import ball
from discreet.noise.lazy import DOUBT, Real, below, revealed, thresholds
from discreet.noise.source import read

__all__ = ["Coin", "exponential_coin", "rational_coin"]


@final
class Coin:
    """Heads with probability `real`."""

    def __init__(self, real: Real) -> None:
        self._real = real
        (self._threshold,) = thresholds(lambda: [real()])

    def one(self) -> int:
        """Flip once."""
        prefix, bits = revealed()
        if 0 <= prefix - self._threshold <= DOUBT:
            return int(below(self._real, prefix, bits))
        return int(prefix < self._threshold)

    def array(self, count: int) -> NDArray[np.int64]:
        """Flip `count` times: 16 bits each, 48 more for the few that they leave open."""
        words = np.frombuffer(read(2 * count), "<u2").astype(np.int64)
        top = self._threshold >> 48
        heads = (words < top).astype(np.int64)
        open_ = np.flatnonzero((words >= top) & (words <= top + DOUBT))
        more = np.frombuffer(read(8 * open_.size), "<u8") >> np.uint64(16)
        for index, low in zip(open_, more, strict=True):
            heads[index] = below(self._real, int(words[index]) << 48 | int(low), 64)
        return heads


@lru_cache(256)
def rational_coin(probability: Fraction) -> Coin:
    """Heads with a rational probability."""
    return Coin(lambda: ball(probability))


@lru_cache(256)
def exponential_coin(exponent: Fraction) -> Coin:
    """Heads with probability exp(-exponent)."""
    return Coin(lambda: ball(-exponent).exp())
