"""Medians, quantiles and trimmed means by proposing how far one unit can move them.

Values are whole numbers of grid steps, x_1 <= … <= x_n; below the first there is `low`, above the last `high`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np
from numpy.typing import NDArray

from discreet.adaptive.propose_test_release import ProposeTestRelease
from discreet.errors import InvalidParameter
from discreet.exact import Number, exact, integer, positive, probability
from discreet.mechanisms.budget import LaplaceNoise, Sensitivity
from discreet.mechanisms.column import Data
from discreet.mechanisms.fields import read_relation, read_share
from discreet.mechanisms.grid import Grid, exact_sum
from discreet.mechanisms.mean import check_length, check_size
from discreet.mechanisms.measurement import BoundedQuery, Measurement
from discreet.mechanisms.ranked import Ranked
from discreet.mechanisms.release import Release
from discreet.privacy import outcomes
from discreet.privacy.events import Event
from discreet.privacy.outcomes import Outcomes
from discreet.privacy.relation import Relation

__all__ = [
    "CentralMean",
    "LowerMedian",
    "propose_median",
    "propose_quantile",
    "propose_trimmed_mean",
    "split_epsilon",
]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CentralMean:
    """The mean of x_lower, …, x_upper of a public number of values: one rank, two middle ones, or all but the ends.

    Theorem     The last of k replaced values moves the sum by at most the largest x_(upper+t) - x_(lower-s) with
                t + s = k, and some do. So two neighbours whose sums differ by more than the bound are one
                replacement away from that, both of them, and the least t + s for which the difference exceeds the
                bound is a distance for the test. [NRS07, BS19]
    """

    grid: Grid
    size: int
    lower: int  # ranks count from one
    upper: int
    bound: int  # proposed for the sum, in grid steps

    @property
    def terms(self) -> int:
        return self.upper - self.lower + 1

    def value(self, data: Data) -> int:
        """Return the sum of the central values, in grid steps. This is private."""
        return exact_sum(self._ranked(data).between(self.lower, self.upper))

    def distance(self, data: Data) -> int:
        """Return how many values must be replaced for the last of them to move the sum by more than the bound."""
        ranked = self._ranked(data)
        below = ranked.between(0, self.lower)[::-1]  # x_lower, x_(lower-1), …, x_0 = low
        above = ranked.between(self.upper, self.size + 1)
        # The first t for which x_(upper+t) is too far from each x_(lower-s); there is none for some s.
        reach = np.searchsorted(above, below + self.bound, side="right")
        steps = reach + np.arange(below.size)
        return max(int(steps[reach < above.size].min()), 1)

    def _ranked(self, data: Data) -> Ranked:
        check_length(data, self.size)
        return Ranked.of(data, self.grid)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LowerMedian:
    """x_ceil(n/2) of a private number of values, `low` of none.

    Theorem     x_i and x_j come to stand on both sides of the middle, with nothing between them, once j - i - 1
                values are gone and max(0, D - 1, -D) more came or went, D = n + 1 - j - i; one more then moves the
                median from the one to the other. For each i the best j are n - i and n + 1 - i, at distances
                n - 2 i and n + 1 - 2 i. [NRS07]
    """

    grid: Grid
    bound: int  # proposed for the median, in grid steps

    def value(self, data: Data) -> int:
        """Return the lower median, in grid steps. This is private."""
        values = self.grid.indices(data)
        middle = (values.size + 1) // 2
        return int(self._ranked(values).between(middle, middle)[0])

    def distance(self, data: Data) -> int:
        """Return how many values must come or go for the last of them to move the median by more than the bound."""
        values = self.grid.indices(data)
        n, ranked = values.size, self._ranked(values).between(0, values.size + 1)
        inner = np.arange((n + 1) // 2)  # i < n / 2, with j = n - i
        outer = np.arange(n // 2 + 1)  # i < (n + 1) / 2, with j = n + 1 - i
        near, far = n - 2 * inner[self._far(ranked, inner, n)], n + 1 - 2 * outer[self._far(ranked, outer, n + 1)]
        return int(np.concatenate([near, far]).min())

    def _far(self, ranked: NDArray[np.int64], places: NDArray[np.int64], total: int) -> NDArray[np.bool_]:
        far: NDArray[np.bool_] = ranked[total - places] - ranked[places] > self.bound
        return far

    def _ranked(self, values: NDArray[np.int64]) -> Ranked:
        return Ranked(values, self.grid.first, self.grid.last)


def propose_median(
    *,
    grid: Grid,
    bound: Number,
    epsilon: Number,
    delta: Number,
    relation: Relation,
    size: int | None = None,
    test_share: Number = Fraction(1, 2),
) -> ProposeTestRelease:
    """Release the median if no unit near the data can move it by more than `bound`.

    Under replace-one, with a public size, it is the mean of the two middle values of an even number of them; under
    add-remove the lower of the two.
    """
    size = check_size(read_relation(relation), size)
    if size is not None:
        return _central(grid, size, (size + 1) // 2, size // 2 + 1, bound, epsilon, delta, test_share)
    query = LowerMedian(grid=grid, bound=_steps(bound, grid, terms=1))
    return _tested(query, relation, 1, epsilon, delta, test_share)


def propose_quantile(
    quantile: Number,
    *,
    grid: Grid,
    bound: Number,
    epsilon: Number,
    delta: Number,
    size: int,
    test_share: Number = Fraction(1, 2),
) -> ProposeTestRelease:
    """Release x_ceil(quantile * size), under replace-one, if no unit near the data can move it by more than `bound`."""
    check_size(Relation.REPLACE_ONE, size)
    size = int(size)
    rank = max(1, math.ceil(probability(quantile, name="quantile") * size))
    return _central(grid, size, rank, rank, bound, epsilon, delta, test_share)


def propose_trimmed_mean(
    *,
    trimmed: int,
    grid: Grid,
    bound: Number,
    epsilon: Number,
    delta: Number,
    size: int,
    test_share: Number = Fraction(1, 2),
) -> ProposeTestRelease:
    """Release the mean without the `trimmed` lowest and highest values, under replace-one, tested for `bound`."""
    check_size(Relation.REPLACE_ONE, size)
    size, ends = int(size), integer(trimmed, name="trimmed")
    if not 0 <= 2 * ends < size:
        raise InvalidParameter("trimmed must leave at least one value of the public size")
    return _central(grid, size, ends + 1, size - ends, bound, epsilon, delta, test_share)


def split_epsilon(epsilon: Number, test_share: Number) -> tuple[Fraction, Fraction]:
    """Return the epsilon of a test and of the release after it."""
    whole, share = positive(epsilon, name="epsilon"), read_share(test_share, name="test_share")
    return whole * share, whole * (1 - share)


def _central(
    grid: Grid, size: int, lower: int, upper: int, bound: Number, epsilon: Number, delta: Number, share: Number
) -> ProposeTestRelease:
    terms = upper - lower + 1
    steps = _steps(bound, grid, terms=terms)
    query = CentralMean(grid=grid, size=size, lower=lower, upper=upper, bound=steps)
    return _tested(query, Relation.REPLACE_ONE, terms, epsilon, delta, share)


def _tested(
    query: CentralMean | LowerMedian, relation: Relation, terms: int, epsilon: Number, delta: Number, share: Number
) -> ProposeTestRelease:
    testing, noisy = split_epsilon(epsilon, share)
    return ProposeTestRelease(
        distance=query.distance,
        mechanism=_WithinBound(query=query, relation=relation, terms=terms, epsilon=noisy),
        epsilon=testing,
        delta=exact(delta, name="delta"),
    )


def _steps(bound: Number, grid: Grid, *, terms: int) -> int:
    """Return the bound on the sum of `terms` values in whole steps: what is between two steps never happens."""
    steps = math.floor(positive(bound, name="bound") * terms / grid.step)
    if not 1 <= steps < grid.width:
        raise InvalidParameter(
            "bound must be at least one grid step, and small enough to say something: one unit never moves the "
            "answer by more than the range of the grid over the number of values that are averaged"
        )
    return steps


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _WithinBound:
    """Noise for the proposed bound: private between neighbours whose answers are that close, and only there."""

    query: CentralMean | LowerMedian
    relation: Relation
    terms: int
    epsilon: Fraction

    def __post_init__(self) -> None:
        _ = self.event  # Refuses noise that no sampler takes, while nothing is spent yet.

    @property
    def measurement(self) -> Measurement:
        query = self.query
        return Measurement(
            query=BoundedQuery(
                evaluate=lambda data: (query.value(data),),
                sensitivity=Sensitivity.scalar(query.bound),
                relation=self.relation,
            ),
            noise=LaplaceNoise(epsilon=self.epsilon),
        )

    @property
    def event(self) -> Event:
        return self.measurement.event

    def release(self, data: Data) -> Release[Fraction]:
        step, grid = self.query.grid.step / self.terms, self.query.grid
        return Release(
            value=self.measurement.measure(data)[0] * step,
            event=self.event,
            relation=self.relation,
            accuracy=self.measurement.accuracy(step),
            limits=(grid.low, grid.high),
        )

    def distribution(self, data: Data) -> Outcomes:
        """List the law of the noisy sum, in grid steps."""
        return outcomes.map(self.measurement.distribution(data), lambda row: row[0])
