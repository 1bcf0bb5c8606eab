"""Intervals for counts that are shown only because they came out large."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import final

from discreet.adaptive.thresholds import least_excess
from discreet.balls import ball, precision
from discreet.mechanisms.accuracy import Interval
from discreet.noise.laws import Law

__all__ = ["SelectedAccuracy"]

_BITS = (64, 256)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedAccuracy:
    """The count behind a noisy one that is shown because it exceeds a threshold.

    Theorem     Given that it is shown, a count n comes out as v or more with chance P[X >= v - n] / P[X > t - n],
                which rises with n; it comes out as v or less no more often than without a threshold. The interval
                leaves out the n for which one of the two is (1 - confidence) / 2 at most, and so encloses the
                count with the asked probability among those that are shown. Near the threshold it reaches down
                to 1: a small count with much noise looks the same there.
    """

    noise: Law
    threshold: int

    def interval(self, value: int, confidence: Fraction) -> Interval:
        miss = (1 - confidence) / 2
        return Fraction(_lowest(self.noise, self.threshold, value, miss)), Fraction(
            value + least_excess(self.noise, miss)
        )


@lru_cache(1024)
def _lowest(law: Law, threshold: int, value: int, miss: Fraction) -> int:
    """Return the least count that is not too low to come out as `value` or more, once shown."""
    low, high = 0, value  # 0 is never shown, and `value` comes out as itself or more half of the time.
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _too_low(law, threshold, value, middle, miss) else (low, middle)
    return high


def _too_low(law: Law, threshold: int, value: int, count: int, miss: Fraction) -> bool:
    """Tell whether P[count + X >= value] <= miss P[count + X > threshold]; what is in doubt is not too low."""
    for bits in _BITS:
        with precision(bits):
            if law.survival(value - 1 - count) <= ball(miss) * law.survival(threshold - count):
                return True
    return False
