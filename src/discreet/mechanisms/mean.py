"""The noisy mean of a bounded column."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np

from discreet.errors import InvalidParameter
from discreet.exact import positive_integer
from discreet.formatting import record
from discreet.frames.column import Data, column_of
from discreet.mechanisms.additive_noise import Noise
from discreet.mechanisms.count import row_query
from discreet.mechanisms.grid import Grid
from discreet.mechanisms.measurement import Measurement, joint_distribution, joint_event
from discreet.mechanisms.parameters import read_share, settle
from discreet.mechanisms.quotient_intervals import MeasuredNoise, quotient_ends
from discreet.mechanisms.release import Interval, NoiseAccuracy, Release
from discreet.mechanisms.sum import centre_of, centred_reach, centred_step, centred_sum_query, sum_query
from discreet.privacy.events import Event
from discreet.privacy.outcomes import Outcomes
from discreet.privacy.relation import Relation, read_relation

__all__ = ["Mean", "MeanAccuracy", "VarianceAccuracy"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Mean:
    """Average the values, each clamped to the grid.

    Under replace-one the number of rows is public: noisy sum over `public_rows`. Under add-remove it is private: a
    noisy sum of distances from the middle of the grid, over a noisy count, plus the middle.

    Guarantee   what the noise spends on the sensitivity of the sum, high - low, under replace-one; under add-remove
                the part `count_share` on a count and the rest on a sum of sensitivity (high - low) / 2.
    Theorem     Dividing by a public or an already noisy number is free. Centring halves the sensitivity, since a
                value is at most half the width away from the middle. [DMNS06]
    Utility     add-remove: the answer, a quotient and so biased anyway, is kept within the bounds. Its interval is
                Fieller's, from the law of both noises together: it covers what it says, and hardly more. [Fie54]

    Args:
        grid: The bounds that values are clamped to, and the step that they are rounded to.
        relation: The neighbouring relation.
        noise: The noise and with it the budget: `LaplaceNoise` or `GaussianNoise`.
        public_rows: The public number of rows, under replace-one; None under add-remove.
        count_share: The part of the budget that pays for a noisy count, under add-remove.

    Raises:
        InvalidParameter: If the public number of rows is missing under replace-one, or said under add-remove.

    Examples:
        >>> mechanism = dp.mechanisms.Mean(
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
    count_share: Fraction = Fraction(1, 2)  # of the budget, under add-remove

    __repr__ = record

    def __post_init__(self) -> None:
        settle(self, relation=read_relation(self.relation))
        settle(
            self,
            count_share=read_share(self.count_share, name="count_share"),
            public_rows=check_size(self.relation, self.public_rows),
        )
        _ = self.event  # Refuses noise that no sampler takes, while nothing is spent yet.

    @property
    def measurements(self) -> tuple[Measurement, ...]:
        """The noisy sum, and under add-remove the noisy count."""
        if self.relation is Relation.REPLACE_ONE:
            return (Measurement(query=sum_query(self.grid, self.relation), noise=self.noise),)
        return (
            Measurement(query=centred_sum_query(self.grid), noise=self.noise.part(1 - self.count_share)),
            Measurement(query=row_query(self.relation), noise=self.noise.part(self.count_share)),
        )

    @property
    def event(self) -> Event:
        return joint_event(self.measurements)

    def release(self, data: Data) -> Release[Fraction]:
        """Average with noise."""
        column = column_of(data)
        return self._ratio(column) if self.public_rows is None else self._fixed(column, self.public_rows)

    def distribution(self, data: Data) -> Outcomes:
        """List the law of the noisy sum, with the noisy count under add-remove."""
        return joint_distribution(self.measurements, data)

    def _fixed(self, data: Data, size: int) -> Release[Fraction]:
        check_length(data, size)
        (measurement,) = self.measurements
        step = self.grid.step / size
        return Release(
            value=measurement.measure(data)[0] * step,
            event=self.event,
            relation=self.relation,
            accuracy=measurement.accuracy(step),
            limits=(self.grid.low, self.grid.high),
        )

    def _ratio(self, data: Data) -> Release[Fraction]:
        summing, counting = self.measurements
        accuracy = MeanAccuracy(
            centre=centre_of(self.grid),
            step=centred_step(self.grid),
            reach=centred_reach(self.grid),
            total=summing.measure(data)[0],
            count=counting.measure(data)[0],
            noises=(summing.noise_in_units, counting.noise_in_units),
        )
        return Release(
            value=min(max(accuracy.quotient, self.grid.low), self.grid.high),
            event=self.event,
            relation=self.relation,
            accuracy=accuracy,
            limits=(self.grid.low, self.grid.high),
        )


def check_size(relation: Relation, size: int | None, *, least: int = 1) -> int | None:
    """Refuse a missing public size under replace-one and a size that would be private under add-remove.

    Return it as a plain int: one of NumPy's wraps around where sensitivities are computed from it.
    """
    if relation is Relation.ADD_REMOVE and size is not None:
        raise InvalidParameter("the number of rows is private under ADD_REMOVE: leave public_rows out")
    if relation is Relation.REPLACE_ONE:
        if size is None:
            raise InvalidParameter("public_rows, the number of rows, is needed under REPLACE_ONE")
        if positive_integer(size, name="public_rows") < least:
            raise InvalidParameter(f"public_rows must be at least {least}")
    return None if size is None else int(size)


def check_length(data: Data, size: int) -> None:
    """Refuse data whose number of rows is not the declared one; under replace-one that number is public."""
    if len(column_of(data)) != size:
        raise InvalidParameter("the data do not have the declared number of rows")


# --- ratio: Noisy sums over a noisy count: what both noises together say about the quotient. ---


def _quotients(total: Interval, count: Interval) -> Interval:
    """Enclose s / n for all s and whole n >= 1 in two intervals."""
    fewest, most = max(Fraction(1), count[0]), max(Fraction(1), count[1])
    corners = [end / number for end in total for number in (fewest, most)]
    return min(corners), max(corners)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MeanAccuracy:
    """A mean is centre + sum / count; which quotients are near enough to both follows from their noises. [Fie54]

    An empty table has no mean; for it the interval means nothing.
    """

    centre: Fraction
    step: Fraction
    reach: int  # of the exact quotient, in steps
    total: int  # the noisy sum about the centre, in steps, as released
    count: int  # the noisy count, as released
    noises: tuple[MeasuredNoise, MeasuredNoise]  # of both

    @property
    def quotient(self) -> Fraction:
        """The released mean; where the count says that nobody is there, it is taken for one."""
        return self.centre + self.step * self.total / max(1, self.count)

    @property
    def noise(self) -> None:
        return None

    def interval(self, value: Fraction, confidence: Fraction) -> Interval:
        total, count = (np.array([number], dtype=object) for number in (self.total, self.count))
        ends = quotient_ends(total, count, self.noises, self.reach, confidence)
        low, high = (Fraction(int(over[0]), int(under[0])) for over, under in ends)
        return self.centre + self.step * low, self.centre + self.step * high


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class VarianceAccuracy:
    """A variance is fold + (sum of squares, less fold each) / count - ((sum) / count)^2, about any centre."""

    fold: Fraction
    squares: Fraction  # noisy, as released
    total: Fraction
    count: int
    squares_accuracy: NoiseAccuracy
    total_accuracy: NoiseAccuracy
    count_accuracy: NoiseAccuracy

    @property
    def quotient(self) -> Fraction:
        """The released variance; where the count says that nobody is there, it is taken for one."""
        many = max(1, self.count)
        return self.fold + self.squares / many - (self.total / many) ** 2

    @property
    def noise(self) -> None:
        return None

    def interval(self, value: Fraction, confidence: Fraction) -> Interval:
        each = 1 - (1 - confidence) / 3
        count = self.count_accuracy.interval(self.count, each)
        first = _quotients(self.squares_accuracy.interval(self.squares, each), count)
        mean = _quotients(self.total_accuracy.interval(self.total, each), count)
        ends = sorted(end**2 for end in mean)
        least = Fraction(0) if mean[0] <= 0 <= mean[1] else ends[0]
        return self.fold + first[0] - ends[1], self.fold + first[1] - least
