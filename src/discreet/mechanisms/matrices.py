"""Exact factorisation of a rational covariance matrix."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

from discreet.errors import InvalidParameter
from discreet.exact import Number, exact

__all__ = ["Matrix", "factor", "read_covariance", "solve", "times"]

Matrix: TypeAlias = tuple[tuple[Fraction, ...], ...]


def read_covariance(rows: Sequence[Sequence[Number]]) -> Matrix:
    """Read a symmetric matrix exactly; that it is positive definite shows when it is factored."""
    matrix = tuple(tuple(exact(value, name="covariance") for value in row) for row in rows)
    size = len(matrix)
    if size == 0 or any(len(row) != size for row in matrix):
        raise InvalidParameter("covariance must be a square matrix")
    if any(matrix[i][j] != matrix[j][i] for i in range(size) for j in range(i)):
        raise InvalidParameter("covariance must be symmetric")
    return matrix


@lru_cache(64)
def factor(covariance: Matrix) -> tuple[Matrix, tuple[Fraction, ...]]:
    """Return L and D with covariance = L D L^T: L lower triangular with ones, D positive. No root is taken."""
    size = len(covariance)
    lower = [[Fraction(int(i == j)) for j in range(size)] for i in range(size)]
    pivots: list[Fraction] = []
    for j in range(size):
        pivot = covariance[j][j] - sum((lower[j][k] ** 2 * pivots[k] for k in range(j)), Fraction(0))
        if pivot <= 0:
            raise InvalidParameter("covariance must be positive definite")
        pivots.append(pivot)
        for i in range(j + 1, size):
            rest = sum((lower[i][k] * lower[j][k] * pivots[k] for k in range(j)), Fraction(0))
            lower[i][j] = (covariance[i][j] - rest) / pivot
    return tuple(map(tuple, lower)), tuple(pivots)


def solve(lower: Matrix, vector: Sequence[Fraction | int]) -> tuple[Fraction, ...]:
    """Return the x with L x = vector."""
    found: list[Fraction] = []
    for row, value in zip(lower, vector, strict=True):
        found.append(value - sum((row[k] * found[k] for k in range(len(found))), Fraction(0)))
    return tuple(found)


def times(lower: Matrix, vector: Sequence[Fraction]) -> tuple[Fraction, ...]:
    """Return L x."""
    return tuple(sum((part * value for part, value in zip(row, vector, strict=True)), Fraction(0)) for row in lower)
