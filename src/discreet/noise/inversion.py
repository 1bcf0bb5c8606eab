"""Exact inversion of a listed distribution, one sample at a time or a million, and the listings of all laws."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import TYPE_CHECKING, Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.balls import ball, normal_cdf, precision
from discreet.noise.lazy_bits import DOUBT, compare, extend, revealed, thresholds
from discreet.noise.source import read

if TYPE_CHECKING:
    from flint import arb

__all__ = [
    "CHUNK",
    "FEW",
    "FLAG",
    "Inversion",
    "Ladder",
    "Rungs",
    "discrete_gaussian",
    "geometric",
    "laplace",
    "rounded_gaussian",
    "rounded_gaussian_blocks",
]

# --- ladder: Exact inversion over a listed distribution, one sample at a time or a million. ---
#
# A `Ladder` lists outcomes with their masses, likeliest first, as deep as it is asked. A uniform number falls on the
# first rung whose cumulated mass exceeds it. Rungs are known as 64-bit thresholds; a draw that hits a threshold to
# the last bit is decided by revealing more bits (see `lazy_bits`), so the result is exact for every real parameter.
#
# For arrays, 16 bits index a table of 65,536 buckets. A bucket that lies within one rung is the answer; the few
# that do not draw 48 more bits and search the thresholds. [method: inversion with lazily revealed bits, Dev86]


FLAG = np.iinfo(np.int16).min  # Stands in a table where 16 bits do not decide.
_DEPTH = 64  # Bits of the thresholds.
_WORK = 192  # Bits of precision beyond those revealed with which a draw on a threshold is decided.
FEW = 2048  # Below this many samples a search beats the gather, whose table must first be made.
CHUNK = 1 << 16  # Samples drawn at a time, so that what is at hand stays in the cache.


@dataclass(frozen=True, slots=True)
class Rungs:
    """Outcomes in a fixed order, their masses up to a common factor, and a ball around what is not listed."""

    outcomes: Sequence[int]
    masses: Sequence[arb]
    rest: arb


Ladder: TypeAlias = Callable[[int], Rungs]  # From a depth in bits: the rest is below 2^-depth of the whole.


@final
class Inversion:
    """Samples from a ladder whose outcomes fit 16 bits. Those that are `unsure` are flagged in the table."""

    def __init__(self, ladder: Ladder, *, unsure: Callable[[int], bool] = lambda outcome: False) -> None:
        self._ladder = ladder
        self.unsure = unsure
        self._outcomes: list[int] = []
        self._thresholds = thresholds(self._listed)
        self._array = np.array(self._thresholds, np.uint64)
        self._values = np.array(self._outcomes, np.int64)
        self.largest = max((abs(outcome) for outcome in self._outcomes if not unsure(outcome)), default=0)  # of a table
        self._kept: _Buckets | None = None

    def _listed(self) -> list[arb]:
        rungs = self._ladder(_DEPTH)
        self._outcomes = list(rungs.outcomes)
        return _tops(rungs)

    def one(self) -> int:
        """Draw one outcome."""
        prefix, bits = revealed()
        return self._climb(prefix, bits)

    def many(self, count: int) -> NDArray[np.int64]:
        """Draw `count` outcomes by searching 64-bit thresholds; for small counts."""
        return self._search(np.frombuffer(read(8 * count), "<u8"))

    def flagged(self, count: int) -> tuple[NDArray[np.int16], NDArray[np.uint16]]:
        """Draw `count` outcomes by table, FLAG where 16 bits do not decide, and the bits themselves."""
        words = np.frombuffer(read(2 * count), "<u2")
        return self._buckets.table.take(words), words

    def settle(self, words: NDArray[np.uint16]) -> NDArray[np.int64]:
        """Decide the flagged draws that began with these 16 bits."""
        more = np.frombuffer(read(8 * words.size), "<u8")
        # The draw goes on with the 16 bits that it began with. Drawing anew would make flagged outcomes too rare.
        full = (words.astype(np.uint64) << np.uint64(48)) | (more >> np.uint64(16))
        # Most open buckets hold one threshold: look at it, and search only where that was not the end.
        rungs, padded = self._buckets.first[words].astype(np.int64), self._buckets.padded
        rungs += padded[rungs] <= full
        wrong = np.flatnonzero(padded[rungs] <= full)
        rungs[wrong] = np.searchsorted(self._array, full[wrong], "right")
        return self._landed(rungs, full)

    def array(self, count: int) -> NDArray[np.int64]:
        """Draw `count` outcomes, by table when there are many."""
        if count < FEW:
            return self.many(count)
        drawn = np.empty(count, np.int64)
        open_ = [self._fill(drawn[start : start + CHUNK], start) for start in range(0, count, CHUNK)]
        where, words = (np.concatenate(parts) for parts in zip(*open_, strict=True))
        drawn[where] = self.settle(words)
        return drawn

    def _fill(self, drawn: NDArray[np.int64], start: int) -> tuple[NDArray[np.int64], NDArray[np.uint16]]:
        """Draw into `drawn` what 16 bits decide; return where they do not, counted from `start`, and the bits."""
        drawn[:], words = self.flagged(drawn.size)
        open_ = np.flatnonzero(drawn == FLAG)
        return open_ + start, words[open_]

    def _climb(self, prefix: int, bits: int) -> int:
        rung = bisect_right(self._thresholds, prefix)
        # A threshold T is only known to have T <= 2^64 top <= T + 2: at T or one above, 64 bits do not decide.
        if rung == len(self._thresholds) or (rung and prefix - self._thresholds[rung - 1] <= DOUBT):
            return self._resolve(prefix, bits)
        return self._outcomes[rung]

    def _search(self, words: NDArray[np.uint64]) -> NDArray[np.int64]:
        return self._landed(np.searchsorted(self._array, words, "right"), words)

    def _landed(self, rungs: NDArray[np.int64], words: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return the outcomes on these rungs, having resolved the draws that hit a threshold."""
        # On rung 0 the unsigned difference wraps around and means nothing: it is masked out in the next line.
        near = words - self._array[np.maximum(rungs, 1) - 1] <= DOUBT
        ties = np.flatnonzero((near & (rungs > 0)) | (rungs == self._array.size))
        drawn = self._values[np.minimum(rungs, self._array.size - 1)]
        for index in ties:  # About one in 2^50 draws.
            drawn[index] = self._resolve(int(words[index]), 64)
        return drawn

    def _resolve(self, prefix: int, bits: int) -> int:
        """Decide a draw that 64 bits do not, by revealing more."""
        while True:
            with precision(bits + _WORK):
                rungs = self._ladder(bits + _DEPTH)
                rung = _first_above(_tops(rungs), prefix, bits)
            if rung is not None and rung < len(rungs.outcomes):
                return rungs.outcomes[rung]
            prefix, bits = extend(prefix, bits)

    @property
    def _buckets(self) -> _Buckets:
        # Not a cached_property: on Python 3.11 that has a lock, which a forked child may inherit locked for good.
        if self._kept is None:
            unsure = np.array([self.unsure(outcome) for outcome in self._outcomes])
            self._kept = _Buckets.of(self._array, np.where(unsure, FLAG, self._values))
        return self._kept


