"""What becomes of the answers of many blocks: one private answer.

One unit is in a few blocks, so it replaces a few answers. How an answer is read is total and public: whatever a
block says, or fails to say, becomes a point of the declared range, or a vote for nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol, final

from discreet.adaptive.centre_of_attention import CentreOfAttentionQuery, read_point
from discreet.adaptive.isolation import FAILED
from discreet.adaptive.noise_recipes import Recipe
from discreet.adaptive.order_queries import (
    CentralMeanQuery,
    WinsorisedMeanQuery,
    median_query,
    trimmed_mean_query,
    winsorised_mean_query,
)
from discreet.adaptive.smooth_mechanisms import SmoothSensitivityMechanism, VectorSmoothSensitivityMechanism
from discreet.adaptive.stability import DistanceTest, stable_outcomes, stable_release
from discreet.adaptive.stable_mode import counted, lead, steps_to_change
from discreet.errors import InvalidParameter
from discreet.exact import Number, positive_integer
from discreet.mechanisms.column import Column
from discreet.mechanisms.grid import Grid
from discreet.mechanisms.histogram import canonical, read_bins
from discreet.mechanisms.parameters import settle
from discreet.mechanisms.release import Release
from discreet.privacy.events import Composed, Event
from discreet.privacy.outcomes import Outcomes
from discreet.privacy.relation import Relation

__all__ = [
    "Aggregator",
    "BlockCentre",
    "BlockMode",
    "BlockNumber",
    "block_centre",
    "block_median",
    "block_trimmed_mean",
    "block_winsorised_mean",
]


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
    """

    blocks: int
    domain: tuple[Hashable, ...] | None
    epsilon: Fraction
    delta: Fraction
    entries: int = 1

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
                raise InvalidParameter("domain must name at least two answers: of one there is nothing to choose")

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
    """A middle of the numbers that blocks gave, with noise that follows a smooth bound.

    A number is clamped to the grid; a block that fails, or gives no number, counts as the default of the grid.

    Guarantee   that of the recipe, where one answer is replaced.
    """

    query: CentralMeanQuery | WinsorisedMeanQuery
    recipe: Recipe

    def __post_init__(self) -> None:
        if not isinstance(self.query, (CentralMeanQuery, WinsorisedMeanQuery)):
            raise InvalidParameter("the number of blocks is public: take a query of a public number of values")
        _ = self.mechanism  # Refuses a recipe that does not fit.

    @property
    def mechanism(self) -> SmoothSensitivityMechanism:
        return SmoothSensitivityMechanism(query=self.query, recipe=self.recipe)

    @property
    def blocks(self) -> int:
        return self.query.size

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
    """The centre of attention of the vectors that blocks gave, with noise that follows a smooth bound.

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
    """Aggregate by the median of the answers."""
    query = median_query(grid=grid, relation=Relation.REPLACE_ONE, size=blocks)
    assert isinstance(query, CentralMeanQuery)
    return BlockNumber(query=query, recipe=recipe)


def block_trimmed_mean(*, blocks: int, grid: Grid, recipe: Recipe, trimmed: int) -> BlockNumber:
    """Aggregate by the mean of the answers without the `trimmed` smallest and largest ones."""
    return BlockNumber(query=trimmed_mean_query(grid=grid, size=blocks, trimmed=trimmed), recipe=recipe)


def block_winsorised_mean(*, blocks: int, grid: Grid, recipe: Recipe, moved: int) -> BlockNumber:
    """Aggregate by the mean of the answers, the `moved` smallest and largest ones moved inward."""
    return BlockNumber(query=winsorised_mean_query(grid=grid, size=blocks, moved=moved), recipe=recipe)


def block_centre(*, blocks: int, grid: Grid, dimension: int, recipe: Recipe, entries: int = 1) -> BlockCentre:
    """Aggregate vectors by their centre of attention, in the norm of the recipe."""
    query = CentreOfAttentionQuery(grid=grid, dimension=dimension, size=blocks, norm=recipe.norm, entries=entries)
    return BlockCentre(query=query, recipe=recipe)


def _as_tuple(answer: Any) -> Any:
    return tuple(map(_as_tuple, answer)) if isinstance(answer, list) else answer
