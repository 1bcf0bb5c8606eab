"""Read released sums: the counts of the classes, the means of their features, and how far both can be trusted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from discreet.synth.merf.summing import Embedding, NoisySums

__all__ = ["Targets"]

_LEAST = 0.25  # Of the rows that the noise is worth: fewer are not divided by.


@final
@dataclass(frozen=True, slots=True, eq=False)
class Targets:
    """Means of features by class. All of it is computed from released numbers."""

    counts: NDArray[np.float64]  # noisy, at least 0
    weights: NDArray[np.float32]  # from 0 for a class that drowns in noise to 1
    means: NDArray[np.float32]  # (classes, features without the constant), in whole steps

    @classmethod
    def of(cls, sums: NoisySums, embedding: Embedding) -> Targets:
        """Divide the sums by the noisy counts."""
        reach = embedding.reach
        counts = np.maximum(sums.values[:, 0] / reach.constant**0.5, 0)
        # The noise of all features together is as long as so many rows that point one way.
        worth = (float(sums.variance) * (embedding.width - 1) / (reach.squared - reach.constant)) ** 0.5
        means = sums.values[:, 1:] / np.maximum(counts, max(1.0, _LEAST * worth))[:, None]
        weights = counts**2 / (counts**2 + worth**2) + 1e-6
        return cls(counts, weights.astype(np.float32), means.astype(np.float32))
