"""Confidence intervals of what is computed from several noisy numbers: sums, and quotients such as means."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise, product
from typing import Any, Protocol, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.exact import up
from discreet.mechanisms.grid import compact, wide
from discreet.noise.laws import DiscreteLaplaceLaw, RoundedGaussianLaw

__all__ = [
    "FULLY",
    "MeasuredNoise",
    "NoiseInUnits",
    "NoiseLaw",
    "Pair",
    "ceiling",
    "clipped",
    "comoment_ends",
    "correlation_ends",
    "correlations",
    "half_width",
    "quotient_ends",
    "reach_of_sum",
    "survival",
]

NoiseLaw: TypeAlias = DiscreteLaplaceLaw | RoundedGaussianLaw


class NoiseInUnits(Protocol):
    """The noise of one number, which was first rounded to a multiple of a public unit; a frozen value."""

    def __hash__(self) -> int: ...

    @property
    def law(self) -> NoiseLaw:
        """The law of the noise, in units."""

    @property
    def unit(self) -> int:
        """The unit, in grid steps."""

    @property
    def slack(self) -> Fraction:
        """How far rounding to the unit moves a number, in grid steps."""

    def reach(self, confidence: Fraction, /) -> Fraction:
        """Return the least half width, in grid steps, that encloses the exact number with this probability."""


@final
@dataclass(frozen=True, slots=True)
class MeasuredNoise:
    """The noise of a number that a mechanism measured."""

    law: NoiseLaw
    unit: int = 1

    @property
    def slack(self) -> Fraction:
        return Fraction(self.unit, 2) if self.unit > 1 else Fraction(0)

    def reach(self, confidence: Fraction) -> Fraction:
        return self.unit * half_width(self.law, confidence) + self.slack


@lru_cache(1024)
def half_width(law: NoiseLaw, confidence: Fraction) -> int:
    """Remember what a law says: all groups ask the same."""
    return law.half_width(confidence)


# --- quotients: The interval of a mean, from two noisy numbers. ---


Array: TypeAlias = NDArray[Any]
Pair: TypeAlias = tuple[Array, Array]  # numerators and denominators
_LEVELS = 8
_SAFE = 1 << 61  # Products below it fit 64 bits.


def quotient_ends(
    total: Array, count: Array, noises: tuple[NoiseInUnits, NoiseInUnits], reach: int, confidence: Fraction
) -> tuple[Pair, Pair]:
    """Enclose T / N, whose size is at most `reach`, given both with noise; row by row.

    Theorem     If m = T / N is the exact mean, then total - m count is noise alone: X - m Y. So the set of all m with
                |total - m count| <= r(m) holds the exact one with the asked probability, if X - m Y is at most r(m)
                in size with it. The set lies within the one where r is taken at the far end of a few ranges of |m|, one
                step wider: P[|X - c| <= r + 1] for any c is at least P[|X - d| <= r] for a whole d >= |c|, as X is
                symmetric and unimodal. Where the noisy count is not positive, any mean is possible. [Fie54]
    """
    if reach * (int(abs(count).max(initial=0)) + 1) > _SAFE:
        total, count = wide(total), wide(count)
    known = count > 0
    many = np.where(known, count, 1)
    low, high = _ends(total, many, _pieces(noises, reach, confidence))
    return _or_anything(low, known, -reach), _or_anything(high, known, reach)


def clipped(pair: Pair, low: Fraction, high: Fraction) -> Pair:
    """Move quotients to where the exact ones surely are."""
    over, under = wide(pair[0]), wide(pair[1])
    over, under = _where(over * low.denominator < low.numerator * under, _ratio(over, low), (over, under))
    over, under = _where(over * high.denominator > high.numerator * under, _ratio(over, high), (over, under))
    return compact(over), compact(under)


def clipped_ends(ends: tuple[Pair, Pair], low: Fraction, high: Fraction) -> tuple[Pair, Pair]:
    """Move ends to where the exact quotient surely is; all of that where they miss it: one point would look certain."""
    (first, of_first), (last, of_last) = ((wide(over), wide(under)) for over, under in ends)
    misses = (last * low.denominator < low.numerator * of_last) | (first * high.denominator > high.numerator * of_first)
    return (
        clipped(_where(misses, _ratio(first, low), (first, of_first)), low, high),
        clipped(_where(misses, _ratio(last, high), (last, of_last)), low, high),
    )


def _ratio(like: Array, value: Fraction) -> Pair:
    return np.full_like(like, value.numerator), np.full_like(like, value.denominator)


def ceiling(number: Fraction) -> int:
    """Round up."""
    return -int(-number // 1)


@lru_cache(256)
def _pieces(
    noises: tuple[NoiseInUnits, NoiseInUnits], reach: int, confidence: Fraction
) -> tuple[tuple[int | None, int | None, int], ...]:
    """Cut all means into ranges, from the lowest to the highest, each with its half width; None has no end."""
    over, under = noises
    levels = sorted({ceiling(Fraction(reach * level, _LEVELS)) for level in range(_LEVELS + 1)})
    reaches = {m: reach_of_sum([(Fraction(1), over), (Fraction(m), under)], confidence) for m in levels}
    widths = {m: ceiling(reach) + over.unit for m, reach in reaches.items()}
    rising = [(a, b, widths[b]) for a, b in pairwise(levels)]
    falling = [(-b, -a, width) for a, b, width in reversed(rising)]
    return ((None, -reach, widths[reach]), *falling, *rising, (reach, None, widths[reach]))


def _ends(total: Array, count: Array, pieces: tuple[tuple[int | None, int | None, int], ...]) -> tuple[Pair, Pair]:
    """Return the least and the largest mean of any range that some mean of the set is in."""
    low: Pair = (total, count)
    high: Pair = (total, count)
    seen = np.zeros(total.shape, np.bool_)
    for first, last, width in pieces:
        below = np.ones_like(seen) if last is None else total - width <= last * count
        above = np.ones_like(seen) if first is None else total + width >= first * count
        here = (below & above).astype(np.bool_)
        low = _where(here & ~seen, _largest(total - width, count, first), low)
        high = _where(here, _least(total + width, count, last), high)
        seen |= here
    return low, high


def _largest(over: Array, under: Array, bound: int | None) -> Pair:
    """Return over / under or the bound, whichever is larger."""
    return (over, under) if bound is None else _where(over >= bound * under, (over, under), _constant(over, bound))


def _least(over: Array, under: Array, bound: int | None) -> Pair:
    return (over, under) if bound is None else _where(over <= bound * under, (over, under), _constant(over, bound))


def _constant(like: Array, value: int) -> Pair:
    return np.full_like(like, value), np.ones_like(like)


def _where(condition: Array, one: Pair, other: Pair) -> Pair:
    return np.where(condition, one[0], other[0]), np.where(condition, one[1], other[1])


def _or_anything(end: Pair, known: Array, limit: int) -> Pair:
    over, under = _where(known, end, _constant(end[0], limit))
    return compact(over), compact(under)


# --- pairs: The interval of a covariance and of a correlation, from boxes around noisy sums. ---


Ends: TypeAlias = tuple[Array, Array]  # the lower and the upper end of whole numbers, row by row
FULLY = 10**9  # A correlation of one: correlations are told in whole parts of it.


def comoment_ends(products: Ends, first: Ends, second: Ends | None, count: Ends) -> tuple[Pair, Pair]:
    """Enclose P / N - (X / N) (Y / N), all four within boxes of whole numbers and N from 1 on; without Y it is X.

    Theorem     For t = 1 / N it is P t - X Y t^2: rising in P and falling in the product X Y, so its largest value
                over the box is that of the largest P and the least product, a parabola in t, at an end or its top.
    """
    least, most = _squares(first) if second is None else _products(first, second)
    above = _largest_value(products[1], least, count)
    over, under = _largest_value(-products[0], -most, count)
    return (-over, under), above


def _products(first: Ends, second: Ends) -> Ends:
    corners = [one * other for one, other in product(first, second)]
    return np.minimum.reduce(corners), np.maximum.reduce(corners)


def _squares(ends: Ends) -> Ends:
    low, high = ends
    outside = np.maximum(np.maximum(low, -high), 0)
    return outside**2, np.maximum(abs(low), abs(high)) ** 2


def _largest_value(slope: Array, bend: Array, count: Ends) -> Pair:
    """Return the largest slope t - bend t^2 with 1 / t between two numbers."""
    fewest, most = count
    one, other = ((slope * many - bend, many * many) for many in (fewest, most))
    best = _where(np.asarray(one[0] * other[1] >= other[0] * one[1], np.bool_), one, other)
    top = np.asarray((bend > 0) & (slope > 0) & (2 * bend >= fewest * slope) & (2 * bend <= most * slope), np.bool_)
    return _where(top, (slope * slope, np.where(top, 4 * bend, 1)), best)


def correlation_ends(covariance: tuple[Pair, Pair], one: tuple[Pair, Pair], other: tuple[Pair, Pair]) -> Ends:
    """Enclose c / sqrt(v w) by the ends of c, v and w, in parts of `FULLY`; all of it where a spread may be none.

    A covariance above zero is divided by the least spreads for the upper end and by the largest for the lower one.
    """
    rising = [np.asarray(end[0] > 0, np.bool_) for end in covariance]
    below = [_where(rising[0], spread[1], spread[0]) for spread in (one, other)]
    above = [_where(rising[1], spread[0], spread[1]) for spread in (one, other)]
    low = _row_by_row(_correlation, covariance[0], *below, -1)
    return low, _row_by_row(_correlation, covariance[1], *above, 1)


def correlations(covariance: Pair, one: Pair, other: Pair) -> Array:
    """Return c / sqrt(v w) in parts of `FULLY`, between its limits; zero where a spread is not above zero."""
    return _row_by_row(_correlation, covariance, one, other, 0)


def _row_by_row(function: Callable[..., int], *parts: Any) -> Array:
    *pairs, side = parts
    listed = [array.tolist() for pair in pairs for array in pair]
    return compact(np.array([function(*row, side) for row in zip(*listed, strict=True)], dtype=object))


def _correlation(c: int, c_under: int, v: int, v_under: int, w: int, w_under: int, side: int) -> int:
    """Return c / sqrt(v w), rounded down for the side -1, up for 1, towards zero for 0; the limit if a spread is 0."""
    if v <= 0 or w <= 0:
        return side * FULLY
    size = math.isqrt(c * c * v_under * w_under * FULLY**2 // (c_under * c_under * v * w))
    away = side != 0 and (c > 0) == (side > 0)
    size = min(FULLY, size + 1 if away else size)
    return size if c > 0 else -size


# --- combined ---
# How far noise on two numbers together moves what is computed from both: the law of c X + d Y, tail by tail.
#
# The answer of a box, each noise in an interval of its own, is up to half as wide again. Here the chance of one noise
# is listed and that of the other has a closed form, in floats whose error is far below the margin that is kept. Where
# there are too many values to list, they are put into buckets, each as if all of it were at its far end, and one step
# is added: symmetric unimodal noise only reaches further then, up to the steps of its grid.


Floats: TypeAlias = NDArray[np.float64]
_MARGIN = 1e-9  # Of probability: what is not listed, and all errors of floats, are far below it.
_LISTED = 1 << 13
_ROOM = 1e-7
_FINE = 1 << 20  # To how many parts of itself a half width that is not whole is found.


def reach_of_sum(terms: Sequence[tuple[Fraction, NoiseInUnits]], confidence: Fraction) -> Fraction:
    """Return a half width that encloses a weighted sum of independent noises with at least this probability.

    It is the least one for one noise, and for two up to the margin; for more it is that of a box, and for two as well
    where the margin is more than may be passed.
    """
    there = [(abs(weight), one) for weight, one in terms if weight]
    if len(there) == 2 and 1 - confidence > 2 * _MARGIN:
        (a, one), (b, other) = sorted(there, key=lambda term: _combined_spread(term[1].law))
        slack = a * one.slack + b * other.slack
        return _of_two(a * one.unit, one.law, b * other.unit, other.law, confidence) + slack
    each = 1 - (1 - confidence) / max(1, len(there))
    return sum((weight * one.reach(each) for weight, one in there), Fraction(0))


def _combined_spread(law: NoiseLaw) -> float:
    return float(law.scale) if isinstance(law, DiscreteLaplaceLaw) else math.sqrt(law.variance)


@lru_cache(4096)
def _of_two(a: Fraction, x: NoiseLaw, b: Fraction, y: NoiseLaw, confidence: Fraction) -> Fraction:
    """Search the least t with P[|a X + b Y| > t] <= 1 - confidence; whole if both weights are."""
    allowed = float(1 - confidence) - _MARGIN
    whole = a.denominator == b.denominator == 1
    grain = Fraction(1) if whole else max(a, b) / _FINE
    outside = _outside(up(a / grain), x, up(b / grain), y, room=0.0 if whole else _ROOM)
    high = 1
    while outside(high) > allowed:
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if outside(middle) <= allowed else (middle, high)
    return high * grain + (0 if _reach(x) < _LISTED else b)


def _outside(a: float, x: NoiseLaw, b: float, y: NoiseLaw, *, room: float) -> Callable[[int], float]:
    """Return a function that bounds P[|a X + b Y| > t]; `room` is more than floats are off by near whole numbers."""
    places, masses = _listed(x)
    upper_y = survival(y)

    def outside(t: int) -> float:
        near, far = (t - a * places) / b, (t + a * places) / b
        return float(masses @ (upper_y(np.floor(near - room)) + upper_y(np.floor(far - room))))

    return outside


def _listed(law: NoiseLaw) -> tuple[Floats, Floats]:
    """List sizes of noise with their chances, both signs together: zero, then buckets by their far ends."""
    upper, reach = survival(law), _reach(law)
    ends = np.arange(reach + 1.0) if reach < _LISTED else np.unique(np.rint(np.linspace(0, reach, _LISTED)))
    beyond = upper(ends)
    masses = np.concatenate(([1 - 2 * beyond[0]], 2 * (beyond[:-1] - beyond[1:])))
    return ends, masses


def _reach(law: NoiseLaw) -> int:
    """Return how far noise is listed; less than 1e-11 lies beyond."""
    return (
        math.ceil(26 * _combined_spread(law)) + 26
        if isinstance(law, DiscreteLaplaceLaw)
        else math.ceil(7 * _combined_spread(law)) + 2
    )


def survival(law: NoiseLaw) -> Callable[[Floats], Floats]:
    """Return P[X > k] for arrays of whole numbers."""
    if isinstance(law, DiscreteLaplaceLaw):
        rate = 1 / float(law.scale)
        whole = 1 + math.exp(-rate)

        def laplace(k: Floats) -> Floats:
            tail = np.exp(-rate * np.where(k >= 0, k + 1, -k)) / whole
            return np.where(k >= 0, tail, 1 - tail)

        return laplace
    from scipy.special import ndtr

    sigma = math.sqrt(law.variance)

    def gaussian(k: Floats) -> Any:
        return ndtr(-(k + 0.5) / sigma)

    return gaussian
