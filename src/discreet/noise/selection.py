"""Exact sampling among candidates: exponential weights, permute-and-flip, uniform choices and permutations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.balls import ball, precision
from discreet.noise.lazy_bits import below, compare, extend, revealed
from discreet.noise.source import read

__all__ = [
    "choose",
    "choose_listed",
    "integer_below",
    "integers_below",
    "permutation_of",
    "permute_and_flip",
    "permute_and_flip_listed",
    "stays_when_permuted",
]

# --- weighted ---
# Choose among candidates with probability proportional to multiplicity * exp(factor * score), exactly.
#
# Floats find the candidate and know how far they may be wrong. Only if the draw falls that close to the border
# between two candidates are the weights summed in balls, with as many bits as it takes.


_BLOCK = 4096  # Weights summed pairwise; keeps the error of a sum of any length near that of one term.
_FLIPS = 4096  # Coins flipped at a time.
_LOWEST = -700.0  # exp of less is below 1e-304 and counts as an error, not as a weight.
_STEEPEST = Fraction(
    10**250
)  # A larger factor does the same to every gap but 0, and this one times a gap is still a float.


def choose(gaps: NDArray[np.uint64], multiplicities: NDArray[np.float64], factor: Fraction) -> int:
    """Choose by P[i] ~ multiplicities[i] * exp(-factor * gaps[i]); multiplicities are whole numbers below 2^53."""
    weights = multiplicities * np.exp(np.maximum(gaps * -_rate(factor), _LOWEST))
    sums = np.add.reduceat(weights, np.arange(0, weights.size, _BLOCK))
    tops = np.cumsum(sums)
    prefix, bits = revealed()
    target = prefix * 2.0**-64 * tops[-1]
    block = min(int(np.searchsorted(tops, target, "right")), tops.size - 1)
    start = block * _BLOCK
    before = tops[block] - sums[block]
    inner = np.cumsum(weights[start : start + _BLOCK]) + before
    inside = min(int(np.searchsorted(inner, target, "right")), inner.size - 1)
    index = start + inside
    doubt = _relative_error(weights.size) * tops[-1]
    clear_below = index == 0 or target - (inner[inside - 1] if inside else before) > doubt
    if clear_below and (index == weights.size - 1 or inner[inside] - target > doubt):
        return int(index)
    return _choose_exactly(gaps, multiplicities, factor, prefix, bits, index)


def _rate(factor: Fraction) -> float:
    return float(min(factor, _STEEPEST))


def _relative_error(count: int) -> float:
    """Bound the error of a cumulated weight relative to the total.

    A weight is off by its exponent (below 700) times 3 units in the last place and a few more; a sum of blocks
    adds one unit for each block, a sum within a block one for each term; what was cut at the low end is below
    count * 2^53 * 1e-304.
    """
    units = 3 * -_LOWEST + 16 + 2 * _BLOCK + count / _BLOCK
    return 4 * units * 2.0**-53


def _choose_exactly(
    gaps: NDArray[np.uint64], multiplicities: NDArray[np.float64], factor: Fraction, prefix: int, bits: int, guess: int
) -> int:
    """Find the candidate that the draw lands on, from the guess outward by doubled steps, with weights in balls."""
    draw = _UniformDraw(gaps, multiplicities, factor, prefix, bits)
    low, high, step = guess - 1, guess, 1
    while not draw.below(high):
        low, high, step = high, min(high + step, gaps.size - 1), 2 * step
    while low >= 0 and draw.below(low):
        low, high, step = max(low - step, -1), low, 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if draw.below(middle) else (middle, high)
    return high


class _UniformDraw:
    """A uniform number, as many of its bits as were needed so far, and the cumulated weights to compare it with.

    A weight is a short sum over the distinct gaps that matter at the precision of the bits.
    """

    def __init__(
        self, gaps: NDArray[np.uint64], multiplicities: NDArray[np.float64], factor: Fraction, prefix: int, bits: int
    ) -> None:
        self._levels, self._which = np.unique(gaps, return_inverse=True)
        self._counts = multiplicities.astype(np.int64)
        self._factor = factor
        self._reveal(prefix, bits)

    def below(self, index: int) -> bool:
        """Decide whether the draw lands on this candidate or one before it."""
        if index == self._which.size - 1:
            return True
        while True:
            with precision(self._bits + 128):
                share = (self._weight(index + 1) + self._rest) / self._total
                answer = compare(share, self._prefix, self._bits)
            if answer is not None:
                return answer
            self._reveal(*extend(self._prefix, self._bits))

    def _reveal(self, prefix: int, bits: int) -> None:
        self._prefix, self._bits = prefix, bits
        with precision(bits + 128):
            self._terms, self._rest = self._enclose(bits)
            self._total = self._weight(self._which.size) + self._rest

    def _enclose(self, bits: int) -> tuple[list[Any], Any]:
        """Enclose exp(-factor * gap) of the gaps that matter, and the weight of all the others together."""
        # There are fewer than 2^40 candidates of multiplicity below 2^53: what is cut is below 2^-(bits + 64).
        cut = (bits + 64 + 53 + 40) * 0.6932 / max(_rate(self._factor), 1e-300)
        kept = self._levels[: int(np.searchsorted(self._levels, cut, "right"))]
        rest = ball(Fraction(1, 1 << (bits + 64))) if kept.size < self._levels.size else ball(0)
        return [ball(-self._factor * int(level)).exp() for level in kept], ball(0).union(rest)

    def _weight(self, end: int) -> Any:
        # Halves of 26 bits keep the sums exact in floats for up to 2^26 candidates.
        which, counts = self._which[:end], self._counts[:end]
        low = np.bincount(which, counts & 0x3FFFFFF, len(self._levels))
        high = np.bincount(which, counts >> 26, len(self._levels))
        total = ball(0)
        for few, many, term in zip(low, high, self._terms, strict=False):
            total += (int(few) + (int(many) << 26)) * term
        return total


def choose_listed(gaps: Sequence[Fraction], multiplicities: Sequence[int], factor: Fraction) -> int:
    """The same for any exact gaps, all in balls; for short lists."""
    prefix, bits = revealed()
    while True:
        with precision(bits + 128):
            index = _landing(gaps, multiplicities, factor, prefix, bits)
        if index is not None:
            return index
        prefix, bits = extend(prefix, bits)


def _landing(
    gaps: Sequence[Fraction], multiplicities: Sequence[int], factor: Fraction, prefix: int, bits: int
) -> int | None:
    weights = [many * ball(-factor * gap).exp() for gap, many in zip(gaps, multiplicities, strict=True)]
    total, top = sum(weights, ball(0)), ball(0)
    for index, weight in enumerate(weights[:-1]):
        top += weight
        answer = compare(top / total, prefix, bits)
        if answer is not False:
            return index if answer else None
    return len(weights) - 1


def permute_and_flip(gaps: NDArray[np.uint64], factor: Fraction) -> int:
    """Visit candidates in random order; take the first whose coin of probability exp(-factor * gap) is heads."""
    order = permutation_of(gaps.size)
    for start in range(0, order.size, _FLIPS):
        some = order[start : start + _FLIPS]
        heads = _first_heads(gaps[some], factor)
        if heads is not None:
            return int(some[heads])
    raise AssertionError("the best candidate has gap zero and a coin that always shows heads")


def _first_heads(gaps: NDArray[np.uint64], factor: Fraction) -> int | None:
    uniform = np.frombuffer(read(8 * gaps.size), "<u8")
    exponents = gaps * _rate(factor)
    ahead = np.exp(-exponents) * 2.0**64 - uniform
    # The exponent is right to three units in the last place, the rest to a few more.
    doubt = (exponents * np.exp(-exponents) + 8) * 2.0**14
    for index in np.flatnonzero(ahead > -doubt):
        if ahead[index] > doubt[index] or _flip(Fraction(int(gaps[index])) * factor, int(uniform[index])):
            return int(index)
    return None


def _flip(exponent: Fraction, prefix: int) -> bool:
    return below(lambda: ball(-exponent).exp(), prefix, 64)


def permute_and_flip_listed(gaps: Sequence[Fraction], factor: Fraction) -> int:
    """The same for any exact gaps; for short lists."""
    order = permutation_of(len(gaps))
    return next(int(index) for index in order if _flip(gaps[index] * factor, revealed()[0]))


# --- permuted: Permute-and-flip among more candidates than can be put in order, many of them with one score. ---
#
# Let p_j be the coin of candidate j. Permute-and-flip takes i with the chance p_i * integral over s in [0, 1] of the
# product of 1 - s p_j over all others [MS20], exponential weights with the chance p_i / sum p_j. So what these draw is
# kept in proportion to that integral, which depends on p_i alone and is largest for p_i = 1. The part is the mean of
# (1 - s) / (1 - s p_i) under the density h(s) ~ product of 1 - s p_j over all but one best. By Chebyshev's inequality
# it is at least 1/2; and h falls faster than exp(-s S), S being the sum of the coins in h, so it is at least 1 - 1 / S.


Levels: TypeAlias = tuple[NDArray[Any], NDArray[np.int64]]  # different gaps, and how many candidates have each

_TAIL = 1e-20  # Candidates of one score whose coins sum up to less are left out of a first look.
_ROUNDED = 1e-9  # More than the floats of a sum of coins and of its inverse are off, relative to it.


def stays_when_permuted(
    near: Levels, own: int, factor: Fraction, *, unsure: float, everything: Callable[[], Levels]
) -> bool:
    """Decide whether a candidate of gap `own` that exponential weights drew is kept, so that it is permute-and-flip's.

    `near` may overrate coins that sum up to at most `unsure`; `everything` has all coins and is asked when in doubt.
    """
    if own == 0:
        return True
    prefix, bits = revealed()
    gaps, times = near
    coins = np.exp(np.maximum(gaps.astype(np.float64) * -_rate(factor), _LOWEST))
    total = float(coins @ times) * (1 - _ROUNDED) - 1 - unsure
    if total > 2 and prefix * 2.0**-64 < 1 - 1 / total - _ROUNDED:
        return True
    first, rest = _without_tail(near, coins)
    with precision(bits + 64):
        slack = ball(Fraction(2 * (unsure + rest)))
        answer = compare(_kept_part(first, own, factor) * (1 + (-slack).union(slack)), prefix, bits)
    if answer is not None:
        return answer
    levels = everything()
    return below(lambda: _kept_part(levels, own, factor), prefix, bits)


def _without_tail(levels: Levels, coins: NDArray[np.float64]) -> tuple[Levels, float]:
    """Leave out coins that sum up to next to nothing, and return that sum.

    Without coins of sum r, both integrals grow by at most 1 / (1 - r), and their ratio is off by less than 2 r.
    """
    gaps, times = levels
    kept = coins * times > _TAIL
    return (gaps[kept], times[kept]), float(coins[~kept] @ times[~kept])


def _kept_part(levels: Levels, own: int, factor: Fraction) -> Any:
    """Enclose the integral for a candidate of gap `own`, divided by that for the best."""
    from flint import acb

    listed = [(int(gap), ball(-factor * int(gap)).exp(), int(many)) for gap, many in zip(*levels, strict=True)]
    coin_of_own = ball(-factor * own).exp()

    def product(place: Any, _: bool) -> Any:
        found = acb(1)
        for gap, coin, many in listed:
            found *= (1 - place * coin) ** (many - (gap == 0))
        return found

    # Of the integrand for `own`, only 1 - s p of it and 1 - s of one best change places.
    best = acb.integral(product, 0, 1).real
    mine = acb.integral(lambda place, _: product(place, _) * (1 - place) / (1 - place * coin_of_own), 0, 1).real
    return mine / best


# --- uniform: Uniform whole numbers and permutations. ---


def integer_below(limit: int) -> int:
    """Draw one of 0, …, limit - 1: enough bits, again if they exceed the limit."""
    bits = (limit - 1).bit_length()
    size = (bits + 7) // 8
    while True:
        drawn = int.from_bytes(read(size), "little") & ((1 << bits) - 1)
        if drawn < limit:
            return drawn


def integers_below(limit: int, count: int) -> NDArray[np.int64]:
    """Draw `count` of them, for a limit of at most 2^63."""
    mask = np.uint64((1 << (limit - 1).bit_length()) - 1)
    drawn = np.frombuffer(read(8 * count), "<u8") & mask
    again = np.flatnonzero(drawn >= limit)
    while again.size:
        drawn[again] = np.frombuffer(read(8 * again.size), "<u8") & mask
        again = again[drawn[again] >= limit]
    return drawn.astype(np.int64)


def permutation_of(count: int) -> NDArray[np.int64]:
    """Draw an order of 0, …, count - 1: sort random keys, all of them again if two are equal."""
    while True:
        keys = np.frombuffer(read(8 * count), "<u8")
        order = np.argsort(keys, kind="stable")
        ranked = keys[order]
        if not (ranked[1:] == ranked[:-1]).any():
            return order.astype(np.int64)
