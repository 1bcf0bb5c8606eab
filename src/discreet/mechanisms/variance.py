"""The noisy variance of a bounded column, and the covariances of several, with their correlations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import combinations
from math import isqrt
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.formatting import record
from discreet.frames.column import Column, Data, column_of
from discreet.mechanisms.additive_noise import Noise, Sensitivity
from discreet.mechanisms.count import row_query
from discreet.mechanisms.grid import Grid, exact_product_sum, exact_square_sum, exact_sum
from discreet.mechanisms.mean import VarianceAccuracy, check_length, check_size
from discreet.mechanisms.measurement import BoundedQuery, Measurement, joint_distribution, joint_event
from discreet.mechanisms.parameters import settle
from discreet.mechanisms.quotient_intervals import (
    FULLY,
    MeasuredNoise,
    Pair,
    ceiling,
    clipped_ends,
    comoment_ends,
    correlation_ends,
    correlations,
)
from discreet.mechanisms.release import EachCell, Interval, Release
from discreet.mechanisms.sum import centred_reach, centred_step, centred_sum_query, centred_values
from discreet.privacy.events import Event
from discreet.privacy.outcomes import Outcomes
from discreet.privacy.relation import Relation, read_relation

__all__ = [
    "ComomentAccuracy",
    "CorrelationAccuracy",
    "Covariance",
    "RootAccuracy",
    "Variance",
    "correlation_of",
    "fold_of",
    "root_down",
    "root_of",
    "spread_query",
    "square_query",
]

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
            Measurement(query=square_query(self.grid, self.relation), noise=third),
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
            fold=fold_of(self.grid) * step**2,
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


def square_query(grid: Grid, relation: Relation) -> BoundedQuery:
    """The sum of squared distances from the middle, less half of the largest square each.

    What one row adds lies between -fold and reach^2 - fold: half as far from zero as the square itself. One that
    changes moves the sum by reach^2 at most.
    """
    fold = fold_of(grid)

    def evaluate(data: Data) -> tuple[int, ...]:
        distances = centred_values(grid, data)
        return (exact_square_sum(distances) - fold * len(distances),)

    alone = max(fold, centred_reach(grid) ** 2 - fold)
    size = alone if relation is Relation.ADD_REMOVE else centred_reach(grid) ** 2
    return BoundedQuery(evaluate=evaluate, sensitivity=Sensitivity.scalar(size), relation=relation)


def fold_of(grid: Grid) -> int:
    """Return what is taken off every squared distance, in squared centred steps."""
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


# --- covariances: Of several bounded columns, all of them in one release. ---


Columns: TypeAlias = NDArray[Any] | Sequence[Sequence[object]] | Sequence[Column]
_MOST_COLUMNS = 200


@final
@dataclass(frozen=True, slots=True, eq=False)
class _PlacedColumns:
    """Columns on their grids, placed once for all numbers that are computed of them. It never prints them."""

    columns: list[NDArray[np.int64]] = field(repr=False)

    def __getitem__(self, place: int) -> NDArray[np.int64]:
        return self.columns[place]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Covariance:
    """Release the covariances (divisor n) of all pairs of columns and their variances, each value clamped to its grid.

    Under add-remove they come from noisy sums of products and squares, noisy sums, all about the middles of the grids,
    and one noisy count; a product gets two parts of the budget and everything else one. Under replace-one, where the
    number of rows is public, every covariance is one noisy number.

    Guarantee   what the noise spends on the sensitivities, with h half the width of a grid: add-remove h_i h_j for a
                sum of products, h^2 / 2 for squares less half of the largest each, h for a sum, 1 for the count;
                replace-one (n - 1) w_i w_j / n^2 for a covariance, with w the widths.
    Theorem     n^2 times a covariance is the sum of (x_i - x_j) (y_i - y_j) over all pairs; as a function of one unit
                it is (n - 1) (x - a) (y - b) with a and b the means of the others, up to a constant: bilinear, so its
                range is that of the four corners, at most w_x w_y for any a and b within the bounds. A row at a
                corner moves all numbers by their largest at once: what they spend together, sums of epsilons and
                of squared mu, is the joint sensitivity and no bound above it. [DMNS06, DRS22]
    Utility     each interval is a box around the noises behind its cell and covers at least what it says.

    Args:
        grids: For each column the bounds that its values are clamped to, and the step that they are rounded to.
        relation: The neighbouring relation.
        noise: The noise and with it the budget: `LaplaceNoise` or `GaussianNoise`.
        public_rows: The public number of rows, under replace-one; None under add-remove.

    Raises:
        InvalidParameter: If there are fewer than two columns or more than 200, or the public number of rows is missing
            under replace-one or said under add-remove.

    Examples:
        >>> mechanism = dp.mechanisms.Covariance(
        ...     grids=(dp.mechanisms.Grid.between(0, 10, step=1), dp.mechanisms.Grid.between(0, 10, step=1)),
        ...     relation=dp.Relation.REPLACE_ONE,
        ...     noise=dp.mechanisms.LaplaceNoise(epsilon=1),
        ...     public_rows=3,
        ... )
        >>> mechanism.release([[1, 2], [4, 4], [7, 9]]).cost
        'ε = 1'
    """

    grids: tuple[Grid, ...]
    relation: Relation
    noise: Noise
    public_rows: int | None = None  # the public number of rows, under replace-one

    __repr__ = record

    def __post_init__(self) -> None:
        settle(self, grids=tuple(self.grids), relation=read_relation(self.relation))
        settle(self, public_rows=check_size(self.relation, self.public_rows, least=2))
        if not 2 <= len(self.grids) <= _MOST_COLUMNS:
            raise InvalidParameter(f"covariances are of 2 to {_MOST_COLUMNS} columns")
        _ = self.event  # Refuses noise that no sampler takes, while nothing is spent yet.

    @property
    def measurements(self) -> tuple[Measurement, ...]:
        """Replace-one: variances, then pairs. Add-remove: sums of squares, of products of pairs, sums, the count."""
        cells = self._pairs
        if self.public_rows is not None:
            asked = [(self._public_comoment(*cell, self.public_rows), 1) for cell in cells]
        else:
            asked = [(self._comoment(*cell), 1 if cell[0] == cell[1] else 2) for cell in cells]
            asked += [(self._sum(place), 1) for place in range(len(self.grids))]
            asked += [(self._query(1, lambda placed: len(placed[0])), 1)]
        parts = sum(weight for _, weight in asked)
        return tuple(Measurement(query=query, noise=self.noise.part(Fraction(one, parts))) for query, one in asked)

    @property
    def _pairs(self) -> list[tuple[int, int]]:
        places = range(len(self.grids))
        return [*((place, place) for place in places), *combinations(places, 2)]

    def _public_comoment(self, i: int, j: int, size: int) -> BoundedQuery:
        """The whole number n^2 times a covariance, n (sum of k l) - (sum of k) (sum of l), under replace-one."""
        largest = self.grids[i].width * self.grids[j].width * (size - 1)

        def evaluate(placed: _PlacedColumns) -> int:
            one, other = placed[i], placed[j]
            return size * exact_product_sum(one, other) - exact_sum(one) * exact_sum(other)

        return self._query(largest, evaluate)

    def _comoment(self, i: int, j: int) -> BoundedQuery:
        """The sum of products of distances from the middles; of squares, less half of the largest each. Add-remove."""
        fold = fold_of(self.grids[i]) if i == j else 0
        farthest = centred_reach(self.grids[i]) * centred_reach(self.grids[j])
        return self._query(
            max(fold, farthest - fold),
            lambda placed: exact_product_sum(placed[i], placed[j]) - fold * len(placed[i]),
        )

    def _sum(self, place: int) -> BoundedQuery:
        return self._query(centred_reach(self.grids[place]), lambda placed: exact_sum(placed[place]))

    def _query(self, change: int, of: Callable[[_PlacedColumns], int]) -> BoundedQuery:
        return BoundedQuery(
            evaluate=lambda data: (of(self._placed(data)),),
            sensitivity=Sensitivity.scalar(change),
            relation=self.relation,
        )

    @property
    def event(self) -> Event:
        return joint_event(self.measurements)

    def release(self, data: Columns) -> Release[tuple[Fraction, ...]]:
        """Release the matrix of covariances with noise, row by row: each pair stands there twice, with one number."""
        placed = self._placed(data)
        cells = self._cells([measurement.measure(placed)[0] for measurement in self.measurements])
        size = len(self.grids)
        matrix = tuple(cells[min(i, j), max(i, j)] for i in range(size) for j in range(size))
        return Release(
            value=tuple(cell.value for cell in matrix),
            event=self.event,
            relation=self.relation,
            accuracy=EachCell(cells=matrix),
        )

    def distribution(self, data: Columns) -> Outcomes:
        """List the law of the noisy numbers behind the answer."""
        return joint_distribution(self.measurements, self._placed(data))

    def _placed(self, data: Columns | _PlacedColumns) -> _PlacedColumns:
        """Place the columns on their grids, from their middles. This is private."""
        if isinstance(data, _PlacedColumns):
            return data
        columns = _columns(data, len(self.grids))
        if self.public_rows is None:
            placed = [centred_values(grid, column) for grid, column in zip(self.grids, columns, strict=True)]
        else:
            check_length(columns[0], self.public_rows)
            placed = [grid.indices(column) - grid.middle for grid, column in zip(self.grids, columns, strict=True)]
        return _PlacedColumns(placed)

    def _cells(self, noisy: list[int]) -> dict[tuple[int, int], ComomentAccuracy]:
        pairs = self._pairs
        laws = [measurement.noise_in_units for measurement in self.measurements]
        cells = {}
        for at, (i, j) in enumerate(pairs):
            behind = [at] if self.public_rows is not None else [at, *sorted({len(pairs) + i, len(pairs) + j}), -1]
            cells[i, j] = ComomentAccuracy(
                step=self._step(i) * self._step(j),
                fold=fold_of(self.grids[i]) if i == j and self.public_rows is None else 0,
                numbers=tuple(noisy[place] for place in behind),
                noises=tuple(laws[place] for place in behind),
                limits=self._limits(i, j),
                public_rows=self.public_rows,
            )
        return cells

    def _step(self, place: int) -> Fraction:
        grid = self.grids[place]
        return centred_step(grid) if self.public_rows is None else grid.step

    def _limits(self, i: int, j: int) -> tuple[Fraction, Fraction]:
        largest = (self.grids[i].high - self.grids[i].low) * (self.grids[j].high - self.grids[j].low) / 4
        return (Fraction(0) if i == j else -largest), largest


def _columns(data: Columns, width: int) -> list[Column]:
    """Split rows into columns by a total rule: what is no row of this length is missing as a whole. Private."""
    if isinstance(data, np.ndarray):
        if data.ndim != 2 or data.shape[1] != width:
            raise InvalidParameter("the rows must have a value for each of the declared columns")
        return [column_of(data[:, place]) for place in range(width)]
    if len(data) and all(isinstance(part, Column) for part in data):
        if len(data) != width or len({len(part) for part in data}) != 1:
            raise InvalidParameter("there must be a column for each pair of bounds, all of one length")
        return [column_of(part) for part in data]
    rows = [_cells_of(row, width) for row in data]
    return [column_of([row[place] for row in rows]) for place in range(width)]


def _cells_of(row: Any, width: int) -> list[object]:
    """A row that has no cells, or fails while it is asked for them, has none that are known."""
    try:
        cells = list(row.values() if isinstance(row, Mapping) else row)
    except Exception:  # noqa: BLE001 - an error would tell that somebody's row is none
        cells = []
    return cells if len(cells) == width else [None] * width


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ComomentAccuracy:
    """A covariance is fold + (sum of products, less fold each) / count - the product of two means, about any centres.

    Of an empty table it means nothing. Where the number of rows is public it is one noisy number.
    """

    step: Fraction  # of the products
    fold: int
    numbers: tuple[int, ...]  # noisy, as released: products, one sum or two, count; or n^2 times the covariance
    noises: tuple[MeasuredNoise, ...]  # of these
    limits: tuple[Fraction, Fraction]
    public_rows: int | None

    @property
    def value(self) -> Fraction:
        """The released covariance; where the count is private it is kept where covariances can be."""
        raw = self.step * self.quotient
        return raw if self.public_rows is not None else min(max(raw, self.limits[0]), self.limits[1])

    @property
    def quotient(self) -> Fraction:
        """The covariance in steps; where the count says that nobody is there, it is taken for one."""
        if self.public_rows is not None:
            return Fraction(self.numbers[0], self.public_rows**2)
        products, *sums, count = self.numbers
        many = max(1, count)
        return self.fold + Fraction(products, many) - Fraction(sums[0] * sums[-1], many**2)

    @property
    def noise(self) -> None:
        return None

    def interval(self, value: Fraction, confidence: Fraction) -> Interval:
        low, high = self.ends(1 - (1 - confidence) / len(self.noises))
        return self.step * Fraction(int(low[0][0]), int(low[1][0])), self.step * Fraction(
            int(high[0][0]), int(high[1][0])
        )

    def ends(self, each: Fraction) -> tuple[Pair, Pair]:
        """Enclose the covariance, in steps, where each noise is within the reach of its own confidence."""
        reaches = [ceiling(noise.reach(each)) for noise in self.noises]
        boxes = [
            (np.array([number - reach], dtype=object), np.array([number + reach], dtype=object))
            for number, reach in zip(self.numbers, reaches, strict=True)
        ]
        if self.public_rows is not None:
            size = np.array([self.public_rows**2], dtype=object)
            found = (boxes[0][0], size), (boxes[0][1], size)
        else:
            products, *sums, (fewest, most) = boxes
            count = np.maximum(fewest, 1), np.maximum(most, 1)
            found = comoment_ends(products, sums[0], sums[1] if len(sums) == 2 else None, count)
        low, high = ((over + self.fold * under, under) for over, under in found)
        least, largest = (limit / self.step for limit in self.limits)
        return clipped_ends((low, high), least, largest)


# --- correlations: By post-processing of covariances. ---


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CorrelationAccuracy:
    """A covariance over the root of two variances, all three within one box of the noises behind them."""

    covariance: ComomentAccuracy
    spreads: tuple[ComomentAccuracy, ComomentAccuracy]

    @property
    def value(self) -> Fraction:
        """The released correlation; zero where a released variance is not above zero: then its interval holds zero."""
        cells = [_pair(cell.value / cell.step) for cell in (self.covariance, *self.spreads)]
        return Fraction(int(correlations(*cells)[0]), FULLY)

    @property
    def noise(self) -> None:
        return None

    def interval(self, value: Fraction, confidence: Fraction) -> Interval:
        behind = 3 if self.covariance.public_rows is not None else 6  # products, two squares, two sums, count
        each = 1 - (1 - confidence) / behind
        low, high = correlation_ends(self.covariance.ends(each), *(cell.ends(each) for cell in self.spreads))
        return min(Fraction(int(low[0]), FULLY), value), max(Fraction(int(high[0]), FULLY), value)


@final
@dataclass(frozen=True, slots=True)
class _One:
    """The correlation of a column with itself."""

    value: Fraction = Fraction(1)

    @property
    def noise(self) -> None:
        return None

    def interval(self, value: Fraction, confidence: Fraction) -> Interval:
        return Fraction(1), Fraction(1)


def _pair(number: Fraction) -> Pair:
    return np.array([number.numerator], dtype=object), np.array([number.denominator], dtype=object)


def correlation_of(covariances: Release[tuple[Fraction, ...]]) -> Release[tuple[Fraction, ...]]:
    """Return the matrix of correlations of released covariances; it costs nothing more."""
    assert isinstance(covariances.accuracy, EachCell)
    cells = covariances.accuracy.cells
    size = isqrt(len(cells))
    matrix = []
    for place, cell in enumerate(cells):
        i, j = divmod(place, size)
        spreads = cells[i * (size + 1)], cells[j * (size + 1)]
        matrix.append(_One() if i == j else CorrelationAccuracy(covariance=cell, spreads=spreads))  # type: ignore[arg-type]
    return replace(
        covariances,
        value=tuple(cell.value for cell in matrix),
        accuracy=EachCell(cells=tuple(matrix)),
        limits=(Fraction(-1), Fraction(1)),
    )
