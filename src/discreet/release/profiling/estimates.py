"""Numbers with their ±: single counts, sums of counts, and quantiles that follow from them. All of it is free.

Every interval here holds with at least 95 %, for one number at a time, whatever the data are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import TypeAlias, final

from discreet.noise.laws import DiscreteLaplaceLaw, RoundedGaussianLaw

__all__ = ["CONFIDENCE", "Estimate", "Law", "added", "less", "reach", "single"]

Law: TypeAlias = RoundedGaussianLaw | DiscreteLaplaceLaw
CONFIDENCE = Fraction(95, 100)
_SIDE = 0.025  # of the error on one side
_MARGIN = 1 + 1e-9  # far above the error of these floats
_NARROW = 25  # Below this variance rounding matters, and few points have any probability.
_CLOSER = 0.93


@final
@dataclass(frozen=True, slots=True)
class Estimate:
    """A noisy count and how far off it may be. It may be negative, which the exact one is not."""

    value: int
    plus_minus: int

    @property
    def low(self) -> int:
        """What the exact count is at least."""
        return max(0, self.value - self.plus_minus)

    @property
    def high(self) -> int:
        """What the exact count is at most."""
        return max(0, self.value + self.plus_minus)

    @property
    def tidy(self) -> int:
        """The same, but not negative: free, and biased."""
        return max(0, self.value)


def single(value: int, law: Law) -> Estimate:
    """Return one count with its interval."""
    return Estimate(value, _one(law))


def added(values: Iterable[int], law: Law) -> Estimate:
    """Return the sum of counts of different cells, whose noises are independent."""
    counts = list(values)
    if len(counts) == 1:
        return single(counts[0], law)
    return Estimate(sum(counts), reach(law, ((1.0, len(counts)),)))


def less(whole: int, whole_law: Law, part: int, part_law: Law) -> Estimate:
    """Return what is left of a count without a part that was counted apart: each is off by its own noise."""
    each = (1 + CONFIDENCE) / 2  # so that both hold together
    return Estimate(whole - part, _one(whole_law, each) + _one(part_law, each))


@lru_cache(256)
def _one(law: Law, confidence: Fraction = CONFIDENCE) -> int:
    return law.half_width(confidence)


@lru_cache(4096)
def reach(law: Law, weights: tuple[tuple[float, int], ...]) -> int:
    """Return what a weighted sum of independent noises exceeds with 2.5 % at most, on either side.

    `weights` are pairs of a weight and how many noises have it. Gaussian noise that is rounded is Gaussian noise and
    at most one half for each; any noise is below the bound of Chernoff. Where both hold, the smaller one is taken.
    """
    if not any(count for _, count in weights):
        return 0
    if isinstance(law, DiscreteLaplaceLaw):
        return math.ceil(_chernoff(law, weights) * _MARGIN)
    squares = sum(weight**2 * count for weight, count in weights)
    moved = sum(abs(weight) * count for weight, count in weights) / 2
    normal = NormalDist().inv_cdf(1 - _SIDE) * math.sqrt(float(law.variance) * squares) + moved
    narrow = law.variance < _NARROW and _chernoff(law, weights) < normal
    return math.ceil((_chernoff(law, weights) if narrow else normal) * _MARGIN)


def _chernoff(law: Law, weights: Sequence[tuple[float, int]]) -> float:
    """Return the least (log E exp(s X) + log 40) / s over s: beyond it X is with 2.5 % at most. Any s gives a bound."""
    largest = max(abs(weight) for weight, count in weights if count)

    def bound(place: float) -> float:
        at = place / largest
        moments = sum(count * _log_moment(law, at * abs(weight)) for weight, count in weights)
        return (moments - math.log(_SIDE)) / at

    # The points come ever closer to where Laplace noise has no moments any more.
    most = 1 / float(law.scale) if isinstance(law, DiscreteLaplaceLaw) else 12 / math.sqrt(float(law.variance))
    return min(bound(most * (1 - _CLOSER**step)) for step in range(1, 120))


def _log_moment(law: Law, at: float) -> float:
    """Return log E exp(s X). Discrete Laplace, p = exp(-1 / b): (1 - p)^2 / ((1 - p e^s) (1 - p e^-s))."""
    if isinstance(law, DiscreteLaplaceLaw):
        decay = 1 / float(law.scale)
        ends = math.log(-math.expm1(at - decay)) + math.log(-math.expm1(-at - decay))
        return 2 * math.log(-math.expm1(-decay)) - ends
    deviation = math.sqrt(float(law.variance))
    far = math.ceil(deviation * (deviation * at + 40)) + 2
    return math.log(
        sum(_chance(k, deviation) * (math.exp(at * k) + math.exp(-at * k)) / (1 + (k == 0)) for k in range(far))
    )


def _chance(place: int, deviation: float) -> float:
    """Return the probability that Gaussian noise is rounded to a number that is not negative."""
    near, beyond = ((place + side) / (deviation * math.sqrt(2)) for side in (-0.5, 0.5))
    return (math.erfc(near) - math.erfc(beyond)) / 2
