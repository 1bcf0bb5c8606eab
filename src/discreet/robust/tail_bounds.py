"""Noisy counts of how far values reach, and bounds chosen from them that few values exceed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet import noise
from discreet.errors import InvalidParameter
from discreet.exact import positive
from discreet.mechanisms.parameters import settle
from discreet.noise.limits import check_noise_variance
from discreet.privacy import events
from discreet.privacy.relation import Relation, read_relation

__all__ = ["Tails"]

Floats: TypeAlias = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Tails:
    """Histograms of several numbers of each unit, over public levels, and a level for each that few units exceed.

    Guarantee   Gaussian privacy with mu^2 = `mu_squared`.
    Theorem     A unit is in at most one bin of each histogram, so it moves as many counts by one as there are
                histograms, or twice as many if it is replaced; choosing a level afterwards is free. [DRS22]
    Utility     a level is one bin off where the count beyond it is about the noise on a few bins.
    """

    levels: tuple[tuple[float, ...], ...]  # increasing, one list for each histogram
    relation: Relation
    mu_squared: Fraction
    sure: float = 2.0  # deviations of its noise by which a count must exceed what is spared

    def __post_init__(self) -> None:
        settle(self, relation=read_relation(self.relation))
        settle(self, mu_squared=positive(self.mu_squared, name="mu_squared"))
        if not self.levels or any(len(levels) < 2 or list(levels) != sorted(levels) for levels in self.levels):
            raise InvalidParameter("levels must be lists of at least two increasing numbers")
        check_noise_variance(self.variance)

    @property
    def squared_sensitivity(self) -> int:
        """Of all counts together, in the l2 norm."""
        return len(self.levels) * (1 if self.relation is Relation.ADD_REMOVE else 2)

    @property
    def variance(self) -> Fraction:
        return self.squared_sensitivity / self.mu_squared

    @property
    def event(self) -> events.GDP:
        return events.GDP(mu_squared=self.squared_sensitivity / self.variance)

    def counts(self, columns: Sequence[Floats]) -> tuple[NDArray[np.int64], ...]:
        """Count the values from each level up to the next; those below the first are in no bin. This is private."""
        return tuple(
            np.bincount(np.searchsorted(levels, column, side="right"), minlength=len(levels) + 1)[1:].astype(np.int64)
            for levels, column in zip(self.levels, columns, strict=True)
        )

    def noisy(self, columns: Sequence[Floats]) -> tuple[NDArray[np.int64], ...]:
        """Add noise to the counts."""
        return tuple(
            counts + noise.rounded_gaussian(size=len(counts), variance=self.variance) for counts in self.counts(columns)
        )

    def chosen(self, columns: Sequence[Floats], beyond: float) -> tuple[float, ...]:
        """Return for each column the lowest level that clearly no more than `beyond` values exceed, after noise."""
        return tuple(
            self._lowest(levels, counts, beyond)
            for levels, counts in zip(self.levels, self.noisy(columns), strict=True)
        )

    def _lowest(self, levels: tuple[float, ...], counts: NDArray[np.int64], beyond: float) -> float:
        deviation = float(self.variance) ** 0.5
        tail = 0
        for bins in range(1, len(levels)):
            tail += int(counts[-bins])
            if tail > beyond + self.sure * deviation * bins**0.5:
                return levels[min(len(levels) - bins + 1, len(levels) - 1)]
        return levels[1]
