"""What a workload measures: whole-number sums of cells, with their exact sensitivity, and the choice among them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache, reduce
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.exact import positive_integer
from discreet.mechanisms.additive_noise import Sensitivity
from discreet.mechanisms.parameters import settle
from discreet.mechanisms.workloads.linear_queries import Factor, Floats
from discreet.mechanisms.workloads.strategy_search import best_for_l1, best_for_l2, trees
from discreet.privacy.relation import Relation

__all__ = ["StrategyFactor", "StrategyMatrix", "answers_all", "best_strategy"]

Integers: TypeAlias = NDArray[np.int64]

_EXACT = 1 << 52  # Whole numbers up to this, and sums of them, are exact as floats, in any order.
_SAFE = 1 << 62
_BITS = 20  # Of the weights of one factor that was searched for,
_ALL_BITS = 30  # and of all of a product.
_FINE = 20  # Bits of everything that is measured, at least: so noise on whole numbers is as good as any.


@final
@dataclass(frozen=True, slots=True, eq=False)
class StrategyFactor:
    """Sums of the cells of one column, with whole weights: "identity", "total", or the rows of a matrix.

    Args:
        name: "identity", "total" or "matrix".
        size: How many cells there are.
        matrix: The whole weights, one row a sum, where it is a matrix.
    """

    name: str
    size: int
    matrix: Integers | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.matrix is not None:
            settle(self, matrix=_read_weights(self.matrix))
        fits = self.name in ("identity", "total") if self.matrix is None else self.name == "matrix"
        if not fits or (self.matrix is not None and self.matrix.shape[1] != self.size):
            raise InvalidParameter("a factor of a strategy is identity, total, or a matrix with one column a cell")

    @classmethod
    def of(cls, rows: Any) -> StrategyFactor:
        """Read a matrix of whole numbers; what is none is refused."""
        matrix = np.asarray(rows)
        return cls("matrix", matrix.shape[1] if matrix.ndim == 2 else 0, matrix)

    @property
    def rows(self) -> int:
        """How many sums there are."""
        if self.matrix is not None:
            return int(self.matrix.shape[0])
        return self.size if self.name == "identity" else 1

    def l1(self) -> int:
        """Return the largest absolute sum of a column."""
        return 1 if self.matrix is None else int(np.abs(self.matrix).sum(axis=0).max())

    def squared_l2(self) -> int:
        """Return the largest square sum of a column: the largest, for noise must hide whichever cell it is."""
        return 1 if self.matrix is None else int((self.matrix**2).sum(axis=0).max())

    def l1_of_two(self) -> int:
        """Return the largest absolute sum of a difference of two columns, which may be the same."""
        if self.matrix is None:
            return 2 if self.name == "identity" and self.size > 1 else 0
        if self.size == 1:
            return 0
        from scipy.spatial.distance import pdist

        # Sums of whole numbers below 2^53 are exact as floats.
        return int(pdist(np.ascontiguousarray(self.matrix.T, np.float64), "cityblock").max())

    def products_of_two(self) -> tuple[int, int]:
        """Return the least and the largest product of two columns, which may be the same."""
        if self.matrix is None:
            return (0 if self.name == "identity" and self.size > 1 else 1), 1
        gram = self._gram()
        return int(gram.min()), int(gram.max())

    def squared_l2_of_two(self) -> int:
        """Return the largest square sum of a difference of two columns, which may be the same."""
        if self.matrix is None:
            return 2 if self.name == "identity" and self.size > 1 else 0
        gram = self._gram()
        own = np.diagonal(gram)
        return int((own[:, None] + own[None, :] - 2 * gram).max())

    def _gram(self) -> Floats:
        """Return all products of columns: each sum has terms whose sizes add up to less than 2^52, so it is exact."""
        assert self.matrix is not None
        dense = self.matrix.astype(np.float64)
        return np.asarray(dense.T @ dense)

    def apply(self, cells: NDArray[Any], axis: int) -> NDArray[Any]:
        """Take all sums along one axis, in the type of the cells, which must hold them. Cells are private."""
        moved = np.moveaxis(cells, axis, 0)
        if self.name == "identity":
            found = moved
        elif self.matrix is None:
            found = moved.sum(axis=0, keepdims=True)
        else:
            found = np.tensordot(self.matrix.astype(moved.dtype), moved, axes=1)
        return np.moveaxis(found, 0, axis)

    def inverse(self) -> Floats:
        """Return P with A P A = A, the one of least squares: from sums back to cells."""
        return _inverse(self)

    def undo(self, sums: Floats, inverse: Floats | None, axis: int) -> Floats:
        """Return cells of least squares from sums along one axis."""
        if self.name == "identity":
            return sums
        moved = np.moveaxis(sums, axis, 0)
        if self.matrix is None or inverse is None:
            return np.moveaxis(np.repeat(moved / self.size, self.size, axis=0), 0, axis)
        return np.moveaxis(np.tensordot(inverse, moved, axes=1), 0, axis)


def _read_weights(matrix: NDArray[Any]) -> Integers:
    """Return whole weights whose norms are exact; norms of anything else would be rounded, and the noise too small."""
    if matrix.ndim != 2 or not matrix.size or matrix.dtype.kind not in "iu":
        raise InvalidParameter("a strategy is a matrix of whole numbers, one column a cell")
    whole = matrix.astype(np.int64)
    if int(np.abs(whole).max()) >= 1 << 31 or float(np.sum(whole.astype(np.float64) ** 2, axis=0).max()) >= _EXACT:
        raise InvalidParameter("the weights of a strategy are too large to be squared and added up exactly")
    whole.setflags(write=False)
    return whole


@lru_cache(8)
def _inverse(factor: StrategyFactor) -> Floats:
    if factor.matrix is None:
        return np.eye(factor.size) if factor.name == "identity" else np.full((factor.size, 1), 1 / factor.size)
    matrix = factor.matrix.astype(np.float64)
    largest = np.abs(matrix).max()
    if matrix.shape[0] >= matrix.shape[1]:
        square = matrix.shape[0] == matrix.shape[1]
        try:
            found = np.linalg.inv(matrix) if square else np.linalg.solve(matrix.T @ matrix, matrix.T)
        except np.linalg.LinAlgError:
            found = np.zeros(matrix.T.shape)
        if np.abs(found @ matrix - np.eye(factor.size)).max() < 1e-9:
            return np.asarray(found, np.float64)
    return np.asarray(_pseudo_inverse(matrix / largest) / largest)


def _pseudo_inverse(matrix: Floats) -> Floats:
    """Return it by the smaller of both products of a matrix with itself."""
    tall = matrix.shape[0] >= matrix.shape[1]
    values, vectors = np.linalg.eigh(matrix.T @ matrix if tall else matrix @ matrix.T)
    inverted = np.divide(1.0, values, out=np.zeros_like(values), where=values > 1e-11 * values[-1])
    back = (vectors * inverted) @ vectors.T
    return np.asarray(back @ matrix.T if tall else matrix.T @ back)


@final
@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class StrategyMatrix:
    """The sums that are measured: all products of one factor a column, times `fine`. It is public.

    Theorem     A unit that comes or goes moves one cell by one, so it moves the sums by a column of the matrix; one
                that is replaced moves them by a column, where it comes from outside all cells, or by the difference of
                two. Norms of products of vectors are products of norms, so the largest norm of a column is found
                factor by factor. A difference of two has the square |a|² + |b|² - 2 ab. [LMHMR15]

    With one factor other than totals all norms are exact. With several, the square of a difference is taken as twice
    the largest square of a column less twice a bound below all products of two columns, and the absolute sum as twice
    the largest; neither is below the exact one.

    Args:
        factors: The sums of each column.
        fine: What all of them are multiplied by, so that noise on whole numbers is fine.
    """

    factors: tuple[StrategyFactor, ...]
    fine: int = 1

    def __post_init__(self) -> None:
        settle(self, fine=positive_integer(self.fine, name="fine"))

    @property
    def cells(self) -> int:
        return math.prod(factor.size for factor in self.factors)

    @property
    def rows(self) -> int:
        return math.prod(factor.rows for factor in self.factors)

    def sensitivity(self, relation: Relation) -> Sensitivity:
        """Return how far one unit moves the sums, exactly or from above."""
        l1 = math.prod(factor.l1() for factor in self.factors)
        squared = math.prod(factor.squared_l2() for factor in self.factors)
        if relation is Relation.REPLACE_ONE:
            l1, squared = max(l1, self._l1_of_two(l1)), max(squared, self._squared_l2_of_two(squared))
        return Sensitivity(l1=self.fine * l1, squared_l2=self.fine**2 * squared, dimension=self.rows)

    def _l1_of_two(self, alone: int) -> int:
        moving = [factor for factor in self.factors if factor.name != "total"]
        if len(moving) > 1:
            return 2 * alone
        return moving[0].l1_of_two() if moving else 0

    def _squared_l2_of_two(self, alone: int) -> int:
        moving = [factor for factor in self.factors if factor.name != "total"]
        if len(moving) > 1:
            return 2 * alone - 2 * reduce(_times, (factor.products_of_two() for factor in moving))[0]
        return moving[0].squared_l2_of_two() if moving else 0

    def measured(self, cells: Integers) -> NDArray[Any]:
        """Return the exact sums. Cells and sums are private."""
        # No number on the way exceeds the largest weight of each factor times all rows: every row is in one cell.
        most = math.prod(map(_largest, self.factors)) * self.fine * float(np.abs(cells.astype(np.float64)).sum()) * 1.01
        kind: Any = np.float64 if most < _EXACT else np.int64 if most < _SAFE else object
        found: NDArray[Any] = cells.astype(kind).reshape([factor.size for factor in self.factors])
        for axis, factor in enumerate(self.factors):
            found = factor.apply(found, axis)
        return (found.astype(np.int64) if kind is np.float64 else found).reshape(-1) * self.fine


def _largest(factor: StrategyFactor) -> int:
    return 1 if factor.matrix is None else int(np.abs(factor.matrix).max())


def _times(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    """Multiply two ranges of numbers."""
    corners = [first * second for first in one for second in other]
    return min(corners), max(corners)


# --- choice: The best strategy of each factor, in whole numbers. ---


_RIDGE = 1 / 4096  # Of the sensitivity: for all cells, so that every query follows from what is measured, exactly.
_MOST_ROWS = 4096  # Of a matrix that is measured as it is.
_FEW = 32  # Cells up to which it saves something that a unit which is replaced does not change the total.
_SMALL = 512  # Cells up to which a strategy for Gaussian noise is tried for Laplace noise, too.


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Chosen:
    factor: StrategyFactor
    bound: float | None  # below what any strategy for Gaussian noise reaches


def best_strategy(
    queries: Sequence[Factor], *, pure: bool, relation: Relation, largest: bool
) -> tuple[StrategyMatrix, float | None]:
    """Choose what to measure, and return with it a bound below the sum, or the largest, of variances for Gaussian noise
    with variance one and sensitivity one. Of pure strategies, and of products where a unit may be replaced, there is
    no such bound."""
    bits = min(_BITS, _ALL_BITS // max(1, sum(factor.is_dense for factor in queries)))
    alone = sum(factor.name != "total" for factor in queries) <= 1
    replaced = relation is Relation.REPLACE_ONE and alone
    chosen = [_chosen(factor, pure, replaced, largest, bits) for factor in queries]
    factors = tuple(one.factor for one in chosen)
    reached = math.prod(factor.squared_l2() for factor in factors).bit_length() // 2
    bounds = [one.bound for one in chosen if one.bound is not None]
    known = len(bounds) == len(chosen) and (alone or relation is Relation.ADD_REMOVE)
    return StrategyMatrix(factors=factors, fine=1 << max(0, _FINE - reached)), math.prod(bounds) if known else None


def _chosen(queries: Factor, pure: bool, replaced: bool, largest: bool, bits: int) -> _Chosen:
    few = replaced and queries.name == "identity" and 1 < queries.size <= _FEW
    if not queries.is_dense and not few:
        return _Chosen(StrategyFactor(queries.name, queries.size), None if pure else _bound(queries, replaced, largest))
    if queries.matrix is None:
        return _named(queries.name, queries.size, pure, replaced, largest, bits)
    return _searched(queries, pure, replaced, largest, bits)


def _bound(queries: Factor, replaced: bool, largest: bool) -> float:
    """Return the least of a total, which is one, or of all cells.

    Of strategies for all cells there is a best one that treats them alike, X = a I + b J. If a unit may be replaced,
    a + b and 2 a are at most one, and the best is a = b = 1/2.
    """
    size = 1 if queries.name == "total" else queries.size
    mean = 2 * size / (size + 1) if replaced else 1.0
    return mean if largest else mean * size


@lru_cache(32)
def _named(name: str, size: int, pure: bool, replaced: bool, largest: bool, bits: int) -> _Chosen:
    return _searched(Factor(name, size), pure, replaced, largest, bits)


def _searched(queries: Factor, pure: bool, replaced: bool, largest: bool, bits: int) -> _Chosen:
    if not pure:
        return _for_gaussian_noise(queries, replaced, largest, bits)
    tried = [StrategyFactor("identity", queries.size), *map(_as_whole, trees(queries.size))]
    tried.append(_whole(best_for_l1(queries.gram()), bits))
    if queries.answers <= _MOST_ROWS:
        tried += _measured_as_asked(queries, bits)
    if queries.answers <= queries.size // 2:
        sums = np.abs(queries.rows(np.arange(queries.answers)))
        tried.append(_whole(best_for_l1(queries.gram(), sums), bits))
    if queries.size <= _SMALL:
        tried.append(_for_gaussian_noise(queries, replaced, largest, bits).factor)
    return _Chosen(min(tried, key=lambda one: predicted(queries, one, replaced, largest)), None)


def _for_gaussian_noise(queries: Factor, replaced: bool, largest: bool, bits: int) -> _Chosen:
    optimum = best_for_l2(queries, replaced=replaced, largest=largest)
    ridged = (1 - _RIDGE) * optimum.gram + _RIDGE * np.eye(queries.size) / (2 if replaced else 1)
    return _Chosen(_whole(np.asarray(np.linalg.cholesky(ridged).T, np.float64), bits), optimum.bound)


def predicted(queries: Factor, strategy: StrategyFactor, replaced: bool, largest: bool) -> float:
    """Return the sum, or the largest, of variances for noise of variance one on l1 sensitivity one; or infinity."""
    if not answers_all(queries, strategy):
        return math.inf
    inverse = strategy.inverse()
    changed = max(strategy.l1(), strategy.l1_of_two()) if replaced else strategy.l1()
    variances = queries.squares(inverse @ inverse.T) * float(changed) ** 2
    return float(variances.max() if largest else variances.sum())


def answers_all(queries: Factor, strategy: StrategyFactor) -> bool:
    """Whether all queries follow from what is measured."""
    if strategy.matrix is None:
        return strategy.name == "identity" or queries.name == "total"
    missed = strategy.inverse() @ strategy.matrix - np.eye(queries.size)
    if queries.matrix is not None:
        missed, scale = queries.matrix @ missed, np.abs(queries.matrix).max()
    else:
        missed, scale = np.cumsum(missed, axis=0), 1.0
    return bool(np.abs(missed).max() <= 1e-7 * scale)


def _measured_as_asked(queries: Factor, bits: int) -> list[StrategyFactor]:
    """Return the queries themselves, each once, if all weights are whole multiples of one number."""
    rows = np.unique(queries.rows(np.arange(queries.answers)), axis=0)
    least = np.abs(rows[rows != 0]).min()
    whole = np.round(rows / least)
    if np.abs(whole * least - rows).max() > 1e-12 * least or np.abs(whole).max() >= 1 << bits:
        return []
    return [_as_whole(whole)]


def _as_whole(rows: Floats) -> StrategyFactor:
    return StrategyFactor.of(np.round(rows).astype(np.int64))


def _whole(rows: Floats, bits: int) -> StrategyFactor:
    """Round the weights of a strategy to whole numbers; its norms are those of what came out."""
    return _as_whole(rows / math.sqrt(float(np.sum(rows**2, axis=0).max())) * (1 << bits))
