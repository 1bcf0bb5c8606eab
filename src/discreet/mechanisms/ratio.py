"""Noisy sums over a noisy count: what both noises together say about the quotient."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import final

from discreet.mechanisms.accuracy import Interval, NoiseAccuracy

__all__ = ["MeanAccuracy", "VarianceAccuracy", "quotient"]


def quotient(total: Fraction, count: int) -> Fraction:
    """Divide by the noisy count, or by one where it says that nobody is there."""
    return total / max(1, count)


def _quotients(total: Interval, count: Interval) -> Interval:
    """Enclose s / n for all s and whole n >= 1 in two intervals."""
    fewest, most = max(Fraction(1), count[0]), max(Fraction(1), count[1])
    corners = [end / number for end in total for number in (fewest, most)]
    return min(corners), max(corners)


def _each(confidence: Fraction, times: int) -> Fraction:
    """Return the confidence each of `times` intervals needs so that all hold at once."""
    return 1 - (1 - confidence) / times


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MeanAccuracy:
    """A mean is centre + sum / count: both are enclosed, and every quotient of the two is inside.

    An empty table has no mean; for it the interval means nothing.
    """

    centre: Fraction
    total: Fraction  # the noisy sum, as released
    count: int  # the noisy count, as released
    total_accuracy: NoiseAccuracy
    count_accuracy: NoiseAccuracy

    @property
    def noise(self) -> None:
        return None

    def interval(self, value: Fraction, confidence: Fraction) -> Interval:
        each = _each(confidence, 2)
        total = self.total_accuracy.interval(self.total, each)
        low, high = _quotients(total, self.count_accuracy.interval(self.count, each))
        return self.centre + low, self.centre + high


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class VarianceAccuracy:
    """A variance is (sum of squares) / count - ((sum) / count)^2, about any centre."""

    squares: Fraction  # noisy, as released
    total: Fraction
    count: int
    squares_accuracy: NoiseAccuracy
    total_accuracy: NoiseAccuracy
    count_accuracy: NoiseAccuracy

    @property
    def noise(self) -> None:
        return None

    def interval(self, value: Fraction, confidence: Fraction) -> Interval:
        each = _each(confidence, 3)
        count = self.count_accuracy.interval(self.count, each)
        first = _quotients(self.squares_accuracy.interval(self.squares, each), count)
        mean = _quotients(self.total_accuracy.interval(self.total, each), count)
        ends = sorted(end**2 for end in mean)
        least = Fraction(0) if mean[0] <= 0 <= mean[1] else ends[0]
        return first[0] - ends[1], first[1] - least
