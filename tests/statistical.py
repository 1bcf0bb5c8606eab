"""Statistical tests for samplers: of proven level, and the same verdict for the same sample.

A chi-square statistic is only about chi-square, least so where one sample in a billion lies. So `fits` cuts the
line into bins, which the law alone decides, and halves them again and again: given how many values fell into a
range, those in its left half are binomial, exactly. The p-values of all splits are independent and, if the law is
true, not smaller than uniform ones; Fisher's sum of their logarithms is then a test of proven level. [Fis25]
Measured on Laplace noise of a wrong scale, its p-values are within a factor of 10 or so of chi-square's.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.balls import precision

FALSE_ALARM = 1e-9
_BINS = 16  # Enough to see a wrong shape, few enough to see a wrong scale.
_EXPECTED = 10  # Values in a bin at least; the tails are pooled to reach it.
_ALMOST = 1 - Fraction(1, 2**60)
_LISTED = 4096  # A law that reaches further is asked for its distribution function, not for single values.

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
# A law of `noise.laws`, the probabilities of 0, 1, 2, … or a function that maps integers to probabilities.
AnyLaw: TypeAlias = Any


def fits(sample: Any, law: AnyLaw, *, false_alarm: float = FALSE_ALARM) -> bool:
    """Tell whether a sample of integers may come from a law; the truth is refused once in 1 / false_alarm."""
    return p_value(sample, law) >= false_alarm


def rejects(sample: Any, law: AnyLaw, *, false_alarm: float = FALSE_ALARM) -> bool:
    """Tell whether a sample surely does not come from a law."""
    return not fits(sample, law, false_alarm=false_alarm)


def p_value(sample: Any, law: AnyLaw) -> float:
    """Return a p-value for a sample of integers: 0 if it holds a value that the law cannot give."""
    values = np.asarray(sample, dtype=np.int64).ravel()
    if not _possible(law, values):
        return 0.0
    bins = Bins.of(_frozen(law), len(values))
    return bins.p_value(bins.counts(values))


def expected_p_value(truth: AnyLaw, law: AnyLaw, size: int) -> float:
    """Return the p-value of `law` for counts that follow `truth` exactly: how surely it will be rejected."""
    bins = Bins.of(_frozen(law), size)
    return bins.p_value(np.rint(size * _chances(_frozen(truth), bins.ends)).astype(np.int64))


@dataclass(frozen=True)
class Bins:
    """Ranges of integers and their probabilities; range i ends at `ends[i]`, the last one has no end."""

    ends: Integers
    chances: Floats

    @classmethod
    @lru_cache(maxsize=64)
    def of(cls, law: AnyLaw, size: int) -> Bins:
        """Cut at 16 even levels, and on in powers of two into the tails while ten values are expected."""
        levels = _levels(size)
        ends = np.unique(_quantiles(law, levels))
        chances = _chances(law, ends)
        # Nothing lies beyond the last value of a finite law: there is no range to test.
        return cls(ends, chances) if chances[-1] > 0 else cls(ends[:-1], chances[:-1])

    def place(self, values: Integers) -> Integers:
        """Return the number of the range that holds each value."""
        return np.searchsorted(self.ends, values)

    def counts(self, values: Integers) -> Integers:
        """Count the values in each range."""
        return np.bincount(self.place(values), minlength=len(self.chances))

    def p_value(self, counts: Integers) -> float:
        """Combine the p-values of all splits."""
        from scipy.stats import chi2

        logs = _halving(counts, self.chances)
        return float(chi2.sf(-2 * math.fsum(logs), 2 * len(logs))) if logs else 1.0


def _levels(size: int) -> list[float]:
    least = max(_EXPECTED / size, 2.0**-60)
    even = [i / _BINS for i in range(1, _BINS)]
    tails = [2.0**-j / _BINS for j in range(1, 60)]
    found = [level for level in even if min(level, 1 - level) >= least]
    found += [level for tail in tails if tail >= least for level in (tail, 1 - tail)]
    return sorted(found) or [0.5]


def _wide(law: AnyLaw) -> bool:
    return hasattr(law, "half_width") and law.half_width(_ALMOST) > _LISTED


def _quantiles(law: AnyLaw, levels: Sequence[float]) -> Integers:
    """Return where the distribution function reaches each level."""
    if _wide(law):
        return np.array([_quantile(law, level) for level in levels])
    points, weights = _listing(law)
    return points[np.minimum(np.searchsorted(np.cumsum(weights), levels), len(points) - 1)]


def _quantile(law: Any, level: float) -> int:
    high = law.half_width(_ALMOST)
    low = -high - 1
    with precision(64):
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if float(law.cdf(middle)) >= level else (middle, high)
    return high


def _chances(law: AnyLaw, ends: Integers) -> Floats:
    """Return the probabilities of the ranges up to each end, and of what lies beyond the last."""
    if not _wide(law):
        points, weights = _listing(law)
        return np.bincount(np.searchsorted(ends, points), weights, minlength=len(ends) + 1)
    with precision(128):
        below = [law.cdf(int(end)) for end in ends]
        return np.array([float(b - a) for a, b in zip([0, *below], [*below, 1], strict=True)])


def _frozen(law: AnyLaw) -> AnyLaw:
    """Make a list of probabilities a value, so that what is known about a law can be kept."""
    return law if callable(law) or hasattr(law, "pmf") else tuple(float(chance) for chance in law)


@lru_cache(maxsize=64)
def _listing(law: AnyLaw) -> tuple[Integers, Floats]:
    """List a law from end to end."""
    if isinstance(law, tuple):
        return np.arange(len(law)), np.asarray(law, dtype=np.float64)
    if hasattr(law, "half_width"):
        reach = law.half_width(_ALMOST)
        points = np.arange(-reach, reach + 1)
        return points, _probabilities(law, points)
    reach = 8
    while True:
        points = np.arange(-reach, reach + 1)
        weights = _probabilities(law, points)
        if weights.sum() > 1 - 1e-12:
            return points, weights
        assert reach < 2**22, "the probabilities of this law do not sum to 1"
        reach *= 2


def _probabilities(law: AnyLaw, points: Integers) -> Floats:
    if not hasattr(law, "pmf"):
        return np.asarray(law(points), dtype=np.float64)
    with precision(64):
        return np.array([float(law.pmf(int(point))) for point in points])


def _possible(law: AnyLaw, values: Integers) -> bool:
    if callable(law) or hasattr(law, "pmf"):
        return bool((_probabilities(law, np.array([values.min(), values.max()])) > 0).all())
    inside = values.min() >= 0 and values.max() < len(law)
    return bool(inside and (np.asarray(law)[values] > 0).all())


def _halving(counts: Integers, chances: Floats) -> list[float]:
    """Return the logarithm of the p-value of each split of a range of bins into two."""
    from scipy.stats import binom

    if len(counts) < 2:
        return []
    middle = len(counts) // 2
    total, left = int(counts.sum()), int(counts[:middle].sum())
    chance = float(chances[:middle].sum() / chances.sum())
    low, high = binom.logcdf(left, total, chance), binom.logsf(left - 1, total, chance)
    here = min(0.0, math.log(2) + float(min(low, high)))
    return [
        here,
        *_halving(counts[:middle], chances[:middle]),
        *_halving(counts[middle:], chances[middle:]),
    ]


@dataclass(frozen=True)
class EpsilonBound:
    """With the confidence asked for, no smaller epsilon is true."""

    epsilon: float
    outcomes: frozenset[Hashable]


def epsilon_lower_bound(
    first: Sequence[Hashable],
    second: Sequence[Hashable],
    *,
    delta: float = 0.0,
    false_alarm: float = FALSE_ALARM,
) -> EpsilonBound:
    """Bound epsilon from below by samples from two neighbours: every second value chooses, the others count.

    The outcomes to look at are those that are likelier in one sample by some factor; they are fixed before
    the other half is looked at, so the Clopper-Pearson bounds hold for them. [CP34]
    """
    sides = (list(first), list(second)), (list(second), list(first))
    found = [_one_sided(one, other, delta, false_alarm / 2) for one, other in sides]
    return max(found, key=lambda bound: bound.epsilon)


def _one_sided(first: Sequence[Hashable], second: Sequence[Hashable], delta: float, alarm: float) -> EpsilonBound:
    chosen = _telling(first[::2], second[::2], delta, alarm)
    return EpsilonBound(_bound(first[1::2], second[1::2], chosen, delta, alarm), chosen)


def _telling(first: Sequence[Hashable], second: Sequence[Hashable], delta: float, alarm: float) -> frozenset[Hashable]:
    """Choose the outcomes by their ratio, as many of them as promise the best bound."""
    ones, others = _tally(first), _tally(second)
    ranked = sorted(ones, key=lambda value: (ones[value] + 1) / (others.get(value, 0) + 1), reverse=True)
    best, chosen, hits, misses = -math.inf, 0, 0, 0
    for size, value in enumerate(ranked, start=1):
        hits, misses = hits + ones[value], misses + others.get(value, 0)
        promise = _epsilon(hits, len(first), misses, len(second), delta, alarm)
        if promise > best:
            best, chosen = promise, size
    return frozenset(ranked[:chosen])


def _bound(
    first: Sequence[Hashable],
    second: Sequence[Hashable],
    chosen: frozenset[Hashable],
    delta: float,
    alarm: float,
) -> float:
    hits, misses = sum(value in chosen for value in first), sum(value in chosen for value in second)
    return max(0.0, _epsilon(hits, len(first), misses, len(second), delta, alarm))


def _epsilon(hits: int, of: int, misses: int, out_of: int, delta: float, alarm: float) -> float:
    surely = clopper_pearson(hits, of, false_alarm=alarm)[0] - delta
    at_most = clopper_pearson(misses, out_of, false_alarm=alarm)[1]
    return math.log(surely / at_most) if surely > 0 else -math.inf


def clopper_pearson(hits: int, of: int, *, false_alarm: float = FALSE_ALARM) -> tuple[float, float]:
    """Enclose a probability by what was counted; each end is wrong once in 2 / false_alarm."""
    from scipy.stats import beta

    tail = false_alarm / 2
    low = float(beta.ppf(tail, hits, of - hits + 1)) if hits else 0.0
    high = float(beta.isf(tail, hits + 1, of - hits)) if hits < of else 1.0
    return low, high


def _tally(values: Sequence[Hashable]) -> dict[Hashable, int]:
    counted: dict[Hashable, int] = {}
    for value in values:
        counted[value] = counted.get(value, 0) + 1
    return counted
