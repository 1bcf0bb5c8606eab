"""A quantile of a bounded column, chosen by its rank among all points of the grid, or among public candidates."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet import noise
from discreet.errors import InvalidParameter
from discreet.exact import Number, positive, probability
from discreet.formatting import record, significant_up
from discreet.frames.column import Data
from discreet.mechanisms.exponential import exponential_outcomes, worst_case_shortfall
from discreet.mechanisms.grid import Grid
from discreet.mechanisms.noisy_max import PermuteAndFlip
from discreet.mechanisms.order_statistics import Ranked
from discreet.mechanisms.parameters import read_flag, settle
from discreet.mechanisms.release import NoInterval, Release
from discreet.noise.selection import stays_when_permuted
from discreet.privacy import events, outcomes
from discreet.privacy.outcomes import Outcomes
from discreet.privacy.relation import Relation, read_relation

__all__ = ["Quantile", "QuantileAmong"]

Pieces: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[Any]]  # starts, lengths, scores

_UNLIKELY = 30  # e^-30: how rarely a draw may cost a look at all values.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Quantile:
    """Choose a grid point whose rank is near to `quantile` times the number of rows.

    The score of a point is its signed depth: how far quantile * n lies inside [rows below, rows below or at], and
    minus its rank error where it lies outside. A value that many rows share is so much better than its neighbours,
    which a rank error clamped at 0 does not see.

    Guarantee   epsilon, of bounded range; with `flips` pure, and not of bounded range.
    Theorem     The depth is the least of q n - below and at-or-below - q n. A row that comes or goes moves each of the
                two by at most max(q, 1 - q): it moves q n by q and the ranks by 0 or 1. A row that changes leaves n
                and moves the ranks by at most 1. [MT07, Smi11] With `flips` the point is chosen by permute-and-flip,
                which is never worse at the same epsilon, and up to twice as good where few points are. [MS20]
    Utility     with probability 1 - b the rank error is at most (2 D / epsilon) ln(points / b), D as above.

    Args:
        quantile: The share of rows below the wanted point, from 0 to 1.
        epsilon: What a release spends.
        grid: The bounds that values are clamped to, and the step that they are rounded to.
        relation: The neighbouring relation.
        flips: Whether it is chosen by permute-and-flip: better where epsilon alone counts, dearer where it composes.

    Examples:
        >>> mechanism = dp.mechanisms.Quantile(
        ...     quantile=0.5,
        ...     epsilon=1,
        ...     grid=dp.mechanisms.Grid.between(0, 120, step=1),
        ...     relation=dp.Relation.REPLACE_ONE,
        ... )
        >>> mechanism.release([40] * 1000).value
        Fraction(40, 1)
    """

    quantile: Fraction
    epsilon: Fraction
    grid: Grid
    relation: Relation
    flips: bool = False

    __repr__ = record

    def __post_init__(self) -> None:
        settle(
            self,
            quantile=probability(self.quantile, name="quantile"),
            epsilon=positive(self.epsilon, name="epsilon"),
            flips=read_flag(self.flips, name="flips"),
        )
        settle(self, relation=read_relation(self.relation))

    @property
    def sensitivity(self) -> int:
        """How far one unit moves a score, in parts of a rank (the denominator of `quantile` to a rank)."""
        over, under = self.quantile.numerator, self.quantile.denominator
        return max(over, under - over) if self.relation is Relation.ADD_REMOVE else under

    @property
    def event(self) -> events.BoundedRange | events.PureDP:
        return events.PureDP(self.epsilon) if self.flips else events.BoundedRange(self.epsilon)

    def rank_error(self, confidence: Number = Fraction(95, 100)) -> Fraction:
        """Return a rank error that is not exceeded with at least this probability. It is public."""
        parts = worst_case_shortfall(factor=self.factor, candidates=self.grid.width + 1, confidence=confidence)
        return parts / self.quantile.denominator

    def release(self, data: Data) -> Release[Fraction]:
        """Choose a grid point."""
        return Release(
            value=self._choose(Ranked.of(data, self.grid)) * self.grid.step,
            event=self.event,
            relation=self.relation,
            accuracy=NoInterval(reason=self._reason()),
            limits=(self.grid.low, self.grid.high),
        )

    def _choose(self, sample: Ranked) -> int:
        """Draw a grid point exactly, while only values near to the wanted rank are sorted.

        Points outside of the window are drawn as if no value were out there, with a score that is at least their own.
        One of them is kept with the chance that its own score leaves it, or all is drawn anew: rejection sampling.
        """
        first, last = self._window(sample.size)
        low = int(sample.between(first, first)[0]) if first > 1 else self.grid.first
        high = int(sample.between(last, last)[0]) if last < sample.size else self.grid.last
        pieces = starts, lengths, scores = self.pieces_near(sample)
        while True:
            chosen = noise.categorical(scores, factor=self.factor, multiplicities=lengths)
            point = int(starts[chosen]) + noise.uniform(int(lengths[chosen]))
            inside = low <= point <= high
            if inside or self._is_kept(sample, point, drawn_with=int(scores[chosen])):
                own = int(scores[chosen]) if inside else self._score_of(sample, point)
                if not self.flips or self._stays(sample, own, pieces, low, high):
                    return point

    def _window(self, size: int) -> tuple[int, int]:
        """Return the ranks to look at. A point of score 0 or more is always among them.

        Beyond k ranks on each side, all points together are drawn with a chance below points * e^(-factor * k).
        """
        decay = float(self.factor * self.quantile.denominator)
        reach = math.ceil((math.log(self.grid.width + 1) + _UNLIKELY) / decay) + 1
        wanted = math.floor(self.quantile * size)
        return max(1, wanted - reach), min(size, wanted + reach)

    def _is_kept(self, sample: Ranked, point: int, *, drawn_with: int) -> bool:
        return bool(noise.bernoulli_exp(self.factor * (drawn_with - self._score_of(sample, point))))

    def _score_of(self, sample: Ranked, point: int) -> int:
        below, at_most = (np.array([count]) for count in sample.counts_around(point))
        return int(self.scores(below, at_most, sample.size)[0])

    def _stays(self, sample: Ranked, own: int, pieces: Pieces, low: int, high: int) -> bool:
        """Decide whether permute-and-flip takes a point of this score that exponential weights have drawn."""
        starts, lengths, scores = pieces
        outside = (starts < low) | (starts + lengths - 1 > high)
        best = int(scores[~outside].max())
        # Coins outside of the window are overrated, none of them above 1.
        gaps = np.maximum(best - scores, 0)
        coins = np.exp(-np.minimum(gaps[outside].astype(np.float64) * float(self.factor), 700.0))
        return stays_when_permuted(
            _levels(gaps, lengths),
            best - own,
            self.factor,
            unsure=float(coins @ lengths[outside]),
            everything=lambda: _levels(*self._gaps_and_lengths(np.sort(sample.values))),
        )

    def _gaps_and_lengths(self, ordered: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[np.int64]]:
        _, lengths, scores = self._cut(ordered, ordered.size, before=0)
        return scores.max() - scores, lengths

    def distribution(self, data: Data) -> Outcomes:
        """List the law of the chosen grid point, in steps."""
        starts, lengths, scores = (array.tolist() for array in self.pieces(data))
        listed = {
            start + place: score
            for start, length, score in zip(starts, lengths, scores, strict=True)
            for place in range(length)
        }
        if not self.flips:
            return exponential_outcomes(listed, factor=self.factor)
        chooser = PermuteAndFlip(
            epsilon=self.epsilon,
            sensitivity=Fraction(self.sensitivity),
            candidates=len(listed),
            relation=self.relation,
        )
        places = list(listed)
        return outcomes.map(chooser.distribution(list(listed.values())), lambda place: places[place])

    def pieces(self, data: Data) -> Pieces:
        """Cut the grid into runs of points with one score: every distinct value, and the gaps between them.

        Return where each run starts, how many points it has, and its score in parts of a rank. This is private.
        """
        values = np.sort(self.grid.indices(data))
        return self._cut(values, values.size, before=0)

    def pieces_near(self, sample: Ranked) -> Pieces:
        """Do so near to the wanted rank; points farther away are in two long runs, whose score may be too high."""
        first, last = self._window(sample.size)
        return self._cut(sample.between(first, last), sample.size, before=first - 1, counts=sample.counts_around)

    def _cut(
        self,
        ordered: NDArray[np.int64],
        size: int,
        *,
        before: int,
        counts: Callable[[int], tuple[int, int]] | None = None,
    ) -> Pieces:
        """Cut at some neighbouring ranks out of `size`, of which `before` come before them.

        What lies outside is left out. The scores of the points from the first to the last value are exact all the
        same, if the wanted rank is among these: only the first and the last value may be shared by rows outside.
        """
        values, times = np.unique(ordered, return_counts=True)
        upto = before + np.concatenate([[0], np.cumsum(times)])  # rows below each gap, and at most equal to each value
        edges = np.concatenate([[self.grid.first - 1], values, [self.grid.last + 1]])
        starts = _interleaved(edges[:-1] + 1, values)
        lengths = _interleaved(np.diff(edges) - 1, np.ones_like(values))
        below, at_most = _interleaved(upto, upto[:-1]), _interleaved(upto, upto[1:])
        if counts is not None and values.size:
            for place in {1, 2 * values.size - 1}:
                below[place], at_most[place] = counts(int(starts[place]))
        kept = lengths > 0
        return starts[kept], lengths[kept], self.scores(below, at_most, size)[kept]

    def scores(self, below: NDArray[np.int64], at_most: NDArray[np.int64], size: int) -> NDArray[Any]:
        """Return the signed depths of points with so many rows below and at most equal, in parts of a rank."""
        over, under = self.quantile.numerator, self.quantile.denominator
        # Rows fit into memory, so there are fewer than 2^40; a longer fraction needs Python's integers.
        kind = np.int64 if under < 1 << 22 else object
        wanted = size * over
        low, high = below.astype(kind) * under, at_most.astype(kind) * under
        depths: NDArray[Any] = np.minimum(wanted - low, high - wanted)
        return depths

    @property
    def factor(self) -> Fraction:
        """What scores, in parts of a rank, are multiplied by."""
        return self.epsilon / (2 * self.sensitivity)

    def _reason(self) -> str:
        return (
            "a quantile has no interval from public facts alone: how far the value is off depends on the data. Its "
            f"rank is off by at most {significant_up(self.rank_error())} rows with 95 % confidence"
        )


def _interleaved(gaps: NDArray[np.int64], values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return gap, value, gap, value, …, gap."""
    both = np.empty(len(gaps) + len(values), dtype=np.int64)
    both[0::2], both[1::2] = gaps, values
    return both


