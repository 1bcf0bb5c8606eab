"""Means without tight bounds, in rounds that close in on the rows (CoinPress)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.exact import Number, exact, positive, positive_integer
from discreet.mechanisms.accuracy import NoInterval
from discreet.mechanisms.budget import GaussianNoise
from discreet.mechanisms.fields import check_noise_variance, read_relation, settle
from discreet.mechanisms.grid import exact_number
from discreet.mechanisms.mean import check_size
from discreet.mechanisms.measurement import Measurement
from discreet.mechanisms.release import Release
from discreet.mechanisms.vector_mean import Rows, VectorMean
from discreet.privacy import events
from discreet.privacy.relation import Relation

__all__ = ["CoinPressMean", "as_floats"]

Floats: TypeAlias = NDArray[np.float64]

_SHARES = (Fraction(1, 32),) * 8 + (Fraction(3, 4),)
_COUNT_SHARE = Fraction(1, 20)  # Of a round, under add-remove: the count hardly matters once the centre is near.
_STEPS = 20  # Bits; a radius has that many or one less, in steps.
_PULLED_IN = 0.01  # The chance with which a row of a normal law lies further out than is kept.
_LOST = 1e-10  # The chance with which the next ball misses the mean.
_REASON = NoInterval(
    reason="the mean is that of rows shortened to a ball which earlier rounds found; how far it is from the mean of "
    "the rows themselves depends on the data"
)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CoinPressMean:
    """Average rows whose spread is about known, but not where they lie.

    Each round averages the rows, shortened to a ball around the last average; the ball of the next round is as large as
    the spread and the error of this one. `radius` may be a million times `deviation` and costs a few rounds.

    Guarantee   Gaussian privacy with the mu of `noise`, for all rounds together.
    Theorem     Every round is the mean of rows clipped to a ball that follows from public numbers and from earlier
                rounds; the squares of their mu add up. [BDKU20, DRS22]
    Utility     an error of about deviation (sqrt(d / n) + d / (mu n)), whatever the radius, if no direction has a
                larger deviation. What lies further out is pulled in.
    """

    centre: tuple[Fraction, ...]  # a public guess of the mean
    radius: Fraction  # l2: how far from it the mean may be
    deviation: Fraction  # of a row, in any direction: a public guess from above
    relation: Relation
    noise: GaussianNoise
    size: int | None = None  # the public number of rows, under replace-one
    shares: tuple[Fraction, ...] = _SHARES  # of the budget, one a round

    def __post_init__(self) -> None:
        read_relation(self.relation)
        settle(
            self,
            centre=_place(self.centre),
            radius=positive(self.radius, name="radius"),
            deviation=positive(self.deviation, name="deviation"),
            size=check_size(self.relation, self.size),
            shares=tuple(positive(share, name="a share") for share in self.shares),
        )
        if sum(self.shares) != 1:
            raise InvalidParameter("shares must add up to 1")
        for share in self.shares:
            _ = self._round(1.0, share).event  # Refuses noise that no sampler takes, while nothing is spent yet.
        check_noise_variance(self.noise.squared_multiplier / min(self.shares) / _COUNT_SHARE)

    @property
    def dimension(self) -> int:
        return len(self.centre)

    @property
    def event(self) -> events.GDP:
        return events.GDP(mu_squared=sum(self.shares, Fraction(0)) / self.noise.squared_multiplier)

    def release(self, rows: Rows) -> Release[tuple[Fraction, ...]]:
        """Average with noise."""
        table = as_floats(rows, self.dimension)
        if self.size is not None and len(table) != self.size:
            raise InvalidParameter("the data do not have the declared number of rows")
        centre, near = np.array([float(value) for value in self.centre]), float(self.radius / self.deviation)
        for share in self.shares:
            mean = self._round(near + _reach(self.dimension, _PULLED_IN), share)
            centre, near = self._closer(mean, table, centre)
        return Release(
            value=tuple(Fraction(float(value)) for value in centre),
            event=self.event,
            relation=self.relation,
            accuracy=_REASON,
            delta=self.noise.delta,
        )

    def _round(self, reach: float, share: Fraction) -> VectorMean:
        """Return the mean of rows within so many deviations of the centre."""
        bound = Fraction(reach) * self.deviation
        # A power of two, and a bound of a thousand or two of its multiples, each cut a thousand times once more.
        unit = Fraction(2) ** (math.frexp(float(bound))[1] - _STEPS // 2)
        return VectorMean(
            bound=math.ceil(bound / unit) * unit,
            step=unit / (1 << (_STEPS // 2)),
            dimension=self.dimension,
            relation=self.relation,
            noise=self.noise.part(share),
            size=self.size,
            count_share=_COUNT_SHARE,
        )

    def _closer(self, mean: VectorMean, table: Floats, centre: Floats) -> tuple[Floats, float]:
        """Return the next centre, and how far from the mean it seldom is, in deviations."""
        shifted = table - centre
        summing, *counting = mean.measurements
        totals = np.array([float(total * mean.step) for total in summing.measure(shifted)])
        count = max(float(counting[0].measure(shifted)[0]) if counting else float(len(table)), 1.0)
        moved = totals / count
        # A wrong count stretches the move; noise on the sum and the sampling error of the mean go in all directions.
        stretched = _deviation(counting[0]) / count * float(np.linalg.norm(moved)) if counting else 0.0
        noise = math.hypot(1 / math.sqrt(count), _deviation(summing) * float(mean.step / self.deviation) / count)
        apart = _reach(1, _LOST) * stretched / float(self.deviation) + _reach(self.dimension, _LOST) * noise
        return centre + moved, apart


def _reach(dimension: int, chance: float) -> float:
    """Return how many deviations from its mean a normal vector is with at most this chance. [BDKU20]"""
    log = math.log(1 / chance)
    return math.sqrt(dimension + 2 * math.sqrt(dimension * log) + 2 * log)


def _deviation(measurement: Measurement) -> float:
    """Return the deviation of the noise on each number, in steps of the query."""
    return measurement.unit * measurement.noise.law(measurement.sensitivity).standard_deviation


def as_floats(rows: Any, dimension: int) -> Floats:
    """Read rows of numbers by a total rule: what is no number, and every cell of what is no row, becomes NaN."""
    if isinstance(rows, np.ndarray) and rows.dtype.kind in "biuf":
        rows = rows[:, None] if rows.ndim == dimension == 1 else rows
        if rows.ndim != 2 or rows.shape[1] != dimension:
            raise InvalidParameter("the rows must have the declared dimension")
        return np.asarray(np.ma.filled(rows.astype(np.float64), np.nan))
    return np.array([_cells(row, dimension) for row in rows], dtype=np.float64).reshape(-1, dimension)


def _cells(row: Any, dimension: int) -> list[float]:
    try:
        cells = list(row)
    except TypeError:
        cells = [row]  # A number alone is a row of one.
    return [_float(cell) for cell in cells] if len(cells) == dimension else [math.nan] * dimension


def _float(cell: object) -> float:
    number = exact_number(cell)
    if number is None:
        return math.nan
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _place(centre: Sequence[Number]) -> tuple[Fraction, ...]:
    place = tuple(exact(value, name="centre") for value in centre)
    positive_integer(len(place), name="dimension")
    return place