@dataclass(frozen=True, slots=True)
class _Buckets:
    """What the first 16 bits of a draw say."""

    table: NDArray[np.int16]  # The outcome, or FLAG.
    first: NDArray[np.uint16]  # The first rung that the draw can land on.
    padded: NDArray[np.uint64]  # The thresholds, and two that are never reached.

    @classmethod
    def of(cls, thresholds: NDArray[np.uint64], values: NDArray[np.int64]) -> _Buckets:
        low = np.arange(1 << 16, dtype=np.uint64) << np.uint64(48)
        # A draw one above its threshold is in doubt, so a threshold just below a bucket leaves that open too.
        first = np.searchsorted(thresholds, low - (low > 0).astype(np.uint64) * np.uint64(DOUBT), "left")
        last = np.searchsorted(thresholds, low + np.uint64((1 << 48) - 1), "right")
        decided = (first == last) & (last < thresholds.size)
        table = np.where(decided, values[np.minimum(first, values.size - 1)], FLAG).astype(np.int16)
        return cls(
            table, first.astype(np.uint16), np.append(thresholds, np.full(2, np.iinfo(np.uint64).max, np.uint64))
        )


def _tops(rungs: Rungs) -> list[Any]:
    """Enclose the cumulated probabilities."""
    sums = list(accumulate(rungs.masses))
    factor = 1 / (sums[-1] + rungs.rest)
    return [top * factor for top in sums]


def _first_above(tops: Sequence[arb], prefix: int, bits: int) -> int | None:
    """Return the number of rungs that are surely not above the draw, or None if one of them is in doubt."""
    low, high = 0, len(tops)
    while low < high:
        middle = (low + high) // 2
        answer = compare(tops[middle], prefix, bits)
        if answer is None:
            return None
        low, high = (low, middle) if answer else (middle + 1, high)
    return low


