"""Aggregators of subsample-and-aggregate: from the answers of many blocks to one private answer.

One unit is in a few blocks, so it replaces a few answers. How an answer is read is total and public: whatever a
block says, or fails to say, becomes a point of the declared range, or a vote for nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, final

import numpy as np
from numpy.typing import NDArray

from discreet.adaptive.block_runner import FAILED
from discreet.adaptive.noise_recipes import Norm, Recipe
from discreet.adaptive.order_queries import (
    CentralMeanQuery,
    WinsorisedMeanQuery,
    median_query,
    trimmed_mean_query,
    winsorised_mean_query,
)
from discreet.adaptive.smooth_mechanisms import SmoothSensitivityMechanism, VectorSmoothSensitivityMechanism
from discreet.adaptive.stability import DistanceTest, counted, lead, stable_outcomes, stable_release, steps_to_change
from discreet.balls import ball
from discreet.errors import InvalidParameter
from discreet.exact import Number, positive_integer
from discreet.formatting import record
from discreet.frames.column import Column
from discreet.mechanisms.grid import Grid
from discreet.mechanisms.histogram import canonical, read_bins
from discreet.mechanisms.parameters import settle
from discreet.mechanisms.release import Release
from discreet.privacy.events import Composed, Event
from discreet.privacy.outcomes import Outcomes
from discreet.privacy.relation import Relation

if TYPE_CHECKING:
    from flint import arb

__all__ = [
    "Aggregator",
    "BlockCentre",
    "BlockMode",
    "BlockNumber",
    "CentreOfAttentionQuery",
    "Radii",
    "block_centre",
    "block_median",
    "block_trimmed_mean",
    "block_winsorised_mean",
    "read_point",
]

# --- centre_of_attention ---
# One of many points that more than half of them are near, with a smooth bound on how far a few of them can move it.
#
# Points are vectors on a grid. The t-radius of a point is its distance to the t-th nearest point, itself included; the
# centre of attention has the least t-radius, for a t of just over half. [NRS07]


_FITS = 1 << 62


@final
@dataclass(frozen=True, slots=True)
class Radii:
    """A bound of the form max over k of (r_k + r_(k+1)) e^(-beta k), none above the diameter; r by their powers."""

    powers: tuple[int, ...]  # r_0, r_1, …, to the power of the norm, in grid steps; from then on, the diameter
    diameter: int  # to the same power
    norm: Norm

    def enclose(self, beta: Fraction) -> arb:
        """Enclose it at the working precision."""
        radii = [self._root(power) for power in (*self.powers, self.diameter)]
        heights = [(one + other).min(radii[-1]) for one, other in pairwise(radii)]
        peaks = [height * ball(-beta * k).exp() for k, height in enumerate(heights)]
        return reduce(lambda one, other: one.max(other), peaks)

    def _root(self, power: int) -> arb:
        return ball(power) if self.norm == 1 else ball(power).sqrt()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CentreOfAttentionQuery:
    """The centre of attention: the point whose ball around just over half of all points is smallest.

    One unit may replace `entries` of the points. t is (size + entries) / 2 rounded down, plus 1. Of equals, the
    first point in the order of coordinates is the centre.

    Theorem     Two neighbours share all points but `entries`, so their two balls share one, and their centres are
                no farther apart than the two radii together. Let r_j be the (1 + j)-th smallest (t + j)-radius of all
                points. Wherever j points are replaced, one of the 1 + j best centres is left, and its ball holds t
                points still: the radius there is r_j at most. So A_k = r_(k e) + r_((k + 1) e), or the diameter if
                that is less, bounds the local sensitivity k units away. By the same count r_j of one data set is at
                most r_(j + e) of its neighbour, so A_k is at most the neighbour's A_(k+1), and the largest
                A_k e^(-beta k) is a beta-smooth bound. [NRS07] averages over centres instead, for a cruder one.
    """

    relation: ClassVar[Relation] = Relation.REPLACE_ONE
    relative_error: ClassVar[Fraction] = Fraction(0)
    value_error: ClassVar[Fraction] = Fraction(0)

    grid: Grid  # of every coordinate
    dimension: int
    size: int
    norm: Norm = 2
    entries: int = 1

    def __post_init__(self) -> None:
        settle(
            self,
            dimension=positive_integer(self.dimension, name="dimension"),
            size=positive_integer(self.size, name="size"),
            entries=positive_integer(self.entries, name="entries"),
        )
        if self.norm not in (1, 2):
            raise InvalidParameter("norm must be 1 or 2")
        if self.entries >= self.size:
            raise InvalidParameter(
                "`entries` must be smaller than the number of points: no bound holds where one unit moves all of them"
            )

    @property
    def majority(self) -> int:
        """How many points a ball must hold, so that those of two neighbours share one."""
        return (self.size + self.entries) // 2 + 1

    def values(self, data: Sequence[Any]) -> list[Fraction]:
        """Return the centre, in grid steps. It is private."""
        points = self._points(data)
        reach = np.sort(self._distances(points), axis=1)[:, self.majority - 1]
        best = [points[place].tolist() for place in np.flatnonzero(reach == reach.min())]
        return [Fraction(step) for step in min(best)]

    def smooth_bound(self, data: Sequence[Any], beta: Fraction) -> Radii:
        """Return the bound. It is private."""
        far = np.sort(np.sort(self._distances(self._points(data)), axis=1), axis=0)
        places = range(0, self.size - self.majority + 1, self.entries)
        powers = tuple(int(far[j, self.majority - 1 + j]) for j in places)
        return Radii(powers, self.dimension * self.grid.width**self.norm, self.norm)

    def _points(self, data: Sequence[Any]) -> NDArray[np.int64]:
        if len(data) != self.size:
            raise InvalidParameter("the data do not have the declared number of points")
        steps = [read_point(point, self.grid, self.dimension) for point in data]
        return np.array(steps, np.int64).reshape(self.size, self.dimension)

    def _distances(self, points: NDArray[np.int64]) -> NDArray[Any]:
        """Return all distances to the power of the norm, exactly."""
        fits = self.dimension * self.grid.width**self.norm < _FITS
        apart = points if fits else points.astype(object)
        total: NDArray[Any] = np.zeros((self.size, self.size), apart.dtype)
        for column in apart.T:
            total += np.abs(column[:, None] - column[None, :]) ** self.norm
        return total


def read_point(value: Any, grid: Grid, dimension: int) -> tuple[int, ...]:
    """Place a vector on the grid; what is none, or has another length, is the default in each coordinate."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if not isinstance(value, (list, tuple)) or len(value) != dimension:
        value = [None] * dimension
    return tuple(grid.index(part) for part in value)


