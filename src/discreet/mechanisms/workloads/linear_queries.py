"""Linear queries of the cells of one table: a matrix, or a product of one factor a column."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter, Refused

__all__ = ["FACTORS", "MOST_ANSWERS", "MOST_CELLS", "MOST_DENSE", "Factor", "Floats", "read_queries"]

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

FACTORS = ("identity", "total", "prefix", "range")
MOST_DENSE = 2048  # Cells of a matrix, and of one factor that is neither identity nor total.
MOST_CELLS = 10**6  # Of a product.
MOST_ANSWERS = 10**6  # That are listed.
_MOST_ENTRIES = 1 << 25  # Of a matrix: a quarter of a gigabyte.
_LARGEST = 1e9  # Of an entry, and the inverse of the least: so squares of sums keep their digits.


@final
@dataclass(frozen=True, slots=True, eq=False)
class Factor:
    """The queries of one column, or of a whole table: rows of weights for its cells.

    A named one is "identity" (every cell), "total" (their sum), "prefix" (the sums of the first 1, 2, … cells) or
    "range" (the sums of all ranges of cells, by their first cell and then by their last). Its answers are differences
    of running sums, so that no matrix of it is ever made.

    Args:
        name: One of the four names, or "matrix".
        size: How many cells there are.
        matrix: The weights, one row a query, where it is a matrix.
    """

    name: str
    size: int
    matrix: Floats | None = field(default=None, repr=False)

    @property
    def answers(self) -> int:
        """How many queries there are."""
        if self.matrix is not None:
            return int(self.matrix.shape[0])
        return {"total": 1, "range": self.size * (self.size + 1) // 2}.get(self.name, self.size)

    @property
    def is_dense(self) -> bool:
        """Whether the best strategy must be searched for."""
        return self.name not in ("identity", "total")

    @property
    def ends(self) -> tuple[Integers, Integers]:
        """Where the range of each query begins, and one after where it ends; for named ones."""
        places = np.arange(self.size, dtype=np.int64)
        match self.name:
            case "identity":
                return places, places + 1
            case "total":
                return np.zeros(1, np.int64), np.full(1, self.size, np.int64)
            case "prefix":
                return np.zeros(self.size, np.int64), places + 1
            case _:
                first, last = np.triu_indices(self.size)
                return first.astype(np.int64), last.astype(np.int64) + 1

    def rows(self, places: Integers) -> Floats:
        """Return the weights of some queries."""
        if self.matrix is not None:
            return self.matrix[places]
        first, last = (ends[places, None] for ends in self.ends)
        cells = np.arange(self.size)
        return ((first <= cells) & (cells < last)).astype(np.float64)

    def apply(self, cells: Floats, axis: int = 0) -> Floats:
        """Answer all queries along one axis."""
        moved = np.moveaxis(cells, axis, 0)
        if self.matrix is not None:
            found = np.tensordot(self.matrix, moved, axes=1)
        elif self.name == "identity":
            found = moved
        elif self.name == "total":
            found = moved.sum(axis=0, keepdims=True)
        else:
            first, last = self.ends
            sums = running(moved)
            found = sums[last] - sums[first]
        return np.moveaxis(found, 0, axis)

    def gathered(self, weights: Floats, axis: int = 0) -> Floats:
        """Return for weights of queries what each cell weighs in their sum: the transposed map."""
        moved = np.moveaxis(weights, axis, 0)
        if self.matrix is not None:
            found = np.tensordot(self.matrix.T, moved, axes=1)
        elif self.name == "identity":
            found = moved
        elif self.name == "total":
            found = np.repeat(moved, self.size, axis=0)
        else:
            first, last = self.ends
            steps = np.zeros((self.size + 1, *moved.shape[1:]))
            np.add.at(steps, first, moved)
            np.subtract.at(steps, last, moved)
            found = np.cumsum(steps[:-1], axis=0)
        return np.moveaxis(found, 0, axis)

    def gram(self, weights: Floats | None = None) -> Floats:
        """Return the sum over all queries of weight times w wᵀ."""
        each = np.ones(self.answers) if weights is None else weights
        if self.matrix is not None:
            return np.asarray((self.matrix * each[:, None]).T @ self.matrix)
        first, last = self.ends
        found = np.zeros((self.size, self.size))
        np.add.at(found, (first, last - 1), each)
        # Two cells are both in a range that begins at the first of them or before, and ends at the other or after.
        found = np.cumsum(np.cumsum(found, axis=0)[:, ::-1], axis=1)[:, ::-1]
        return np.asarray(np.triu(found) + np.triu(found, 1).T)

    def squares(self, inverse: Floats) -> Floats:
        """Return w K wᵀ of each query, for a symmetric K over cells."""
        if self.matrix is not None:
            return np.asarray(np.einsum("ij,ij->i", self.matrix @ inverse, self.matrix))
        first, last = self.ends
        sums = running(running(inverse).T)
        ends = np.diagonal(sums)
        return np.asarray(np.maximum(ends[last] + ends[first] - 2 * sums[last, first], 0))

    def fourth_powers(self, inverse: Floats) -> Floats:
        """Return the sum of fourth powers of w P of each query, for a P from measurements to cells."""
        if self.matrix is not None:
            return np.asarray(np.sum((self.matrix @ inverse) ** 4, axis=1))
        first, last = self.ends
        sums = running(inverse)
        if self.name == "prefix":
            return np.asarray(np.sum(sums[1:] ** 4, axis=1))
        one, two, three = sums @ (sums**3).T, (sums**2) @ (sums**2).T, np.sum(sums**4, axis=1)
        found = three[last] + three[first] - 4 * (one[first, last] + one[last, first]) + 6 * two[last, first]
        return np.asarray(np.maximum(found, 0))


def running(values: Floats) -> Floats:
    """Return running sums along the first axis, beginning with nothing."""
    return np.concatenate([np.zeros((1, *values.shape[1:])), np.cumsum(values, axis=0)])


Asked: TypeAlias = Any  # A matrix, a name, a mapping of columns to factors, or a list of such mappings.


def read_queries(
    queries: Asked, sizes: Sequence[int], names: Sequence[str] | None, *, listed: bool = True
) -> tuple[Factor, ...]:
    """Read what is asked of a table with so many cells in each column: one factor for all of it, or one a column."""
    if isinstance(queries, str):
        queries = [queries] if len(sizes) == 1 else dict.fromkeys(names or (), queries)
    if isinstance(queries, Mapping):
        found = _product(queries, sizes, names)
    elif isinstance(queries, (list, tuple)) and queries and all(isinstance(one, str) for one in queries):
        found = _product_in_order(queries, sizes)
    elif isinstance(queries, (list, tuple)) and queries and all(isinstance(one, Mapping) for one in queries):
        found = (_stacked([_product(one, sizes, names) for one in queries]),)
    else:
        found = (_matrix(queries, math.prod(sizes)),)
    _check_sizes(found, listed)
    return found


def _product(queries: Mapping[Any, Any], sizes: Sequence[int], names: Sequence[str] | None) -> tuple[Factor, ...]:
    if names is None:
        raise InvalidParameter("queries by column need named columns: say cells={…: […], …}, by the same names")
    unknown = [name for name in queries if name not in names]
    if unknown:
        raise InvalidParameter(f"queries name columns that cells=… has not: the columns are {', '.join(names)}")
    return _product_in_order([queries.get(name, "total") for name in names], sizes)


def _product_in_order(queries: Sequence[Any], sizes: Sequence[int]) -> tuple[Factor, ...]:
    if len(queries) != len(sizes):
        raise InvalidParameter("there must be one factor for each column of cells")
    return tuple(_factor(one, size) for one, size in zip(queries, sizes, strict=True))


def _factor(asked: Any, size: int) -> Factor:
    if not isinstance(asked, str):
        return _matrix(asked, size)
    if asked not in FACTORS:
        raise InvalidParameter(f"a factor is a matrix, or one of {', '.join(FACTORS)}")
    # All queries of one cell are the cell.
    return Factor("identity" if size == 1 else asked, size)


def _matrix(asked: Any, size: int) -> Factor:
    try:
        matrix = np.array(asked, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        matrix = np.zeros(0)
    if matrix.ndim != 2 or matrix.shape[0] == 0 or matrix.shape[1] != size:
        raise InvalidParameter(
            f"queries must be a matrix of numbers with one row a query and one column for each of the {size:,} cells; "
            f"or a name of {', '.join(FACTORS)}; or one of these for each column, by its name"
        )
    sizes = np.abs(matrix[matrix != 0])
    if not np.isfinite(matrix).all() or (sizes.size and (sizes.max() > _LARGEST or sizes.min() < 1 / _LARGEST)):
        raise InvalidParameter("weights of queries must be 0, or between 1e-9 and 1e9 in size")
    if not np.any(matrix, axis=1).all():
        raise InvalidParameter("every query must weigh at least one cell: one that weighs none is always 0")
    matrix.setflags(write=False)
    return Factor("matrix", size, matrix)


def _stacked(products: Sequence[tuple[Factor, ...]]) -> Factor:
    """Put several products into one matrix, one below the other."""
    cells = math.prod(factor.size for factor in products[0])
    answers = [math.prod(factor.answers for factor in one) for one in products]
    if cells > MOST_DENSE or sum(answers) * cells > _MOST_ENTRIES:
        raise Refused(
            f"several products together are searched as one matrix, of at most {MOST_DENSE:,} cells and "
            f"{_MOST_ENTRIES:,} weights: these have {cells:,} cells and {sum(answers) * cells:,} weights",
            reason="the best strategy of a sum of products is no product",
            way_out="ask for one product; counts of many tables with more cells are a family of a release plan",
        )
    parts = []
    for one in products:
        dense: Floats = np.ones((1, 1))
        for factor in one:
            dense = np.asarray(np.kron(dense, factor.rows(np.arange(factor.answers))), np.float64)
        parts.append(dense)
    return Factor("matrix", cells, np.concatenate(parts))


def _check_sizes(factors: tuple[Factor, ...], listed: bool) -> None:
    cells = math.prod(factor.size for factor in factors)
    largest = max((factor.size for factor in factors if factor.is_dense), default=0)
    if cells > MOST_CELLS or largest > MOST_DENSE:
        raise Refused(
            f"these are {cells:,} cells; a matrix, prefix or range factor of {largest:,}",
            reason=f"strategies are searched for matrices and factors of at most {MOST_DENSE:,} cells, and products of "
            f"at most {MOST_CELLS:,}; identity and total factors may have any size within that",
            way_out="make cells coarser, or leave columns out",
        )
    answers = math.prod(factor.answers for factor in factors)
    dense = sum(factor.matrix.size for factor in factors if factor.matrix is not None)
    if (listed and answers > MOST_ANSWERS) or dense > _MOST_ENTRIES:
        raise Refused(
            f"these are {answers:,} answers",
            reason=f"at most {MOST_ANSWERS:,} are listed, and a matrix has at most {_MOST_ENTRIES:,} weights",
            way_out="ask for cells or prefixes, with best_for=… the queries that you will sum up from them: "
            "`release.accuracy.standard_error(weights)` says how sure each sum is",
        )
