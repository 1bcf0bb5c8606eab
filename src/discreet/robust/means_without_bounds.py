"""Means without tight bounds: CoinPress, and a location with its scale of which neither is known."""

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
from discreet.frames.column import Data, reader_for
from discreet.frames.tables import is_table
from discreet.mechanisms.additive_noise import GaussianNoise
from discreet.mechanisms.grid import Grid, nearest_float, number_rows
from discreet.mechanisms.mean import Mean, check_size
from discreet.mechanisms.measurement import Measurement
from discreet.mechanisms.parameters import rows_if_public, settle
from discreet.mechanisms.release import NoInterval, Release
from discreet.mechanisms.variance import Variance
from discreet.mechanisms.vector_mean import Rows, VectorMean
from discreet.noise.limits import check_noise_variance
from discreet.privacy import events
from discreet.privacy.payer import Payer, paid
from discreet.privacy.relation import Relation, read_relation
from discreet.robust.named_bounds import noise_for
from discreet.robust.tail_bounds import Tails
from discreet.schema.columns import Bounds, pair_of

__all__ = ["CoinPressMean", "LocationAndScale", "as_floats", "coinpress_mean", "location_and_scale"]

# --- means_without_bounds: One-call means without tight bounds. ---


def coinpress_mean(
    rows: Any,
    *,
    centre: Sequence[Number],
    radius: Number,
    deviation: Number,
    relation: Relation | str,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    mu: Number | None = None,
    session: Payer | None = None,
) -> Release[tuple[Fraction, ...]]:
    """Release a multivariate mean (CoinPress): the scale of rows is about known, but not where they lie.

    The mean is within `radius` of `centre`, both public; the radius may be a million deviations.

    Args:
        rows: The private rows: an array or a table of numbers.
        centre: A public guess of the mean, one number a column.
        radius: How far from it the mean may be, in the l2 norm.
        deviation: A public guess, from above, of the standard deviation of a row in any direction.
        relation: The neighbouring relation.
        epsilon: What to spend, with `delta`.
        delta: The delta that goes with epsilon.
        rho: What to spend of zero-concentrated privacy, instead of epsilon.
        mu: What to spend of Gaussian privacy, instead of epsilon.
        session: Who pays, a `Ledger` or a `Session`; it is charged before the data is read. Nobody if not said.

    Returns:
        The noisy mean, one number a column.

    Raises:
        InvalidParameter: If a number is out of range.
        BudgetExceeded: If `session` cannot pay; nothing is read.

    Examples:
        >>> rows = [(170 + i % 7, 70 + i % 5) for i in range(5000)]
        >>> release = dp.robust.coinpress_mean(
        ...     rows, centre=(0, 0), radius=1_000_000, deviation=10, relation=dp.Relation.ADD_REMOVE, rho=0.5
        ... )
        >>> abs(release.value[0] - 173) < 10
        True
    """
    relation = read_relation(relation)
    size = rows_if_public(rows, relation)
    mechanism = CoinPressMean(
        centre=tuple(exact(value, name="centre") for value in centre),
        radius=exact(radius, name="radius"),
        deviation=exact(deviation, name="deviation"),
        relation=relation,
        noise=_gaussian(epsilon, delta, rho, mu, size),
        public_rows=size,
    )
    with paid(session, mechanism, purpose="mean without tight bounds"):
        return mechanism.release(number_rows(rows) if is_table(rows) else rows)


def location_and_scale(
    values: Any,
    *,
    bounds: Bounds,
    relation: Relation | str,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    mu: Number | None = None,
    session: Payer | None = None,
) -> Release[tuple[Fraction, ...]]:
    """Release the mean and the standard deviation of a column within bounds that may be a million times too wide.

    Args:
        values: The private values: a list, an array, or a column of pandas, polars or Arrow.
        bounds: The lower and the upper bound that values are clamped to, public.
        relation: The neighbouring relation.
        epsilon: What to spend, with `delta`.
        delta: The delta that goes with epsilon.
        rho: What to spend of zero-concentrated privacy, instead of epsilon.
        mu: What to spend of Gaussian privacy, instead of epsilon.
        session: Who pays, a `Ledger` or a `Session`; it is charged before the data is read. Nobody if not said.

    Returns:
        The noisy mean and the noisy standard deviation.

    Raises:
        InvalidParameter: If a number is out of range.
        BudgetExceeded: If `session` cannot pay; nothing is read.

    Examples:
        >>> values = [100 + i % 40 for i in range(10_000)]
        >>> release = dp.robust.location_and_scale(
        ...     values, bounds=(-1_000_000, 1_000_000), relation=dp.Relation.ADD_REMOVE, rho=0.5
        ... )
        >>> mean, deviation = release.value
        >>> abs(mean - 119.5) < 10
        True
    """
    relation = read_relation(relation)
    size = rows_if_public(values, relation)
    mechanism = LocationAndScale.between(
        bounds, relation=relation, noise=_gaussian(epsilon, delta, rho, mu, size), public_rows=size
    )
    read = reader_for(values)  # Refuses what is no column, while nothing is paid yet.
    with paid(session, mechanism, purpose="mean and deviation without tight bounds"):
        return mechanism.release(read(values))


