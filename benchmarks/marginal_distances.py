"""How far two tables of codes are apart: the mean total-variation distance of all their marginals of one order."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import prod
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["CELLS", "mean_distances"]

CELLS: Final = 100_000  # Larger marginals are not compared.
ORDERS: Final = (1, 2, 3)


def mean_distances(real: NDArray[Any], synthetic: NDArray[Any], sizes: Sequence[int]) -> dict[str, float]:
    """Return the mean distance for one, two and three columns at a time, as far as there are such marginals."""
    found = {order: _distances(real, synthetic, sizes, order) for order in ORDERS}
    return {f"tvd{order}": float(np.mean(distances)) for order, distances in found.items() if distances}


def _distances(real: NDArray[Any], synthetic: NDArray[Any], sizes: Sequence[int], order: int) -> list[float]:
    cliques = [clique for clique in combinations(range(len(sizes)), order) if prod(sizes[i] for i in clique) <= CELLS]
    return [_distance(real, synthetic, sizes, clique) for clique in cliques]


def _distance(real: NDArray[Any], synthetic: NDArray[Any], sizes: Sequence[int], clique: tuple[int, ...]) -> float:
    return float(np.abs(_shares(real, sizes, clique) - _shares(synthetic, sizes, clique)).sum() / 2)


def _shares(codes: NDArray[Any], sizes: Sequence[int], clique: tuple[int, ...]) -> NDArray[np.float64]:
    shape = tuple(sizes[i] for i in clique)
    flat = np.ravel_multi_index(tuple(codes[:, i] for i in clique), shape)
    return np.bincount(flat, minlength=prod(shape)) / len(codes)
