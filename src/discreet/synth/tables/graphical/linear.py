"""Sparse linear maps between the cells of tables and what their cells have in common."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.synth.tables.graphical.contraction import Floats
from discreet.synth.tables.graphical.junction import Clique

__all__ = ["Places", "SparseMap", "SparseRows", "places"]

Places: TypeAlias = NDArray[np.int32]


def places(sizes: Sequence[int], clique: Clique, part: Clique, start: int = 0) -> Places:
    """Return for every cell of a clique, in order, the place of the cell of some of its columns that it is in."""
    cells = np.arange(start, start + math.prod(sizes[column] for column in part), dtype=np.int32)
    narrow = cells.reshape([sizes[column] if column in part else 1 for column in clique])
    return np.broadcast_to(narrow, [sizes[column] for column in clique]).ravel()


@dataclass(frozen=True, slots=True)
class SparseRows:
    """Some rows of a map: for each entry of a row, where it is, by row, and how large, for all rows."""

    rows: int
    found: list[Places]
    weights: list[float]


@dataclass(frozen=True, slots=True)
class SparseMap:
    """A sparse matrix, held in both directions."""

    height: int
    _forth: Any
    _back: Any

    @staticmethod
    def of(blocks: Sequence[SparseRows], width: int) -> SparseMap:
        """Build it from blocks of rows."""
        from scipy.sparse import csr_array

        counts = np.repeat([len(block.found) for block in blocks], [block.rows for block in blocks])
        full = [block for block in blocks if block.found]
        indices = [np.stack(block.found, axis=1).ravel() for block in full]
        data = [np.tile(np.asarray(block.weights, dtype=np.float64), block.rows) for block in full]
        entries = np.concatenate([np.empty(0), *data]), np.concatenate([np.empty(0, dtype=np.int32), *indices])
        forth = csr_array((*entries, np.concatenate([[0], np.cumsum(counts)])), shape=(len(counts), width))
        return SparseMap(len(counts), forth, forth.T.tocsr())

    def times(self, vector: Floats) -> Floats:
        """Apply the map."""
        return np.asarray(self._forth @ vector)

    def transposed(self, vector: Floats) -> Floats:
        """Apply its transpose."""
        return np.asarray(self._back @ vector)
