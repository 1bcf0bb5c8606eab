"""The interval of a mean, from two noisy numbers."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.query.planning.combined import reach_of_sum
from discreet.query.planning.noises import NumberNoise
from discreet.query.results.numbers import compact, wide

__all__ = ["Pair", "ceiling", "clipped", "quotient_ends"]

Array: TypeAlias = NDArray[Any]
Pair: TypeAlias = tuple[Array, Array]  # numerators and denominators
_LEVELS = 8
_SAFE = 1 << 61  # Products below it fit 64 bits.


def quotient_ends(
    total: Array, count: Array, noises: tuple[NumberNoise, NumberNoise], reach: int, confidence: Fraction
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


def _ratio(like: Array, value: Fraction) -> Pair:
    return np.full_like(like, value.numerator), np.full_like(like, value.denominator)


def ceiling(number: Fraction) -> int:
    """Round up."""
    return -int(-number // 1)


@lru_cache(256)
def _pieces(
    noises: tuple[NumberNoise, NumberNoise], reach: int, confidence: Fraction
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
