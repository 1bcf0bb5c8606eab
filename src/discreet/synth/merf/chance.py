"""Draws that are no privacy noise: waves, codes from which a generator starts, which cell of a column."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import noise
from discreet.synth.domain.draws import fractions

__all__ = ["cells_of", "classes_of", "normals"]

_SCALE = 1 << 12


def normals(*shape: int) -> NDArray[np.float32]:
    """Draw standard normal numbers, to 12 bits after the point."""
    found: NDArray[np.float32] = noise.rounded_gaussian(_SCALE, size=shape).astype(np.float32) / np.float32(_SCALE)
    return found


def classes_of(counts: NDArray[np.float64], rows: int) -> NDArray[np.int32]:
    """Draw a class for each row, in proportion to counts."""
    reached = np.cumsum(counts)
    places: NDArray[np.int32] = np.searchsorted(reached, fractions(rows) * reached[-1], side="right").astype(np.int32)
    return np.minimum(places, len(counts) - 1)


def cells_of(weights: NDArray[Any]) -> NDArray[np.int32]:
    """Draw one place in each line, in proportion to its weights."""
    reached = np.cumsum(weights, axis=1, dtype=np.float64)
    drawn = fractions(len(reached)) * reached[:, -1]
    found = (reached <= drawn[:, None]).sum(axis=1)
    places: NDArray[np.int32] = np.minimum(found, reached.shape[1] - 1).astype(np.int32)
    return places
