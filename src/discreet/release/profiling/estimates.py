"""Numbers with their ±: single counts, sums of counts, and quantiles that follow from them. All of it is free.

Every interval here holds with at least 95 %, for one number at a time, whatever the data are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from statistics import NormalDist
from typing import TypeAlias, final

from discreet.noise.laws import DiscreteLaplaceLaw, RoundedGaussianLaw
from discreet.release.profiling.cells import Bound, Ranges
from discreet.release.round_numbers import friendly_step

__all__ = ["ASKED", "CONFIDENCE", "Estimate", "Law", "ProfileQuantile", "added", "less", "quantiles", "reach", "single"]

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


# --- quantiles ---
# Quantiles of a column from the counts of its cells, with an interval that follows from public facts.
#
# The quantile of q lies below a cut if and only if at least q of all values do. For each cut, the noisy number of
# values
# below it less q times that of all values is known up to a sum of noises. From the lowest cut up, as long as that is
# surely negative, the quantile is not below the cut; from the highest cut down, as long as it is surely positive, it
# is.
# Only one cut can make each end wrong, the one next to the quantile, so each end is wrong with 2.5 % at most.


_DIGITS = 20  # steps of a rounded guess within its interval, about
ASKED = tuple(Fraction(share, 100) for share in (5, 25, 50, 75, 95))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileQuantile:
    """The value below which a share of all values lies: about `value`, surely from `low` to `high`, None if open.

    If it is `beyond` the outermost cut ("above" or "below"), `value` is that cut, and no more is known.
    """

    share: Fraction
    value: Bound | None
    low: Bound | None
    high: Bound | None
    beyond: str = ""


def quantiles(cells: Ranges, counts: Sequence[int], law: Law) -> tuple[ProfileQuantile, ...]:
    """Return all quantiles that are shown."""
    if sum(counts) <= 0:
        return ()
    return tuple(_quantile(cells, counts, law, share) for share in ASKED)


def _quantile(cells: Ranges, counts: Sequence[int], law: Law, share: Fraction) -> ProfileQuantile:
    total, below = sum(counts), list(accumulate(counts))[:-1]
    surplus = [count - share * total for count in below]
    off = [_reach(law, share, cut + 1, len(counts)) for cut in range(len(below))]
    edges = (cells.low, *cells.cuts, cells.high)
    first = _leading([excess <= -much for excess, much in zip(surplus, off, strict=True)])
    last = _leading([excess >= much for excess, much in zip(reversed(surplus), reversed(off), strict=True)])
    low, high = edges[first], edges[len(edges) - 1 - last]
    value, cell = _guess(cells, counts, share, low, high)
    beyond = _beyond(cells, cell, low, high)
    if beyond:
        value = cells.cuts[-1 if beyond == "above" else 0]
    return ProfileQuantile(share=share, value=value, low=low, high=_up_to(cells, high), beyond=beyond)


def _beyond(cells: Ranges, cell: int, low: Bound | None, high: Bound | None) -> str:
    """Say on which side a quantile lies in a cell without an end, unless the interval keeps it within the cuts."""
    if not cell:
        return ""
    first, last = cells.ends(cell)
    if last is None and high is None:
        return "above"
    return "below" if first is None and low is None else ""


def _reach(law: Law, share: Fraction, below: int, cells: int) -> int:
    part = float(share)
    return reach(law, ((1 - part, below), (part, cells - below)))


def _leading(flags: Sequence[bool]) -> int:
    """Count how many of the first are true."""
    return next((place for place, flag in enumerate(flags) if not flag), len(flags))


def _up_to(cells: Ranges, high: Bound | None) -> Bound | None:
    """Whole numbers below a cut end one before it."""
    if not cells.whole or high is None or high == cells.high:
        return high
    return high - timedelta(days=1) if isinstance(high, date) else high - 1


def _guess(
    cells: Ranges, counts: Sequence[int], share: Fraction, low: Bound | None, high: Bound | None
) -> tuple[Bound | None, int]:
    """Guess within the cell where the sum of counts, none below zero, passes the share; kept within the interval.

    The cell is returned too, 0 if there is none.
    """
    tidy = [max(0, count) for count in counts]
    wanted, before = share * sum(tidy), Fraction(0)
    for cell, count in enumerate(tidy, 1):
        if count and before + count >= wanted:
            inside = _rounded(_inside(cells, cell, (wanted - before) / count), low, high)
            return _kept(inside, low, _up_to(cells, high)), cell
        before += count
    return None, 0


def _inside(cells: Ranges, cell: int, share: Fraction) -> Bound | None:
    low, high = cells.ends(cell)
    if isinstance(low, Fraction) and isinstance(high, Fraction):
        place = low + share * (high - low)
        if not cells.whole:
            return place
        return min(Fraction(place // 1), high if high == cells.high else high - 1)
    if isinstance(low, datetime) and isinstance(high, datetime):
        return (low + (high - low) * float(share)).replace(microsecond=0)
    if isinstance(low, date) and isinstance(high, date):
        return low + timedelta(days=min(int((high - low).days * share), max(0, (high - low).days - 1)))
    return low if high is None else high


def _rounded(value: Bound | None, low: Bound | None, high: Bound | None) -> Bound | None:
    """Leave out digits that say nothing: those far below the width of the interval."""
    if not isinstance(value, Fraction) or value.denominator == 1:
        return value
    bounded = isinstance(low, Fraction) and isinstance(high, Fraction) and low < high
    step = friendly_step(high - low if bounded else abs(value) or Fraction(1), _DIGITS)  # type: ignore[operator, arg-type]
    return round(value / step) * step


def _kept(value: Bound | None, low: Bound | None, high: Bound | None) -> Bound | None:
    if value is None:
        return None
    if low is not None and value < low:  # type: ignore[operator]
        return low
    return high if high is not None and value > high else value  # type: ignore[operator]
