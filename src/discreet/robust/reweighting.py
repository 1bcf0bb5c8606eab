"""A closer look at rows: public linear coordinates, a public fit to subtract, and lengths cut to public bounds.

The arithmetic is exact or rounds each number by itself, so that what becomes of a row depends on that row alone, not
on where in the table it stands or on who stands beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.mechanisms.vector_mean import clip_to_ball
from discreet.robust.regression_design import HALF

__all__ = ["Lens", "bounded", "lengths"]

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

_EXACT = 1 << 32  # Times HALF = 2^20: sums of such products stay below 2^53 and are exact in any order.
_FAR = 1 << 26  # Steps; its square, a thousand times, fits 64 bits.
_FINE = 1 << 10  # Steps to the unit in which lengths are told.


@final
@dataclass(frozen=True, slots=True)
class Lens:
    """Coordinates (1, x) turn and residuals y - (1, x) fit of rows (1, x, y)."""

    turn: Floats
    fit: Floats

    @classmethod
    def plain(cls, dimension: int) -> Lens:
        """Look at the rows as they are."""
        return cls(np.eye(dimension), np.zeros(dimension))

    def look(self, rows: Integers) -> tuple[Floats, Floats]:
        """Return coordinates and residuals, exactly for the public map rounded to 32 bits. They are private."""
        size = len(self.fit)
        matrix = np.zeros((size + 1, size + 1))
        matrix[:size, :size], matrix[:size, size], matrix[size, size] = self.turn, -self.fit, 1.0
        # A power of two for each column, so that dividing by it later is exact.
        _, powers = np.frexp(np.abs(matrix).max(axis=0) * (size + 1))
        scales = np.ldexp(float(_EXACT), -powers)
        whole = np.rint(matrix * scales)
        seen = (rows.astype(np.float64) @ whole) / (scales * HALF)
        return seen[:, :size], seen[:, size]


def lengths(coordinates: Floats) -> Floats:
    """Return the l2 norm of each row, from its coordinates rounded to 1/1024."""
    near = np.clip(np.rint(coordinates * _FINE), -_FAR, _FAR).astype(np.int64)
    # Whole numbers add up the same in any order, and a root is rounded correctly.
    norms: Floats = np.sqrt((near * near).sum(axis=1)) / _FINE
    return norms


def bounded(
    coordinates: Floats, residuals: Floats, radius: float, reach: float, steps: int
) -> tuple[Integers, Integers]:
    """Shorten each row to the radius, its residual with it, and clamp that to the reach; both are so many steps.

    A row that is shortened is one that weighs less: its residual shrinks by the same factor.
    """
    near = np.clip(np.rint(coordinates * (steps / radius)), -_FAR, _FAR).astype(np.int64)
    shares = steps / np.sqrt(np.maximum((near * near).sum(axis=1), steps**2))
    kept = np.clip(residuals * shares * (steps / reach), -steps, steps)
    return clip_to_ball(near, steps), np.rint(kept).astype(np.int64)
