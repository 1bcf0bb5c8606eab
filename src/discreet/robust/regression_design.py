"""The public frame of a regression: bounds of each column, and rows as vectors of whole numbers in a ball."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.exact import exact
from discreet.formatting import record
from discreet.frames.column import Data
from discreet.mechanisms.additive_noise import Sensitivity
from discreet.mechanisms.grid import Grid, exact_sum
from discreet.mechanisms.parameters import settle
from discreet.mechanisms.vector_mean import Rows, clip_to_ball
from discreet.privacy.relation import Relation
from discreet.robust.loss_functions import Floats, Psi
from discreet.schema.columns import Bounds, pair_of

__all__ = [
    "HALF",
    "Design",
    "Integers",
    "Records",
    "RegressionColumns",
    "RegressionRows",
    "Scores",
    "Triangle",
    "centred",
    "record_columns",
]

# --- design ---
# The public frame of a regression: bounds of each feature and of the response, and rows of whole numbers in it.


Integers: TypeAlias = NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True)
class RegressionColumns:
    """Records by columns, the response last; whose each is where units have several, and weights. Never printed."""

    columns: Sequence[Data] = field(repr=False)
    units: Integers | None = field(default=None, repr=False)  # numbers from 0 on
    weights: Integers | None = field(default=None, repr=False)  # shares of the heaviest, in steps of 1 / HALF

    def __len__(self) -> int:
        return len(self.columns[0])


Records: TypeAlias = Rows | RegressionColumns

HALF = 1 << 20  # Steps from the middle of the bounds to either of them.
_MOST_FEATURES = 1000


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """Bounds that turn a record (features, response) into a row (1, x_1, …, x_d, y) within [-1, 1], in steps.

    Each value is clamped to its bounds, which must not be read from the data, and moved by public numbers so that the
    bounds become -1 and 1. What is missing or no number counts as the middle of its bounds. A row depends on its own
    record and on nothing else.

    Args:
        features: The public bounds (low, high) of each feature; `Design.between` reads any numbers.
        response: The public bounds of the response.

    Raises:
        InvalidParameter: If there is no feature, or a low bound is not below its high one.

    Examples:
        >>> design = dp.robust.Design.between([(0, 120), (0, 1)], (0, 100_000))
        >>> design.dimension  # with the intercept
        3
    """

    features: tuple[tuple[Fraction, Fraction], ...]
    response: tuple[Fraction, Fraction]

    __repr__ = record

    def __post_init__(self) -> None:
        features = tuple(_read(pair, "feature") for pair in self.features)
        if not 1 <= len(features) <= _MOST_FEATURES:
            raise InvalidParameter(f"say the bounds of at least one feature and at most {_MOST_FEATURES}")
        settle(self, features=features, response=_read(self.response, "response"))
        _ = self.grids  # Refuses bounds that no grid has.

    @classmethod
    def between(cls, features: Iterable[Bounds], response: Bounds) -> Design:
        """Read bounds of any numbers, one pair a feature."""
        try:
            pairs = tuple(features)
        except TypeError:
            raise InvalidParameter("bounds of the features must be a list of pairs (low, high)") from None
        return cls(features=pairs, response=response)  # type: ignore[arg-type]

    @property
    def dimension(self) -> int:
        """The number of coefficients, with the intercept."""
        return len(self.features) + 1

    @property
    def grids(self) -> tuple[Grid, ...]:
        """The grids on which values are read, the response last."""
        return tuple(Grid.between(low, high) for low, high in (*self.features, self.response))

    def rows(self, records: Records) -> Integers:
        """Turn records, the response last in each, into rows (1, x, y), in steps of 1 / HALF. This is private."""
        columns = record_columns(records, len(self.grids))
        placed = [centred(grid, column) for grid, column in zip(self.grids, columns, strict=True)]
        return np.stack([np.full(len(placed[0]), HALF, dtype=np.int64), *placed], axis=1)

    def original(self, coefficients: Sequence[float]) -> tuple[Fraction, ...]:
        """Return the coefficients in the units of the data, the intercept first, for those within the frame."""
        (low, high), (first, *rest) = self.response, (Fraction(float(value)) for value in coefficients)
        slopes = [
            value * (high - low) / (upper - lower) for value, (lower, upper) in zip(rest, self.features, strict=True)
        ]
        moved = sum((slope * (a + b) / 2 for slope, (a, b) in zip(slopes, self.features, strict=True)), Fraction(0))
        return (low + high) / 2 + first * (high - low) / 2 - moved, *slopes


def _read(pair: Any, name: str) -> tuple[Fraction, Fraction]:
    low, high = pair_of(pair, name=f"bounds of a {name}")
    return exact(low, name=f"a bound of a {name}"), exact(high, name=f"a bound of a {name}")


def record_columns(records: Records, width: int) -> list[Any]:
    """Split records into columns by a total rule: what is no record of this length is missing as a whole. Private."""
    if isinstance(records, RegressionColumns):
        if len(records.columns) != width or len({len(column) for column in records.columns}) != 1:
            raise InvalidParameter("there must be a column for each declared feature and the response, of one length")
        return list(records.columns)
    if isinstance(records, np.ndarray):
        if records.ndim != 2 or records.shape[1] != width:
            raise InvalidParameter("each record must have the declared features and the response")
        return [records[:, column] for column in range(width)]
    read = [_cells(record, width) for record in records]
    return [[cells[column] for cells in read] for column in range(width)]


def _cells(record: Any, width: int) -> list[object]:
    """Read one record; an error would tell that somebody's record is none."""
    try:
        cells = list(record)
    except Exception:  # noqa: BLE001 - as said
        cells = []
    return cells if len(cells) == width else [None] * width


