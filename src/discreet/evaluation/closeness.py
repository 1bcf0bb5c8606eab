"""The distance to the closest record, as it is often shown, beside what it must be compared with.

By itself it proves nothing. A table can be far from every person and still give them away, and rows that many people
share are close to each other in any honest table. Only the comparison with people who were not in the data says
something, and only if it differs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.attacks import Success
from discreet.evaluation.caps import CURVE, PEOPLE
from discreet.evaluation.nearest import closest
from discreet.evaluation.rows import ColumnLayout, EvaluatedRows

__all__ = ["Closeness", "ClosestDistances", "closeness", "spread_of"]

Floats: TypeAlias = NDArray[np.float32]
_SHARES = (0.05, 0.25, 0.5, 0.75, 0.95)
_FAR_MORE = 0.5  # Of all rows: no honest table of as many rows holds so many more of them than fresh rows would.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ClosestDistances:
    """How far the closest row is from some rows."""

    equal: Success  # rows that are there to the last digit
    quantiles: tuple[float, ...]  # the distance below which 5, 25, 50, 75 and 95 of 100 lie
    curve: tuple[float, ...]  # distances at equal steps of their share

    @property
    def middle(self) -> float:
        """The distance that half of the rows stay below."""
        return self.quantiles[len(self.quantiles) // 2]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Closeness:
    """How far the closest row is: of the synthetic table from people in the data and others, and of the real table."""

    members: ClosestDistances  # from people of the real table to the synthetic one
    others: ClosestDistances | None  # from people who were not in it
    real: ClosestDistances  # from people of the real table to other people of it

    def copied(self, error: float) -> bool:
        """Whether rows of the real table are in the synthetic one that could not be there by chance."""
        if self.others is not None:
            return self.members.equal.interval(error / 2)[0] > self.others.equal.interval(error / 2)[1]
        return self.members.equal.share - self.real.equal.share > _FAR_MORE


def closeness(
    layout: ColumnLayout, synthetic: EvaluatedRows, real: EvaluatedRows, holdout: EvaluatedRows | None
) -> Closeness:
    """Measure how far the closest rows are."""
    some, rest = real.split(min(PEOPLE, len(real) // 2))
    outside = None if holdout is None else holdout.some(PEOPLE)
    return Closeness(
        members=spread_of(closest(layout, some, synthetic)),
        others=None if outside is None else spread_of(closest(layout, outside, synthetic)),
        # As many rows as the synthetic table has, so that both had the same chances.
        real=spread_of(closest(layout, some, rest.some(len(synthetic)))),
    )


def spread_of(distances: Floats) -> ClosestDistances:
    """Sum distances up."""
    return ClosestDistances(
        equal=Success(int(np.count_nonzero(distances == 0)), len(distances)),
        quantiles=tuple(np.quantile(distances, _SHARES).tolist()),
        curve=tuple(np.quantile(distances, np.linspace(0, 1, CURVE)).tolist()),
    )
