"""Propose-test-release: propose a bound, test how far the data are from where it fails, then release."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, Protocol, final

import numpy as np
from numpy.typing import NDArray

from discreet.adaptive.no_answer import NO_ANSWER, NOTHING_TO_ENCLOSE
from discreet.adaptive.stability import DistanceTest
from discreet.errors import InvalidParameter
from discreet.exact import Number, exact, integer, positive, probability
from discreet.formatting import record
from discreet.frames.column import Data
from discreet.mechanisms.additive_noise import LaplaceNoise, Sensitivity
from discreet.mechanisms.grid import Grid, exact_sum
from discreet.mechanisms.mean import check_length, check_size
from discreet.mechanisms.measurement import BoundedQuery, Measurement
from discreet.mechanisms.order_statistics import Ranked
from discreet.mechanisms.parameters import read_share, settle
from discreet.mechanisms.release import Release
from discreet.privacy import outcomes
from discreet.privacy.events import ApproxDP, Composed, Event
from discreet.privacy.not_private import NotPrivate
from discreet.privacy.outcomes import Outcomes
from discreet.privacy.payer import Payer, paid
from discreet.privacy.relation import Relation, check_member, read_relation

__all__ = [
    "CentralMean",
    "LowerMedian",
    "ProposeTestRelease",
    "Proposed",
    "propose_median",
    "propose_quantile",
    "propose_trimmed_mean",
    "split_epsilon",
    "total_event",
]

# --- proposals: Medians, quantiles and trimmed means by proposing how far one unit can move them. ---
#
# Values are whole numbers of grid steps, x_1 <= … <= x_n; below the first there is `low`, above the last `high`.


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
    public_rows: int
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
        above = ranked.between(self.upper, self.public_rows + 1)
        # The first t for which x_(upper+t) is too far from each x_(lower-s); there is none for some s.
        reach = np.searchsorted(above, below + self.bound, side="right")
        steps = reach + np.arange(below.size)
        return max(int(steps[reach < above.size].min()), 1)

    def _ranked(self, data: Data) -> Ranked:
        check_length(data, self.public_rows)
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
    relation: Relation | str,
    public_rows: int | None = None,
    test_share: Number = Fraction(1, 2),
) -> ProposeTestRelease:
    """Release the median if no unit near the data can move it by more than `bound`.

    Under replace-one, with a public size, it is the mean of the two middle values of an even number of them; under
    add-remove the lower of the two.

    Args:
        grid: The public bounds and step of the answers.
        bound: How far one unit may move the median near the data; the proposal.
        epsilon: What test and answer spend together.
        delta: The chance that the test is passed where the proposal fails.
        relation: The neighbouring relation.
        public_rows: The public number of rows, under replace-one.
        test_share: The part of epsilon that the test spends.

    Returns:
        The mechanism; `release` answers or declines.

    Examples:
        >>> test = dp.adaptive.propose_median(
        ...     grid=dp.mechanisms.Grid.between(0, 120, step=1), bound=10, epsilon=1, delta=1e-6,
        ...     relation=dp.Relation.REPLACE_ONE, public_rows=2001,
        ... )
        >>> abs(test.release([40] * 2001).value - 40) < 1000
        True
    """
    relation = read_relation(relation)
    public_rows = check_size(relation, public_rows)
    if public_rows is not None:
        return _central(
            grid, public_rows, (public_rows + 1) // 2, public_rows // 2 + 1, bound, epsilon, delta, test_share
        )
    query = LowerMedian(grid=grid, bound=_steps(bound, grid, terms=1))
    return _tested(query, relation, 1, epsilon, delta, test_share)


def propose_quantile(
    quantile: Number,
    *,
    grid: Grid,
    bound: Number,
    epsilon: Number,
    delta: Number,
    public_rows: int,
    test_share: Number = Fraction(1, 2),
) -> ProposeTestRelease:
    """Release x_ceil(quantile * size), under replace-one, if no unit near the data can move it by more than `bound`.

    Args:
        quantile: The share of rows below the value, from 0 to 1.
        grid: The public bounds and step of the values.
        bound: How far one unit may move the quantile near the data; the proposal, in units of the data.
        epsilon: What test and answer spend together.
        delta: The chance that the test is passed where the proposal fails.
        public_rows: The public number of rows.
        test_share: The part of epsilon that the test spends.

    Returns:
        The mechanism; `release` answers or declines.

    Raises:
        InvalidParameter: If the bound is below one step of the grid, or not below its range.

    Examples:
        >>> test = dp.adaptive.propose_quantile(
        ...     0.9, grid=dp.mechanisms.Grid.between(0, 120, step=1), bound=10, epsilon=1, delta=1e-6, public_rows=2000
        ... )
        >>> abs(test.release([40] * 2000).value - 40) < 1000
        True
    """
    check_size(Relation.REPLACE_ONE, public_rows)
    public_rows = int(public_rows)
    rank = max(1, math.ceil(probability(quantile, name="quantile") * public_rows))
    return _central(grid, public_rows, rank, rank, bound, epsilon, delta, test_share)


def propose_trimmed_mean(
    *,
    trimmed: int,
    grid: Grid,
    bound: Number,
    epsilon: Number,
    delta: Number,
    public_rows: int,
    test_share: Number = Fraction(1, 2),
) -> ProposeTestRelease:
    """Release the mean without the `trimmed` lowest and highest values, under replace-one, tested for `bound`.

    Args:
        trimmed: How many values are left out on each side; at least one value is left.
        grid: The public bounds and step of the values.
        bound: How far one unit may move the mean near the data; the proposal, in units of the data.
        epsilon: What test and answer spend together.
        delta: The chance that the test is passed where the proposal fails.
        public_rows: The public number of rows.
        test_share: The part of epsilon that the test spends.

    Returns:
        The mechanism; `release` answers or declines.

    Raises:
        InvalidParameter: If no value would be left, or the bound promises nothing: one unit never moves the mean
            farther than the range of the grid over the number of values that are left.

    Examples:
        >>> test = dp.adaptive.propose_trimmed_mean(
        ...     trimmed=500, grid=dp.mechanisms.Grid.between(0, 120, step=1), bound=0.01, epsilon=1, delta=1e-6,
        ...     public_rows=2000,
        ... )
        >>> abs(test.release([40] * 2000).value - 40) < 1
        True
    """
    check_size(Relation.REPLACE_ONE, public_rows)
    public_rows, ends = int(public_rows), integer(trimmed, name="trimmed")
    if not 0 <= 2 * ends < public_rows:
        raise InvalidParameter("2 * trimmed must be at least 0 and below public_rows")
    return _central(grid, public_rows, ends + 1, public_rows - ends, bound, epsilon, delta, test_share)


def split_epsilon(epsilon: Number, test_share: Number) -> tuple[Fraction, Fraction]:
    """Return the epsilon of a test and of the release after it."""
    whole, share = positive(epsilon, name="epsilon"), read_share(test_share, name="test_share")
    return whole * share, whole * (1 - share)


def _central(
    grid: Grid, size: int, lower: int, upper: int, bound: Number, epsilon: Number, delta: Number, share: Number
) -> ProposeTestRelease:
    terms = upper - lower + 1
    steps = _steps(bound, grid, terms=terms)
    query = CentralMean(grid=grid, public_rows=size, lower=lower, upper=upper, bound=steps)
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
            "bound must be at least one grid step, and below the global sensitivity: the width of the grid over the "
            "number of values that are averaged"
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


class Proposed(Protocol):
    """A mechanism that keeps its claim between data sets for which a proposal is right, and is defined on all."""

    @property
    def event(self) -> Event:
        """What it spends between neighbours for which the proposal is right."""

    @property
    def relation(self) -> Relation: ...

    def release(self, data: Any, /) -> Release[Any]: ...

    def distribution(self, data: Any, /) -> Outcomes: ...


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ProposeTestRelease:
    """Release what `mechanism` releases if the noisy distance is above a threshold; otherwise do not answer.

    `distance` returns a whole number that moves by at most 1 between neighbours under the mechanism's relation. Of
    any two neighbours between which the mechanism does not keep its claim, both have a distance of at most 1. One
    such is how many units must change to get to such a pair and across it; so is the distance to the nearest data
    set for which the proposal is wrong, 0 there, and any lower bound of these that moves by at most 1.

    Guarantee   (epsilon + e, max(delta, d)) for a mechanism that is (e, d) where the proposal is right; the same
                whether an answer is given or not. A further proposal costs as much again.
    Theorem     Neighbours between which the mechanism is private differ by the test and by it. All others are
                refused alike, but for a chance of delta. [DL09, ST13]
    Utility     answers with probability c if the distance is `test.reliable_distance(c)`. The noise is that of the
                proposal, which is public, and so is its interval.

    Args:
        distance: The function from private data to how far they are from where the proposal fails.
        mechanism: What answers if the test is passed.
        epsilon: What the test spends.
        delta: The chance that the test is passed where the proposal fails.

    Examples:
        >>> test = dp.adaptive.propose_median(
        ...     grid=dp.mechanisms.Grid.between(0, 120, step=1), bound=10, epsilon=1, delta=1e-12,
        ...     relation=dp.Relation.REPLACE_ONE, public_rows=2001,
        ... )
        >>> test.release([0] * 1000 + [120] * 1001).value  # One unit moves the median by 120, and not by 10.
        NoAnswer()
    """

    distance: Callable[[Any], int]
    mechanism: Proposed
    epsilon: Fraction  # of the test
    delta: Fraction  # of the test

    __repr__ = record

    def __post_init__(self) -> None:
        settle(self, epsilon=self.test.epsilon, delta=self.test.delta)
        check_member(self.mechanism.relation)

    @property
    def relation(self) -> Relation:
        return self.mechanism.relation

    @property
    def test(self) -> DistanceTest:
        return DistanceTest(epsilon=self.epsilon, delta=self.delta)

    @property
    def event(self) -> Event:
        return total_event(self.test, self.mechanism.event)

    def release(self, data: Any, *, session: Payer | None = None) -> Release[Any]:
        """Answer, or decline to; both take the same steps."""
        with paid(session, self, purpose="a release that is tested first"):
            answer = self.mechanism.release(data)
            passed = self.test.passes(self.distance(data))
            answered = replace(answer, event=self.event, delta=self._quoted(answer.delta))
            refused = Release(
                value=NO_ANSWER,
                event=self.event,
                relation=self.relation,
                accuracy=NOTHING_TO_ENCLOSE,
                delta=answered.delta,
            )
            return answered if passed else refused

    def distribution(self, data: Any) -> Outcomes:
        chance = self.test.chance(self.distance(data))
        parts = [(chance, self.mechanism.distribution(data)), (1 - chance, outcomes.point(NO_ANSWER))]
        return outcomes.mixture(parts)

    def true_distance(self, data: Any) -> NotPrivate[int]:
        """Tell the custodian how far the data are from where the proposal fails."""
        return NotPrivate(self.distance(data))

    def _quoted(self, inner: Fraction | None) -> Fraction | None:
        """Return the delta to quote the cost at; none where the mechanism has no cost at the delta of the test."""
        if isinstance(self.event, ApproxDP):
            return self.event.delta
        if inner is not None:
            return self.delta + inner
        return self.delta if _is_pure(self.mechanism.event, self.relation) else None


@lru_cache(256)
def _is_pure(event: Event, relation: Relation) -> bool:
    from discreet.privacy import epsilon

    return not math.isinf(epsilon(event, 0, relation=relation))


def total_event(test: DistanceTest, inner: Event) -> Event:
    """Return what a test and the release after it spend together.

    Either the proposal is right for two neighbours, and then only the deltas of the release count, or it is not, and
    then only the delta of the test does. So of two deltas the larger one is spent, not their sum.
    """
    if isinstance(inner, ApproxDP):
        return ApproxDP(test.epsilon + inner.epsilon, max(test.delta, inner.delta))
    return Composed([*test.event.events, inner])
