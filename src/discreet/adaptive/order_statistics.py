"""Local and smooth sensitivity of order statistics, exactly and without sorting everything.

All of these are facts about private data: they set the scale of noise and are never released. `x_i` is the i-th
smallest value; it is the lower bound for i < 1 and the upper one for i > n. [NRS07]
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet.adaptive.exponential_maximum import Peak, highest, tallest
from discreet.mechanisms.ranked import Ranked

__all__ = [
    "central_mean",
    "local_central_mean",
    "local_lower_median_add_remove",
    "local_quantile_add_remove",
    "lower_median_add_remove",
    "midpoint_median",
    "quantile_add_remove",
    "rank",
    "trimmed_mean",
]

_FIRST_WINDOW = 16  # Ranks, over beta: by then the whole range has faded to 1e-7 of itself.


def rank(sample: Ranked, m: int, beta: Fraction) -> Peak:
    """Smooth sensitivity of x_m under replace-one: max over i <= m <= j of (x_j - x_i) e^(-beta (j - i - 1)).

    Theorem     At distance k the local sensitivity is max over t of x_(m+t) - x_(m+t-k-1). [NRS07]
    """
    return central_mean(sample, m, m, beta)


def midpoint_median(sample: Ranked, beta: Fraction) -> Peak:
    """The same for the mean of the two middle values of an even number of them. [NRS07]"""
    m = sample.size // 2
    return central_mean(sample, m, m + 1, beta)


def trimmed_mean(sample: Ranked, trimmed: int, beta: Fraction) -> Peak:
    """The same for the mean without the `trimmed` smallest and largest values. [BS19]"""
    return central_mean(sample, trimmed + 1, sample.size - trimmed, beta)


def central_mean(sample: Ranked, lower: int, upper: int, beta: Fraction, *, farthest: int | None = None) -> Peak:
    """Smooth sensitivity of the mean of x_lower, …, x_upper under replace-one.

    With `farthest`, what is more than that many steps away is taken as the whole range: the larger of the smooth
    sensitivity and of a public constant is as smooth, and ranks beyond need not be looked at.

    Theorem     Replacing k + 1 values, k of them before, moves the sum of the central values by at most the largest
                x_(upper+t) - x_(lower-s) with t + s = k + 1. [NRS07, BS19]
    """

    def within(reach: int) -> Peak:
        if upper - lower <= reach:  # One selection instead of two.
            window = sample.between(lower - reach, upper + reach)
            below, above = window[: reach + 1][::-1], window[upper - lower + reach :]
        else:
            below, above = sample.between(lower - reach, lower)[::-1], sample.between(upper, upper + reach)
        return highest(above - below[0], below[0] - below, float(beta))

    peak = _widened(sample, within, beta, farthest)
    return Peak(peak.height / (upper - lower + 1), peak.distance)


def _widened(sample: Ranked, within: Callable[[int], Peak], beta: Fraction, farthest: int | None) -> Peak:
    """Look at ranks ever farther away until what lies beyond cannot be higher than what was found."""
    decay, last = float(beta), sample.size + 1
    if farthest is not None:
        last = min(last, farthest + 2)
    reach = min(math.ceil(_FIRST_WINDOW / min(decay, 1.0)), last)
    while True:
        peak = within(reach)
        needed = _reach_needed(sample.spread, peak, decay)
        if reach >= min(needed, last):
            break
        reach = int(min(max(2 * reach, needed), last))
    if farthest is None:
        return peak
    return max(peak, Peak(Fraction(sample.spread), farthest), key=lambda found: found.logarithm(decay))


def _reach_needed(spread: int, peak: Peak, beta: float) -> float:
    """Return a distance beyond which even the whole range, faded, is below the peak."""
    return max(0.0, (math.log(spread) - peak.logarithm(beta)) / beta) + 3


def local_central_mean(sample: Ranked, lower: int, upper: int, distance: int = 0) -> Fraction:
    """Local sensitivity of the same mean, the worst at a distance, in grid steps."""
    # Ranks beyond the first and the last are all alike.
    reach = min(distance + 1, 2 * sample.size + 2)
    above, below = sample.between(upper, upper + reach), sample.between(lower - reach, lower)
    return Fraction(int((above - below).max()), upper - lower + 1)


def lower_median_add_remove(sample: Ranked, beta: Fraction, *, farthest: int | None = None) -> Peak:
    """Smooth sensitivity of x_ceil(n/2) under add-remove (of nothing: the lower bound). [NRS07]

    Theorem     max over 0 <= i < j <= n + 1 of (x_j - x_i) e^(-beta ((j-i-1) + max(0, D-1, -D))), D = n+1-j-i.
                For D >= 1 the exponent is n - 1 - 2i, so j = n - i is best; for D <= 0 it is 2j - n - 2, so
                i = n + 1 - j is. Only pairs of mirrored ranks are left.
    """
    n = sample.size

    def within(reach: int) -> Peak:
        first = max(0, (n + 1) // 2 - reach)
        ranked = sample.between(first, n + 1 - first)
        return tallest(*_mirrored(ranked, n, first), float(beta))

    return _widened(sample, within, beta, farthest)


def _mirrored(ranked: NDArray[np.int64], n: int, first: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the differences of mirrored values and their distances; `ranked` begins with the rank `first`."""
    lower = np.arange(first, (n + 1) // 2)  # i < n / 2, with j = n - i
    upper = np.arange((n + 1) // 2 + 1, n + 2 - first)  # j > (n + 1) / 2, with i = n + 1 - j
    inner = ranked[n - lower - first] - ranked[lower - first]
    outer = ranked[upper - first] - ranked[n + 1 - upper - first]
    return np.concatenate([inner, outer]), np.concatenate([n - 1 - 2 * lower, 2 * upper - n - 2])


def local_lower_median_add_remove(sample: Ranked, distance: int = 0) -> int:
    """Local sensitivity of x_ceil(n/2) under add-remove, the worst at a distance, in grid steps."""
    n = sample.size
    first = max(0, (n + 1) // 2 - min(distance, n) // 2 - 1)
    heights, distances = _mirrored(sample.between(first, n + 1 - first), n, first)
    return int(heights[distances <= distance].max())


def quantile_add_remove(sample: Ranked, m: int, beta: Fraction, *, farthest: int | None = None) -> Peak:
    """A smooth upper bound for x_m under add-remove, where m = max(1, ceil(q n)) follows the private n.

    Theorem     A value that comes or goes moves m by 0 or 1 and the values by 0 or 1 ranks, in opposite directions:
                what has the rank m + c afterwards lies between x_(m+c-1) and x_(m+c+1). So after k of them one more
                moves the quantile by at most A_k = max(x_(m+k+1) - x_(m-k), x_(m+k) - x_(m-k-1)), and A_k of a data
                set is at most A_(k+1) of its neighbour. [NRS07]
    """

    def within(reach: int) -> Peak:
        ranked = sample.between(m - reach, m + reach)
        return tallest(_nested(ranked), np.arange(reach), float(beta))

    return _widened(sample, within, beta, farthest)


def _nested(ranked: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return A_0, A_1, … from x_(m-r), …, x_(m+r)."""
    centre = ranked.size // 2
    above, below = ranked[centre:], ranked[: centre + 1][::-1]
    largest: NDArray[np.int64] = np.maximum(above[1:] - below[:-1], above[:-1] - below[1:])
    return largest


def local_quantile_add_remove(sample: Ranked, m: int, distance: int = 0) -> int:
    """Bound the local sensitivity of such a quantile at a distance, in grid steps: A_k above."""
    reach = min(distance + 1, sample.size + 2)
    return int(_nested(sample.between(m - reach, m + reach))[-1])
