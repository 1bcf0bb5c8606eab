"""Exact sampling of several ordered points at once, by how many rows lie in the gaps between them.

Points y_1 <= ... <= y_m of a range of whole numbers cut n rows into m + 1 gaps: n_1 rows below y_1, n_2 from there to
below y_2, and so on. Gap i is wanted to have a public share d_i of N rows, where N is the number of rows, or is drawn
with the points, from the multiples of a step. All of [low, high]^m, put in order, is drawn from with

    P[y, N] ~ exp(-rate * S),    S = |n_1 - d_1 N| + ... + |n_(m+1) - d_(m+1) N|.

It is rejection sampling. Points are first drawn by blocks of ranks near the wanted ones, from left to right, with
weights that floats have summed from right to left: a chain. Its weights are turned into whole numbers, so that the
chance of each draw is an exact ratio. A draw is kept with its own exact weight over that chance, over a constant that
this does not exceed: the sum in floats, with a bound on its errors. Points far from the wanted ranks, which no block
covers, have weights below exp(-rate * reach): with a chance of at most e^-28, in which they all have room, any points
are drawn instead, and kept if they are some of those, by their weight over that bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.balls import ball, precision
from discreet.noise.lazy_bits import below, revealed
from discreet.noise.selection import integer_below

if TYPE_CHECKING:
    from flint import arb

__all__ = ["PointChain", "chain_weight"]

Floats: TypeAlias = "NDArray[np.float64]"

_UNITS = 1 << 40  # Whole weights of a step: at least one each, and this for the largest.
_BLOCK = 0.1  # Ranks of a block times the rate: what a block may be off, as a logarithm of a weight.
_NEAR = 16.0  # Totals nearer than this, times the rate, are blocks of their own.
_LIGHT = 4.0  # Blocks of several of them have together less than e^-4 of the weight, or are halved.
_FIRST = 40  # The first reach to be tried, times the rate.
_RARE = 28.0  # Points beyond the reach have together at most e^-28 of the weight.
_SLACK = 2.0**-9  # Logarithm of what the constant is above the sum of floats, beside the bound on their errors.


def chain_weight(ranks: Sequence[int], shares: Sequence[Fraction], size: int, total: int) -> Fraction:
    """Return S of points that so many rows lie below, and of one N."""
    gaps = [b - a for a, b in pairwise([0, *ranks, size])]
    return sum((abs(rows - share * total) for rows, share in zip(gaps, shares, strict=True)), Fraction(0))


@final
@dataclass(frozen=True, slots=True)
class _TotalsBlock:
    """Neighbouring multiples of the step, drawn together as if they were the middle one."""

    first: int
    last: int

    @property
    def count(self) -> int:
        return self.last - self.first + 1

    def halves(self) -> tuple[_TotalsBlock, _TotalsBlock]:
        middle = (self.first + self.last) // 2
        return _TotalsBlock(self.first, middle), _TotalsBlock(middle + 1, self.last)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _RankBlocks:
    """Blocks of neighbouring ranks that have points, in order; `windows` are those near to each wanted rank."""

    middle: Floats  # of the ranks
    begin: NDArray[np.int64]  # the point before the first one of each
    points: NDArray[np.int64]
    logs: Floats  # of the number of points, and of how far a block is off
    windows: tuple[slice, ...]
    ranges: tuple[tuple[int, int], ...]  # The first and last block of each window, blocks without points counted too.


@final
@dataclass(frozen=True, slots=True, eq=False)
class _ChainSums:
    """Logarithms of summed weights for one N: `after[j]` of all that follows j points, `from_[j]` of point j + 1 on."""

    after: list[Floats]
    from_: list[Floats]
    runs: list[list[Floats]]  # The parts of `from_`, by how many points are in one block.
    whole: float


@final
@dataclass(frozen=True, eq=False)
class PointChain:
    """What is drawn from: rows in order, the range of points, shares of all gaps, the rate, and how N is found."""

    ordered: NDArray[np.int64] = field(repr=False)
    low: int
    high: int
    shares: tuple[Fraction, ...]
    rate: Fraction
    step: int | None  # N is one of its multiples; without it N is the number of rows

    def draw(self) -> tuple[int, ...]:
        """Draw points, in order."""
        covered = self.covered
        while True:
            far = covered.far_part
            found = covered.draw_far() if far is not None and below(far, *revealed()) else covered.draw_near()
            if found is not None:
                return found

    @property
    def size(self) -> int:
        return self.ordered.size

    @property
    def count(self) -> int:
        """How many points are drawn."""
        return len(self.shares) - 1

    @cached_property
    def covered(self) -> _CoveredPart:
        """What blocks cover, as far from the wanted ranks as it takes for the rest to be rare."""
        reach = math.ceil(_FIRST / self.rate)
        while True:
            found = _CoveredPart(self, reach)
            missing = found.far_log - found.bound + _RARE
            if missing <= 0:
                return found
            # Where no block has a point there is nothing to compare with yet.
            reach += math.ceil((missing + 4) / float(self.rate)) if math.isfinite(missing) else 3 * reach


@final
class _CoveredPart:
    """Points whose ranks, and N, are within a reach of those that are wanted."""

    def __init__(self, chain: PointChain, reach: int) -> None:
        self.chain, self.reach, self.rate = chain, reach, float(chain.rate)
        self.blocks = self._blocks()
        # Each of so many terms of a sum in floats is off by two units in the last place of the largest logarithm, and
        # by the rate times those of a rank.
        largest = (chain.count + 1) * (64 + 8 * self.rate * (reach + self._ranks_of_a_block))
        ranks = self.rate * (chain.size + 4.0 * reach)
        self.doubt = 8 * ((self.blocks.middle.size + 64) * largest + ranks) * 2.0**-52
        self._sums: dict[float, _ChainSums] = {}
        holds = all(window.start < window.stop for window in self.blocks.windows)
        self.totals = self._totals()
        self.logs = np.array([self._log_of(one) for one in self.totals if holds])
        while heavy := self._heavy():
            self.totals = [part for one in self.totals for part in (one.halves() if one in heavy else (one,))]
            self.logs = np.array([self._log_of(one) for one in self.totals])
        self.bound = float(np.logaddexp.reduce(self.logs)) + 8 * (chain.count + 1) * self.doubt + _SLACK

    # --- what is covered ---

    @property
    def _ranks_of_a_block(self) -> int:
        return max(1, int(min(_BLOCK / self.rate, self.chain.size + 1)))

    def _blocks(self) -> _RankBlocks:
        chain, many, size = self.chain, self._ranks_of_a_block, self.chain.size
        # Whatever N is, S is at least the rank error of each point, and twice that if N is the number of rows.
        off = self.reach if chain.step else -(-self.reach // 2)
        wanted = np.cumsum(np.array(chain.shares[:-1], object)) * size
        firsts = [max(0, math.ceil(rank) - off) // many for rank in wanted]
        lasts = [min(size, math.floor(rank) + off) // many for rank in wanted]
        which = np.unique(np.concatenate([np.arange(a, b + 1) for a, b in zip(firsts, lasts, strict=True)]))
        first, last = which * many, np.minimum(which * many + many - 1, size)
        edges = np.concatenate([[chain.low - 1], chain.ordered, [chain.high]])
        points = edges[last + 1] - edges[first]
        kept = points > 0
        which, first, last, points = which[kept], first[kept], last[kept], points[kept]
        logs = np.log(points.astype(np.float64)) + self.rate * (last - first)
        windows = [
            slice(int(np.searchsorted(which, a)), int(np.searchsorted(which, b, "right")))
            for a, b in zip(firsts, lasts, strict=True)
        ]
        return _RankBlocks(
            (first + last) / 2, edges[first], points, logs, tuple(windows), tuple(zip(firsts, lasts, strict=True))
        )

    @property
    def _width(self) -> int:
        return self.chain.high - self.chain.low + 1

    def _totals(self) -> list[_TotalsBlock]:
        """List the blocks of N, in multiples of the step, so that those outside are off by at least the reach."""
        if self.chain.step is None:
            return [_TotalsBlock(self.chain.size, self.chain.size)]
        step, size = self.chain.step, self.chain.size
        near = math.ceil(_NEAR / self.rate / step)
        first, last = size // step - near, -(-size // step) + near
        found = [_TotalsBlock(one, one) for one in range(first, last + 1)]
        wide = 1
        while step * (last + 1) - size < self.reach or size - step * (first - 1) < self.reach:
            found = [_TotalsBlock(first - wide, first - 1), *found, _TotalsBlock(last + 1, last + wide)]
            first, last, wide = first - wide, last + wide, 2 * wide
        return found

    # --- weights of what is covered ---

    def _middle(self, totals: _TotalsBlock) -> float:
        return (totals.first + totals.last) / 2 * (self.chain.step or 1)

    def _log_of(self, totals: _TotalsBlock) -> float:
        # S at one N is at most the distance of two of them below S at the other: shares add up to one.
        off = (totals.last - totals.first) / 2 * (self.chain.step or 1)
        return self._sums_at(totals).whole + math.log(totals.count) + self.rate * off

    def _heavy(self) -> set[_TotalsBlock]:
        """Find blocks of several N that would be drawn often, though not for the weight of each: they are halved."""
        if not self.logs.size:
            return set()
        # Where many N weigh the same, none of their blocks has much by itself, and each counts for more than it has.
        least = float(np.logaddexp.reduce(self.logs)) - _LIGHT - math.log(self.logs.size)
        listed = zip(self.totals, self.logs.tolist(), strict=True)
        return {one for one, log in listed if one.count > 1 and log > least}

    def _sums_at(self, totals: _TotalsBlock) -> _ChainSums:
        middle = self._middle(totals)
        if middle not in self._sums:
            self._sums[middle] = self._summed(middle)
        return self._sums[middle]

    def _summed(self, total: float) -> _ChainSums:
        """Sum up weights from the last point to the first."""
        chain, blocks, count = self.chain, self.blocks, self.chain.count
        wanted = [float(share) * total for share in chain.shares]
        stay = -self.rate * np.abs(np.array(wanted))  # of two neighbouring points in one block
        middles = [blocks.middle[window] for window in blocks.windows]
        after: list[Floats] = [np.empty(0)] * (count + 1)
        from_: list[Floats] = [np.empty(0)] * count
        runs: list[list[Floats]] = [[]] * count
        after[count] = -self.rate * np.abs(chain.size - middles[-1] - wanted[-1])
        for j in range(count - 1, -1, -1):
            runs[j] = [self._run(j, many, after[j + many], stay) for many in range(1, count - j + 1)]
            from_[j] = np.logaddexp.reduce(np.array(runs[j]), axis=0)
            if j:
                after[j] = self._after(middles[j - 1], middles[j], from_[j], wanted[j])
        whole = float(np.logaddexp.reduce(from_[0] - self.rate * np.abs(middles[0] - wanted[0])))
        return _ChainSums(after, from_, runs, whole)

    def _run(self, j: int, many: int, after: Floats, stay: Floats) -> Floats:
        """Return the weights of points j + 1 to j + many in each block of the window of the first of them."""
        first, last = self.blocks.windows[j], self.blocks.windows[j + many - 1]
        found = np.full(first.stop - first.start, -np.inf)
        if last.start < first.stop:
            both = slice(last.start, first.stop)
            logs = many * self.blocks.logs[both] - math.lgamma(many + 1) + float(stay[j + 1 : j + many].sum())
            found[last.start - first.start :] = logs + after[: first.stop - last.start]
        return found

    def _after(self, here: Floats, there: Floats, weights: Floats, wanted: float) -> Floats:
        """Sum e^(-rate |rank there - rank here - wanted|) times the weights of all blocks there that come later."""
        base = there[there.size // 2]
        rising = np.logaddexp.accumulate(weights + self.rate * (there - base))
        falling = np.logaddexp.accumulate((weights - self.rate * (there - base))[::-1])[::-1]
        rising, falling = np.concatenate([[-np.inf], rising]), np.concatenate([falling, [-np.inf]])
        goal = here + wanted
        later = np.searchsorted(there, here, "right")
        beyond = np.maximum(np.searchsorted(there, goal, "right"), later)
        with np.errstate(invalid="ignore"):
            # What does not come later is taken off again; what this loses in digits is added, on the safe side.
            taken = np.where(np.isneginf(rising[beyond]), 0.0, rising[later] - rising[beyond])
        share = np.where(beyond > later, np.log(-np.expm1(np.minimum(taken, 0.0)) + 4 * self.doubt), -np.inf)
        before = rising[beyond] + share - self.rate * (goal - base)
        found: Floats = np.logaddexp(before, falling[beyond] + self.rate * (goal - base))
        return found

    # --- draws ---

    def draw_near(self) -> tuple[int, ...] | None:
        """Draw points that blocks cover; None if they are not kept."""
        place, chance = _draw_by(self.logs)
        totals = self.totals[place]
        found, weight, many = self._walk(totals)
        chance *= many
        total = totals.first + integer_below(totals.count)
        weight *= totals.count
        points = sorted(
            int(self.blocks.begin[block]) + 1 + integer_below(int(self.blocks.points[block])) for block in found
        )
        exponent = -self.chain.rate * self._score(points, total) - Fraction(self.bound)
        ratio = weight / chance

        def kept() -> arb:
            return ball(exponent).exp() * ball(ratio)

        self._check(kept)
        return tuple(points) if below(kept, *revealed()) else None

    def _check(self, kept: Any) -> None:
        with precision(64):
            if kept() > 1:
                raise AssertionError("the bound on the errors of floats does not hold")

    def _walk(self, totals: _TotalsBlock) -> tuple[list[int], Fraction, Fraction]:
        """Draw the block of every point; return the number of points they have, over orders, and their chance."""
        sums, blocks = self._sums_at(totals), self.blocks
        total, found = self._middle(totals), list[int]()
        weight, chance, rank = Fraction(1), Fraction(1), 0.0
        while (j := len(found)) < self.chain.count:
            window = blocks.windows[j]
            start = int(np.searchsorted(blocks.middle[window], rank, "right")) if found else 0
            middles = blocks.middle[window][start:]
            steps = sums.from_[j][start:] - self.rate * np.abs(middles - rank - float(self.chain.shares[j]) * total)
            there, part = _draw_by(steps)
            more, of_run = _draw_by(np.array([run[start + there] for run in sums.runs[j]]))
            block = window.start + start + there
            rank, chance = float(blocks.middle[block]), chance * part * of_run
            weight *= Fraction(int(blocks.points[block]) ** (more + 1), math.factorial(more + 1))
            found += [block] * (more + 1)
        return found, weight, chance

    def _score(self, points: Sequence[int], total: int) -> Fraction:
        ranks = np.searchsorted(self.chain.ordered, np.array(points), "left").tolist()
        return chain_weight(ranks, self.chain.shares, self.chain.size, total * (self.chain.step or 1))

    # --- what is not covered ---

    @cached_property
    def far_log(self) -> float:
        """The logarithm of a bound on the weight of all that is not covered, about."""
        if not self._has_far:
            return -math.inf
        count = self.chain.count
        tuples = count * math.log(self._width) - math.lgamma(count + 1)
        return tuples - self.rate * self.reach + math.log(self._totals_count + 4)

    @property
    def _has_far(self) -> bool:
        return self.chain.step is not None or not self._covers_all_ranks

    @property
    def _covers_all_ranks(self) -> bool:
        every = slice(0, self.blocks.middle.size)
        return all(window == every for window in self.blocks.windows) and int(self.blocks.points.sum()) == self._width

    @property
    def _totals_count(self) -> int:
        return self.totals[-1].last - self.totals[0].first + 1

    @property
    def far_part(self) -> Callable[[], arb] | None:
        """The chance to draw what is not covered, if anything is not: by its bound, next to that of what is."""
        if not self._has_far:
            return None
        tuples = Fraction(self._width**self.chain.count, math.factorial(self.chain.count))

        def part() -> arb:
            far = ball(tuples) * ball(-self.chain.rate * self.reach).exp() * (self._totals_count + self._tails())
            return far / (far + ball(Fraction(self.bound)).exp())

        return part

    def _tails(self) -> arb:
        """Enclose the weights of all N outside, on both sides, next to one inside: the nearest weigh as much."""
        return 2 / (1 - self._tail_coin()) if self.chain.step else ball(0)

    def _tail_coin(self) -> arb:
        return ball(-self.chain.rate * (self.chain.step or 1)).exp()

    def draw_far(self) -> tuple[int, ...] | None:
        """Draw any points; None if they are covered, or not kept."""
        total, beyond = self._any_total()
        points = sorted(self.chain.low + integer_below(self._width) for _ in range(self.chain.count))
        if beyond is None and self._are_covered(points):
            return None
        least = self.reach + (beyond or 0) * (self.chain.step or 1)
        exponent = -self.chain.rate * (self._score(points, total) - least)
        return tuple(points) if below(lambda: ball(exponent).exp(), *revealed()) else None

    def _any_total(self) -> tuple[int, int | None]:
        """Draw N as if all inside weighed the same, and how many steps it is beyond the first one outside."""
        first, last = self.totals[0].first, self.totals[-1].last
        inside = first + integer_below(self._totals_count)
        if self.chain.step is None or below(
            lambda: self._totals_count / (self._totals_count + self._tails()), *revealed()
        ):
            return inside, None
        beyond = 0
        while below(self._tail_coin, *revealed()):
            beyond += 1
        return (last + 1 + beyond if integer_below(2) else first - 1 - beyond), beyond

    def _are_covered(self, points: Sequence[int]) -> bool:
        ranks = np.searchsorted(self.chain.ordered, np.array(points), "left") // self._ranks_of_a_block
        return all(a <= rank <= b for rank, (a, b) in zip(ranks.tolist(), self.blocks.ranges, strict=True))


def _draw_by(logs: Floats) -> tuple[int, Fraction]:
    """Draw a place by weights whose logarithms are given, rounded up to whole ones; return its exact chance too."""
    with np.errstate(under="ignore"):
        whole = np.floor(np.exp(logs - logs.max()) * _UNITS).astype(np.int64) + 1
    whole[np.isneginf(logs)] = 0
    tops = np.cumsum(whole)
    place = int(np.searchsorted(tops, integer_below(int(tops[-1])), "right"))
    return place, Fraction(int(whole[place]), int(tops[-1]))
