"""Rows of a regression as vectors of whole numbers in a ball: what one row adds to a sum is bounded exactly.

Every row becomes a vector by itself, so the sensitivity of a sum is exact whatever floats do. Symmetric matrices are
written as their upper triangles.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import final

import numpy as np
from numpy.typing import NDArray

from discreet.mechanisms.budget import Sensitivity
from discreet.mechanisms.grid import exact_sum
from discreet.mechanisms.vector_mean import clip_to_ball
from discreet.privacy.relation import Relation
from discreet.robust.psi import Floats, Psi

__all__ = ["RegressionRows", "Scores", "Triangle"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class RegressionRows:
    """Rows in public units, what they are to predict, and what each row counts for its length. All private."""

    rows: Floats = field(repr=False)
    targets: Floats = field(repr=False)
    weights: Floats = field(repr=False)

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
        scores = self.psi.psi(table.residuals(coefficients) / scale) * table.weights
        return _column_sums(clip_to_ball(_steps(table.rows * scores[:, None], self.unit), self.resolution))

    @property
    def unit(self) -> float:
        return self.limit / self.resolution


def _steps(values: Floats, unit: float) -> NDArray[np.int64]:
    return np.rint(values / unit).astype(np.int64)


def _column_sums(steps: NDArray[np.int64]) -> tuple[int, ...]:
    return tuple(exact_sum(np.ascontiguousarray(column)) for column in steps.T)