class Aggregator(Protocol):
    """A mechanism for the answers of `blocks` blocks, private where up to `entries` of them are replaced.

    It does not look at their order.
    """

    @property
    def blocks(self) -> int: ...

    @property
    def entries(self) -> int: ...

    @property
    def event(self) -> Event: ...

    def read(self, answer: object, /) -> Hashable:
        """Turn whatever a block said into what is aggregated. It never fails."""

    def release(self, answers: Sequence[Any], /) -> Release[Any]: ...

    def distribution(self, answers: Sequence[Any], /) -> Outcomes: ...


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BlockMode:
    """The answer that most blocks gave, exactly, if it is clearly the one.

    A block that fails, or says what is not in the domain, votes for nothing. With `domain=None` every key can be
    voted for.

    Guarantee   (epsilon, delta), whether an answer is given or not.
    Theorem     Replacing e answers moves a lead by 2 e at most, so the lead over 2 e, rounded up, is a distance to
                another winner. [ST13, NRS07]
    Utility     exact if the lead is `reliable_lead(confidence)`.

    Args:
        blocks: How many blocks the data is divided into.
        domain: The public answers that are possible, at least two; None takes every key.
        epsilon: What a release spends.
        delta: The chance that an unstable answer passes the test.
        entries: How many answers one unit may replace.

    Raises:
        InvalidParameter: If the domain has fewer than two values.

    Examples:
        >>> mode = dp.adaptive.BlockMode(blocks=100, domain=("a", "b"), epsilon=1, delta=1e-6)
        >>> mode.release(["a"] * 100).value
        'a'
    """

    blocks: int
    domain: tuple[Hashable, ...] | None
    epsilon: Fraction
    delta: Fraction
    entries: int = 1

    __repr__ = record

    def __post_init__(self) -> None:
        settle(
            self,
            blocks=positive_integer(self.blocks, name="blocks"),
            epsilon=self.test.epsilon,
            delta=self.test.delta,
            entries=positive_integer(self.entries, name="entries"),
        )
        if self.domain is not None:
            settle(self, domain=read_bins(self.domain))
            if len(self.domain) < 2:
                raise InvalidParameter("`domain` needs at least two values")

    @property
    def test(self) -> DistanceTest:
        return DistanceTest(epsilon=self.epsilon, delta=self.delta)

    @property
    def event(self) -> Composed:
        return self.test.event

    def reliable_lead(self, confidence: Number = Fraction(95, 100)) -> int:
        """Return how many votes ahead an answer must be to be named with at least this probability. It is public."""
        return 2 * self.entries * (self.test.reliable_distance(confidence) - 1) + 1

    def read(self, answer: object) -> Hashable:
        if isinstance(answer, list):
            answer = _as_tuple(answer)
        found = canonical(None if answer is FAILED else answer)
        return found if self.domain is None or found in self.domain else None

    def release(self, answers: Sequence[Any]) -> Release[Any]:
        return stable_release(self.test, *self._winner(answers), Relation.REPLACE_ONE)

    def distribution(self, answers: Sequence[Any]) -> Outcomes:
        return stable_outcomes(self.test, *self._winner(answers))

    def _winner(self, answers: Sequence[Any]) -> tuple[Any, int]:
        names, votes = counted(Column(list(answers)), self.domain)
        place, gap = lead(votes)
        return names[place], steps_to_change(gap, 2 * self.entries)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BlockNumber:
    """A middle of the numbers that blocks gave, with noise scaled to its smooth sensitivity.

    A number is clamped to the grid; a block that fails, or gives no number, counts as the default of the grid.

    Guarantee   that of the recipe, where one answer is replaced.
    """

    query: CentralMeanQuery | WinsorisedMeanQuery
    recipe: Recipe

    __repr__ = record

    def __post_init__(self) -> None:
        if not isinstance(self.query, (CentralMeanQuery, WinsorisedMeanQuery)):
            raise InvalidParameter(
                "query must be a central or Winsorised mean with public_rows: the number of blocks is public"
            )
        _ = self.mechanism  # Refuses a recipe that does not fit.

    @property
    def mechanism(self) -> SmoothSensitivityMechanism:
        return SmoothSensitivityMechanism(query=self.query, recipe=self.recipe)

    @property
    def blocks(self) -> int:
        return self.query.public_rows

    @property
    def entries(self) -> int:
        return 1

    @property
    def event(self) -> Event:
        return self.mechanism.event

    def read(self, answer: object) -> Fraction:
        return self.query.grid.index(answer) * self.query.grid.step

    def release(self, answers: Sequence[Fraction]) -> Release[Fraction]:
        return self.mechanism.release(answers)

    def distribution(self, answers: Sequence[Fraction]) -> Outcomes:
        return self.mechanism.distribution(answers)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BlockCentre:
    """The centre of attention of the vectors that blocks gave, with noise scaled to its smooth sensitivity.

    Each coordinate is clamped to the grid; a block that fails, or gives no vector of this length, counts as the
    default in each coordinate.

    Guarantee   that of the recipe, where up to `entries` answers are replaced.
    """

    query: CentreOfAttentionQuery
    recipe: Recipe

    def __post_init__(self) -> None:
        _ = self.mechanism  # Refuses a recipe that does not fit.

    @property
    def mechanism(self) -> VectorSmoothSensitivityMechanism:
        return VectorSmoothSensitivityMechanism(query=self.query, recipe=self.recipe)

    @property
    def blocks(self) -> int:
        return self.query.size

    @property
    def entries(self) -> int:
        return self.query.entries

    @property
    def event(self) -> Event:
        return self.mechanism.event

    def read(self, answer: object) -> tuple[Fraction, ...]:
        grid = self.query.grid
        return tuple(step * grid.step for step in read_point(answer, grid, self.query.dimension))

    def release(self, answers: Sequence[tuple[Fraction, ...]]) -> Release[tuple[Fraction, ...]]:
        return self.mechanism.release(answers)

    def distribution(self, answers: Sequence[tuple[Fraction, ...]]) -> Outcomes:
        return self.mechanism.distribution(answers)


