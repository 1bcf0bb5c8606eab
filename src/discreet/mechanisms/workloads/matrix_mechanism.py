"""Private answers to many linear queries of one table, from the few sums that answer them best."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache, reduce
from itertools import product
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter, Refused
from discreet.formatting import record
from discreet.frames.column import Column, column_of
from discreet.mechanisms.additive_noise import LaplaceNoise, Noise
from discreet.mechanisms.histogram import canonical, read_bins
from discreet.mechanisms.measurement import BoundedQuery, Measurement, joint_distribution, joint_event
from discreet.mechanisms.parameters import settle
from discreet.mechanisms.release import Interval, Release
from discreet.mechanisms.workloads.linear_queries import MOST_CELLS, Factor, Floats, read_queries
from discreet.mechanisms.workloads.strategy_matrix import StrategyFactor, StrategyMatrix, answers_all, best_strategy
from discreet.noise.laws import DiscreteLaplaceLaw, RoundedGaussianLaw
from discreet.privacy.events import Event
from discreet.privacy.outcomes import Outcomes
from discreet.privacy.relation import Relation, read_relation

__all__ = ["AIMS", "CountedCells", "MatrixMechanism", "WorkloadAccuracy"]

Integers: TypeAlias = NDArray[np.int64]
Cells: TypeAlias = tuple[tuple[Hashable, ...], ...]

AIMS = ("sum", "largest")
_MOST_LABELS = 10_000
_MOST_PAIRS = 4096


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixMechanism:
    """Answer linear queries of the cells of a table: sums of a strategy get noise, and all answers follow from these.

    A row is in one cell, that of its values; what is in no cell is not counted. `best` searches the strategy.

    Guarantee   what the noise spends on the largest norm of what one unit moves: a column of the strategy, or the
                difference of two under replace-one, l1 for Laplace and l2 for Gaussian noise, in whole numbers.
    Theorem     Noise on A x hides a unit of x as it hides its column of A; answers are computed from what was released
                and cost nothing more. With W = B A the answers B (A x + noise) are right on average. [LMHMR15]
    Utility     covariance B Bᵀ times the variance of the noise: least squares. Errors of answers are correlated, see
                `WorkloadAccuracy.covariance`.

    Args:
        cells: For each column its public values; cells are all combinations, the last column running fastest.
        queries: The factors of the queries, one a column, or one for the whole table.
        strategy: The whole-number sums that are measured, with factors of the same sizes.
        relation: The neighbouring relation.
        noise: The noise and with it the budget: `LaplaceNoise` or `GaussianNoise`.
        bound: What no strategy gets below with Gaussian noise of variance and sensitivity one, where that is known.
        aim: "sum" or "largest": which of the variances `bound` is about.
        labels: The public names of the queries; their cells if not said.

    Raises:
        InvalidParameter: If sizes do not fit, or the queries do not follow from the strategy.

    Examples:
        >>> noise = dp.mechanisms.GaussianNoise.for_rho(1)
        >>> mechanism = dp.mechanisms.MatrixMechanism.best(
        ...     "prefix", cells=[range(16)], relation=dp.Relation.ADD_REMOVE, noise=noise
        ... )
        >>> release = mechanism.release([3, 3, 7, 12])
        >>> len(release.value), mechanism.ratio < 1.05
        (16, True)
    """

    cells: Cells
    queries: tuple[Factor, ...]
    strategy: StrategyMatrix
    relation: Relation
    noise: Noise
    bound: float | None = None
    aim: str = "sum"
    labels: tuple[str, ...] | None = None

    __repr__ = record

    def __post_init__(self) -> None:
        settle(self, cells=tuple(read_bins(one) for one in self.cells), relation=read_relation(self.relation))
        settle(self, queries=tuple(self.queries), aim=_aim(self.aim))
        sizes = [factor.size for factor in self.queries]
        if sizes != [factor.size for factor in self.strategy.factors] or math.prod(sizes) != math.prod(
            map(len, self.cells)
        ):
            raise InvalidParameter("cells, queries and strategy must be of the same sizes")
        if not all(map(answers_all, self.queries, self.strategy.factors)):
            raise InvalidParameter("these queries do not follow from what the strategy measures")
        _ = self.event  # Refuses noise that no sampler takes, while nothing is spent yet.

    @classmethod
    def best(
        cls,
        queries: Any,
        *,
        cells: Sequence[Sequence[Hashable]] | Mapping[str, Sequence[Hashable]],
        relation: Relation | str,
        noise: Noise,
        aim: str = "sum",
        best_for: Any = None,
    ) -> MatrixMechanism:
        """Search the strategy for which the sum of all variances is least, or the largest of them.

        `queries`, and `best_for` if the strategy shall be best for others, are a matrix, a name, or one of these for
        each column, by its name.
        """
        relation, names = read_relation(relation), tuple(cells) if isinstance(cells, Mapping) else None
        bins = tuple(read_bins(one) for one in (cells.values() if isinstance(cells, Mapping) else cells))
        sizes = [len(one) for one in bins]
        if math.prod(sizes) > MOST_CELLS:
            raise Refused(
                f"these are {math.prod(sizes):,} cells",
                reason=f"at most {MOST_CELLS:,} are counted",
                way_out="make cells coarser, or leave columns out",
            )
        asked = read_queries(queries, sizes, names)
        aimed = asked if best_for is None else read_queries(best_for, sizes, names, listed=False)
        if len(aimed) != len(asked):
            raise InvalidParameter("queries and best_for must both be matrices, or both say a factor for each column")
        pure = isinstance(noise, LaplaceNoise)
        strategy, bound = best_strategy(aimed, pure=pure, relation=relation, largest=_aim(aim) == "largest")
        return cls(
            cells=bins,
            queries=asked,
            strategy=strategy,
            relation=relation,
            noise=noise,
            bound=bound if best_for is None else None,
            aim=aim,
            labels=_names_of_products(queries, names, bins),
        )

    @property
    def measurements(self) -> tuple[Measurement, ...]:
        """The noisy sums of the strategy."""
        query = BoundedQuery(
            evaluate=lambda data: tuple(self.strategy.measured(self.counts(data)).tolist()),
            sensitivity=self.strategy.sensitivity(self.relation),
            relation=self.relation,
        )
        return (Measurement(query=query, noise=self.noise),)

    @property
    def event(self) -> Event:
        return joint_event(self.measurements)

    @property
    def accuracy(self) -> WorkloadAccuracy:
        """How sure all answers are, known before anything is read."""
        (measurement,) = self.measurements
        return WorkloadAccuracy(
            queries=self.queries,
            strategy=self.strategy,
            inverses=tuple(_inverse_of(one) for one in self.strategy.factors),
            law=self.noise.law(measurement.sensitivity),
            unit=measurement.unit,
        )

    @property
    def ratio(self) -> float | None:
        """Return how many times the variance of the best strategy this has, at most; where that is known."""
        if self.bound is None or isinstance(self.noise, LaplaceNoise):
            return None
        variances = self.accuracy.variances_of_one()
        squared = self.strategy.sensitivity(self.relation).squared_l2
        reached = float(variances.max() if self.aim == "largest" else variances.sum())
        return reached * squared / self.bound

    def release(self, data: Any) -> Release[tuple[Fraction, ...]]:
        """Answer all queries with noise."""
        (measurement,) = self.measurements
        accuracy = self.accuracy
        answers = accuracy.answers(measurement.measure(data))
        step = accuracy.step
        return Release(
            value=tuple(Fraction(number * step.numerator, step.denominator) for number in _rounded(answers, step)),
            event=self.event,
            relation=self.relation,
            accuracy=accuracy,
            labels=self.labels or _labels(self.queries, self.cells),
        )

    def distribution(self, data: Any) -> Outcomes:
        """List the law of the noisy sums behind the answers."""
        return joint_distribution(self.measurements, data)

    def counts(self, data: Any) -> Integers:
        """Count the rows of each cell. Data and counts are private."""
        if isinstance(data, CountedCells):
            return data.counts
        columns = _columns(data, len(self.cells))
        place = np.zeros(len(columns[0]), np.int64)
        inside = np.ones(len(columns[0]), np.bool_)
        for column, bins in zip(columns, self.cells, strict=True):
            codes = _codes(column, bins)
            inside &= codes >= 0
            place = place * len(bins) + codes
        return np.bincount(place[inside], minlength=math.prod(map(len, self.cells))).astype(np.int64)


@final
@dataclass(frozen=True, slots=True, eq=False)
class CountedCells:
    """Rows that were counted by cells elsewhere, each unit in one cell at most. It never prints them."""

    counts: Integers = field(repr=False)


def _aim(aim: str) -> str:
    if aim not in AIMS:
        raise InvalidParameter(f"aim must be one of {', '.join(AIMS)}: the variances that shall be small")
    return aim


def _rounded(answers: Floats, step: Fraction) -> list[int]:
    return [round(answer) for answer in (answers / float(step)).tolist()]


# --- rows: Which cell each row is in. ---


def _columns(data: Any, width: int) -> list[Column]:
    """Split rows into columns by a total rule: what is no row of this length is in no cell. Private."""
    if width == 1 and not (isinstance(data, list) and len(data) == 1 and isinstance(data[0], Column)):
        return [column_of(data)]
    if isinstance(data, np.ndarray):
        if data.ndim != 2 or data.shape[1] != width:
            raise InvalidParameter("the rows must have a value for each of the declared columns")
        return [column_of(data[:, place]) for place in range(width)]
    if len(data) and all(isinstance(part, Column) for part in data):
        if len(data) != width or len({len(part) for part in data}) != 1:
            raise InvalidParameter("there must be a column for each list of cells, all of one length")
        return list(data)
    rows = [_values_of(row, width) for row in data]
    return [Column([row[place] for row in rows]) for place in range(width)]


_NOWHERE = float("nan")  # It is missing, and equals no cell but one for what is missing.


def _values_of(row: Any, width: int) -> Sequence[object]:
    try:
        values = tuple(row.values() if isinstance(row, Mapping) else row)
    except Exception:  # noqa: BLE001 - an error would tell that somebody's row is none
        values = ()
    return values if len(values) == width else (_NOWHERE,) * width


def _codes(column: Column, bins: tuple[Hashable, ...]) -> Integers:
    """Return the place of each value among the bins, or -1."""
    places = {value: place for place, value in enumerate(bins)}
    values = column.values
    if not (isinstance(values, np.ndarray) and values.dtype.kind in "biufU"):
        return np.array([places.get(canonical(value), -1) for value in column.objects()], np.int64)
    distinct, back = np.unique(values, return_inverse=True)
    codes = np.array([places.get(canonical(value), -1) for value in distinct.tolist()], np.int64)
    found = codes[back.reshape(-1)] if len(values) else np.zeros(0, np.int64)
    return found if column.missing is None else np.where(column.missing, places.get(None, -1), found)


def _labels(queries: tuple[Factor, ...], cells: Cells) -> tuple[str, ...] | None:
    """Name all answers, where they are few."""
    if math.prod(factor.answers for factor in queries) > _MOST_LABELS:
        return None
    if len(queries) != len(cells):
        return tuple(f"query {place}" for place in range(1, queries[0].answers + 1))
    each = [list(_names(factor, bins)) for factor, bins in zip(queries, cells, strict=True)]
    return tuple(", ".join(filter(None, parts)) or "total" for parts in product(*each))


def _names_of_products(queries: Any, names: tuple[str, ...] | None, cells: Cells) -> tuple[str, ...] | None:
    """Name the answers of several products, one after the other; None for what is no list of products."""
    if not isinstance(queries, (list, tuple)) or not all(isinstance(one, Mapping) for one in queries):
        return None
    sizes = [len(bins) for bins in cells]
    each = [_labels(read_queries(one, sizes, names), cells) for one in queries]
    return None if None in each else tuple(name for one in each for name in one or ())


def _names(factor: Factor, bins: tuple[Hashable, ...]) -> Iterator[str]:
    match factor.name:
        case "identity":
            yield from map(str, bins)
        case "total":
            yield ""
        case "prefix":
            yield from (f"… {last}" for last in bins)
        case "range":
            for first, one in enumerate(bins):
                yield from (str(one) if one is last else f"{one} … {last}" for last in bins[first:])
        case _:
            yield from (f"query {place}" for place in range(1, factor.answers + 1))


# --- accuracy: What noise on the sums means for the answers. ---


def _inverse_of(factor: StrategyFactor) -> Floats | None:
    return None if factor.matrix is None else factor.inverse()


@final
@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class WorkloadAccuracy:
    """Answers are sums of the same noises: each has an interval of its own, and any two a covariance.

    Theorem     Rounded Gaussian noise is at most half a step from Gaussian noise, and discrete Laplace noise, the
                difference of two exponential ones rounded down, less than one from Laplace noise. By Cauchy and Schwarz
                an answer b·noise is that far, times the root of their number and |b|, from a sum of continuous noises:
                which is normal, or a mixture of normal ones with the variance V = 2 Σ b² E, E exponential.
    Theorem     P[|Y| > y] is the mean of g(V) = P[|Z| > y / √V]. Any parabola that is nowhere below g bounds it by
                the mean and the variance of V; exp bounds it by Chernoff's way. The smaller one is taken.

    Args:
        queries: The factors of the queries.
        strategy: What was measured.
        inverses: For each factor the matrix from sums to cells; None for identities and totals.
        law: The noise of each sum, in units.
        unit: The distance of possible sums.
    """

    queries: tuple[Factor, ...]
    strategy: StrategyMatrix
    inverses: tuple[Floats | None, ...] = field(repr=False)
    law: DiscreteLaplaceLaw | RoundedGaussianLaw
    unit: int

    @property
    def noise(self) -> None:
        return None

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise of each sum, in grid steps of the strategy."""
        return self.unit * self.law.standard_deviation

    def variances_of_one(self) -> Floats:
        """Return the variances of all answers for noise of variance one on the sums, in order."""
        return self._outer(0) / float(self.strategy.fine) ** 2

    @property
    def standard_errors(self) -> Floats:
        """The standard deviation of each answer, in order."""
        return np.sqrt(self.variances_of_one()) * self.deviation

    @property
    def step(self) -> Fraction:
        """What answers are rounded to: a power of ten below a thousandth of the least standard deviation."""
        least = float(self.standard_errors.min())
        return Fraction(10) ** (math.floor(math.log10(least)) - 3)

    def answers(self, sums: Sequence[int]) -> Floats:
        """Return all answers by least squares from noisy sums, in order."""
        found = np.array(sums, dtype=np.float64).reshape([factor.rows for factor in self.strategy.factors])
        found = found / self.strategy.fine
        for axis, (factor, inverse) in enumerate(zip(self.strategy.factors, self.inverses, strict=True)):
            found = self.queries[axis].apply(factor.undo(found, inverse, axis), axis)
        return found.reshape(-1)

    def interval(self, value: Sequence[Fraction | int], confidence: Fraction) -> tuple[Interval, ...]:
        step, size = self.step, max(abs(float(part)) for part in value)
        deviations = self.standard_errors
        wide = self._multiples(1 - confidence) * (1 + _FLOATS)
        rounding = (0.5 if isinstance(self.law, RoundedGaussianLaw) else 1.0) * self.unit
        off = deviations * (rounding * math.sqrt(self.strategy.rows) / self.deviation) + _FLOATS * size
        half = np.ceil((wide * deviations + off) / float(step)) + 1
        reaches = [Fraction(int(number) * step.numerator, step.denominator) for number in half.tolist()]
        return tuple((part - reach, part + reach) for part, reach in zip(value, reaches, strict=True))

    def covariance(self, places: Sequence[int] | None = None) -> Floats:
        """Return the covariance of the answers at some places, or of all if they are few; the square of `±` is not it.

        Args:
            places: The places of answers, from 0 on; all if not said.

        Returns:
            A matrix with one row and one column for each of them.

        Raises:
            InvalidParameter: If these are more than 4,096, or there is no such place.
        """
        number = math.prod(factor.answers for factor in self.queries)
        chosen = np.arange(min(number, _MOST_PAIRS + 1)) if places is None else np.array(places, np.int64)
        if chosen.ndim != 1 or not 0 < chosen.size <= _MOST_PAIRS or chosen.min() < 0 or chosen.max() >= number:
            raise InvalidParameter(f"say places=[…], from 1 to {_MOST_PAIRS:,} places of answers")
        each = np.unravel_index(chosen, [factor.answers for factor in self.queries])
        found = np.full((chosen.size, chosen.size), (self.deviation / self.strategy.fine) ** 2)
        for query, factor, inverse, rows in zip(self.queries, self.strategy.factors, self.inverses, each, strict=True):
            found *= _products(query, factor, inverse, rows)
        return found

    def standard_error(self, weights: Sequence[float] | Floats) -> float:
        """Return the standard deviation of a weighted sum of all answers.

        Args:
            weights: One weight for each answer, in order.

        Returns:
            The standard deviation that the noise gives to the sum.

        Raises:
            InvalidParameter: If there is not one weight for each answer.
        """
        found = np.asarray(weights, np.float64)
        shape = [factor.answers for factor in self.queries]
        if found.shape != (math.prod(shape),) or not np.isfinite(found).all():
            raise InvalidParameter("there must be one weight for each answer, in order")
        found = found.reshape(shape)
        for axis, (factor, inverse) in enumerate(zip(self.strategy.factors, self.inverses, strict=True)):
            found = self.queries[axis].gathered(found, axis)
            if inverse is not None:
                found = np.moveaxis(np.tensordot(inverse.T, np.moveaxis(found, axis, 0), axes=1), 0, axis)
            elif factor.name == "total":
                found = found.mean(axis=axis, keepdims=True)
        return float(np.sqrt(np.sum(found**2)) * self.deviation / self.strategy.fine)

    def _multiples(self, outside: Fraction) -> Floats:
        """Return for each answer the half width of its interval, in standard deviations."""
        if isinstance(self.law, RoundedGaussianLaw):
            return np.array(_normal_multiple(float(outside)))
        squares, fourths = self._outer(0), self._outer(1)
        # The variance of V over its squared mean, rounded up to a power of 2^(1/16).
        spreads = np.clip(fourths / squares**2 * (1 + 1e-9), 1e-9, 1)
        alone = spreads >= 1 - 1e-9
        grades = np.where(alone, _ALONE, np.floor(-16 * np.log2(spreads))).astype(np.int64)
        table = {grade: _mixture_multiple(grade, float(outside)) for grade in np.unique(grades).tolist()}
        return np.array([table[grade] for grade in grades.tolist()])

    def _outer(self, power: int) -> Floats:
        each = [
            _powers(query, factor, inverse)[power]
            for query, factor, inverse in zip(self.queries, self.strategy.factors, self.inverses, strict=True)
        ]
        return np.asarray(reduce(lambda one, other: np.multiply.outer(one, other).reshape(-1), each))


