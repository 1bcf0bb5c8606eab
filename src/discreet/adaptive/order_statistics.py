"""Local and smooth sensitivity of order statistics, exactly and without sorting everything.

All of these are facts about private data: they set the scale of noise and are never released. [NRS07]
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet.adaptive.exponential_maximum import RELATIVE_ERROR, Peak, highest
from discreet.adaptive.ranked import Ranked

__all__ = ["local_rank", "lower_median_add_remove", "midpoint_median", "rank", "trimmed_mean"]

_FIRST_WINDOW = 16  # Ranks, over beta: by then the whole range has faded to 1e-7 of itself.


def rank(sample: Ranked, m: int, beta: Fraction) -> Peak:
    """Smooth sensitivity of x_m under replace-one: max over i <= m <= j of (x_j - x_i) e^(-beta (j - i - 1)).

    Theorem     At distance k the local sensitivity is max over t of x_(m+t) - x_(m+t-k-1). [NRS07]
    """
    return _around(sample, m, m, beta)


def midpoint_median(sample: Ranked, beta: Fraction) -> Peak:
    """The same for the mean of the two middle values of an even number of them. [NRS07]"""
    m = sample.size // 2
    peak = _around(sample, m, m + 1, beta)
    return Peak(peak.height / 2, peak.distance)


def trimmed_mean(sample: Ranked, trimmed: int, beta: Fraction) -> Peak:
    """The same for the mean without the `trimmed` smallest and largest values. [BS19]"""
    peak = _around(sample, trimmed + 1, sample.size - trimmed, beta)
    return Peak(peak.height / (sample.size - 2 * trimmed), peak.distance)


def _around(sample: Ranked, lower: int, upper: int, beta: Fraction) -> Peak:
    """Return the largest (x_(upper+t) - x_(lower-s)) e^(-beta (t+s-1)) over t, s >= 0, t + s >= 1."""

    def within(reach: int) -> Peak:
        if upper - lower <= reach:  # One selection instead of two.
            window = sample.between(lower - reach, upper + reach)
            below, above = window[: reach + 1][::-1], window[upper - lower + reach :]
        else:
            below, above = sample.between(lower - reach, lower)[::-1], sample.between(upper, upper + reach)
        return highest(above - below[0], below[0] - below, float(beta))

    return _widened(sample, within, beta)


def _widened(sample: Ranked, within: Callable[[int], Peak], beta: Fraction) -> Peak:
    """Look at ranks ever farther away until what lies beyond cannot be higher than what was found."""
    last = sample.size + 1
    reach = min(math.ceil(_FIRST_WINDOW / min(float(beta), 1.0)), last)
    while True:
        peak = within(reach)
        needed = _reach_needed(sample.spread, peak, float(beta))
        if reach >= min(needed, last):
            return peak
        reach = min(max(2 * reach, needed), last)


def _reach_needed(spread: int, peak: Peak, beta: float) -> int:
    """Return a distance beyond which even the whole range, faded, is below the peak."""
    height = peak.approximate(beta)
    if height <= 0:
        return np.iinfo(np.int64).max
    return math.ceil(max(0.0, math.log(spread / height) / beta)) + 2


def local_rank(sample: Ranked, m: int, distance: int = 0) -> int:
    """Local sensitivity of x_m under replace-one, at the data or the worst one at a distance, in grid steps."""
    above = sample.between(m, m + distance + 1)
    below = sample.between(m - distance - 1, m)
    return int((above - below).max())


def lower_median_add_remove(sample: Ranked, beta: Fraction) -> Peak:
    """Smooth sensitivity of x_ceil(n/2) under add-remove (of nothing: the lower bound). [NRS07]

    Theorem     max over 0 <= i < j <= n + 1 of (x_j - x_i) e^(-beta ((j-i-1) + max(0, D-1, -D))), D = n+1-j-i.
                For D >= 1 the exponent is n - 1 - 2i, so j = n - i is best; for D <= 0 it is 2j - n - 2, so
                i = n + 1 - j is. Only pairs of mirrored ranks are left.
    """
    n = sample.size

    def within(reach: int) -> Peak:
        first = max(0, (n + 1) // 2 - reach)
        ranked = sample.between(first, n + 1 - first)
        return max(_mirrored(ranked, n, first, beta), key=lambda peak: peak.approximate(float(beta)))

    return _widened(sample, within, beta)


def _mirrored(ranked: NDArray[np.int64], n: int, first: int, beta: Fraction) -> list[Peak]:
    lower = np.arange(first, (n + 1) // 2)  # i < n / 2, with j = n - i
    upper = np.arange(n // 2 + 1, n + 2 - first)  # j > (n + 1) / 2, with i = n + 1 - j
    upper = upper[2 * upper > n + 1]
    inner = ranked[n - lower - first] - ranked[lower - first], n - 1 - 2 * lower
    outer = ranked[upper - first] - ranked[n + 1 - upper - first], 2 * upper - n - 2
    return [_best(*pairs, float(beta)) for pairs in (inner, outer) if pairs[0].size]


def _best(heights: NDArray[np.int64], distances: NDArray[np.int64], beta: float) -> Peak:
    at = int(np.argmax(heights * np.exp(-np.minimum(beta * distances, 700.0))))
    return Peak(Fraction(int(heights[at])), int(distances[at]))


def shrunk(beta: Fraction) -> Fraction:
    """Return the smoothness to compute with, so that a peak that is off by RELATIVE_ERROR is still beta-smooth."""
    return beta - 2 * RELATIVE_ERROR  # log(1 + x) <= x
