"""A quantile of a bounded column, chosen among public candidates by permute-and-flip."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.exact import Number
from discreet.formatting import significant_up
from discreet.mechanisms.column import Data
from discreet.mechanisms.grid import Grid
from discreet.mechanisms.noisy_max import PermuteAndFlip
from discreet.mechanisms.order_statistics import Ranked
from discreet.mechanisms.parameters import settle
from discreet.mechanisms.quantile import Quantile
from discreet.mechanisms.release import NoInterval, Release
from discreet.privacy import events, outcomes
from discreet.privacy.outcomes import Outcomes
from discreet.privacy.relation import Relation

__all__ = ["QuantileAmong"]


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
    """

    candidates: tuple[int, ...]  # in grid steps, in order
    quantile: Fraction
    epsilon: Fraction
    grid: Grid
    relation: Relation

    def __post_init__(self) -> None:
        candidates = tuple(int(place) for place in self.candidates)
        if len(candidates) < 2 or any(a >= b for a, b in pairwise(candidates)):
            raise InvalidParameter("candidates must be at least two grid points, in order and without repeats")
        if not self.grid.first <= candidates[0] <= candidates[-1] <= self.grid.last:
            raise InvalidParameter("candidates must lie on the grid")
        whole = self._whole
        settle(self, candidates=candidates, quantile=whole.quantile, epsilon=whole.epsilon)

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
        """Return minus the rank error of each candidate, in parts of a rank. This is private."""
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
