"""Where the mean of a population lies, given noisy sums of a sample of it: sampling error and noise together.

Rows are independent draws of a law on the declared bounds, whose mean m and variance are unknown. A release holds a
noisy sum, a noisy or public count and perhaps a noisy sum of squares. Whatever m is, sum - m count is then a sum of
independent centred draws plus noise of a known law; m is possible while that is no larger than it may be. [Fie54]
Nothing here looks at rows: all of it is computed from what was released.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.mechanisms.quotient_intervals import NoiseInUnits, survival

__all__ = ["SampledDifference", "SampledMean", "Spread", "quick_reach", "sampled_reach", "sampled_tail"]

Floats: TypeAlias = NDArray[np.float64]
Term: TypeAlias = tuple[float, NoiseInUnits]  # a noise and its weight
Ends: TypeAlias = tuple[float, float]

# --- reach: How far a centred sum of independent draws, plus noise, is from zero. ---

_MARGIN = 1e-9  # Of probability: all errors of floats are far below it.
_CELLS = 400  # Of what is searched: how finely laws are listed, each rounded up.
_RATIO = 1.3  # Of variances that follow each other in the list of those that are possible.
_ALIKE, _UNLIKE = 0.4748, 0.5600  # Constants of Berry and Esseen: for draws of one law [She11], of several [She10].


@final
@dataclass(frozen=True, slots=True)
class Spread:
    """What is known of a sum of independent centred draws: bounds from above of its spread."""

    variance: float  # of the whole sum
    beyond: float  # how far one draw is above zero at most
    third: float  # the sum of third absolute moments, over the variance
    alike: bool = True  # whether all draws are of one law


_NO_DRAWS = Spread(0.0, 0.0, 0.0)


def sampled_reach(sampled: Spread, noises: Sequence[Term], tail: float) -> float:
    """Return t such that a centred sum D of draws and a weighted sum W of noises pass it with a chance of at most tail.

    Theorem     P[D > u] is at most Bennett's bound, [BLM13] and at most that of Berry and Esseen; [She11, She10] both
                for each variance up to the largest, of which the first grows with the variance, and the second is
                largest at an end of any range of variances. D + W is at most the sum of their positive parts. Noise on
                whole numbers plus a uniform number within half a step is symmetric, unimodal and has a density, so a
                smaller weight passes anything less often; it is at most half a step away. All laws are rounded up to
                a grid and convolved; what is beyond the grid counts as passed.
    """
    rounded = _up(sampled.variance, 1.02), _up(sampled.beyond, 1.02), _up(sampled.third, 1.02), sampled.alike
    terms = tuple((_up(abs(weight), 1.02), one) for weight, one in noises if weight)
    return _reach(Spread(*rounded), terms, tail)


def quick_reach(sampled: Spread, noises: Sequence[Term], tail: float) -> float:
    """Return what may be used for `sampled_reach`, wider and at once: Bernstein's bound beside a box of the noises."""
    nats, each = math.log(2 / tail), _confidence(tail / 2 / max(1, len(noises)))
    box = sum(weight * float(one.reach(each)) for weight, one in noises)
    return math.sqrt(2 * sampled.variance * nats) + sampled.beyond * nats / 3 + box


def _up(value: float, ratio: float) -> float:
    """Round up to a power of the ratio: then what is alike is computed once."""
    return (1 + 1e-9) * ratio ** math.ceil(math.log(value) / math.log(ratio) - 1e-9) if value > 0 else 0.0


@lru_cache(1 << 14)
def _reach(sampled: Spread, noises: tuple[Term, ...], tail: float) -> float:
    slack, size = _slack(noises), _rough(sampled, noises, tail)
    while size > 0:
        step = size / _CELLS
        within = np.flatnonzero(1 - np.cumsum(_law_of_sum(sampled, noises, step)) <= tail - _MARGIN)
        if within.size:
            return float(within[0] * step + slack)
        size *= 2
    return slack


def sampled_tail(sampled: Spread, noises: Sequence[Term], away: float) -> float:
    """Return a bound of the chance that D + W is `away` or more: the other way round, with the same theorem."""
    terms = tuple((abs(weight), one) for weight, one in noises if weight)
    left = away * (1 - 1e-12) - _slack(terms)
    if left <= 0:
        return 1.0
    step = left / _CELLS
    within = float(_law_of_sum(sampled, terms, step)[:_CELLS].sum())  # What is left away by less than all steps.
    return min(1.0, 1 - within + _MARGIN)


def _slack(noises: Sequence[Term]) -> float:
    """Return how far noise on whole numbers is from noise with a density, and how far rounding moves it."""
    return sum(weight * (one.unit / 2 + float(one.slack)) for weight, one in noises)


