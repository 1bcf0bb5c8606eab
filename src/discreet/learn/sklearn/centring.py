"""Where rows lie and how far out, found privately: what is needed before their second moments are worth measuring."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.exact import positive, positive_integer
from discreet.mechanisms.budget import GaussianNoise
from discreet.mechanisms.fields import read_relation, read_share, settle
from discreet.mechanisms.grid import Grid
from discreet.mechanisms.quantile import Quantile
from discreet.mechanisms.vector_mean import VectorMean
from discreet.privacy.events import Composed
from discreet.privacy.relation import Relation
from discreet.robust.moments import FINEST

__all__ = ["Centring"]

Integers: TypeAlias = NDArray[np.int64]

_LEAST = FINEST >> 9  # Steps: the distance of possible radii.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Centring:
    """Find the mean of rows within a ball of FINEST steps, and a radius about it that holds a share of them.

    Guarantee   Gaussian privacy of mu^2 for the mean, and a choice of bounded range for the radius.
    Theorem     See `VectorMean` and `Quantile`: the length of a row about a released mean is a number of that row.
                [DRS22, Smi11]
    Utility     a radius of which about `coverage` is true, where there are more than (20 / epsilon) / (1 - coverage)
                rows.
    """

    dimension: int
    relation: Relation
    size: int | None  # the public number of rows, under replace-one
    coverage: Fraction
    mu_squared: Fraction  # for the mean
    epsilon: Fraction  # for the radius

    def __post_init__(self) -> None:
        read_relation(self.relation)
        settle(
            self,
            dimension=positive_integer(self.dimension, name="dimension"),
            coverage=read_share(self.coverage, name="coverage"),
            mu_squared=positive(self.mu_squared, name="mu_squared"),
            epsilon=positive(self.epsilon, name="epsilon"),
        )

    @property
    def mean(self) -> VectorMean:
        return VectorMean(
            bound=Fraction(FINEST),
            step=Fraction(1),
            dimension=self.dimension,
            relation=self.relation,
            noise=GaussianNoise(squared_multiplier=1 / self.mu_squared),
            size=self.size,
            count_share=Fraction(1, 8),
        )

    @property
    def radius(self) -> Quantile:
        grid = Grid(low=Fraction(_LEAST), high=Fraction(FINEST), step=Fraction(_LEAST), default=Fraction(FINEST))
        return Quantile(quantile=self.coverage, epsilon=self.epsilon, grid=grid, relation=self.relation)

    @property
    def event(self) -> Composed:
        return Composed([self.mean.event, self.radius.event])

    def find(self, rows: Integers) -> tuple[Integers, int]:
        """Return the centre and the radius, in steps."""
        # The mean lies in the ball; noise may carry it far out, where squares would no longer fit into 64 bits.
        inside = (min(max(round(value), -FINEST), FINEST) for value in self.mean.release(rows).value)
        centre = np.fromiter(inside, dtype=np.int64, count=self.dimension)
        apart = rows - centre
        # Squares are whole numbers and a root is rounded correctly: the length depends on the row alone.
        lengths = np.sqrt((apart * apart).sum(axis=1).astype(np.float64))
        return centre, int(self.radius.release(lengths).value)