def _levels(gaps: NDArray[Any], lengths: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the different gaps, and how many points have each."""
    different, which = np.unique(gaps, return_inverse=True)
    times = np.zeros(different.size, np.int64)
    np.add.at(times, which, lengths)
    return different, times


# --- quantile_among: A quantile of a bounded column, chosen among public candidates by permute-and-flip. ---


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class QuantileAmong:
    """Choose the candidate whose rank is near to `quantile` times the number of rows.

    Scores are those of `Quantile`. Fewer candidates are told apart more easily than all points of a fine grid, and
    none of them lies where nobody is expected; but the answer is only as fine as they are.

    Guarantee   epsilon, pure.
    Theorem     As for `Quantile`; permute-and-flip instead of the exponential mechanism. [MS20, Smi11]
    Utility     with probability 1 - b the rank error is that of the best candidate plus at most
                (2 D / epsilon) ln(candidates / b), with D as for `Quantile`.

    Args:
        candidates: The public points to choose from, in grid steps, in order; at least two.
        quantile: The share of rows below the wanted point, from 0 to 1.
        epsilon: What a release spends.
        grid: The bounds that values are clamped to, and the step that they are rounded to.
        relation: The neighbouring relation.

    Raises:
        InvalidParameter: If the candidates are not in order, repeated or off the grid.

    Examples:
        >>> mechanism = dp.mechanisms.QuantileAmong(
        ...     candidates=(20, 40, 60),
        ...     quantile=0.5,
        ...     epsilon=1,
        ...     grid=dp.mechanisms.Grid.between(0, 120, step=1),
        ...     relation=dp.Relation.REPLACE_ONE,
        ... )
        >>> mechanism.release([40] * 1000).value
        Fraction(40, 1)
    """

    candidates: tuple[int, ...]  # in grid steps, in order
    quantile: Fraction
    epsilon: Fraction
    grid: Grid
    relation: Relation

    __repr__ = record

    def __post_init__(self) -> None:
        candidates = tuple(int(place) for place in self.candidates)
        if len(candidates) < 2 or any(a >= b for a, b in pairwise(candidates)):
            raise InvalidParameter("candidates must be at least two grid points, in order and without repeats")
        if not self.grid.first <= candidates[0] <= candidates[-1] <= self.grid.last:
            raise InvalidParameter("candidates must lie on the grid")
        whole = self._whole
        settle(self, candidates=candidates, quantile=whole.quantile, epsilon=whole.epsilon, relation=whole.relation)

    @property
    def _whole(self) -> Quantile:
        """The same question, asked of all points."""
        return Quantile(quantile=self.quantile, epsilon=self.epsilon, grid=self.grid, relation=self.relation)

    @property
    def chooser(self) -> PermuteAndFlip:
        return PermuteAndFlip(
            epsilon=self.epsilon,
            sensitivity=Fraction(self._whole.sensitivity),
            candidates=len(self.candidates),
            relation=self.relation,
        )

    @property
    def event(self) -> events.PureDP:
        return self.chooser.event

    def rank_error(self, confidence: Number = Fraction(95, 100)) -> Fraction:
        """Return by how much a rank error exceeds the least one, with at least this probability. It is public."""
        return self.chooser.shortfall(confidence) / self.quantile.denominator

    def release(self, data: Data) -> Release[Fraction]:
        """Choose a candidate."""
        chosen = self.chooser.release(self.scores(Ranked.of(data, self.grid)))
        return Release(
            value=self.candidates[chosen.value] * self.grid.step,
            event=self.event,
            relation=self.relation,
            accuracy=NoInterval(reason=self._reason()),
            limits=(self.grid.low, self.grid.high),
        )

    def distribution(self, data: Data) -> Outcomes:
        """List the law of the chosen candidate, in grid steps."""
        chosen = self.chooser.distribution(self.scores(Ranked.of(data, self.grid)))
        return outcomes.map(chosen, lambda place: self.candidates[place])

    def scores(self, sample: Ranked) -> NDArray[Any]:
        """Return the signed depth of each candidate, in parts of a rank. This is private."""
        places, values = np.array(self.candidates), sample.values
        counted = np.searchsorted(places, values)  # How many candidates are below each value.
        above = np.bincount(counted, minlength=places.size + 1)
        at_most = np.cumsum(above)[: places.size]
        equal = np.bincount(counted[places[np.minimum(counted, places.size - 1)] == values], minlength=places.size)
        below = at_most - equal[: places.size]
        return self._whole.scores(below, at_most, sample.size)

    def _reason(self) -> str:
        return (
            "a quantile has no interval from public facts alone: how far the value is off depends on the data. Its "
            f"rank error exceeds that of the best candidate by at most {significant_up(self.rank_error())} rows with "
            "95 % confidence"
        )