def _law_of_sum(sampled: Spread, noises: Sequence[Term], step: float) -> Floats:
    """List the chances of 0, 1, 2, … steps for the sum of the positive parts of draws and of noises, rounded up."""
    law = _noise_law(noises, step)
    return np.convolve(_masses(lambda u: _passing(u, sampled), step), law) if sampled.variance else law


def _rough(sampled: Spread, noises: Sequence[Term], tail: float) -> float:
    """Return about how far to look."""
    nats = math.log(1 / tail)
    parts = sum(weight * float(one.reach(_confidence(tail))) for weight, one in noises)
    return math.sqrt(2 * sampled.variance * nats) + sampled.beyond * nats / 3 * (sampled.variance > 0) + parts


def _confidence(tail: float) -> Fraction:
    """Return the confidence of a two-sided interval that is passed on each side with a chance of at most `tail`."""
    return 1 - Fraction(math.floor(2 * tail * (1 << 30)), 1 << 30)


def _masses(passing: Callable[[Floats], Floats], step: float) -> Floats:
    """List the chances of 0, 1, 2, … steps for a positive number that is rounded up to the next of them."""
    above: Floats = np.concatenate((np.ones(1), passing(step * np.arange(1.0, 2 * _CELLS + 1))))
    return np.concatenate((np.zeros(1), above[:-1] - above[1:]))


def _noise_law(noises: Sequence[Term], step: float) -> Floats:
    """List the chances of 0, 1, 2, … steps for the positive part of a sum of noises, each rounded up."""
    places: Floats = step * np.arange(-2.0 * _CELLS, 2 * _CELLS + 1)
    law = np.zeros(4 * _CELLS + 1)
    law[2 * _CELLS] = 1
    for (weight, one), times in Counter(noises).items():
        above = _smoothed(places / (weight * one.unit), survival(one.law))
        law = _both(law, _repeated(np.concatenate(([1 - above[0]], above[:-1] - above[1:])), times))
    return np.concatenate(([law[: 2 * _CELLS + 1].sum()], law[2 * _CELLS + 1 :]))


def _both(law: Floats, other: Floats) -> Floats:
    """Convolve two laws on the same steps; what is below the least is rounded up to it, what is above is beyond."""
    both = np.convolve(law, other)
    cut = 2 * _CELLS
    return np.concatenate(([both[: cut + 1].sum()], both[cut + 1 : -cut]))