def block_median(*, blocks: int, grid: Grid, recipe: Recipe) -> BlockNumber:
    """Aggregate by the median of the answers.

    Args:
        blocks: How many blocks the data is divided into.
        grid: The public bounds and step of the answers.
        recipe: The noise, such as `polynomial(1, beta="0.1")`.

    Returns:
        The aggregator.

    Examples:
        >>> grid = dp.mechanisms.Grid.between(0, 1, step=0.01)
        >>> dp.adaptive.block_median(blocks=51, grid=grid, recipe=dp.adaptive.polynomial(1, beta=0.1)).event
        PureDP(epsilon=1)
    """
    query = median_query(grid=grid, relation=Relation.REPLACE_ONE, public_rows=blocks)
    assert isinstance(query, CentralMeanQuery)
    return BlockNumber(query=query, recipe=recipe)


def block_trimmed_mean(*, blocks: int, grid: Grid, recipe: Recipe, trimmed: int) -> BlockNumber:
    """Aggregate by the mean of the answers without the `trimmed` smallest and largest ones.

    Args:
        blocks: How many blocks the data is divided into.
        grid: The public bounds and step of the answers.
        recipe: The noise, such as `polynomial(1, beta="0.1")`.
        trimmed: How many answers are left out on each side.

    Returns:
        The aggregator.

    Examples:
        >>> grid, recipe = dp.mechanisms.Grid.between(0, 1, step=0.01), dp.adaptive.polynomial(1, beta=0.1)
        >>> dp.adaptive.block_trimmed_mean(blocks=51, grid=grid, recipe=recipe, trimmed=5).release([0.5] * 51).cost
        'ε = 1'
    """
    return BlockNumber(query=trimmed_mean_query(grid=grid, public_rows=blocks, trimmed=trimmed), recipe=recipe)


