"""Counts, sums and squares of bounded rows, class by class: one Gaussian release with one joint sensitivity."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet import noise
from discreet.errors import InvalidParameter
from discreet.exact import positive, positive_integer
from discreet.mechanisms.parameters import settle
from discreet.noise.limits import check_noise_variance, finest_radius
from discreet.privacy import events
from discreet.privacy.relation import Relation, read_relation
from discreet.robust.regression_design import HALF

__all__ = ["ClassLaws", "ClassMoments", "ClassSums", "class_laws", "coarser", "pooled"]

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

_FINEST = 1 << 15  # Steps from the middle to a bound; so many squares as memory holds rows add up in 64 bits.
_SQUARES_ARE_FREE = Fraction(3, 8)  # From this weight on, replacing a row costs its sums and nothing for the squares.


class ClassSums(NamedTuple):
    """Noisy sums in the frame in which bounds are -1 and 1, one row a class, with the deviations of their noise."""

    counts: Floats
    sums: Floats
    squares: Floats
    count_deviation: float
    sum_deviation: float
    gap_deviation: float  # of centre * count - squares, which is what noise was added to
    centre: float


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ClassMoments:
    """Measure, for each class, how many rows it has, their sum, and the sum of centre - x^2 in each column.

    A row is a vector of whole numbers within [-reach, reach] and belongs to one class.

    Guarantee   Gaussian privacy with mu^2 = `mu_squared`, for all numbers of all classes together.
    Theorem     In the frame [-1, 1], with precisions q, p and 1 of counts, sums and squares, one row has the squared
                norm q + sum_j (p x_j^2 + (c - x_j^2)^2). This is convex in x_j^2, so each term is at most
                max(c^2, p + (1 - c)^2); c = (1 + p) / 2 makes both equal. Against sum_j (p + 1) for plain squares the
                shift by c takes away more than half: squares about a public centre cost what they tell.
                A row that is replaced within its class moves each column by (x - y)^2 (p + (x + y)^2). With
                s = |x + y| / 2 that is at most 4 (1 - s)^2 (p + 4 s^2) <= 4 p wherever p >= 3/8, for
                6 - 35 s + 64 s^2 - 32 s^3 > 0 on [0, 1]. One that also changes its class moves two blocks, each by
                the norm of a row. [DRS22]
    Utility     noise of about sqrt(d) / mu on every sum, in the frame, whatever the number of classes.
    """

    dimension: int
    classes: int
    relation: Relation
    mu_squared: Fraction
    weight: Fraction = _SQUARES_ARE_FREE  # p: how precise sums are, next to squares
    count_weight: Fraction = Fraction(1)  # q: how precise counts are, next to squares
    reach: int = 0  # in steps; the finest that samplers take, unless given

    def __post_init__(self) -> None:
        settle(self, relation=read_relation(self.relation))
        settle(
            self,
            dimension=positive_integer(self.dimension, name="dimension"),
            classes=positive_integer(self.classes, name="classes"),
            mu_squared=positive(self.mu_squared, name="mu_squared"),
            weight=positive(self.weight, name="weight"),
            count_weight=positive(self.count_weight, name="count_weight"),
        )
        if not _SQUARES_ARE_FREE <= self.weight <= 1:
            raise InvalidParameter("weight must lie between 3/8 and 1: outside, the bound is not proven")
        settle(self, reach=positive_integer(self.reach or self._finest(), name="reach"))
        if self.reach > _FINEST:
            raise InvalidParameter(f"reach must be at most {_FINEST} steps")
        for variance in (self.count_variance, self.sum_variance, self.square_variance):
            check_noise_variance(variance)

    @property
    def centre(self) -> int:
        """The public number that squares are subtracted from, in squared steps."""
        return round(self.reach**2 * (1 + self.weight) / 2)

    @property
    def loss(self) -> Fraction:
        """What one row costs, squared, where squares in the frame have noise of variance one."""
        shift = Fraction(self.centre, self.reach**2)
        row = self.count_weight + self.dimension * max(shift**2, self.weight + (1 - shift) ** 2)
        if self.relation is Relation.ADD_REMOVE:
            return row
        within = 4 * self.weight * self.dimension
        return max(within, 2 * row) if self.classes > 1 else within

    @property
    def precision(self) -> Fraction:
        """One over the variance of squares in the frame, as large as mu allows."""
        return self.mu_squared / self.loss

    @property
    def count_variance(self) -> Fraction:
        return 1 / (self.precision * self.count_weight)

    @property
    def sum_variance(self) -> Fraction:
        """In squared steps."""
        return self.reach**2 / (self.precision * self.weight)

    @property
    def square_variance(self) -> Fraction:
        """In fourth powers of steps."""
        return self.reach**4 / self.precision

    @property
    def event(self) -> events.GDP:
        return events.GDP(mu_squared=self.loss * self.precision)

    @property
    def counts_are_public(self) -> bool:
        """Whether there is nothing to hide: all rows in one class, and their number known."""
        return self.classes == 1 and self.relation is Relation.REPLACE_ONE

    def exact(self, rows: Integers, labels: Integers) -> tuple[Integers, Integers, Integers]:
        """Return counts, sums and the sums of centre - x^2, one row a class. They are private.

        Rows must lie within the reach and labels within 0 … classes - 1; a label of -1 is a row of no class.
        """
        shape = (self.classes, self.dimension)
        counts, sums, gaps = np.zeros(self.classes, np.int64), np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        for label in range(self.classes):
            inside = rows[labels == label]
            counts[label] = len(inside)
            sums[label] = inside.sum(axis=0)
            gaps[label] = len(inside) * self.centre - (inside * inside).sum(axis=0)
        return counts, sums, gaps

    def measure(self, rows: Integers, labels: Integers) -> ClassSums:
        """Add noise; the caller answers for the bounds of every row."""
        counts, sums, gaps = self.exact(rows, labels)
        if not self.counts_are_public:
            counts = counts + noise.rounded_gaussian(size=self.classes, variance=self.count_variance)
        sums = sums + noise.rounded_gaussian(size=sums.shape, variance=self.sum_variance)
        gaps = gaps + noise.rounded_gaussian(size=gaps.shape, variance=self.square_variance)
        return self._in_frame(counts, sums, gaps)

    def _in_frame(self, counts: Integers, sums: Integers, gaps: Integers) -> ClassSums:
        unit, square = float(self.reach), float(self.reach) ** 2
        centre = self.centre / square
        return ClassSums(
            counts=counts.astype(np.float64),
            sums=sums / unit,
            squares=centre * counts[:, None] - gaps / square,
            count_deviation=0.0 if self.counts_are_public else float(self.count_variance) ** 0.5,
            sum_deviation=float(self.sum_variance) ** 0.5 / unit,
            gap_deviation=float(self.square_variance) ** 0.5 / square,
            centre=centre,
        )

    def _finest(self) -> int:
        """Return the largest power of two with which no noise is too wide, whatever the relation."""
        precision = self.mu_squared / (4 * self.dimension + 2 * self.count_weight)
        return finest_radius(precision, power=4, most=_FINEST, least=4)


def coarser(steps: Integers, reach: int) -> Integers:
    """Round rows in steps of 1 / HALF to steps of 1 / reach, each number by itself; both are powers of two."""
    rounded: Integers = np.rint(steps / (HALF // reach)).astype(np.int64)
    return rounded


# --- class_laws ---
# From noisy counts, sums and squares to the mean and the spread of each class: free, since noisy sums are public.


_FEWEST = 1.0  # Rows that a class is taken to have at least.
_LEAST = 0.25  # Of the spread of all classes, that a class has at least: less is seldom true and always risky.
_SPREADS = np.exp(np.linspace(0.0, 8.0, 33))[:, None]  # Of true differences, squared, next to that of noise.


class ClassLaws(NamedTuple):
    """What the rows of each class look like, in the frame in which bounds are -1 and 1; one row a class."""

    sizes: Floats
    means: Floats
    variances: Floats


def pooled(measured: ClassSums, floor: float) -> ClassLaws:
    """Return the law of all rows together, as if they were one class.

    No variance is below `floor`, or below what noise hides.
    """
    size = np.maximum(measured.counts.sum(keepdims=True), _FEWEST)[:, None]
    means = np.clip(measured.sums.sum(axis=0, keepdims=True) / size, -1, 1)
    squares = np.clip(measured.squares.sum(axis=0, keepdims=True) / size, 0, 1)
    least = np.maximum(floor, measured.gap_deviation * len(measured.counts) ** 0.5 / size)
    return ClassLaws(size[:, 0], means, np.maximum(squares - means**2, least))


def class_laws(measured: ClassSums, floor: float) -> ClassLaws:
    """Return the law of each class, drawn to that of all classes as far as noise may have moved it away.

    Where noise hides the classes from each other, they are told by their sizes alone.
    """
    sizes = np.maximum(measured.counts, _FEWEST)[:, None]
    shares = sizes / sizes.sum()
    common = pooled(measured, floor)
    noise, hidden = measured.sum_deviation / sizes, measured.gap_deviation / sizes
    away = np.clip(measured.sums / sizes, -1, 1) - common.means
    # A class is part of what it is compared with, and noise of its own moves both.
    own = noise**2 * (1 - 2 * shares) + len(sizes) * (measured.sum_deviation / sizes.sum()) ** 2
    means = common.means + _told(away, own) * away
    least = np.maximum(floor, measured.gap_deviation * len(sizes) ** 0.5 / sizes.sum())
    within = np.maximum(common.variances - (shares * (means - common.means) ** 2).sum(axis=0), least)
    wider = np.clip(measured.squares / sizes, 0, 1) - means**2 - within
    variances = within + _told(wider, 2 * hidden**2) * wider
    return ClassLaws(sizes[:, 0], means, np.maximum(variances, np.maximum(_LEAST * within, least)))


def _told(differences: Floats, noise: Floats) -> Floats:
    """Return, for each column, which share of the differences of classes to expect behind noise of these variances.

    True differences are normal, of a spread that nobody knows: every spread counts by how likely it makes what is seen.
    """
    if len(differences) == 1:
        return np.zeros_like(differences)  # One class does not differ from itself.
    free = len(differences) - 1
    seen = (differences**2 / np.maximum(noise, np.finfo(np.float64).tiny)).sum(axis=0) * free / len(differences)
    fitness = -0.5 * (free * np.log1p(_SPREADS) + seen / (1 + _SPREADS))
    likely = np.exp(fitness - fitness.max(axis=0))
    shares: Floats = (likely * _SPREADS / (1 + _SPREADS)).sum(axis=0) / likely.sum(axis=0)
    return shares
