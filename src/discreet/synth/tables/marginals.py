"""Marginals of coded tables, exact and therefore not private, and how far two tables are apart."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter

__all__ = ["Clique", "Distances", "cells", "marginal", "marginal_cliques", "marginal_distances", "total_variation"]

# --- counting ---
# Marginals of coded tables: exact whole numbers. What they are counted from decides whether they are private.


Clique: TypeAlias = tuple[int, ...]  # the columns of a marginal, in rising order
_MOST_CELLS = 1 << 28  # Of one marginal; more is a mistake.


def cells(sizes: Sequence[int], clique: Clique) -> int:
    """Return the number of cells of a marginal."""
    return math.prod(sizes[column] for column in clique)


def marginal(codes: NDArray[np.int32], sizes: Sequence[int], clique: Clique) -> NDArray[np.int64]:
    """Count the rows in each cell, the last column running quickest."""
    count = cells(sizes, clique)
    if count > _MOST_CELLS:
        raise InvalidParameter(f"a marginal of {count} cells is too large: choose fewer columns or coarser bins")
    where = np.zeros(len(codes), np.int64)
    for column in clique:
        where *= sizes[column]
        where += codes[:, column]
    return np.bincount(where, minlength=count)


# --- distances: How far two coded tables are apart: total variation of their marginals. Exact, so not private. ---
#
# These compare whatever tables they are given. If one of them is the real table, the result is a fact about it: whoever
# shows it wraps it in `NotPrivate`.


@final
@dataclass(frozen=True, slots=True)
class Distances:
    """The total variation distance of each marginal: 0 where two tables agree, 1 where they share no cell."""

    by_clique: dict[Clique, float]

    @property
    def mean(self) -> float:
        return float(np.mean(list(self.by_clique.values())))

    @property
    def worst(self) -> tuple[Clique, float]:
        return max(self.by_clique.items(), key=lambda item: item[1])


def marginal_cliques(sizes: Sequence[int], ways: int, *, most_cells: int = 100_000) -> list[Clique]:
    """List all sets of so many columns whose marginal has at most `most_cells` cells."""
    return [clique for clique in combinations(range(len(sizes)), ways) if cells(sizes, clique) <= most_cells]


def marginal_distances(
    left: NDArray[np.int32], right: NDArray[np.int32], sizes: Sequence[int], cliques: Iterable[Clique]
) -> Distances:
    """Measure the distance of each of these marginals, each table as shares of its own rows."""
    if not len(left) or not len(right):
        raise InvalidParameter("an empty table has no shares: both tables need at least one row")
    return Distances({clique: total_variation(left, right, sizes, clique) for clique in cliques})


def total_variation(left: NDArray[np.int32], right: NDArray[np.int32], sizes: Sequence[int], clique: Clique) -> float:
    """Return half the l1 distance of the shares of all cells."""
    shares = marginal(left, sizes, clique) / len(left) - marginal(right, sizes, clique) / len(right)
    return float(np.abs(shares).sum()) / 2