def block_winsorised_mean(*, blocks: int, grid: Grid, recipe: Recipe, moved: int) -> BlockNumber:
    """Aggregate by the mean of the answers, the `moved` smallest and largest ones moved inward.

    Args:
        blocks: How many blocks the data is divided into.
        grid: The public bounds and step of the answers.
        recipe: The noise, such as `polynomial(1, beta="0.1")`.
        moved: How many answers are moved inward on each side.

    Returns:
        The aggregator.

    Examples:
        >>> grid, recipe = dp.mechanisms.Grid.between(0, 1, step=0.01), dp.adaptive.polynomial(1, beta=0.1)
        >>> dp.adaptive.block_winsorised_mean(blocks=51, grid=grid, recipe=recipe, moved=5).release([0.5] * 51).cost
        'ε = 1'
    """
    return BlockNumber(query=winsorised_mean_query(grid=grid, public_rows=blocks, moved=moved), recipe=recipe)


def block_centre(*, blocks: int, grid: Grid, dimension: int, recipe: Recipe, entries: int = 1) -> BlockCentre:
    """Aggregate vectors by their centre of attention, in the norm of the recipe.

    Args:
        blocks: How many blocks the data is divided into.
        grid: The public grid of every coordinate.
        dimension: How many numbers an answer has.
        recipe: The noise, such as `polynomial(1, beta="0.1")`.
        entries: How many answers one unit may replace.

    Returns:
        The aggregator.

    Examples:
        >>> grid = dp.mechanisms.Grid.between(0, 1, step=0.01)
        >>> recipe = dp.adaptive.polynomial(1, beta=0.1, dimension=2)
        >>> dp.adaptive.block_centre(blocks=50, grid=grid, dimension=2, recipe=recipe).blocks
        50
    """
    query = CentreOfAttentionQuery(grid=grid, dimension=dimension, size=blocks, norm=recipe.norm, entries=entries)
    return BlockCentre(query=query, recipe=recipe)


def _as_tuple(answer: Any) -> Any:
    return tuple(map(_as_tuple, answer)) if isinstance(answer, list) else answer
