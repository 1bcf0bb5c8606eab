"""The gradient of a logistic fit with noise: one step of a descent or of Newton's method."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet import noise
from discreet.exact import positive, positive_integer
from discreet.learn.convex.curve import TOP, VALUES, slopes_at
from discreet.learn.convex.gradient import RADIUS, REST, Labelled, pieces
from discreet.mechanisms.fields import check_noise_variance, read_relation, settle
from discreet.privacy import events
from discreet.privacy.relation import Relation

__all__ = ["LogisticScores"]

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

_SHORT: Final = 4  # Scores are whole numbers of 2^-14.
_WHOLE: Final = 1 << (TOP - _SHORT)
_BLOCK: Final = 1 << 20  # Rows; so many products of at most 2^29 add up exactly in floats.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LogisticScores:
    """Measure sum (y - p(x theta)) x for rows in the unit ball and public coefficients theta.

    Guarantee   Gaussian privacy with mu^2 = `mu_squared`.
    Theorem     A row adds a vector of whole numbers no longer than its residual, at most 1, times its length. At
                theta = 0 every residual is 1/2 or -1/2, and the noise is half as large. [ABL23, DRS22]
    Utility     a deviation of 1 / mu on each entry under add-remove, twice that under replace-one.
    """

    dimension: int
    relation: Relation
    mu_squared: Fraction
    at_zero: bool = False  # whether theta is zero

    def __post_init__(self) -> None:
        read_relation(self.relation)
        settle(
            self,
            dimension=positive_integer(self.dimension, name="dimension"),
            mu_squared=positive(self.mu_squared, name="mu_squared"),
        )
        check_noise_variance(self.variance)

    @property
    def squared_sensitivity(self) -> int:
        longest = _WHOLE * RADIUS // (2 if self.at_zero else 1)
        return longest**2 * (1 if self.relation is Relation.ADD_REMOVE else 4)

    @property
    def variance(self) -> Fraction:
        return self.squared_sensitivity / self.mu_squared

    @property
    def event(self) -> events.GDP:
        return events.GDP(mu_squared=self.squared_sensitivity / self.variance)

    @property
    def deviation(self) -> float:
        return math.sqrt(self.variance) / (_WHOLE * RADIUS)

    def exact(self, data: Labelled, place: Integers) -> Integers:
        """Add up whole numbers; `place` is theta in steps of 2^-42. This is private."""
        at = np.zeros_like(place) if self.at_zero else place
        total = np.zeros(self.dimension, dtype=np.int64)
        for start in range(0, len(data.rows), _BLOCK):
            rows = data.rows[start : start + _BLOCK].astype(np.float64)
            piece, rest = pieces(rows, at)
            values = VALUES[piece] + (slopes_at(piece) * rest >> REST)  # At theta = 0 exactly one half.
            residuals = data.labels[start : start + _BLOCK] * _WHOLE - (values + (1 << _SHORT >> 1) >> _SHORT)
            total += (rows.T @ residuals.astype(np.float64)).astype(np.int64)
        return total

    def measure(self, data: Labelled, place: Integers) -> Floats:
        """Add noise to the sum."""
        drawn = noise.rounded_gaussian(size=self.dimension, variance=self.variance)
        found: Floats = (self.exact(data, place) + drawn) / (_WHOLE * RADIUS)
        return found
