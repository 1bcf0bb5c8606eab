"""Marginals of coded tables: exact whole numbers. What they are counted from decides whether they are private."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter

__all__ = ["Clique", "cells", "marginal"]

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
