"""The logarithm of the moment generating function of a sum of losses, and its first two derivatives."""

from __future__ import annotations

from collections.abc import Iterable
from typing import final

import numpy as np

from discreet.privacy.pld.pair import Floats
from discreet.privacy.pld.rows import RaggedRows

__all__ = ["Cumulant"]


@final
class Cumulant:
    """K(t) = sum of count * log E[exp(t loss); loss finite] over independent losses, each with a count.

    A loss is given by its values and their masses, all of them above 0.
    """

    __slots__ = ("_counts", "_log_mass", "_loss", "_rows")

    def __init__(self, losses: Iterable[tuple[Floats, Floats, int]]) -> None:
        values, masses, counts = zip(*losses, strict=True)
        self._loss = np.concatenate(values)
        self._log_mass = np.log(np.concatenate(masses))
        self._rows = RaggedRows.of([len(value) for value in values])
        self._counts = np.array(counts, dtype=np.float64)

    def __call__(self, tilt: float) -> float:
        return float(self._counts @ self._tilt(tilt)[1])

    def tilted(self, tilt: float) -> tuple[list[Floats], Floats]:
        """Return the tilted masses of each loss, normalised, and the logarithms of what they were divided by."""
        weights, logs, totals = self._tilt(tilt)
        return self._rows.split(weights / self._rows.spread(totals)), logs

    def moments(self, tilt: float) -> tuple[float, float, float]:
        """Return K, K' and K'': the latter are the mean and the variance of the tilted sum."""
        weights, logs, totals = self._tilt(tilt)
        mean = self._rows.sum(weights * self._loss) / totals
        centred = self._loss - self._rows.spread(mean)
        variance = self._rows.sum(weights * centred**2) / totals
        return float(self._counts @ logs), float(self._counts @ mean), float(self._counts @ variance)

    def _tilt(self, tilt: float) -> tuple[Floats, Floats, Floats]:
        exponent = self._log_mass + tilt * self._loss
        peak = self._rows.largest(exponent)
        weights = np.exp(exponent - self._rows.spread(peak))
        totals = self._rows.sum(weights)
        return weights, peak + np.log(totals), totals
