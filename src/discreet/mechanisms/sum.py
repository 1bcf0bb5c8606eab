"""The noisy sum of a bounded column."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np
from numpy.typing import NDArray

from discreet.formatting import record
from discreet.frames.column import Data
from discreet.mechanisms.additive_noise import Noise, Sensitivity
from discreet.mechanisms.grid import Grid, exact_sum
from discreet.mechanisms.measurement import BoundedQuery, Measurement, joint_distribution, joint_event
from discreet.mechanisms.parameters import settle
from discreet.mechanisms.release import Release
from discreet.privacy.events import Event
from discreet.privacy.outcomes import Outcomes
from discreet.privacy.relation import Relation, read_relation

__all__ = [
    "Sum",
    "centre_of",
    "centred_ends",
    "centred_reach",
    "centred_step",
    "centred_sum_query",
    "centred_values",
    "sum_query",
]

_FEW = 64  # Steps; with so few, half a step beside the middle would be noise that can be spared.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Sum:
    """Add up the values, each clamped to the grid.

    Guarantee   what the noise spends on the sensitivity max(|low|, |high|) under add-remove and high - low under
                replace-one.
    Theorem     A unit that comes or goes moves the sum by its value; one that changes moves it by the difference
                of two values. Sums are exact integers, the same in any order. [DMNS06, CSVW22]
    Utility     that of the noise, plus what clamping takes away.

    Args:
        grid: The bounds that values are clamped to, and the step that they are rounded to.
        relation: The neighbouring relation.
        noise: The noise and with it the budget: `LaplaceNoise` or `GaussianNoise`.

    Examples:
        >>> mechanism = dp.mechanisms.Sum(
        ...     grid=dp.mechanisms.Grid.between(0, 120, step=1),
        ...     relation=dp.Relation.ADD_REMOVE,
        ...     noise=dp.mechanisms.LaplaceNoise(epsilon=1),
        ... )
        >>> mechanism.event.sensitivity, abs(mechanism.release([31, 44, 59]).value - 134) < 7000
        (120, True)
    """

    grid: Grid
    relation: Relation
    noise: Noise

    __repr__ = record

    def __post_init__(self) -> None:
        settle(self, relation=read_relation(self.relation))
        _ = self.event  # Refuses noise that no sampler takes, while nothing is spent yet.

    @property
    def measurements(self) -> tuple[Measurement, ...]:
        """The one noisy number behind the answer, in steps of the grid."""
        return (Measurement(query=sum_query(self.grid, self.relation), noise=self.noise),)

    @property
    def event(self) -> Event:
        return joint_event(self.measurements)

    def release(self, data: Data) -> Release[Fraction]:
        """Add up with noise."""
        (measurement,) = self.measurements
        return Release(
            value=measurement.measure(data)[0] * self.grid.step,
            event=self.event,
            relation=self.relation,
            accuracy=measurement.accuracy(self.grid.step),
            limits=self._limits(),
        )

    def distribution(self, data: Data) -> Outcomes:
        return joint_distribution(self.measurements, data)

    def _limits(self) -> tuple[Fraction | None, Fraction | None]:
        zero = Fraction(0)
        return zero if self.grid.low >= 0 else None, zero if self.grid.high <= 0 else None


def sum_query(grid: Grid, relation: Relation) -> BoundedQuery:
    """The sum of the grid indices."""
    farthest = max(abs(grid.first), abs(grid.last))
    size = farthest if relation is Relation.ADD_REMOVE else grid.width
    return BoundedQuery(
        evaluate=lambda data: (exact_sum(grid.indices(data)),),
        sensitivity=Sensitivity.scalar(size),
        relation=relation,
    )


# --- centred: Distances from the middle of the bounds, which no value exceeds by more than half their width. ---


def centre_of(grid: Grid) -> Fraction:
    """The middle that distances are counted from."""
    return _middle(grid) * centred_step(grid)


def centred_step(grid: Grid) -> Fraction:
    """The step in which distances from the middle are counted.

    With an odd number of steps no grid point is in the middle: where steps are few, half steps are counted.
    """
    return grid.step / _parts(grid)


def centred_values(grid: Grid, data: Data) -> NDArray[np.int64]:
    """Return how far each value is from the middle, in centred steps. This is private."""
    return _parts(grid) * grid.indices(data) - _middle(grid)


def centred_reach(grid: Grid) -> int:
    """Return how far a value is from the middle at most, in centred steps."""
    middle = _middle(grid)
    return max(_parts(grid) * grid.last - middle, middle - _parts(grid) * grid.first)


def centred_sum_query(grid: Grid, relation: Relation = Relation.ADD_REMOVE) -> BoundedQuery:
    """The sum of distances from the middle, in centred steps."""
    size = centred_reach(grid) if relation is Relation.ADD_REMOVE else _parts(grid) * grid.width
    return BoundedQuery(
        evaluate=lambda data: (exact_sum(centred_values(grid, data)),),
        sensitivity=Sensitivity.scalar(size),
        relation=relation,
    )


def centred_ends(grid: Grid) -> tuple[int, int]:
    """Return the least and the largest distance from the middle, in centred steps."""
    return _parts(grid) * grid.first - _middle(grid), _parts(grid) * grid.last - _middle(grid)


def _parts(grid: Grid) -> int:
    return 2 if grid.width % 2 and grid.width <= _FEW else 1


def _middle(grid: Grid) -> int:
    """The middle, in centred steps."""
    return grid.first + grid.last if _parts(grid) == 2 else grid.middle