# --- ladders: The ladders of the laws: what can come out, likeliest first, with its mass. ---
#
# A scale that is too large for one table is split: a *block* of 2^m neighbouring values is drawn from a ladder, the
# place within it uniformly, and the pair is accepted with the ratio of the weight to the largest one in its block
# (`block_sampling`). Block j >= 0 holds j 2^m, …, (j + 1) 2^m - 1; block ~j = -1 - j holds their mirror images -1 - k.
# Either way the values of block b are b 2^m, …, b 2^m + 2^m - 1.


def _bits_to_nats(depth: int) -> float:
    return (depth + 8) * math.log(2)


def geometric(scale: Fraction, shift: int) -> Ladder:
    """Blocks of 2^shift values of P[k] ~ exp(-k / scale), k >= 0; the digits of k are independent."""

    def rungs(depth: int) -> Rungs:
        count = int(_bits_to_nats(depth) * scale / 2**shift) + 2
        step = ball(-Fraction(2**shift) / scale).exp()
        masses = _powers(step, count)
        return Rungs(range(count), masses, masses[-1] * step / (1 - step))

    return rungs


def laplace(scale: Fraction, shift: int) -> Ladder:
    """Blocks of the discrete Laplace law: k >= 0 with weight a^k, and -1 - k with a^(k + 1)."""

    def rungs(depth: int) -> Rungs:
        half = geometric(scale, shift)(depth)
        ratio = ball(-1 / scale).exp()
        outcomes = [block for j in half.outcomes for block in (j, ~j)]
        masses = [mass for base in half.masses for mass in (base, base * ratio)]
        return Rungs(outcomes, masses, half.rest * (1 + ratio))

    return rungs


def _powers(step: Any, count: int) -> list[Any]:
    powers = [ball(1)]
    for _ in range(count - 1):
        powers.append(powers[-1] * step)
    return powers


def discrete_gaussian(variance: Fraction, shift: int) -> Ladder:
    """Blocks of P[k] ~ exp(-k^2 / (2 variance)), each with the weight of its likeliest member."""
    return _gaussian_blocks(variance, shift, lambda start: 2 * start, lambda start: 2 * start + 2)


def rounded_gaussian_blocks(variance: Fraction, shift: int) -> Ladder:
    """Blocks of the rounded Gaussian, each with the largest density of the real numbers that round into it."""
    return _gaussian_blocks(variance, shift, lambda start: max(2 * start - 1, 0), lambda start: 2 * start + 1)


def _gaussian_blocks(
    variance: Fraction, shift: int, nearest: Callable[[int], int], nearest_negative: Callable[[int], int]
) -> Ladder:
    """List blocks; `nearest` gives twice the distance from zero of the likeliest place."""

    def rungs(depth: int) -> Rungs:
        exponent = ball(-1 / (8 * variance))
        count = _reach(depth, variance) // 2**shift + 2
        doubles = [twice(j << shift) for j in range(count) for twice in (nearest, nearest_negative)]
        masses = [(exponent * double**2).exp() for double in doubles]
        outcomes = [block for j in range(count) for block in (j, ~j)]
        # From one block to the next the weight falls at least as much as it does here.
        place = nearest(count << shift)
        ratio = (exponent * 2 * place * 2 ** (shift + 1)).exp()
        return Rungs(outcomes, masses, ball(0).union(2 * (exponent * place**2).exp() / (1 - ratio)))

    return rungs


def _reach(depth: int, variance: Fraction) -> int:
    """Return where the tail of a Gaussian surely weighs less than 2^-depth of the whole."""
    return int(math.sqrt(2 * _bits_to_nats(depth) * variance)) + 1


def rounded_gaussian(variance: Fraction) -> Ladder:
    """Single values of the rounded Gaussian with their own masses."""

    def rungs(depth: int) -> Rungs:
        step = ball(Fraction(-1, 2)) / ball(variance).sqrt()
        count = _reach(depth, variance) + 1
        # P[Z > k + 1/2] as a lower tail, by symmetry: as 1 minus a number close to 1 it would lose its digits.
        above = [normal_cdf(step * (2 * k + 1)) for k in range(count)]
        outer = [above[k - 1] - above[k] for k in range(1, count)]
        outcomes = [0, *(value for k in range(1, count) for value in (-k, k))]
        return Rungs(outcomes, [1 - 2 * above[0], *(m for mass in outer for m in (mass, mass))], 2 * above[-1])

    return rungs
