"""The logarithm of the moment generating function of a sum of losses, and its first two derivatives."""

from __future__ import annotations

from collections.abc import Iterable
from typing import final

import numpy as np

from discreet.privacy.pld.pair import Floats

__all__ = ["Cumulant"]


@final
class Cumulant:
    """K(t) = sum of count * log E[exp(t loss); loss finite] over independent losses, each with a count.

    A loss is given by its values and their masses, all of them above 0.
    """

    __slots__ = ("_counts", "_log_mass", "_loss", "_sizes", "_starts")

    def __init__(self, losses: Iterable[tuple[Floats, Floats, int]]) -> None:
        values, masses, counts = zip(*losses, strict=True)
        self._loss = np.concatenate(values)
        self._log_mass = np.log(np.concatenate(masses))
        self._sizes = np.array([len(value) for value in values])
        self._starts = np.cumsum(self._sizes) - self._sizes
        self._counts = np.array(counts, dtype=np.float64)

    def __call__(self, tilt: float) -> float:
        return float(self._counts @ self._tilt(tilt)[1])

    def tilted(self, tilt: float) -> tuple[list[Floats], Floats]:
        """Return the tilted masses of each loss, normalised, and the logarithms of what they were divided by."""
        weights, logs, totals = self._tilt(tilt)
        return np.split(weights / np.repeat(totals, self._sizes), self._starts[1:]), logs

    def moments(self, tilt: float) -> tuple[float, float, float]:
        """Return K, K' and K'': the latter are the mean and the variance of the tilted sum."""
        weights, logs, totals = self._tilt(tilt)
        mean = np.add.reduceat(weights * self._loss, self._starts) / totals
        centred = self._loss - np.repeat(mean, self._sizes)
        variance = np.add.reduceat(weights * centred**2, self._starts) / totals
        return float(self._counts @ logs), float(self._counts @ mean), float(self._counts @ variance)

    def _tilt(self, tilt: float) -> tuple[Floats, Floats, Floats]:
        exponent = self._log_mass + tilt * self._loss
        peak = np.maximum.reduceat(exponent, self._starts)
        weights = np.exp(exponent - np.repeat(peak, self._sizes))
        totals = np.add.reduceat(weights, self._starts)
        return weights, peak + np.log(totals), totals
