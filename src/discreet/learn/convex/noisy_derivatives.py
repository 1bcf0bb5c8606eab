"""Noisy first and second derivatives of a logistic fit: steps of Newton's method, and standard errors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet import noise
from discreet.exact import positive, positive_integer
from discreet.learn.convex.logistic_gradient import (
    PIECE,
    RADIUS,
    REST,
    STEEPEST,
    TOP,
    VALUES,
    Labelled,
    pieces,
    slopes_at,
)
from discreet.mechanisms.parameters import check_noise_variance, read_relation, settle
from discreet.mechanisms.vector_mean import clip_to_ball
from discreet.privacy import events
from discreet.privacy.relation import Relation

__all__ = ["LogisticCurvature", "LogisticScores"]

# --- scores: The gradient of a logistic fit with noise: one step of a descent or of Newton's method. ---


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


# --- curvature: The second derivative of a logistic fit with noise: what standard errors are made of. ---


_COARSE: Final = 1 << 6  # Rows are rounded to 2^-9 of the longest: entries of a matrix need no more.
_SMALL: Final = RADIUS // _COARSE
_CURVATURE_SHORT: Final = 3  # Slopes are whole numbers of 2^-9, the steepest is 2^7.
_STEEPEST: Final = int(STEEPEST * (1 << (TOP - PIECE))) + (1 << _CURVATURE_SHORT >> 1) >> _CURVATURE_SHORT
_CURVATURE_BLOCK: Final = 1 << 20  # Rows; so many products of at most 2^25 add up exactly in floats.


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
        return 1 / (float(_SMALL) ** 2 * (1 << (TOP - PIECE - _CURVATURE_SHORT)))

    @property
    def deviation(self) -> float:
        """Of the noise on the diagonal."""
        return math.sqrt(self.variance) * self.unit

    def exact(self, rows: Integers, place: Integers) -> Integers:
        """Add up whole numbers; `place` is theta in steps of 2^-42. This is private."""
        total = np.zeros((self.dimension, self.dimension), dtype=np.int64)
        for start in range(0, len(rows), _CURVATURE_BLOCK):
            block = rows[start : start + _CURVATURE_BLOCK]
            slopes = slopes_at(pieces(block.astype(np.float64), place)[0])
            weights = (slopes + (1 << _CURVATURE_SHORT >> 1) >> _CURVATURE_SHORT).astype(np.float64)
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
