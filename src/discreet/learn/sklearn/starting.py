"""Where a search for clusters begins: points that are spread evenly and are the same for everybody."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["spread_points"]

Floats: TypeAlias = NDArray[np.float64]

_TRIED = 64  # Points to choose from, for each that is chosen.


def spread_points(count: int, dimension: int) -> Floats:
    """Return points of [-1, 1]^d that are far from each other: no chance, and no data, is in them.

    Each is the farthest from those before it, out of many that fill the cube evenly: multiples of powers of the root of
    x^(d + 1) = x + 1, without their whole parts.
    """
    root = 2.0
    for _ in range(64):
        root = (1 + root) ** (1 / (dimension + 1))
    steps = (1 / root) ** np.arange(1, dimension + 1)
    cloud = 2 * ((0.5 + np.arange(_TRIED * count)[:, None] * steps) % 1) - 1
    chosen = [cloud[1 % len(cloud)]]
    apart = np.full(len(cloud), np.inf)
    for _ in range(count - 1):
        apart = np.minimum(apart, ((cloud - chosen[-1]) ** 2).sum(axis=1))
        chosen.append(cloud[apart.argmax()])
    return np.array(chosen)
