"""The unit circle in whole numbers: cosine and sine of every 65536th of a turn, never longer than the radius."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

__all__ = ["RADIUS", "TURN", "points", "turned"]

TURN = 1 << 16  # Angles are whole numbers of this part of a turn.
RADIUS = 1 << 12  # What stands for 1. The noise is far coarser than a step of it.


@lru_cache(maxsize=1)
def points() -> NDArray[np.int16]:
    """Return (cos, sin) of each angle, both rounded towards zero: cos² + sin² <= RADIUS² exactly.

    Every entry is looked at, so the bound does not rest on the machine's cosine: one that stood too far out would
    count as nothing.
    """
    angles = np.arange(TURN) * (2 * np.pi / TURN)
    found = np.trunc(RADIUS * np.column_stack([np.cos(angles), np.sin(angles)])).astype(np.int64)
    found[(found * found).sum(axis=1) > RADIUS * RADIUS] = 0
    table: NDArray[np.int16] = found.astype(np.int16)
    table.setflags(write=False)
    return table


def turned(angles: NDArray[np.int32]) -> tuple[NDArray[np.int16], NDArray[np.int16]]:
    """Return the cosines and sines of whole angles; whole turns do not count."""
    # A conversion to 16 bits drops whole turns, also of negative angles, so that no place lies outside the table.
    places = angles.astype(np.uint16)
    return _column(0).take(places, mode="clip"), _column(1).take(places, mode="clip")


@lru_cache(maxsize=2)
def _column(which: int) -> NDArray[np.int16]:
    return np.ascontiguousarray(points()[:, which])
