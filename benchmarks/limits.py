"""Medians, means and ratios of errors with the limits that a bootstrap gives them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["Errors", "ratio_limits"]

Floats = NDArray[np.float64]
REPLICATES: Final = 4_000
TAIL: Final = 0.005  # on each side: limits of 99 %
_GENERATOR: Final = np.random.default_rng(585)


@dataclass(frozen=True, slots=True)
class Errors:
    """The errors of all runs of one method in one cell, summed up by their median or their mean."""

    errors: Floats
    by_mean: bool = False

    @property
    def typical(self) -> float:
        """The median or the mean."""
        return float(self.errors.mean() if self.by_mean else np.median(self.errors))

    def replicates(self) -> Floats:
        """Return what the median or the mean of resampled runs would be."""
        return self._means() if self.by_mean else self._medians()

    def limits(self) -> tuple[float, float]:
        """Return the 99 % limits."""
        low, high = np.quantile(self.replicates(), [TAIL, 1 - TAIL], method="nearest")  # Some are infinite.
        return float(low), float(high)

    def _medians(self) -> Floats:
        """The median of n draws of n sorted errors is the one at the place of a beta variable."""
        ordered, count = np.sort(self.errors), len(self.errors)
        middle = (count + 1) / 2
        places = np.floor(count * _GENERATOR.beta(middle, count - middle + 1, REPLICATES)).astype(np.int64)
        return np.asarray(ordered[np.minimum(places, count - 1)])

    def _means(self) -> Floats:
        found, times = np.unique(self.errors, return_counts=True)
        drawn = _GENERATOR.multinomial(len(self.errors), times / times.sum(), REPLICATES)
        return np.asarray(drawn @ found / len(self.errors))


def ratio_limits(ours: Errors, theirs: Errors) -> tuple[float, float, float]:
    """Return the ratio of two errors and its 99 % limits; two errors of zero are alike."""
    ratios = _ratios(ours.replicates(), theirs.replicates())
    low, high = np.quantile(ratios, [TAIL, 1 - TAIL], method="nearest")
    return float(_ratios(np.array([ours.typical]), np.array([theirs.typical]))[0]), float(low), float(high)


def _ratios(ours: Floats, theirs: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where((ours == 0) & (theirs == 0), 1.0, ours / theirs)
