"""The count, the sum and the second moments of rows in a ball: one Gaussian release with one joint sensitivity."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import log, sqrt
from typing import NamedTuple, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet import noise
from discreet.errors import InvalidParameter
from discreet.exact import positive, positive_integer
from discreet.mechanisms.fields import check_noise_variance, read_relation, settle
from discreet.privacy import events
from discreet.privacy.relation import Relation
from discreet.robust.moments import FINEST, exact_moments, joint_loss

__all__ = ["RowMoments", "RowSums", "covariance", "covariance_error"]

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]


class RowSums(NamedTuple):
    """Noisy moments in steps, with the standard deviations of their noise."""

    rows: float
    total: Floats
    gram: Floats
    count_deviation: float
    total_deviation: float
    gram_deviation: float  # of the diagonal; off it the variance is half as much


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RowMoments:
    """Measure n, the sum of x, and the sum of x x' - centre I, for rows of whole numbers with |x| <= radius.

    The noise on the matrix is symmetric and has half the variance off the diagonal, where an entry counts twice.

    Guarantee   Gaussian privacy with mu^2 = `mu_squared`, for all numbers together.
    Theorem     With precisions q, p and 1 of count, sum and matrix, in units of the radius, one row with t = |x|^2 has
                the squared norm q + p t + t^2 - 2 c t + d c^2. This is convex in t, so it is at most
                q + d c^2 + max(0, p + 1 - 2 c); c = 1 / d takes 1 / d away, and no eigenvector notices. Of two rows the
                count and the centre are the same; what is left is the pair of `Moments`: at most
                2 + 2 p + p^2 / 2 where p <= 2, and 4 p beyond. [DRS22]
    Utility     noise of about sqrt(2 d) radius^2 / mu on every eigenvalue.
    """

    dimension: int
    relation: Relation
    mu_squared: Fraction
    radius: int  # in steps
    weight: Fraction = Fraction(1, 4)  # p: how precise the sum is, next to the matrix
    count_weight: Fraction = Fraction(1, 8)  # q: how precise the count is, next to the matrix

    def __post_init__(self) -> None:
        read_relation(self.relation)
        settle(
            self,
            dimension=positive_integer(self.dimension, name="dimension"),
            mu_squared=positive(self.mu_squared, name="mu_squared"),
            radius=positive_integer(self.radius, name="radius"),
            weight=positive(self.weight, name="weight"),
            count_weight=positive(self.count_weight, name="count_weight"),
        )
        if self.radius > FINEST:
            raise InvalidParameter(f"radius must be at most {FINEST} steps")
        for variance in (self.count_variance, self.total_variance, self.gram_variance / 2):
            check_noise_variance(variance)

    @property
    def centre(self) -> int:
        """The public number that is taken off the diagonal for each row, in squared steps."""
        return int(self.radius**2 * min(Fraction(1, self.dimension), (1 + self.weight) / 2))

    @property
    def loss(self) -> Fraction:
        """What one row costs, squared, where the matrix has noise of variance one, in units of the radius."""
        if self.relation is Relation.REPLACE_ONE:
            return joint_loss(Fraction(1), self.weight, self.relation)
        shift = Fraction(self.centre, self.radius**2)
        return self.count_weight + self.dimension * shift**2 + max(Fraction(0), self.weight + 1 - 2 * shift)

    @property
    def precision(self) -> Fraction:
        """One over the variance of the diagonal, in units of the radius, as large as mu allows."""
        return self.mu_squared / self.loss

    @property
    def count_variance(self) -> Fraction:
        return 1 / (self.precision * self.count_weight)

    @property
    def total_variance(self) -> Fraction:
        """In squared steps."""
        return self.radius**2 / (self.precision * self.weight)

    @property
    def gram_variance(self) -> Fraction:
        """Of the diagonal, in fourth powers of steps."""
        return self.radius**4 / self.precision

    @property
    def event(self) -> events.GDP:
        return events.GDP(mu_squared=self.loss * self.precision)

    def exact(self, rows: Integers) -> tuple[int, Integers, Integers]:
        """Return the count, the sum and the matrix about its centre. They are private."""
        gram, total = exact_moments(rows, np.ones(len(rows), dtype=np.int64))
        return len(rows), total, gram - len(rows) * self.centre * np.eye(self.dimension, dtype=np.int64)

    def measure(self, rows: Integers) -> RowSums:
        """Add noise; the caller answers for the length of every row."""
        count, total, gram = self.exact(rows)
        if self.relation is Relation.ADD_REMOVE:
            count += noise.rounded_gaussian(variance=self.count_variance)
        total = total + noise.rounded_gaussian(size=self.dimension, variance=self.total_variance)
        gram = gram + self._symmetric_noise() + count * self.centre * np.eye(self.dimension, dtype=np.int64)
        return RowSums(
            rows=float(count),
            total=total.astype(np.float64),
            gram=gram.astype(np.float64),
            count_deviation=sqrt(self.count_variance) if self.relation is Relation.ADD_REMOVE else 0.0,
            total_deviation=sqrt(self.total_variance),
            gram_deviation=sqrt(self.gram_variance),
        )

    def _symmetric_noise(self) -> Integers:
        size = self.dimension
        upper = np.triu_indices(size, 1)
        drawn = np.zeros((size, size), dtype=np.int64)
        drawn[upper] = noise.rounded_gaussian(size=len(upper[0]), variance=self.gram_variance / 2)
        drawn += drawn.T
        drawn[np.diag_indices(size)] = noise.rounded_gaussian(size=size, variance=self.gram_variance)
        return drawn


def covariance(measured: RowSums) -> Floats:
    """Return the covariance that noisy moments tell, in squared steps."""
    count = max(measured.rows, 1.0)
    mean = measured.total / count
    found: Floats = measured.gram / count - np.outer(mean, mean)
    return found


def covariance_error(measured: RowSums, confidence: float, centre: float) -> float:
    """Return how far, in the operator norm, noise has moved the covariance, with at least this probability.

    Three events share what is left. The symmetric noise is a Gaussian orthogonal ensemble of variance v / 2: its norm
    has a mean of at most sqrt(2 d v), by comparison with 2 sqrt(v / 2) g u, and is sqrt(v)-Lipschitz. The length of the
    noise on the sum is at most deviation (sqrt(d) + t), the noise on the count at most deviation t, with the chance
    2 exp(-t^2 / 2). What is left is the triangle inequality. Rounding adds half a step to each entry.
    """
    size, t = len(measured.total), sqrt(2 * log(6 / (1 - confidence)))
    count, off = max(measured.rows, 1.0), measured.count_deviation * t
    if off >= count:
        return float("inf")
    least = count - off
    rounding = size / 2
    matrix = measured.gram_deviation * (sqrt(2 * size) + t) + rounding + centre * off
    mean = float(np.linalg.norm(measured.total)) / count
    apart = (measured.total_deviation * (sqrt(size) + t) + rounding + mean * off) / least
    whole = float(np.linalg.norm(measured.gram, 2)) / count
    return (matrix + whole * off) / least + 2 * mean * apart + apart**2