def _gaussian(
    epsilon: Number | None, delta: Number | None, rho: Number | None, mu: Number | None, size: int | None
) -> GaussianNoise:
    noise = noise_for(epsilon=epsilon, delta=delta, rho=rho, mu=mu, public_rows=size)
    if not isinstance(noise, GaussianNoise):
        raise InvalidParameter("say epsilon=… with delta=…, rho=… or mu=…: the noise of rounds is Gaussian")
    return noise


# --- coinpress: Means without tight bounds, in rounds that close in on the rows (CoinPress). ---


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
    public_rows: int | None = None  # the public number of rows, under replace-one
    shares: tuple[Fraction, ...] = _SHARES  # of the budget, one a round

    def __post_init__(self) -> None:
        settle(self, relation=read_relation(self.relation))
        settle(
            self,
            centre=_place(self.centre),
            radius=positive(self.radius, name="radius"),
            deviation=positive(self.deviation, name="deviation"),
            public_rows=check_size(self.relation, self.public_rows),
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
        if self.public_rows is not None and len(table) != self.public_rows:
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
            public_rows=self.public_rows,
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
    except Exception:  # noqa: BLE001 - an error would tell that somebody's row is none
        cells = [row]  # A number alone is a row of one.
    return [nearest_float(cell) for cell in cells] if len(cells) == dimension else [math.nan] * dimension


def _place(centre: Sequence[Number]) -> tuple[Fraction, ...]:
    place = tuple(exact(value, name="centre") for value in centre)
    positive_integer(len(place), name="dimension")
    return place


# --- location_scale: The mean and the spread of a column of which neither is known, not even roughly. ---


_BINS = 64
_EDGES = tuple(np.linspace(-1.0, 1.0, _BINS + 1).tolist())
_REACHES = tuple((2.0 ** np.arange(-8.0, 6.01)).tolist())  # In half widths of the last window.
_ZOOMS, _TAILS, _MEAN, _SPREAD = Fraction(3, 10), Fraction(1, 20), Fraction(45, 100), Fraction(2, 10)
_LOCATION_SCALE_COUNT_SHARE = Fraction(1, 10)  # Of what the mean gets, under add-remove.
_FINENESS = 1 << 20  # Steps in half of the last window.
_LOCATION_SCALE_REASON = NoInterval(
    reason="mean and deviation are those of values clamped to bounds which earlier rounds found; what clamping changed "
    "depends on the data"
)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LocationAndScale:
    """Release the mean and the standard deviation of a column within bounds that may be a million times too wide.

    Rounds of noisy histograms of 64 bins close in on the middle half of the values; then noisy counts tell how far
    from there values reach, and mean and variance are measured within bounds that few values exceed.

    Guarantee   Gaussian privacy with the mu of `noise`, for everything together.
    Theorem     Every round counts or adds up values within bounds that follow from public numbers and from earlier
                rounds; the squares of their mu add up. [BDKU20, DRS22]
    Utility     an error of a few deviations / (mu n) in both, if a quarter of the values is far above the noise on a
                count. Values far out are pulled in.
    """

    grid: Grid  # of the declared bounds; as fine as a deviation at least
    relation: Relation
    noise: GaussianNoise
    public_rows: int | None = None  # the public number of values, under replace-one
    rounds: int = 5  # each narrows the window to a sixteenth at best

    def __post_init__(self) -> None:
        settle(self, relation=read_relation(self.relation))
        settle(
            self,
            public_rows=check_size(self.relation, self.public_rows, least=2),
            rounds=positive_integer(self.rounds, name="rounds"),
        )
        if self.rounds > 64:
            raise InvalidParameter("rounds must be at most 64")
        _ = self.zooms, self.tails, self.measured(_Window(self.grid.middle, self.grid.width // 2 + 1))

    @classmethod
    def between(
        cls,
        bounds: Bounds,
        *,
        relation: Relation | str,
        noise: GaussianNoise,
        public_rows: int | None = None,
    ) -> LocationAndScale:
        """Make a grid that is fine enough to find a spread of a millionth of the bounds."""
        relation = read_relation(relation)
        low, high = pair_of(bounds)
        coarse = Grid.between(low, high)
        fine = Grid.between(low, high, step=coarse.step / 10**6)
        return cls(grid=fine, relation=relation, noise=noise, public_rows=public_rows)

    @property
    def zooms(self) -> Tails:
        """The histogram of a round."""
        return self._tails((_EDGES,), _ZOOMS / self.rounds)

    @property
    def tails(self) -> Tails:
        """How far values reach."""
        return self._tails((_REACHES,), _TAILS)

    @property
    def event(self) -> events.GDP:
        return events.GDP(mu_squared=(_ZOOMS + _TAILS + _MEAN + _SPREAD) / self.noise.squared_multiplier)

    def measured(self, window: _Window) -> tuple[Mean, Variance]:
        """What is measured in the end, in steps of the grid."""
        unit = max(1, window.half // _FINENESS)
        reach = -(-window.half // unit)
        first, last = self.grid.first // unit, -(-self.grid.last // unit)
        place = min(max(round(window.centre / unit), first), last)
        grid = Grid(
            low=Fraction(max(place - reach, first) * unit),  # Nothing lies outside of the declared bounds.
            high=Fraction(min(place + reach, last) * unit),
            step=Fraction(unit),
            default=Fraction(place * unit),
        )
        mean = Mean(
            grid=grid,
            relation=self.relation,
            noise=self.noise.part(_MEAN),
            public_rows=self.public_rows,
            count_share=_LOCATION_SCALE_COUNT_SHARE,
        )
        return mean, Variance(
            grid=grid, relation=self.relation, noise=self.noise.part(_SPREAD), public_rows=self.public_rows
        )

    def release(self, data: Data) -> Release[tuple[Fraction, ...]]:
        """Release the mean and the deviation."""
        values = self.grid.indices(data)
        if self.public_rows is not None and len(values) != self.public_rows:
            raise InvalidParameter("the data do not have the declared number of rows")
        mean, variance = self.measured(self._window(values))
        average, squares = mean.release(values).value, variance.release(values).value
        step = self.grid.step
        return Release(
            value=(average * step, Fraction(math.sqrt(max(squares, Fraction(0)))) * step),
            event=self.event,
            relation=self.relation,
            accuracy=_LOCATION_SCALE_REASON,
            labels=("mean", "deviation"),
            delta=self.noise.delta,
        )

    def _tails(self, levels: tuple[tuple[float, ...], ...], share: Fraction) -> Tails:
        spent = share / self.noise.squared_multiplier
        return Tails(levels=levels, relation=self.relation, mu_squared=spent, sure=3.0)

    def _window(self, values: NDArray[np.int64]) -> _Window:
        """Find bounds that few values exceed."""
        window = _Window(self.grid.middle, self.grid.width // 2 + 1)
        for _ in range(self.rounds):
            (counts,) = self.zooms.noisy([np.clip(window.inside(values), -1.0, 1.0)])
            window = window.narrowed(counts)
        beyond = math.sqrt(self.noise.squared_multiplier / _MEAN)
        (reach,) = self.tails.chosen([np.abs(window.inside(values))], beyond)
        widest = self.grid.width  # Wider bounds hold nothing more.
        return _Window(window.centre, min(math.ceil(window.half * reach), widest))


@final
@dataclass(frozen=True, slots=True)
class _Window:
    """Where to look, in steps of the grid. It is public: the bounds, or what noisy counts told."""

    centre: int
    half: int  # of its width

    def inside(self, values: NDArray[np.int64]) -> Floats:
        """Return where values lie, the ends being -1 and 1: each by itself, differences being exact."""
        places: Floats = (values - self.centre) / self.half
        return places

    def narrowed(self, counts: NDArray[np.int64]) -> _Window:
        """Return the window of the middle half of the values, and a bin on each side of it."""
        reached = np.cumsum(counts)
        if reached[-1] <= 0:
            return self
        first, last = (int(np.argmax(reached >= share * reached[-1])) for share in (0.25, 0.75))
        last = max(first, last)
        middle = (first + last + 1) / _BINS - 1.0
        half = (last - first + 3) / _BINS
        return _Window(self.centre + round(middle * self.half), max(1, math.ceil(half * self.half)))
