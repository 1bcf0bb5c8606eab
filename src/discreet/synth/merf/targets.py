"""Read released sums: the counts of the classes, the means of their features, and how far both can be trusted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from discreet.synth.merf.circle import RADIUS
from discreet.synth.merf.summing import NoisySums

__all__ = ["Targets"]

_LEAST = 0.25  # Of the rows that the noise is worth: fewer are not divided by.


@final
@dataclass(frozen=True, slots=True, eq=False)
class Targets:
    """Means of features by class. All of it is computed from released numbers."""

    counts: NDArray[np.float64]  # noisy, at least 0
    weights: NDArray[np.float32]  # from 0 for a class that drowns in noise to 1
    cells: NDArray[np.float32]  # (classes, pixels or cells), the greatest length being 1
    cosines: NDArray[np.float32]  # (classes, waves)
    sines: NDArray[np.float32]

    @classmethod
    def of(cls, sums: NoisySums, *, waves: int, constant: int, scale: float) -> Targets:
        """Divide the sums by the noisy counts. `scale` is what stands for 1 in the part before the waves."""
        counts = np.maximum(sums.values[:, 0] / constant, 0)
        # The noise of all cosines and sines together is as long as so many rows that point one way.
        worth = (2 * float(sums.variance)) ** 0.5 / RADIUS
        means = sums.values / np.maximum(counts, max(1.0, _LEAST * worth))[:, None]
        turning = (means[:, -2 * waves :] / RADIUS).astype(np.float32)
        return cls(
            counts,
            (counts**2 / (counts**2 + worth**2) + 1e-6).astype(np.float32),
            (means[:, 1 : means.shape[1] - 2 * waves] / scale).astype(np.float32),
            turning[:, :waves],
            turning[:, waves:],
        )
