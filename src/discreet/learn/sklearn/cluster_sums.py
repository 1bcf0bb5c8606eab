"""How many rows each cluster has and their sum: one Gaussian release with one joint sensitivity."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet import noise
from discreet.errors import InvalidParameter
from discreet.exact import positive, positive_integer
from discreet.mechanisms.fields import check_noise_variance, read_relation, settle
from discreet.privacy import events
from discreet.privacy.relation import Relation

__all__ = ["ClusterSums", "Clusters", "nearest"]

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

_FINEST = 1 << 15  # Steps from the middle to a bound.
_WIDEST = 1 << 78  # Of a variance; samplers take a little more.


class Clusters(NamedTuple):
    """Noisy sizes and sums in the frame in which bounds are -1 and 1, one row a cluster."""

    sizes: Floats
    sums: Floats
    size_deviation: float
    sum_deviation: float


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSums:
    """Measure the size and the sum of each cluster, for rows of whole numbers within [-reach, reach].

    Guarantee   Gaussian privacy with mu^2 = `mu_squared`, for all clusters together.
    Theorem     In the frame, with precisions q of sizes and 1 of sums, one row has the squared norm q + |x|^2 <= q + d,
                and belongs to one cluster. A replaced row that stays moves one sum by at most 2 sqrt(d); one that goes
                elsewhere moves two clusters, each by the norm of a row. [DRS22]
    Utility     noise of about sqrt(d) / mu on every sum, in the frame, whatever the number of clusters.
    """

    dimension: int
    clusters: int
    relation: Relation
    mu_squared: Fraction
    size_weight: Fraction = Fraction(1)  # q: how precise sizes are, next to sums
    reach: int = 0  # in steps; the finest that samplers take, unless given

    def __post_init__(self) -> None:
        read_relation(self.relation)
        settle(
            self,
            dimension=positive_integer(self.dimension, name="dimension"),
            clusters=positive_integer(self.clusters, name="clusters"),
            mu_squared=positive(self.mu_squared, name="mu_squared"),
            size_weight=positive(self.size_weight, name="size_weight"),
        )
        settle(self, reach=positive_integer(self.reach or self._finest(), name="reach"))
        if self.reach > _FINEST:
            raise InvalidParameter(f"reach must be at most {_FINEST} steps")
        check_noise_variance(self.size_variance)
        check_noise_variance(self.sum_variance)

    @property
    def loss(self) -> Fraction:
        """What one row costs, squared, where sums in the frame have noise of variance one."""
        row = self.size_weight + self.dimension
        if self.relation is Relation.ADD_REMOVE:
            return row
        within = Fraction(4 * self.dimension)
        return max(within, 2 * row) if self.clusters > 1 else within

    @property
    def precision(self) -> Fraction:
        """One over the variance of sums in the frame, as large as mu allows."""
        return self.mu_squared / self.loss

    @property
    def size_variance(self) -> Fraction:
        return 1 / (self.precision * self.size_weight)

    @property
    def sum_variance(self) -> Fraction:
        """In squared steps."""
        return self.reach**2 / self.precision

    @property
    def event(self) -> events.GDP:
        return events.GDP(mu_squared=self.loss * self.precision)

    def exact(self, rows: Integers, labels: Integers) -> tuple[Integers, Integers]:
        """Return sizes and sums, one row a cluster. They are private."""
        sizes = np.bincount(labels, minlength=self.clusters)[: self.clusters].astype(np.int64)
        sums = np.zeros((self.clusters, self.dimension), dtype=np.int64)
        np.add.at(sums, labels, rows)
        return sizes, sums

    def measure(self, rows: Integers, labels: Integers) -> Clusters:
        """Add noise; the caller answers for the bounds of every row."""
        sizes, sums = self.exact(rows, labels)
        sizes = sizes + noise.rounded_gaussian(size=self.clusters, variance=self.size_variance)
        sums = sums + noise.rounded_gaussian(size=sums.shape, variance=self.sum_variance)
        return Clusters(
            sizes=sizes.astype(np.float64),
            sums=sums / float(self.reach),
            size_deviation=float(self.size_variance) ** 0.5,
            sum_deviation=float(self.sum_variance) ** 0.5 / self.reach,
        )

    def _finest(self) -> int:
        """Return the largest power of two with which no noise is too wide."""
        precision = float(self.mu_squared / (4 * self.dimension + 2 * self.size_weight))
        bits = (int(_WIDEST * min(precision, 1.0)).bit_length() - 2) // 2
        return min(_FINEST, 1 << max(bits, 1))


def nearest(rows: Floats, centres: Floats) -> Integers:
    """Return the place of the nearest centre of each row, the first where several are.

    Squares are added up one column after the other, so that a row's cluster depends on that row alone.
    """
    apart = np.zeros((len(rows), len(centres)))
    for column, entries in zip(rows.T, centres.T, strict=True):
        apart += (column[:, None] - entries) ** 2
    found: Integers = apart.argmin(axis=1).astype(np.int64)
    return found