def _repeated(law: Floats, times: int) -> Floats:
    """Convolve a law with itself."""
    if times == 1:
        return law
    half = _repeated(law, times // 2)
    return _both(_both(half, half), law) if times % 2 else _both(half, half)


def _smoothed(places: Floats, upper: Callable[[Floats], Floats]) -> Floats:
    """Return P[X + U > s] for noise X on whole numbers and a uniform U within half a step."""
    whole = np.floor(places + 0.5)
    part = places + 0.5 - whole
    return upper(whole) * part + upper(whole - 1) * (1 - part)


def _passing(u: Floats, sampled: Spread) -> Floats:
    """Bound P[D > u], u > 0, for every variance up to the largest."""
    from scipy.special import ndtr

    factor = (_ALIKE if sampled.alike else _UNLIKE) * sampled.third
    fewest = min(sampled.variance, (20 * factor) ** 2)  # With less, the second bound says too little.
    count = math.ceil(math.log(sampled.variance / fewest) / math.log(_RATIO)) if fewest > 0 else 0
    variances = [sampled.variance / _RATIO**j for j in range(count + 1)]
    found = _bennett(u, variances[-1], sampled.beyond)
    normal = [np.asarray(ndtr(-u / math.sqrt(v)) + factor / math.sqrt(v)) for v in variances]
    for j in range(count):
        found = np.maximum(
            found, np.minimum(_bennett(u, variances[j], sampled.beyond), np.maximum(normal[j], normal[j + 1]))
        )
    return np.minimum(found, 1)


def _bennett(u: Floats, variance: float, beyond: float) -> Floats:
    x = beyond * u / variance
    return np.asarray(np.exp(-(variance / beyond**2) * ((1 + x) * np.log1p(x) - x)))


# --- means: Which means of a population are possible. ---

_SHARES = {"mean": 0.9, "spread": 0.08, "count": 0.02}  # Of what may fail.
_RAREST = Fraction(1, 10**7)  # What fails less often is lost in the margin of floats: then nothing is sure.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SampledMean:
    """What was released of a sample, in steps about a public centre.

    Theorem     For the mean m of the population: (1) total - m count is a centred sum of draws, of variance v = n s²,
                plus X - m Y, see `sampled_reach`. (2) The sum of squared distances from m has mean v, is told up to
                noise by squares, total and count, and falls below v - √(2 b² v L) with a chance of at most e^(-L),
                where b bounds a distance: its terms are at least 0 and at most b². [BLM13] (3) s² is at most
                (high - m)(m - low). [BD00] Bounds that are too large are harmless, so each range of means is judged
                by its worst corner, and the ends are those of the outermost range that is possible.
    """

    low: int  # the least value
    high: int
    total: int  # noisy, the sum of values
    count: int  # noisy, or the public number of rows
    noises: tuple[NoiseInUnits, NoiseInUnits | None, NoiseInUnits | None]  # of total, count and squares
    squares: int | None = None  # noisy, the sum of (squared values - fold)
    fold: int = 0
    binary: bool = False  # whether every value is the least or the largest
    cells: tuple[int, int] | None = None  # of a table: from how many noisy counts the ones and the zeros are added up

    def ends(self, confidence: Fraction) -> Ends:
        """Enclose the mean of the population and the released one.

        All that the bounds allow, if nothing is sure or no mean fits the noisy numbers: one point would look certain.
        """
        if 1 - confidence < _RAREST:
            return float(self.low), float(self.high)
        fails = float(1 - confidence)
        fine = self._grain(fails)
        first = _outermost(lambda a, b: self._possible(a, b, fails), self.low, self.high, fine)
        last = _outermost(lambda a, b: self._possible(-b, -a, fails), -self.high, -self.low, fine)
        if first is None or last is None:
            return float(self.low), float(self.high)
        return min(self.middle, first, -last), max(self.middle, first, -last)

    def holds(self, mean: float, confidence: Fraction) -> bool:
        """Tell whether a mean is possible, which is quicker than an interval: that holds all that are."""
        return 1 - confidence < _RAREST or self._possible(mean, mean, float(1 - confidence))

    @property
    def middle(self) -> float:
        """The noisy mean, within the bounds; where the count says that nobody is there, it is taken for one."""
        return min(max(self.total / max(1, self.count), float(self.low)), float(self.high))

    def count_reach(self, fails: float) -> float:
        """Return how far off the count is on one side."""
        one = self.noises[1]
        if self.cells is not None:
            return sampled_reach(_NO_DRAWS, [(1.0, self.noises[0])] * sum(self.cells), _SHARES["count"] * fails)
        return 0.0 if one is None else float(one.reach(_confidence(_SHARES["count"] * fails)))

    def most(self, a: float, b: float, fails: float) -> float:
        """Bound the variance of the sum if the mean lies between a and b."""
        rows = max(1.0, self.count + self.count_reach(fails))
        top = min(max((self.low + self.high) / 2, a), b)
        bounded = rows * (self.high - top) * (top - self.low)
        if self.squares is None or self.noises[2] is None:
            return bounded
        far, longest = max(abs(a), abs(b)), max(b - self.low, self.high - a)
        told = self._most_squared(a, b) + self._squares_reach(far, fails)
        half = longest**2 * math.log(1 / (_SHARES["spread"] * fails / 2)) / 2
        return min(bounded, (math.sqrt(half) + math.sqrt(half + max(0.0, told))) ** 2)

    def third(self, a: float, b: float) -> float:
        """Bound the third absolute moment of a draw over its variance if the mean lies between a and b."""
        if not self.binary:
            return max(b - self.low, self.high - a)
        width = self.high - self.low
        return max(((m - self.low) ** 2 + (self.high - m) ** 2) / width for m in (a, b)) if width else 0.0

    def terms(self, a: float, b: float, scale: float = 1.0) -> list[Term]:
        """Return the noises of total - m count for m between a and b, with their weights."""
        if self.cells is not None:  # Of zeros and ones: (1 - m) ones - m zeros.
            ones, zeros = self.cells
            return [((1 - a) * scale, self.noises[0])] * ones + [(b * scale, self.noises[0])] * zeros
        far = self._level(max(abs(a), abs(b)))
        there = [(scale, self.noises[0]), (scale * far, self.noises[1])]
        return [(weight, one) for weight, one in there if one is not None]

    def reach(self, a: float, b: float, fails: float, *, upward: bool) -> float:
        """Return how far total - m count is from zero, on one side, if the mean lies between a and b."""
        return sampled_reach(*self._sum(a, b, fails, upward=upward), _SHARES["mean"] * fails / 2)

    def _sum(self, a: float, b: float, fails: float, *, upward: bool) -> tuple[Spread, list[Term]]:
        """Return what total - m count is made of, if the mean lies between a and b."""
        spread = Spread(self.most(a, b, fails), self.high - a if upward else b - self.low, self.third(a, b))
        return spread, self.terms(a, b)

    def _possible(self, a: float, b: float, fails: float) -> bool:
        """Tell whether some mean between a and b may be that of the population."""
        ends = sorted(self.total - m * self.count for m in (a, b))
        room = 1e-12 * (abs(self.total) + abs(self.count) * max(abs(a), abs(b)))
        if ends[0] <= room and ends[1] >= -room:
            return True
        upward = ends[0] > room
        away, parts = (ends[0] if upward else -ends[1]) - room, self._sum(a, b, fails, upward=upward)
        tail = _SHARES["mean"] * fails / 2
        return away <= quick_reach(*parts, tail) and away <= sampled_reach(*parts, tail)

    def _squared(self, m: float) -> float:
        """Return the noisy sum of squared distances from m."""
        return (self.squares or 0) + (self.fold + m * m) * self.count - 2 * m * self.total

    def _most_squared(self, a: float, b: float) -> float:
        """Return the largest noisy sum of squared distances from a mean between a and b."""
        # It is largest at an end, unless noise makes the count negative: then it bends down.
        bend = [min(max(self.total / self.count, a), b)] if self.count < 0 else []
        return max(self._squared(m) for m in (a, b, *bend))

    def _squares_reach(self, far: float, fails: float) -> float:
        far = self._level(far)
        weights = (2 * far, self.fold + far * far, 1.0)
        there = [(weight, one) for weight, one in zip(weights, self.noises, strict=True) if one is not None]
        return sampled_reach(_NO_DRAWS, there, _SHARES["spread"] * fails / 2)

    def _level(self, far: float) -> float:
        """Round up to an eighth of the farthest, so that few laws are computed."""
        eighth = max(abs(self.low), abs(self.high)) / 8
        return eighth * math.ceil(far / eighth - 1e-9) if eighth else 0.0

    def _grain(self, fails: float) -> float:
        """Return how finely ends are found: a hundredth of a half width."""
        about = self.reach(self.middle, self.middle, fails, upward=True) / max(1, self.count)
        return max(about / 100, (self.high - self.low) / 2**40)


def _outermost(possible: Callable[[float, float], bool], low: float, high: float, fine: float) -> float | None:
    """Return the lower end of the lowest range that is possible, None if none is; ranges are halved."""
    waiting = [(float(low), float(high))]
    while waiting:
        a, b = waiting.pop()
        if not possible(a, b):
            continue
        if b - a <= fine:
            return a
        waiting += [((a + b) / 2, b), (a, (a + b) / 2)]
    return None


# --- difference: Of the means of two populations, of which independent samples were drawn. ---

# Of what may fail: the bounds of either population by itself, then that there are fewer rows than its count says, which
# these do not ask for, and the sum of both.
_EACH = 0.1
_BOTH = 1 - 2 * _EACH * (1 + _SHARES["count"]) - 1e-9


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SampledDifference:
    """The mean of one population minus that of another, by independent samples.

    Theorem     With estimates of total over count, their difference is off by a1 / c1 - a2 / c2, a being total - m
                count and c a noisy count. Were the counts exact, this is one centred sum of independent draws and
                noise, see `sampled_reach`. A noisy count c that is at most y off n moves a / n by at most
                |a| y / (n c). Means, variances and counts are bounded first, each population by itself, and the counts
                on both sides.
    """

    first: SampledMean
    second: SampledMean
    steps: tuple[float, float]  # of either, in units of the answer

    def ends(self, confidence: Fraction) -> Ends:
        """Enclose the difference, apart from the difference of the centres."""
        fails = 1 - confidence
        own = 1 - fails * Fraction(_EACH)
        parts = [
            (one.ends(own), step, one) for one, step in ((self.first, self.steps[0]), (self.second, self.steps[1]))
        ]
        (a, p, _), (b, q, _) = parts
        box = a[0] * p - b[1] * q, a[1] * p - b[0] * q
        if 1 - own < _RAREST:
            return box
        reach = self._reach([(ends, step, one) for ends, step, one in parts], float(fails))
        middle = self.first.total / max(1, self.first.count) * p - self.second.total / max(1, self.second.count) * q
        low, high = max(box[0], middle - reach), min(box[1], middle + reach)
        return (low, high) if low <= high else box

    @staticmethod
    def _reach(parts: Sequence[tuple[Ends, float, SampledMean]], fails: float) -> float:
        variance = beyond = third = shifted = 0.0
        noises: list[Term] = []
        for (a, b), step, one in parts:
            off = one.count_reach(fails * _EACH)
            fewest = one.count - off
            if fewest < 1:
                return math.inf
            scale = step / fewest
            variance += scale**2 * one.most(a, b, fails * _EACH)
            beyond = max(beyond, scale * max(b - one.low, one.high - a))
            third = max(third, scale * one.third(a, b))
            noises += one.terms(a, b, scale)
            widest = max(one.reach(a, b, fails * _EACH, upward=side) for side in (True, False))
            shifted += step * widest * off / (fewest * one.count)
        return shifted + sampled_reach(Spread(variance, beyond, third, alike=False), noises, _BOTH * fails / 2)
