"""How far two coded tables are apart: total variation of their marginals. Exact, so not private.

These compare whatever tables they are given. If one of them is the real table, the result is a fact about it: whoever
shows it wraps it in `NotPrivate`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.synth.tables.counting import Clique, cells, marginal

__all__ = ["Distances", "marginal_cliques", "marginal_distances", "total_variation"]


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
