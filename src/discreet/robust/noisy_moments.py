"""Second moments of bounded rows with Gaussian noise: all that least squares needs, paid for as one release."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet import noise
from discreet.errors import InvalidParameter
from discreet.exact import nonnegative, positive, positive_integer
from discreet.mechanisms.parameters import settle
from discreet.noise.limits import check_noise_variance, finest_radius
from discreet.privacy import events
from discreet.privacy.relation import Relation, read_relation

__all__ = ["FINEST", "Moments", "NoisyMoments", "best_weight", "exact_moments", "joint_loss"]

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

FINEST = 1 << 15  # Steps to the longest row and to the largest response, unless noise is too wide for that.
_BLOCK = 1 << 20  # Rows; so many products of at most 2^30 add up exactly in floats, in any order.


class NoisyMoments(NamedTuple):
    """Noisy moments in units of the radius, with the standard deviation of their noise."""

    gram: Floats
    cross: Floats
    gram_deviation: float  # of the diagonal; off it the variance is half as much
    cross_deviation: float


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Moments:
    """Measure X'X and X'y for rows of whole numbers with |x| <= radius and |y| <= radius.

    The noise on X'X has half the variance off the diagonal, where an entry counts twice.

    Guarantee   Gaussian privacy with mu^2 = `mu_squared`, however it is divided between X'X and X'y.
    Theorem     With variances radius^4 / a on the diagonal of X'X, half of that off it, and radius^4 / b on X'y, one
                row has the squared norm a |x|^4 + b |x|^2 y^2 <= a + b, in units of the radius and of the noise. Two
                rows have the inner product a s^2 + b s q, s = x x', q = y y', which is at least -b^2 / (4 a) where
                b <= 2 a, and a - b otherwise; their squared distance is at most twice (a + b minus that).
                [DRS22, Wan18]
    Utility     under replace-one X'X costs nothing where b >= 2 a: 4 b is what X'y alone costs.
    """

    dimension: int
    relation: Relation
    mu_squared: Fraction
    weight: Fraction  # b / a: how much more precise X'y is than X'X
    radius: int = 0  # in steps; the finest that samplers take, unless given

    def __post_init__(self) -> None:
        settle(self, relation=read_relation(self.relation))
        settle(
            self,
            dimension=positive_integer(self.dimension, name="dimension"),
            mu_squared=positive(self.mu_squared, name="mu_squared"),
            weight=positive(self.weight, name="weight"),
        )
        finest = finest_radius(min(self.precisions), power=4, most=FINEST)
        settle(self, radius=positive_integer(self.radius or finest, name="radius"))
        if self.radius > FINEST:
            raise InvalidParameter(f"radius must be at most {FINEST} steps")
        check_noise_variance(self.gram_variance / 2)
        check_noise_variance(self.cross_variance)

    @property
    def precisions(self) -> tuple[Fraction, Fraction]:
        """The a and b of the theorem, as large as mu allows."""
        unit = joint_loss(Fraction(1), self.weight, self.relation)
        return self.mu_squared / unit, self.mu_squared * self.weight / unit

    @property
    def gram_variance(self) -> Fraction:
        """Of the noise on the diagonal of X'X, in squared steps."""
        return self.radius**4 / self.precisions[0]

    @property
    def cross_variance(self) -> Fraction:
        """Of the noise on X'y, in squared steps."""
        return self.radius**4 / self.precisions[1]

    @property
    def event(self) -> events.GDP:
        return events.GDP(mu_squared=joint_loss(*self.precisions, self.relation))

    def measure(self, rows: Integers, responses: Integers) -> NoisyMoments:
        """Add noise to the moments; the caller answers for the bounds of every row."""
        gram, cross = exact_moments(rows, responses)
        noisy = gram + self._symmetric_noise()
        drawn = noise.rounded_gaussian(size=self.dimension, variance=self.cross_variance)
        unit = float(self.radius) ** 2
        return NoisyMoments(
            noisy / unit,
            (cross + drawn) / unit,
            float(self.gram_variance) ** 0.5 / unit,
            float(self.cross_variance) ** 0.5 / unit,
        )

    def _symmetric_noise(self) -> Integers:
        size = self.dimension
        upper = np.triu_indices(size, 1)
        drawn = np.zeros((size, size), dtype=np.int64)
        drawn[upper] = noise.rounded_gaussian(size=len(upper[0]), variance=self.gram_variance / 2)
        drawn += drawn.T
        drawn[np.diag_indices(size)] = noise.rounded_gaussian(size=size, variance=self.gram_variance)
        return drawn


def joint_loss(gram: Fraction, cross: Fraction, relation: Relation) -> Fraction:
    """Return the mu^2 that X'X with precision `gram` and X'y with precision `cross` cost together."""
    if relation is Relation.ADD_REMOVE:
        return gram + cross
    return 4 * cross if cross > 2 * gram else 2 * (gram + cross) + cross**2 / (2 * gram)


def best_weight(coefficient_norm: Fraction, relation: Relation) -> Fraction:
    """Return the weight for which X'y - X'X theta has the least noise, for coefficients of this l2 norm in the frame.

    Its variance is 1 / b + |theta|^2 / (2 a) for each entry. Under add-remove, where a + b is fixed, the best b / a is
    sqrt(2) / |theta|. Under replace-one mu^2 = 2 a (1 + b / (2 a))^2, and t = b / (2 a) solves 2 k t^2 + t = 1 with
    k = |theta|^2. A guess is enough: it changes the error a little and the guarantee not at all.
    """
    size = float(nonnegative(coefficient_norm, name="coefficient_norm"))
    if relation is Relation.ADD_REMOVE:
        return Fraction(2**0.5 / max(size, 2**-10)).limit_denominator(1 << 20)
    k = max(size**2, 2**-10)
    return Fraction(2 * ((1 + 8 * k) ** 0.5 - 1) / (4 * k)).limit_denominator(1 << 20)


def exact_moments(rows: Integers, responses: Integers) -> tuple[Integers, Integers]:
    """Multiply exactly: whole numbers below 2^53 are floats, in any order of addition."""
    size = rows.shape[1]
    gram, cross = np.zeros((size, size), dtype=np.int64), np.zeros(size, dtype=np.int64)
    for start in range(0, len(rows), _BLOCK):
        block = rows[start : start + _BLOCK].astype(np.float64)
        gram += (block.T @ block).astype(np.int64)
        cross += (block.T @ responses[start : start + _BLOCK].astype(np.float64)).astype(np.int64)
    return gram, cross