def centred(grid: Grid, column: Any) -> Integers:
    """Place a column in steps between -HALF and HALF, which are the bounds of its grid. This is private."""
    # A correctly rounded quotient of at most 1 stays at most 1.
    shares = (grid.indices(column) - grid.first) / grid.width
    moved: Integers = np.rint(shares * (2 * HALF)).astype(np.int64) - HALF
    return moved


# --- bounded_rows ---
# Rows of a regression as vectors of whole numbers in a ball: what one row adds to a sum is bounded exactly.
#
# Every row becomes a vector by itself, so the sensitivity of a sum is exact whatever floats do. Symmetric matrices are
# written as their upper triangles.


@final
@dataclass(frozen=True, slots=True, eq=False)
class RegressionRows:
    """Rows in public units, what they are to predict, and what each row counts for its length. All private."""

    rows: Floats = field(repr=False)
    targets: Floats = field(repr=False)
    weights: Floats = field(repr=False)
    units: Integers | None = field(default=None, repr=False)  # whose each row is, where units have several

    def residuals(self, coefficients: Floats) -> Floats:
        """Subtract one column after the other: a row's sum must not depend on where the row stands."""
        left = self.targets.copy()
        for column, coefficient in zip(self.rows.T, coefficients.tolist(), strict=True):
            left -= column * coefficient
        return left


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Triangle:
    """The upper triangles of factor * x x^T, one for each row, at most `limit` long, in whole steps.

    Theorem     The triangle of a a^T is at most |a|^2 long. Two of them have an inner product of
                ((a b)^2 + sum a_i^2 b_i^2) / 2 >= 0, so the square of their distance is at most the sum of their
                squares: a replaced row moves the sum by sqrt 2 radii, not 2. Rounding and shortening move each entry
                by less than 1.6, so that the inner product of two rows of steps is at least -3.2 sqrt(D) R - 2.6 D.
    """

    size: int  # of the matrix
    limit: float
    resolution: int
    is_positive: bool  # whether factors are never negative

    @property
    def dimension(self) -> int:
        return self.size * (self.size + 1) // 2

    @property
    def unit(self) -> float:
        return self.limit / self.resolution

    def sensitivity(self, relation: Relation) -> Sensitivity:
        radius, length = self.resolution, self.dimension
        squared = radius**2
        if relation is Relation.REPLACE_ONE:
            rounding = 7 * (math.isqrt(length) + 1) * radius + 6 * length
            squared = min(4 * squared, 2 * squared + rounding) if self.is_positive else 4 * squared
        return Sensitivity(l1=max(1, math.isqrt(length * squared)), squared_l2=squared, dimension=length)

    def add_up(self, rows: Floats, factors: Floats) -> tuple[int, ...]:
        first, second = np.triu_indices(self.size)
        steps = _steps(rows[:, first] * rows[:, second] * factors[:, None], self.unit)
        return _column_sums(clip_to_ball(steps, self.resolution))

    def matrix(self, answer: tuple[int, ...]) -> Floats:
        """Return the symmetric matrix of a noisy answer."""
        found = np.zeros((self.size, self.size))
        found[np.triu_indices(self.size)] = np.array(answer, dtype=np.float64) * self.unit
        return found + np.triu(found, 1).T


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """The sum of psi w x in whole steps; each row at most `limit` long."""

    size: int
    psi: Psi
    limit: float
    resolution: int

    def sensitivity(self, relation: Relation) -> Sensitivity:
        squared = self.resolution**2 * (1 if relation is Relation.ADD_REMOVE else 4)
        return Sensitivity(l1=max(1, math.isqrt(self.size * squared)), squared_l2=squared, dimension=self.size)

    def add_up(self, table: RegressionRows, coefficients: Floats, scale: float) -> tuple[int, ...]:
        return _column_sums(self.steps(table, coefficients, scale))

    def steps(self, table: RegressionRows, coefficients: Floats, scale: float) -> NDArray[np.int64]:
        """Return psi w x of each row, in whole steps. This is private."""
        scores = self.psi.psi(table.residuals(coefficients) / scale) * table.weights
        return clip_to_ball(_steps(table.rows * scores[:, None], self.unit), self.resolution)

    @property
    def unit(self) -> float:
        return self.limit / self.resolution


def _steps(values: Floats, unit: float) -> NDArray[np.int64]:
    return np.rint(values / unit).astype(np.int64)


def _column_sums(steps: NDArray[np.int64]) -> tuple[int, ...]:
    return tuple(exact_sum(np.ascontiguousarray(column)) for column in steps.T)
