"""The largest (up[t] + down[s]) exp(-beta (t + s - 1)) over t + s >= 1, in near-linear time.

With a = up[t] e^(-beta t), c = e^(-beta t), b = down[s] e^(-beta s), d = e^(-beta s) the product is a d + b c: for each
s the farthest of the points (a, c) in a direction. Only points where a reaches a new height can win, and of these
only the corners of their hull, on which the winner moves in one direction as s grows.
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

__all__ = ["RELATIVE_ERROR", "Peak", "highest"]

RELATIVE_ERROR = Fraction(1, 10**11)
"""How far below the largest product the one that floats find may lie: exponents are below 700, so a factor is off
by at most 700 units in the last place, and a product by a few more."""
_DEEPEST = 700.0


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


def highest(up: NDArray[np.int64], down: NDArray[np.int64], beta: float) -> Peak:
    """Return the largest product up to RELATIVE_ERROR; both sequences rise and begin at 0 or above."""
    starts = [(0, 1), (1, 0)] if up[0] + down[0] > 0 else [(0, 0)]
    peaks = [_from(up[t:], down[s:], t + s, beta) for t, s in starts if t < up.size and s < down.size]
    return max(peaks, key=lambda peak: peak.approximate(beta))


def _from(up: NDArray[np.int64], down: NDArray[np.int64], offset: int, beta: float) -> Peak:
    heights = _decayed(up, beta)
    corners = _corners(heights, beta)
    fall = np.exp(-beta * corners)
    # Along the hull the directions (1, down) turn steadily: find each one's corner by its slope.
    slopes = np.diff(heights[corners]) / -np.diff(fall)
    chosen = corners[np.searchsorted(-slopes, -down.astype(np.float64), "left")]
    sums = up[chosen] + down
    exponents = np.minimum(beta * (chosen + np.arange(down.size)), _DEEPEST)
    best = int(np.argmax(sums * np.exp(-exponents)))
    return Peak(Fraction(int(sums[best])), max(int(chosen[best]) + best + offset - 1, 0))


def _decayed(up: NDArray[np.int64], beta: float) -> NDArray[np.float64]:
    faded: NDArray[np.float64] = up * np.exp(-np.minimum(beta * np.arange(up.size), _DEEPEST))
    return faded


def _corners(heights: NDArray[np.float64], beta: float) -> NDArray[np.int64]:
    """Return the indices of the corners of the upper right hull of the points (heights, exp(-beta index))."""
    records = np.flatnonzero(heights > np.concatenate([[-1.0], np.maximum.accumulate(heights)[:-1]]))
    hull: list[int] = []
    points = list(zip(heights[records].tolist(), np.exp(-beta * records).tolist(), strict=True))
    for index in range(len(points)):
        while len(hull) > 1 and _is_inside(points[hull[-2]], points[hull[-1]], points[index]):
            hull.pop()
        hull.append(index)
    return records[hull]


def _is_inside(first: tuple[float, float], middle: tuple[float, float], last: tuple[float, float]) -> bool:
    """Tell whether `middle` lies below the line from `first` to `last`; heights rise and falls fall."""
    return (middle[0] - first[0]) * (first[1] - last[1]) <= (last[0] - first[0]) * (first[1] - middle[1])
