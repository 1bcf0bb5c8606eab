"""A smooth bound for the mean of values whose extremes were moved inward to a rank."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet.adaptive.exponential_maximum import Peak
from discreet.mechanisms.ranked import Ranked

__all__ = ["local_winsorised_mean", "winsorised_mean"]


def winsorised_mean(sample: Ranked, moved: int, beta: Fraction, *, farthest: int | None = None) -> Peak:
    """A smooth upper bound, under replace-one, for the mean with `moved` values at each end moved inward.

    With `farthest`, what is more than that many steps away is taken as the whole range, as for a central mean.

    Theorem     One more replacement after k moves x_(m+1) and x_(n-m), each of which stands for m + 1 values, and
                the mean of those between as it does that of a trimmed mean. The largest of each at distance k, added
                as if all happened at once, is at least the local sensitivity and at most what it is at k + 1 for a
                neighbour. [NRS07, BS19]
    """
    decay, end = float(beta), 2 * sample.size + 2
    last = end if farthest is None else min(end, farthest)
    windows = _Windows(sample, moved, last + 1)
    best = Peak(windows.largest, end if farthest is None else farthest)
    for distance in range(last):
        if math.log(windows.largest) - decay * distance < best.logarithm(decay):
            break
        found = Peak(windows.at(distance), distance)
        best = max(best, found, key=lambda peak: peak.logarithm(decay))
    return best


def local_winsorised_mean(sample: Ranked, moved: int, distance: int = 0) -> Fraction:
    """Bound the local sensitivity of the same mean at a distance, in grid steps."""
    near = min(distance, 2 * sample.size + 2)
    return _Windows(sample, moved, near + 1).at(near)


class _Windows:
    """The values around the two ranks at which extremes are cut off."""

    __slots__ = ("_lower", "_moved", "_reach", "_size", "_upper", "largest")

    def __init__(self, sample: Ranked, moved: int, reach: int) -> None:
        low, high = moved + 1, sample.size - moved
        self._lower = sample.between(low - reach, low + reach)
        self._upper = sample.between(high - reach, high + reach)
        self._moved, self._size, self._reach = moved, sample.size, reach
        self.largest = Fraction(sample.spread * (2 * moved + 1), sample.size)

    def at(self, distance: int) -> Fraction:
        """Return the sum of what each of the three moves at most after so many replacements."""
        edges = self._gap(self._lower, self._lower, distance) + self._gap(self._upper, self._upper, distance)
        return Fraction(self._moved * edges + self._gap(self._upper, self._lower, distance), self._size)

    def _gap(self, above: NDArray[np.int64], below: NDArray[np.int64], distance: int) -> int:
        """Return the largest above_(t) - below_(-s) with t + s = distance + 1."""
        centre, steps = self._reach, distance + 1
        return int((above[centre : centre + steps + 1] - below[centre - steps : centre + 1]).max())
