"""The noisy variance of a bounded column."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import isqrt
from typing import final

from discreet.formatting import record
from discreet.frames.column import Data, column_of
from discreet.mechanisms.additive_noise import Noise, Sensitivity
from discreet.mechanisms.count import row_query
from discreet.mechanisms.grid import Grid, exact_square_sum, exact_sum
from discreet.mechanisms.mean import VarianceAccuracy, check_length, check_size
from discreet.mechanisms.measurement import BoundedQuery, Measurement, joint_distribution, joint_event
from discreet.mechanisms.parameters import settle
from discreet.mechanisms.release import Interval, Release
from discreet.mechanisms.sum import centred_reach, centred_step, centred_sum_query, centred_values
from discreet.privacy.events import Event
from discreet.privacy.outcomes import Outcomes
from discreet.privacy.relation import Relation, read_relation

__all__ = ["RootAccuracy", "Variance", "root_down", "root_of", "spread_query"]

_THIRD = Fraction(1, 3)
_ROOT_STEP = Fraction(1, 10**12)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Variance:
    """Release the variance (divisor n) of the values, each clamped to the grid.

    Under add-remove it comes from a noisy sum of squares, less half of the largest one each, a noisy sum, both about
    the middle of the grid, and a noisy count, each with a third of the budget; it is kept where variances can be.

    Guarantee   what the noise spends on the sensitivity (high - low)^2 (n - 1) / n^2 under replace-one, or on the
                sensitivities (h^2 / 2, h, 1) of the three numbers under add-remove, h being half the width.
    Theorem     The sum of squares about the mean is the sum of squared differences of all pairs over n; one unit is
                in n - 1 pairs. It is convex in each value, so the largest change is reached at the bounds. [Vad17]
    Utility     under add-remove the interval is a box around three noises and covers at least what it says.

    Args:
        grid: The bounds that values are clamped to, and the step that they are rounded to.
        relation: The neighbouring relation.
        noise: The noise and with it the budget: `LaplaceNoise` or `GaussianNoise`.
        public_rows: The public number of rows, under replace-one; None under add-remove.

    Raises:
        InvalidParameter: If the public number of rows is missing under replace-one, or said under add-remove.

    Examples:
        >>> mechanism = dp.mechanisms.Variance(
        ...     grid=dp.mechanisms.Grid.between(0, 120, step=1),
        ...     relation=dp.Relation.REPLACE_ONE,
        ...     noise=dp.mechanisms.LaplaceNoise(epsilon=1),
        ...     public_rows=3,
        ... )
        >>> mechanism.release([31, 44, 59]).cost
        'ε = 1'
    """

    grid: Grid
    relation: Relation
    noise: Noise
    public_rows: int | None = None  # the public number of rows, under replace-one

    __repr__ = record

    def __post_init__(self) -> None:
        settle(self, relation=read_relation(self.relation))
        settle(self, public_rows=check_size(self.relation, self.public_rows, least=2))
        _ = self.event  # Refuses noise that no sampler takes, while nothing is spent yet.

    @property
    def measurements(self) -> tuple[Measurement, ...]:
        """The noisy spread under replace-one; noisy squares, sum and count under add-remove."""
        if self.public_rows is not None:
            return (Measurement(query=spread_query(self.grid, self.public_rows), noise=self.noise),)
        third = self.noise.part(_THIRD)
        return (
            Measurement(query=_square_query(self.grid), noise=third),
            Measurement(query=centred_sum_query(self.grid), noise=third),
            Measurement(query=row_query(self.relation), noise=third),
        )

    @property
    def event(self) -> Event:
        return joint_event(self.measurements)

    def release(self, data: Data) -> Release[Fraction]:
        """Release the variance with noise."""
        column = column_of(data)
        return self._ratio(column) if self.public_rows is None else self._fixed(column, self.public_rows)

    def distribution(self, data: Data) -> Outcomes:
        """List the law of the noisy numbers behind the answer."""
        return joint_distribution(self.measurements, data)

    def _fixed(self, data: Data, size: int) -> Release[Fraction]:
        check_length(data, size)
        (measurement,) = self.measurements
        step = (self.grid.step / size) ** 2
        return Release(
            value=measurement.measure(data)[0] * step,
            event=self.event,
            relation=self.relation,
            accuracy=measurement.accuracy(step),
            limits=self._limits(),
        )

    def _ratio(self, data: Data) -> Release[Fraction]:
        squaring, summing, counting = self.measurements
        step = centred_step(self.grid)
        accuracy = VarianceAccuracy(
            fold=_fold(self.grid) * step**2,
            squares=squaring.measure(data)[0] * step**2,
            total=summing.measure(data)[0] * step,
            count=counting.measure(data)[0],
            squares_accuracy=squaring.accuracy(step**2),
            total_accuracy=summing.accuracy(step),
            count_accuracy=counting.accuracy(),
        )
        low, high = self._limits()
        return Release(
            value=min(max(accuracy.quotient, low), high),
            event=self.event,
            relation=self.relation,
            accuracy=accuracy,
            limits=(low, high),
        )

    def _limits(self) -> tuple[Fraction, Fraction]:
        return Fraction(0), ((self.grid.high - self.grid.low) / 2) ** 2


def spread_query(grid: Grid, size: int) -> BoundedQuery:
    """The whole number n^2 times the variance, n (sum of k^2) - (sum of k)^2, under replace-one.

    It is the sum of (k_i - k_j)^2 over all pairs i < j. One unit is in n - 1 pairs with terms between 0 and width^2.
    """

    def evaluate(data: Data) -> tuple[int, ...]:
        indices = grid.indices(data) - grid.middle
        return (size * exact_square_sum(indices) - exact_sum(indices) ** 2,)

    return BoundedQuery(
        evaluate=evaluate,
        sensitivity=Sensitivity.scalar(grid.width**2 * (size - 1)),
        relation=Relation.REPLACE_ONE,
    )


def _square_query(grid: Grid) -> BoundedQuery:
    """The sum of squared distances from the middle, less half of the largest square each, under add-remove.

    What one row adds lies between -fold and reach^2 - fold: half as far from zero as the square itself.
    """
    fold = _fold(grid)

    def evaluate(data: Data) -> tuple[int, ...]:
        distances = centred_values(grid, data)
        return (exact_square_sum(distances) - fold * len(distances),)

    sensitivity = Sensitivity.scalar(max(fold, centred_reach(grid) ** 2 - fold))
    return BoundedQuery(evaluate=evaluate, sensitivity=sensitivity, relation=Relation.ADD_REMOVE)


def _fold(grid: Grid) -> int:
    return centred_reach(grid) ** 2 // 2


# --- root: The standard deviation, by post-processing. ---


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RootAccuracy:
    """The root of an interval: it encloses the root of what the interval encloses."""

    squared: Release[Fraction]

    @property
    def noise(self) -> None:
        return None

    def interval(self, value: Fraction, confidence: Fraction) -> Interval:
        low, high = self.squared.interval(confidence)
        return root_down(low), root_down(high) + _ROOT_STEP


def root_of(squared: Release[Fraction]) -> Release[Fraction]:
    """Return the root of a released variance; it costs nothing more."""
    low, high = squared.limits
    return replace(
        squared,
        value=root_down(squared.tidy),
        accuracy=RootAccuracy(squared=squared),
        limits=(low and root_down(low), high and root_down(high) + _ROOT_STEP),
    )


def root_down(square: Fraction) -> Fraction:
    """Return the root of a number from 0 on, rounded down to twelve places."""
    return isqrt(square.numerator * _ROOT_STEP.denominator**2 // square.denominator) * _ROOT_STEP
