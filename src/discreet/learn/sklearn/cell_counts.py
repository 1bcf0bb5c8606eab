"""How many rows each cell of a public grid has: one Gaussian release, in which a row is in one cell."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet import noise
from discreet.exact import positive, positive_integer
from discreet.mechanisms.fields import check_noise_variance, read_relation, settle
from discreet.privacy import events
from discreet.privacy.relation import Relation

__all__ = ["CellCounts"]

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CellCounts:
    """Count the rows of each cell.

    Guarantee   Gaussian privacy with mu^2 = `mu_squared`, for all cells together.
    Theorem     A row is in one cell: with or without it one count differs by 1. A replaced row that goes elsewhere
                moves two counts by 1 each, a squared distance of 2. [DRS22]
    Utility     noise of 1 / mu on every count, however many cells there are.
    """

    cells: int
    relation: Relation
    mu_squared: Fraction

    def __post_init__(self) -> None:
        read_relation(self.relation)
        settle(
            self,
            cells=positive_integer(self.cells, name="cells"),
            mu_squared=positive(self.mu_squared, name="mu_squared"),
        )
        check_noise_variance(self.variance)

    @property
    def loss(self) -> int:
        """The squared distance by which one row moves all counts together."""
        return 1 if self.relation is Relation.ADD_REMOVE else 2

    @property
    def variance(self) -> Fraction:
        return self.loss / self.mu_squared

    @property
    def event(self) -> events.GDP:
        return events.GDP(mu_squared=self.loss / self.variance)

    def exact(self, places: Integers) -> Integers:
        """Return the counts; they are private."""
        return np.bincount(places, minlength=self.cells)[: self.cells].astype(np.int64)

    def measure(self, places: Integers) -> Floats:
        """Add noise; the caller answers for every row being in one cell."""
        counts = self.exact(places) + noise.rounded_gaussian(size=self.cells, variance=self.variance)
        return counts.astype(np.float64)
