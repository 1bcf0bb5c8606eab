"""The noisy proportion of rows that are true."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from numbers import Number as AnyNumber
from typing import final

import numpy as np

from discreet.formatting import record
from discreet.frames.cells import is_missing
from discreet.frames.column import Column, Data, column_of
from discreet.mechanisms.additive_noise import Noise
from discreet.mechanisms.grid import Grid
from discreet.mechanisms.mean import Mean
from discreet.mechanisms.measurement import Measurement
from discreet.mechanisms.parameters import settle
from discreet.mechanisms.release import Release
from discreet.privacy.events import Event
from discreet.privacy.outcomes import Outcomes
from discreet.privacy.relation import Relation

__all__ = ["HALVES", "Proportion", "truths"]

# With steps of one half the middle is a grid point, and a row is exactly one step away from it.
HALVES = Grid(low=Fraction(0), high=Fraction(1), step=Fraction(1, 2), default=Fraction(0))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Proportion:
    """Release the share of rows that are true: True, or a number other than zero. All else is false.

    Guarantee   that of `Mean` on zeros and ones.
    Theorem     A share is the mean of zeros and ones.
    Utility     that of `Mean`; under replace-one with Laplace noise P(|error| > t) <= 2 exp(-epsilon size t).

    Args:
        relation: The neighbouring relation.
        noise: The noise and with it the budget: `LaplaceNoise` or `GaussianNoise`.
        public_rows: The public number of rows, under replace-one; None under add-remove.
        count_share: The part of the budget that pays for a noisy count, under add-remove.

    Raises:
        InvalidParameter: If the public number of rows is missing under replace-one, or said under add-remove.

    Examples:
        >>> mechanism = dp.mechanisms.Proportion(
        ...     relation=dp.Relation.ADD_REMOVE, noise=dp.mechanisms.LaplaceNoise(epsilon=1)
        ... )
        >>> abs(mechanism.release([True] * 500 + [False] * 500).tidy - 0.5) < 0.5
        True
    """

    relation: Relation
    noise: Noise
    public_rows: int | None = None  # the public number of rows, under replace-one
    count_share: Fraction = Fraction(1, 2)  # of the budget, under add-remove

    __repr__ = record

    def __post_init__(self) -> None:
        mean = self._mean
        settle(self, relation=mean.relation, count_share=mean.count_share, public_rows=mean.public_rows)

    @property
    def _mean(self) -> Mean:
        return Mean(
            grid=HALVES,
            relation=self.relation,
            noise=self.noise,
            public_rows=self.public_rows,
            count_share=self.count_share,
        )

    @property
    def measurements(self) -> tuple[Measurement, ...]:
        """The noisy sum, in steps of one half, and under add-remove the noisy count."""
        return self._mean.measurements

    @property
    def event(self) -> Event:
        return self._mean.event

    def release(self, data: Data) -> Release[Fraction]:
        """Release the share with noise."""
        return self._mean.release(truths(column_of(data)))

    def distribution(self, data: Data) -> Outcomes:
        """List the law of the noisy sum, with the noisy count under add-remove."""
        return self._mean.distribution(truths(column_of(data)))


def truths(column: Column) -> Column:
    """Tell for each row whether it is true."""
    values = column.values
    if isinstance(values, np.ndarray) and values.dtype.kind in "biuf":
        true = (values != 0) & (values == values)
    else:
        true = np.array([_true(value) for value in column.objects()], dtype=np.bool_)
    return Column(true if column.missing is None else true & ~column.missing)


def _true(value: object) -> bool:
    if isinstance(value, (AnyNumber, np.bool_)) and not is_missing(value):
        return bool(value)
    return False
