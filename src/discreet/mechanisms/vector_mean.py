"""The noisy mean of vectors, each clipped to a Euclidean ball."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.exact import positive, positive_integer
from discreet.formatting import record
from discreet.mechanisms.additive_noise import Noise, Sensitivity
from discreet.mechanisms.grid import Grid, exact_sum
from discreet.mechanisms.mean import MeanAccuracy, check_size
from discreet.mechanisms.measurement import BoundedQuery, Measurement, joint_distribution, joint_event
from discreet.mechanisms.parameters import read_share, settle
from discreet.mechanisms.release import EachCell, Release
from discreet.privacy.events import Event
from discreet.privacy.outcomes import Outcomes
from discreet.privacy.relation import Relation, read_relation

__all__ = ["Rows", "VectorMean", "clip_to_ball"]

Rows: TypeAlias = NDArray[Any] | Sequence[Sequence[object]]

_LARGEST = 1 << 62
_SHRUNK = 1 - 2.0**-40  # Far more than the rounding of the three float operations behind it.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class VectorMean:
    """Average rows, each rounded to the grid and clipped to a Euclidean ball around zero.

    Guarantee   what the noise spends on the sum: l2 sensitivity `bound` under add-remove, twice that under
                replace-one; l1 at most sqrt(dimension) times as much. Under add-remove a noisy count gets the part
                `count_share`.
    Theorem     A clipped row is a vector of whole numbers whose norm is at most the bound, in exact arithmetic: it is
                rounded towards zero after scaling. [DMNS06, BW18]
    Utility     that of the noise, plus what clipping takes away.

    Args:
        bound: The largest Euclidean length of a row; longer ones are clipped.
        step: The grid of each number.
        dimension: How many numbers a row has.
        relation: The neighbouring relation.
        noise: The noise and with it the budget: `LaplaceNoise` or `GaussianNoise`.
        public_rows: The public number of rows, under replace-one; None under add-remove.
        count_share: The part of the budget that pays for a noisy count, under add-remove.

    Raises:
        InvalidParameter: If the bound is no multiple of the step, or the step too fine.

    Examples:
        >>> mechanism = dp.mechanisms.VectorMean(
        ...     bound=1,
        ...     step=0.001,
        ...     dimension=2,
        ...     relation=dp.Relation.REPLACE_ONE,
        ...     noise=dp.mechanisms.GaussianNoise.for_rho(0.5),
        ...     public_rows=100,
        ... )
        >>> len(mechanism.release([[0.6, 0.8]] * 100).value)
        2
    """

    bound: Fraction  # l2, of each row
    step: Fraction
    dimension: int
    relation: Relation
    noise: Noise
    public_rows: int | None = None  # the public number of rows, under replace-one
    count_share: Fraction = Fraction(1, 2)  # of the budget, under add-remove

    __repr__ = record

    def __post_init__(self) -> None:
        settle(
            self,
            bound=positive(self.bound, name="bound"),
            step=positive(self.step, name="step"),
            count_share=read_share(self.count_share, name="count_share"),
            dimension=positive_integer(self.dimension, name="dimension"),
        )
        settle(self, relation=read_relation(self.relation))
        settle(self, public_rows=check_size(self.relation, self.public_rows))
        if (self.bound / self.step).denominator != 1:
            raise InvalidParameter("bound must be a multiple of step")
        if self.dimension * self.radius**2 >= _LARGEST:
            raise InvalidParameter(
                "bound, in steps, squared, times dimension must stay below 2^62: choose a larger step"
            )
        _ = self.event  # Refuses noise that no sampler takes, while nothing is spent yet.

    @property
    def radius(self) -> int:
        """The bound, in steps."""
        return int(self.bound / self.step)

    @property
    def measurements(self) -> tuple[Measurement, ...]:
        """The noisy sum, and under add-remove the noisy count."""
        if self.relation is Relation.REPLACE_ONE:
            return (Measurement(query=self._sum_query(2), noise=self.noise),)
        return (
            Measurement(query=self._sum_query(1), noise=self.noise.part(1 - self.count_share)),
            Measurement(query=_rows_query(self.relation), noise=self.noise.part(self.count_share)),
        )

    @property
    def event(self) -> Event:
        return joint_event(self.measurements)

    def release(self, rows: Rows) -> Release[tuple[Fraction, ...]]:
        """Average with noise."""
        return self._ratio(rows) if self.public_rows is None else self._fixed(rows, self.public_rows)

    def distribution(self, rows: Rows) -> Outcomes:
        """List the law of the noisy sum, with the noisy count under add-remove."""
        return joint_distribution(self.measurements, rows)

    def clip(self, rows: Rows) -> NDArray[np.int64]:
        """Place rows on the grid and clip them. What is no row of this length counts as zero. This is private."""
        grid = Grid(low=-self.bound, high=self.bound, step=self.step, default=Fraction(0))
        if isinstance(rows, np.ndarray):
            if rows.ndim != 2 or rows.shape[1] != self.dimension:
                raise InvalidParameter("the rows must have the declared dimension")
            flat: NDArray[Any] | list[object] = rows.reshape(-1)
        else:
            flat = [value for row in rows for value in _cells(row, self.dimension)]
        return clip_to_ball(grid.indices(flat).reshape(-1, self.dimension), self.radius)

    def _sum_query(self, times: int) -> BoundedQuery:
        squared = (times * self.radius) ** 2

        def evaluate(rows: Rows) -> tuple[int, ...]:
            clipped = self.clip(rows)
            return tuple(exact_sum(clipped[:, column]) for column in range(self.dimension))

        # By Cauchy-Schwarz the l1 norm is at most sqrt(dimension) times the l2 norm; it is a whole number.
        sensitivity = Sensitivity(l1=isqrt(self.dimension * squared), squared_l2=squared, dimension=self.dimension)
        return BoundedQuery(evaluate=evaluate, sensitivity=sensitivity, relation=self.relation)

    def _fixed(self, rows: Rows, size: int) -> Release[tuple[Fraction, ...]]:
        if len(rows) != size:
            raise InvalidParameter("the data do not have the declared number of rows")
        (summing,) = self.measurements
        step = self.step / size
        return self._released(
            tuple(total * step for total in summing.measure(rows)), EachCell(cells=(summing.accuracy(step),))
        )

    def _ratio(self, rows: Rows) -> Release[tuple[Fraction, ...]]:
        summing, counting = self.measurements
        totals, (count,) = summing.measure(rows), counting.measure(rows)
        cells = tuple(
            MeanAccuracy(
                centre=Fraction(0),
                step=self.step,
                reach=self.radius,
                total=total,
                count=count,
                noises=(summing.noise_in_units, counting.noise_in_units),
            )
            for total in totals
        )
        means = tuple(min(max(cell.quotient, -self.bound), self.bound) for cell in cells)
        return self._released(means, EachCell(cells=cells))

    def _released(self, value: tuple[Fraction, ...], accuracy: EachCell) -> Release[tuple[Fraction, ...]]:
        return Release(
            value=value,
            event=self.event,
            relation=self.relation,
            accuracy=accuracy,
            limits=(-self.bound, self.bound),
        )


def _cells(row: Any, dimension: int) -> list[object]:
    """Read one row by a total rule: an error would tell that somebody's row is none."""
    try:
        cells = list(row)
    except Exception:  # noqa: BLE001 - as said
        cells = []
    return cells if len(cells) == dimension else [0] * dimension


def _rows_query(relation: Relation) -> BoundedQuery:
    return BoundedQuery(evaluate=lambda rows: (len(rows),), sensitivity=Sensitivity.scalar(1), relation=relation)


def clip_to_ball(rows: NDArray[np.int64], radius: int) -> NDArray[np.int64]:
    """Shorten the rows of whole numbers that are longer than `radius`, rounding towards zero.

    Every entry ends strictly below radius / norm times itself, or at zero, so the norm ends at most at the radius.
    """
    squares = (rows * rows).sum(axis=1)
    long = squares > radius**2
    factors = radius / np.sqrt(squares[long]) * _SHRUNK
    clipped = rows.copy()
    clipped[long] = np.trunc(rows[long] * factors[:, None]).astype(np.int64)
    return clipped
