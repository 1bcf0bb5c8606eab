"""Huber's location on a grid, with proven bounds on how far one unit moves it: for smooth sensitivity and for tests.

All numbers are whole steps of a public grid: S(t) is the sum of x - t, each held within -K and K, and the location is
the first t with S(t) <= 0. One unit changes S by at most c everywhere: K under add-remove, 2 K under replace-one.

Theorem     What is k + 1 units away has its location between the first t with S(t) <= c (k + 1) and the first with
            S(t) <= -c (k + 1). So the distance A_k of the two bounds what the last of k + 1 units changes, and for
            neighbours A_k of the one is at most A_(k+1) of the other. Hence the largest A_k e^(-beta k) is a
            beta-smooth bound [NRS07], and the least k at which A_k exceeds a proposal moves by at most 1 [DL09].
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from discreet.adaptive.order_queries import farthest
from discreet.adaptive.propose_test_release import ProposeTestRelease, split_epsilon
from discreet.adaptive.smooth_query import RELATIVE_ERROR, Peak, tallest
from discreet.errors import InvalidParameter
from discreet.exact import Number, exact, positive, positive_integer
from discreet.formatting import record
from discreet.frames.column import Data
from discreet.mechanisms.additive_noise import LaplaceNoise, Sensitivity
from discreet.mechanisms.grid import Grid
from discreet.mechanisms.measurement import BoundedQuery, Measurement
from discreet.mechanisms.parameters import settle
from discreet.mechanisms.release import Release
from discreet.privacy import outcomes
from discreet.privacy.events import Event
from discreet.privacy.outcomes import Outcomes
from discreet.privacy.relation import Relation, read_relation
from discreet.robust.loss_functions import Huber

__all__ = ["HuberQuery", "ScoreSum", "huber_query", "propose_huber"]

_WIDEST = 1 << 30  # Steps; sums of 2^32 of them still fit 64 bits.


@final
@dataclass(frozen=True, slots=True, eq=False)
class ScoreSum:
    """The function S of a column, ready to be asked at many places. It is private."""

    values: NDArray[np.int64] = field(repr=False)  # in order
    sums: NDArray[np.int64] = field(repr=False)  # of the first i values
    reach: int

    @classmethod
    def of(cls, indices: NDArray[np.int64], reach: int) -> ScoreSum:
        ranked = np.sort(indices)
        return cls(ranked, np.concatenate([np.zeros(1, np.int64), np.cumsum(ranked)]), reach)

    def at(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        below = np.searchsorted(self.values, places - self.reach, side="left")
        above = np.searchsorted(self.values, places + self.reach, side="right")
        inside = self.sums[above] - self.sums[below] - places * (above - below)
        total: NDArray[np.int64] = inside + self.reach * (self.values.size - above - below)
        return total

    def first_at_most(self, levels: NDArray[np.int64], low: int, high: int) -> NDArray[np.int64]:
        """Return the first place from `low` on where S is at most each level, `high` where there is none."""
        before, here = np.full(levels.size, low - 1), np.full(levels.size, high)
        for _ in range(max(high - low + 1, 1).bit_length()):
            middle = (before + here) // 2
            is_low = (self.at(middle) <= levels) & (middle > before)
            here = np.where(is_low, middle, here)
            before = np.where(is_low, before, np.minimum(middle, here))
        return here


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HuberQuery:
    """Huber's location of a column, for a smooth-sensitivity mechanism of `discreet.adaptive`."""

    relative_error: ClassVar[Fraction] = RELATIVE_ERROR
    value_error: ClassVar[Fraction] = Fraction(0)

    grid: Grid
    reach: int  # K, in grid steps: the tuning constant times the scale
    relation: Relation

    __repr__ = record

    def __post_init__(self) -> None:
        settle(self, relation=read_relation(self.relation))
        settle(self, reach=positive_integer(self.reach, name="reach"))
        if max(self.grid.width, abs(self.grid.first), abs(self.grid.last), self.reach) > _WIDEST:
            raise InvalidParameter("the grid must lie within 2^30 steps of zero: choose a larger step")

    @property
    def change(self) -> int:
        """What one unit changes the sum of scores by, at most."""
        return self.reach if self.relation is Relation.ADD_REMOVE else 2 * self.reach

    def read(self, data: Data) -> ScoreSum:
        """Sort the data once for all that is asked of them. This is private."""
        return ScoreSum.of(self.grid.indices(data), self.reach)

    def value(self, data: Data | ScoreSum) -> Fraction:
        """Return the location, in grid steps. This is private."""
        return Fraction(int(self._first(_read(self, data), np.zeros(1, np.int64))[0]))

    def widths(self, data: Data | ScoreSum, distances: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return A_k for each k, in grid steps. This is private."""
        score, levels = _read(self, data), self.change * (distances + 1)
        return self._first(score, -levels) - self._first(score, levels)

    def smooth_bound(self, data: Data | ScoreSum, beta: Fraction) -> Peak:
        """Return a smooth bound; from a public distance on it is the whole range. This is private."""
        last = farthest(self.grid, beta)
        distances = np.arange(last + 1)
        heights = np.append(self.widths(data, distances[:-1]), self.grid.width)
        return tallest(heights, distances, float(beta))

    def distance(self, data: Data | ScoreSum, bound: int) -> int:
        """Return 1 plus the least k at which A_k exceeds a bound below the width of the grid. This is private."""
        score = _read(self, data)
        within, beyond = -1, score.values.size + 1  # Beyond that many units anything can happen.
        while beyond - within > 1:
            middle = (within + beyond) // 2
            is_wide = int(self.widths(score, np.array([middle]))[0]) > bound
            within, beyond = (within, middle) if is_wide else (middle, beyond)
        return 1 + beyond

    def _first(self, score: ScoreSum, levels: NDArray[np.int64]) -> NDArray[np.int64]:
        return score.first_at_most(levels, self.grid.first, self.grid.last)


def huber_query(*, grid: Grid, scale: Number, relation: Relation | str, psi: Huber | None = None) -> HuberQuery:
    """Make a query of Huber's location with a public scale, rounded to whole steps of the grid.

    Args:
        grid: The public bounds and step of the answers.
        scale: The public scale of the residuals, in units of the data.
        relation: The neighbouring relation.
        psi: The loss, with its tuning constant; `Huber()` if not said.

    Returns:
        The query, with a smooth bound on its local sensitivity.

    Raises:
        InvalidParameter: If the scale is not above 0.

    Examples:
        >>> query = dp.robust.huber_query(
        ...     grid=dp.mechanisms.Grid.between(0, 100, step=1), scale=10, relation=dp.Relation.REPLACE_ONE
        ... )
        >>> recipe = dp.adaptive.polynomial(1, beta=0.1)
        >>> release = dp.adaptive.SmoothSensitivityMechanism(query=query, recipe=recipe).release([40] * 1000)
        >>> release.cost
        'ε = 1'
    """
    relation = read_relation(relation)
    constant = Fraction((psi or Huber()).c) * positive(scale, name="scale") / grid.step
    return HuberQuery(grid=grid, reach=max(1, round(constant)), relation=relation)


def propose_huber(
    *,
    grid: Grid,
    scale: Number,
    bound: Number,
    epsilon: Number,
    delta: Number,
    relation: Relation | str,
    psi: Huber | None = None,
    test_share: Number = Fraction(1, 2),
) -> ProposeTestRelease:
    """Release Huber's location if no unit near the data can move it by more than `bound`, in units of the data.

    Args:
        grid: The public bounds and step of the answers.
        scale: The public scale of the residuals, in units of the data.
        bound: How far one unit may move the estimate near the data; the proposal.
        epsilon: What test and answer spend together.
        delta: The chance that the test is passed where the proposal fails.
        relation: The neighbouring relation.
        psi: The loss, with its tuning constant; `Huber()` if not said.
        test_share: The part of epsilon that the test spends.

    Returns:
        The mechanism; `release` answers or declines.

    Raises:
        InvalidParameter: If the bound is below one step of the grid, or not below its width.

    Examples:
        >>> test = dp.robust.propose_huber(
        ...     grid=dp.mechanisms.Grid.between(0, 100, step=1), scale=10, bound=1, epsilon=1, delta=1e-6,
        ...     relation=dp.Relation.REPLACE_ONE,
        ... )
        >>> abs(test.release([40] * 2000).value - 40) < 100
        True
    """
    relation = read_relation(relation)
    steps = math.floor(positive(bound, name="bound") / grid.step)
    if not 1 <= steps < grid.width:
        raise InvalidParameter("bound must be at least one grid step, and below the width of the grid")
    query = huber_query(grid=grid, scale=scale, relation=relation, psi=psi)
    testing, noisy = split_epsilon(epsilon, test_share)
    return ProposeTestRelease(
        distance=lambda data: query.distance(data, steps),
        mechanism=_Within(query=query, bound=steps, epsilon=noisy),
        epsilon=testing,
        delta=exact(delta, name="delta"),
    )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Within:
    """Noise for the proposed bound: private between neighbours whose locations are that close, and only there."""

    query: HuberQuery
    bound: int
    epsilon: Fraction

    def __post_init__(self) -> None:
        _ = self.event  # Refuses noise that no sampler takes, while nothing is spent yet.

    @property
    def relation(self) -> Relation:
        return self.query.relation

    @property
    def measurement(self) -> Measurement:
        asked = BoundedQuery(
            evaluate=lambda data: (int(self.query.value(data)),),
            sensitivity=Sensitivity.scalar(self.bound),
            relation=self.relation,
        )
        return Measurement(query=asked, noise=LaplaceNoise(epsilon=self.epsilon))

    @property
    def event(self) -> Event:
        return self.measurement.event

    def release(self, data: Data) -> Release[Fraction]:
        measurement, grid = self.measurement, self.query.grid
        return Release(
            value=measurement.measure(data)[0] * grid.step,
            event=measurement.event,
            relation=self.relation,
            accuracy=measurement.accuracy(grid.step),
            limits=(grid.low, grid.high),
        )

    def distribution(self, data: Data) -> Outcomes:
        """List the law of the noisy location, in grid steps."""
        return outcomes.map(self.measurement.distribution(data), lambda row: row[0])


def _read(query: HuberQuery, data: Data | ScoreSum) -> ScoreSum:
    return data if isinstance(data, ScoreSum) else query.read(data)