def _powers(query: Factor, factor: StrategyFactor, inverse: Floats | None) -> tuple[Floats, Floats]:
    """Return for each query the sums of squares and of fourth powers of its weights of sums."""
    if factor.name == "total":
        return np.ones(1), np.ones(1)
    if inverse is None and not query.is_dense:
        weight = float(query.size) if query.name == "total" else 1.0
        return np.full(query.answers, weight), np.full(query.answers, weight)
    dense = np.eye(query.size) if inverse is None else inverse
    return query.squares(dense @ dense.T), query.fourth_powers(dense)


def _products(query: Factor, factor: StrategyFactor, inverse: Floats | None, places: Integers) -> Floats:
    """Return the products of the weights of sums of any two of some queries."""
    if factor.name == "total" or query.name == "total":
        (square,), _ = _powers(query, factor, inverse)
        return np.full((places.size, places.size), square)
    if inverse is None and query.name == "identity":
        return np.asarray(places[:, None] == places[None, :], np.float64)
    weights = query.rows(places) if inverse is None else query.rows(places) @ inverse
    return np.asarray(weights @ weights.T)


_ALONE = -1  # The grade of an answer with a single noise.
_FLOATS = 2.0**-32  # Answers are computed in floats: more than they lose, of the largest.
_TILTS = np.linspace(0.002, 0.998, 250)
_POINTS = np.concatenate([np.linspace(0, 4, 1601), np.geomspace(4.01, 1e4, 400)])
_TANGENTS = np.linspace(0.4, 2.5, 43)


