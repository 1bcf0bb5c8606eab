"""How far one row moves a linear regression: smoothly bounded by the smallest eigenvalue of its Gram matrix.

Rows are clamped to a ball and put on a grid, so that the Gram matrix and its smallest eigenvalue are exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.adaptive.smooth_query import RELATIVE_ERROR, Peak
from discreet.errors import InvalidParameter
from discreet.exact import integer, nonnegative, positive
from discreet.mechanisms.parameters import settle
from discreet.privacy.relation import Relation, read_relation

__all__ = ["EigenvalueBound", "least_eigenvalue"]

Integers: TypeAlias = NDArray[np.int64]

_FINENESS = 1 << 20  # Grid steps to the longest row.
_EXACT_ROWS = 1 << 12  # Products of two entries are at most 2^40, and so many of them add up exactly in floats.
_MARGIN = 1 + 2.0**-40  # Above the rounding of a float norm.
_NORMS = (Fraction(1, 1 << 500), Fraction(1 << 500))
_LARGEST = 1e150  # Its square is a float; what is beyond is clamped to the ball anyway.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class EigenvalueBound:
    """A smooth bound, in the l2 norm, for the coefficients that a least-squares fit has within a public ball.

    The fit minimises the sum of (y - x theta)^2 / 2 plus ridge |theta|^2 / 2 over |theta| <= radius, for rows as
    `clamped` returns them and responses clamped to [-response, response].

    Theorem     One row changes the gradient by at most L = row_norm (response + row_norm radius), or 2 L if it is
                replaced, and the objective is strongly convex with modulus lambda + ridge, lambda the smallest
                eigenvalue of the Gram matrix. One row moves lambda by at most row_norm^2. So min(2 radius,
                2 L / (max(lambda - k row_norm^2, 0) + ridge)) bounds the change after k rows, and the largest of
                these, faded by e^(-beta k), is a beta-smooth bound. [NRS07]
    """

    row_norm: Fraction  # l2, of the features
    response: Fraction  # absolute
    radius: Fraction  # l2, of the coefficients
    ridge: Fraction
    relation: Relation

    def __post_init__(self) -> None:
        settle(self, relation=read_relation(self.relation))
        settle(
            self,
            row_norm=positive(self.row_norm, name="row_norm"),
            response=positive(self.response, name="response"),
            radius=positive(self.radius, name="radius"),
            ridge=nonnegative(self.ridge, name="ridge"),
        )
        if not _NORMS[0] <= self.row_norm <= _NORMS[1]:
            raise InvalidParameter("row_norm must lie between 2^-500 and 2^500")

    @property
    def step(self) -> Fraction:
        """The unit of clamped rows."""
        return self.row_norm / _FINENESS

    @property
    def relative_error(self) -> Fraction:
        """How far a returned bound may be above the one of the theorem, as a share of it.

        The eigenvalue is rounded down by less than row_norm^2 2^-40, and where the bound depends on it at all, the
        modulus is at least L / (2 radius), which is above row_norm^2 / 2.
        """
        return RELATIVE_ERROR

    @property
    def gradient_change(self) -> Fraction:
        """How far one row moves the gradient of the objective, in the l2 norm: L or 2 L."""
        change = self.row_norm * (self.response + self.row_norm * self.radius)
        return change if self.relation is Relation.ADD_REMOVE else 2 * change

    def clamped(self, rows: ArrayLike) -> Integers:
        """Pull rows into the ball and put them on the grid, toward zero; what is no number becomes 0. In steps."""
        table = np.asarray(rows)
        if table.ndim != 2 or table.shape[1] == 0 or table.dtype.kind not in "bifu":
            raise InvalidParameter("features must be a table of numbers: one row a record, one column a feature")
        with np.errstate(over="ignore"):
            shares = _within(_within(table.astype(np.float64)) / float(self.row_norm))
        lengths = np.sqrt((shares**2).sum(axis=1, keepdims=True)) * _MARGIN
        placed: Integers = np.trunc(shares / np.maximum(lengths, _MARGIN) * _FINENESS).astype(np.int64)
        return placed

    def smallest_eigenvalue(self, rows: ArrayLike) -> Fraction:
        """Return a lower bound on the smallest eigenvalue of the Gram matrix, off by step^2 at most. It is private."""
        return least_eigenvalue(_gram(self.clamped(rows))) * self.step**2

    def local_sensitivity(self, rows: ArrayLike, distance: int = 0) -> Fraction:
        """Bound the change by one row after `distance` of them have changed. This is private."""
        if integer(distance, name="distance") < 0:
            raise InvalidParameter("distance must not be negative")
        return self._at(self.smallest_eigenvalue(rows), distance)

    def smooth_bound(self, rows: ArrayLike, beta: Fraction) -> Peak:
        """Return a smooth bound on the change of the coefficients, in their own unit. This is private."""
        eigenvalue = self.smallest_eigenvalue(rows)
        # Beyond this distance the bound grows no more.
        distances = np.arange(int(-(-eigenvalue // self.row_norm**2)) + 1)
        rest = np.maximum(float(eigenvalue) - distances * float(self.row_norm) ** 2, 0) + float(self.ridge)
        least = float(
            self.gradient_change / (2 * self.radius)
        )  # A smaller modulus bounds nothing that the ball does not.
        best = int(np.argmax(-np.log(np.maximum(rest, least)) - float(beta) * distances))
        return Peak(self._at(eigenvalue, best), best)

    def _at(self, eigenvalue: Fraction, distance: int) -> Fraction:
        modulus = max(eigenvalue - distance * self.row_norm**2, Fraction(0)) + self.ridge
        widest = 2 * self.radius
        return widest if modulus * widest <= self.gradient_change else self.gradient_change / modulus


def _within(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Replace what is no number by 0, and what is too large to be squared by what is not."""
    return np.clip(np.nan_to_num(values, nan=0.0, posinf=_LARGEST, neginf=-_LARGEST), -_LARGEST, _LARGEST)


def _gram(rows: Integers) -> list[list[int]]:
    """Multiply the transposed rows with the rows, exactly."""
    total: NDArray[Any] = np.zeros((rows.shape[1], rows.shape[1]), dtype=object)
    for start in range(0, len(rows), _EXACT_ROWS):
        block = rows[start : start + _EXACT_ROWS].astype(np.float64)
        total = total + (block.T @ block).astype(np.int64).astype(object)
    return [[int(entry) for entry in row] for row in total]


def least_eigenvalue(matrix: list[list[int]]) -> int:
    """Return the smallest eigenvalue of a positive semidefinite matrix of whole numbers, rounded down, exactly.

    Theorem     All roots of the characteristic polynomial are real; none is below t if and only if the coefficients
                of p(x + t) change their signs from each to the next, or are zero. (Descartes)
    """
    from flint import fmpz_mat, fmpz_poly

    polynomial = fmpz_mat(matrix).charpoly()
    low, high = 0, min(matrix[i][i] for i in range(len(matrix))) + 1  # No diagonal entry is below the smallest.
    while high - low > 1:
        middle = (low + high) // 2
        moved = polynomial(fmpz_poly([middle, 1])).coeffs()
        # From the leading one, which is 1, down.
        holds = all(coefficient * (-1) ** power >= 0 for power, coefficient in enumerate(reversed(moved)))
        low, high = (middle, high) if holds else (low, middle)
    return low
