"""The largest (up[t] + down[s]) exp(-beta (t + s - 1)) over t + s >= 1, in near-linear time.

For one s the best t is where up[t] e^(-beta t) + down[s] e^(-beta t) is largest. The larger down[s], the more the
fading counts, so the best t falls as s rises: once it is known for some s, the search for those between is narrow.

That also bears rounding. If t was taken for one s though another is better by a share h, then what is passed over for
all other s because of it is better there by h / (1 - h / beta) at most: so each halving costs little more than one h.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, final

import numpy as np
from numpy.typing import NDArray

from discreet.balls import ball

if TYPE_CHECKING:
    from flint import arb

__all__ = ["RELATIVE_ERROR", "Peak", "faded", "highest", "tallest"]

RELATIVE_ERROR = Fraction(1, 10**11)
"""How far below the largest product the one that floats find may lie, for products above e^-100 of a step and a beta
above 1e-10. Logarithms of that size are off by less than 1e-13, and there are fewer than 50 halvings."""


@final
@dataclass(frozen=True, slots=True)
class Peak:
    """The number height * exp(-beta * distance), exactly."""

    height: Fraction  # in grid steps
    distance: int

    def enclose(self, beta: Fraction) -> arb:
        """Enclose it at the working precision."""
        return ball(self.height) * ball(-beta * self.distance).exp()

    def approximate(self, beta: float) -> float:
        return float(self.height) * float(np.exp(-beta * self.distance))

    def logarithm(self, beta: float) -> float:
        return float(faded(np.array([float(self.height)]), np.array([self.distance]), beta)[0])


def faded(heights: NDArray[np.float64], distances: NDArray[np.int64], beta: float) -> NDArray[np.float64]:
    """Return the logarithms of height * exp(-beta * distance), which neither overflow nor vanish."""
    with np.errstate(divide="ignore"):
        logarithms: NDArray[np.float64] = np.log(heights) - beta * distances
    return logarithms


def tallest(heights: NDArray[np.int64], distances: NDArray[np.int64], beta: float) -> Peak:
    """Return the largest of some products."""
    at = int(np.argmax(faded(heights.astype(np.float64), distances, beta)))
    return Peak(Fraction(int(heights[at])), int(distances[at]))


def highest(up: NDArray[np.int64], down: NDArray[np.int64], beta: float) -> Peak:
    """Return the largest product up to RELATIVE_ERROR; both sequences rise and begin at 0 or above."""
    starts = [(0, 1), (1, 0)] if up[0] + down[0] > 0 else [(0, 0)]
    peaks = [_from(up[t:], down[s:], t + s, beta) for t, s in starts if t < up.size and s < down.size]
    return max(peaks, key=lambda peak: peak.logarithm(beta))


def _from(up: NDArray[np.int64], down: NDArray[np.int64], offset: int, beta: float) -> Peak:
    chosen = _best_places(up, down, beta)
    distances = chosen + np.arange(down.size) + (offset - 1)
    return tallest(up[chosen] + down, np.maximum(distances, 0), beta)


def _best_places(up: NDArray[np.int64], down: NDArray[np.int64], beta: float) -> NDArray[np.int64]:
    """Return the best t for each s, by halving: first for every 2^k-th s, then for those in the middle between."""
    # One place more on either side, where the best t is the last and the first.
    known = np.zeros(down.size + 2, np.int64)
    known[0] = up.size - 1
    stride = 1 << down.size.bit_length()
    while stride > 1:
        half = stride // 2
        rows = np.arange(half, down.size + 1, stride)
        most, least = known[rows - half], known[np.minimum(rows + half, down.size + 1)]
        known[rows] = _best_between(up, down[rows - 1], least, most, beta)
        stride = half
    return known[1:-1]


def _best_between(
    up: NDArray[np.int64], down: NDArray[np.int64], least: NDArray[np.int64], most: NDArray[np.int64], beta: float
) -> NDArray[np.int64]:
    """Return, for each entry of `down`, the best t from `least` to `most`; the ranges overlap at their ends only."""
    lengths = most - least + 1
    starts = np.cumsum(lengths) - lengths
    places = np.arange(int(lengths.sum())) + np.repeat(least - starts, lengths)
    heights = (up[places] + np.repeat(down, lengths)).astype(np.float64)
    values = faded(heights, places, beta)
    tops = np.flatnonzero(values == np.repeat(np.maximum.reduceat(values, starts), lengths))
    first: NDArray[np.int64] = places[tops[np.searchsorted(tops, starts)]]
    return first
