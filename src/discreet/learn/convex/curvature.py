"""The second derivative of a logistic fit with noise: what standard errors are made of."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet import noise
from discreet.exact import positive, positive_integer
from discreet.learn.convex.curve import PIECE, STEEPEST, TOP, slopes_at
from discreet.learn.convex.gradient import RADIUS, pieces
from discreet.mechanisms.fields import check_noise_variance, read_relation, settle
from discreet.mechanisms.vector_mean import clip_to_ball
from discreet.privacy import events
from discreet.privacy.relation import Relation

__all__ = ["LogisticCurvature"]

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

_COARSE: Final = 1 << 6  # Rows are rounded to 2^-9 of the longest: entries of a matrix need no more.
_SMALL: Final = RADIUS // _COARSE
_SHORT: Final = 3  # Slopes are whole numbers of 2^-9, the steepest is 2^7.
_STEEPEST: Final = int(STEEPEST * (1 << (TOP - PIECE))) + (1 << _SHORT >> 1) >> _SHORT
_BLOCK: Final = 1 << 20  # Rows; so many products of at most 2^25 add up exactly in floats.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LogisticCurvature:
    """Measure sum p'(x theta) x x^T for rows in the unit ball and public coefficients theta.

    Guarantee   Gaussian privacy with mu^2 = `mu_squared`.
    Theorem     A row adds a matrix of Frobenius norm p' |x|^2 <= steepest. Entries off the diagonal count twice and get
                noise of half the variance, so the norm that noise sees is this one. Matrices of two rows have the inner
                product p' q' (x z)^2 >= 0, so replacing a row moves the sum by sqrt 2 such norms, not 2. [DRS22]
    Utility     a deviation of steepest / mu on the diagonal.
    """

    dimension: int
    relation: Relation
    mu_squared: Fraction

    def __post_init__(self) -> None:
        read_relation(self.relation)
        settle(
            self,
            dimension=positive_integer(self.dimension, name="dimension"),
            mu_squared=positive(self.mu_squared, name="mu_squared"),
        )
        check_noise_variance(self.variance)
        check_noise_variance(self.variance / 2)

    @property
    def squared_sensitivity(self) -> int:
        """Of the sum of whole numbers, in the Frobenius norm."""
        return (_STEEPEST * _SMALL**2) ** 2 * (1 if self.relation is Relation.ADD_REMOVE else 2)

    @property
    def variance(self) -> Fraction:
        """Of the diagonal; off it half of that."""
        return self.squared_sensitivity / self.mu_squared

    @property
    def event(self) -> events.GDP:
        return events.GDP(mu_squared=self.squared_sensitivity / self.variance)

    @property
    def unit(self) -> float:
        return 1 / (float(_SMALL) ** 2 * (1 << (TOP - PIECE - _SHORT)))

    @property
    def deviation(self) -> float:
        """Of the noise on the diagonal."""
        return math.sqrt(self.variance) * self.unit

    def exact(self, rows: Integers, place: Integers) -> Integers:
        """Add up whole numbers; `place` is theta in steps of 2^-42. This is private."""
        total = np.zeros((self.dimension, self.dimension), dtype=np.int64)
        for start in range(0, len(rows), _BLOCK):
            block = rows[start : start + _BLOCK]
            slopes = slopes_at(pieces(block.astype(np.float64), place)[0])
            weights = (slopes + (1 << _SHORT >> 1) >> _SHORT).astype(np.float64)
            small = clip_to_ball(np.rint(block / _COARSE).astype(np.int64), _SMALL).astype(np.float64)
            total += ((small * weights[:, None]).T @ small).astype(np.int64)
        return total

    def measure(self, rows: Integers, place: Integers) -> Floats:
        """Add noise to the matrix."""
        upper = np.triu_indices(self.dimension, 1)
        drawn = np.zeros((self.dimension, self.dimension), dtype=np.int64)
        if len(upper[0]):
            drawn[upper] = noise.rounded_gaussian(size=len(upper[0]), variance=self.variance / 2)
        drawn += drawn.T
        drawn[np.diag_indices(self.dimension)] = noise.rounded_gaussian(size=self.dimension, variance=self.variance)
        return np.asarray((self.exact(rows, place) + drawn) * self.unit, dtype=np.float64)
