"""One of many points that more than half of them are near, with a smooth bound on how far a few of them can move it.

Points are vectors on a grid. The t-radius of a point is its distance to the t-th nearest point, itself included; the
centre of attention has the least t-radius, for a t of just over half. [NRS07]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from discreet.adaptive.noise_recipes import Norm
from discreet.balls import ball
from discreet.errors import InvalidParameter
from discreet.exact import positive_integer
from discreet.mechanisms.grid import Grid
from discreet.mechanisms.parameters import settle
from discreet.privacy.relation import Relation

if TYPE_CHECKING:
    from flint import arb

__all__ = ["CentreOfAttentionQuery", "Radii", "read_point"]

_FITS = 1 << 62


@final
@dataclass(frozen=True, slots=True)
class Radii:
    """A bound of the form max over k of (r_k + r_(k+1)) e^(-beta k), none above the diameter; r by their powers."""

    powers: tuple[int, ...]  # r_0, r_1, …, to the power of the norm, in grid steps; from then on, the diameter
    diameter: int  # to the same power
    norm: Norm

    def enclose(self, beta: Fraction) -> arb:
        """Enclose it at the working precision."""
        radii = [self._root(power) for power in (*self.powers, self.diameter)]
        heights = [(one + other).min(radii[-1]) for one, other in pairwise(radii)]
        peaks = [height * ball(-beta * k).exp() for k, height in enumerate(heights)]
        return reduce(lambda one, other: one.max(other), peaks)

    def _root(self, power: int) -> arb:
        return ball(power) if self.norm == 1 else ball(power).sqrt()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CentreOfAttentionQuery:
    """The point of a public number of them whose ball around just over half of all is smallest.

    One unit may replace `entries` of the points. t is (size + entries) / 2 rounded down, plus 1. Of equals, the
    first point in the order of coordinates is the centre.

    Theorem     Two neighbours share all points but `entries`, so their two balls share one, and their centres are
                no farther apart than the two radii together. Let r_j be the (1 + j)-th smallest (t + j)-radius of all
                points. Wherever j points are replaced, one of the 1 + j best centres is left, and its ball holds t
                points still: the radius there is r_j at most. So A_k = r_(k e) + r_((k + 1) e), or the diameter if
                that is less, bounds the local sensitivity k units away. By the same count r_j of one data set is at
                most r_(j + e) of its neighbour, so A_k is at most the neighbour's A_(k+1), and the largest
                A_k e^(-beta k) is a beta-smooth bound. [NRS07] averages over centres instead, for a cruder one.
    """

    relation: ClassVar[Relation] = Relation.REPLACE_ONE
    relative_error: ClassVar[Fraction] = Fraction(0)
    value_error: ClassVar[Fraction] = Fraction(0)

    grid: Grid  # of every coordinate
    dimension: int
    size: int
    norm: Norm = 2
    entries: int = 1

    def __post_init__(self) -> None:
        settle(
            self,
            dimension=positive_integer(self.dimension, name="dimension"),
            size=positive_integer(self.size, name="size"),
            entries=positive_integer(self.entries, name="entries"),
        )
        if self.norm not in (1, 2):
            raise InvalidParameter("norm must be 1 or 2")
        if self.entries >= self.size:
            raise InvalidParameter("entries must be fewer than the points: no bound follows where one unit moves all")

    @property
    def majority(self) -> int:
        """How many points a ball must hold, so that those of two neighbours share one."""
        return (self.size + self.entries) // 2 + 1

    def values(self, data: Sequence[Any]) -> list[Fraction]:
        """Return the centre, in grid steps. It is private."""
        points = self._points(data)
        reach = np.sort(self._distances(points), axis=1)[:, self.majority - 1]
        best = [points[place].tolist() for place in np.flatnonzero(reach == reach.min())]
        return [Fraction(step) for step in min(best)]

    def smooth_bound(self, data: Sequence[Any], beta: Fraction) -> Radii:
        """Return the bound. It is private."""
        far = np.sort(np.sort(self._distances(self._points(data)), axis=1), axis=0)
        places = range(0, self.size - self.majority + 1, self.entries)
        powers = tuple(int(far[j, self.majority - 1 + j]) for j in places)
        return Radii(powers, self.dimension * self.grid.width**self.norm, self.norm)

    def _points(self, data: Sequence[Any]) -> NDArray[np.int64]:
        if len(data) != self.size:
            raise InvalidParameter("the data do not have the declared number of points")
        steps = [read_point(point, self.grid, self.dimension) for point in data]
        return np.array(steps, np.int64).reshape(self.size, self.dimension)

    def _distances(self, points: NDArray[np.int64]) -> NDArray[Any]:
        """Return all distances to the power of the norm, exactly."""
        fits = self.dimension * self.grid.width**self.norm < _FITS
        apart = points if fits else points.astype(object)
        total: NDArray[Any] = np.zeros((self.size, self.size), apart.dtype)
        for column in apart.T:
            total += np.abs(column[:, None] - column[None, :]) ** self.norm
        return total


def read_point(value: Any, grid: Grid, dimension: int) -> tuple[int, ...]:
    """Place a vector on the grid; what is none, or has another length, is the default in each coordinate."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if not isinstance(value, (list, tuple)) or len(value) != dimension:
        value = [None] * dimension
    return tuple(grid.index(part) for part in value)