@lru_cache(256)
def _normal_multiple(outside: float) -> float:
    from scipy.special import ndtri

    return float(-ndtri(outside / 2))


@lru_cache(4096)
def _mixture_multiple(grade: int, outside: float) -> float:
    """Return a z with P[|Y| > z] at most `outside`, for mixtures with V of mean one and variance 2^(-grade / 16)."""
    if grade == _ALONE:
        return -math.log(outside) / math.sqrt(2)  # A single Laplace noise, of variance one.
    spread = 2 ** (-grade / 16)
    low, high = 0.0, 1.0
    while _mixture_tail(high, spread) > outside:
        high *= 2
    for _ in range(24):
        middle = (low + high) / 2
        low, high = (low, middle) if _mixture_tail(middle, spread) <= outside else (middle, high)
    return high


def _mixture_tail(z: float, spread: float) -> float:
    """Bound P[|Y| > z] from above."""
    return min(_chernoff(z, spread), _parabola(z, spread), 1.0)


def _chernoff(z: float, spread: float) -> float:
    """No part of V is above the root of its variance, and the logarithm of the moments is convex in the parts."""
    part = math.sqrt(spread)
    tilts = _TILTS * math.sqrt(2 / part)
    return float(2 * np.exp(np.min(-tilts * z - np.log1p(-(tilts**2) * part / 2) / part)))


def _parabola(z: float, spread: float) -> float:
    """The least mean of a parabola that touches g, and is above it: 2^-20 more, for what lies between points."""
    from scipy.special import ndtr

    least = 1.0
    values = np.where(_POINTS > 0, 2 * ndtr(-z / np.sqrt(np.maximum(_POINTS, 1e-12))), 0.0)
    for touch in _TANGENTS.tolist():
        root = z / math.sqrt(touch)
        value = 2 * float(ndtr(-root))
        slope = math.exp(-(root**2) / 2) / math.sqrt(2 * math.pi) * root / touch
        away = _POINTS - touch
        far = np.abs(away) > 1e-3
        bend = slope / (2 * touch) * (root**2 - 3) / 2  # Half of the second derivative, where it touches.
        bend = max(bend, float(np.max((values[far] - value - slope * away[far]) / away[far] ** 2)), 0.0) * (1 + 2**-20)
        least = min(least, value + slope * (1 - touch) + bend * (spread + (1 - touch) ** 2))
    return least
