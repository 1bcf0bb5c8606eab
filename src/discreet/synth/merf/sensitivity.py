"""The sum of all rows' vectors: how far one row or unit can move it, and its release with Gaussian noise."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol, final

import numpy as np
from numpy.typing import NDArray

from discreet import noise, privacy
from discreet.exact import positive_integer
from discreet.noise.limits import check_noise_variance
from discreet.privacy import events
from discreet.privacy.relation import Relation, read_relation
from discreet.synth.method import Terms

__all__ = ["Embedding", "NoisySums", "SumPrice", "SumSensitivity", "price", "summed"]

# --- reach: How far one row, or one unit, can move the sum of all vectors. ---


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SumSensitivity:
    """Bounds on the squared length of a row's vector of whole numbers, part by part.

    A row's vector stands in the place of its class; all other places are zero.

    Guarantee   the sum moves by at most the root of `squared_sensitivity` in the l2 norm.
    Theorem     Adding a row adds its vector. Replacing one by another of an unlike class moves two places, by both
                lengths. Within a class the constant part cancels; parts u, v without negative numbers have u·v >= 0, so
                |u - v|² <= |u|² + |v|²; the turning part may point the other way, |u - v| <= |u| + |v|. [HAP21]
    """

    constant: int  # the same number for every row, which counts the rows of a class
    positive: int  # numbers that are never negative, such as pixels and the cells of a column
    turning: int  # cosines and sines

    @property
    def squared(self) -> int:
        """The squared length that no row passes."""
        return self.constant + self.positive + self.turning

    def squared_sensitivity(self, relation: Relation, rows_per_unit: int = 1) -> int:
        """The squared l2 norm by which one unit can move the sum; k rows move it k times as far, at most.

        A unit that is replaced may have fewer rows than before: a row that only goes moves less than one replaced.
        """
        rows = positive_integer(rows_per_unit, name="rows_per_unit")
        if read_relation(relation) is Relation.ADD_REMOVE:
            return rows * rows * self.squared
        return rows * rows * max(2 * self.squared, 2 * self.positive + 4 * self.turning)


# --- summing: The sum of all rows' vectors, exact, and its release with one draw of Gaussian noise. ---


_NUMBERS = 1 << 24  # In the vectors of the rows that are held at once.


class Embedding(Protocol):
    """A public rule that makes a row a vector of whole numbers."""

    @property
    def width(self) -> int:
        """The number of coordinates in the place of one class."""

    @property
    def reach(self) -> SumSensitivity:
        """The exact bounds on a row's vector."""

    def vectors(self, rows: NDArray[Any]) -> NDArray[np.int32]:
        """Return the vector of every row. This is private."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SumPrice:
    """The noise that pays for a sum of such vectors. Counts of classes are coordinates like any other.

    Guarantee   Gaussian privacy with mu = sensitivity / sigma for the whole sum: all classes, all parts, all counts.
    Theorem     The sum is whole numbers, so rounding the noise is post-processing of the Gaussian mechanism. [BW18]
    """

    variance: Fraction
    squared_sensitivity: int

    @property
    def event(self) -> events.Gaussian:
        return events.Gaussian(variance=self.variance, squared_sensitivity=Fraction(self.squared_sensitivity))

    def release(self, sums: NDArray[np.int64]) -> NoisySums:
        """Add noise to the private sums."""
        drawn = noise.rounded_gaussian(variance=self.variance, size=sums.shape)
        return NoisySums(sums + drawn, self.variance)


@final
@dataclass(frozen=True, slots=True, eq=False)
class NoisySums:
    """The released sums, one line for each class. Whatever is computed from them is free."""

    values: NDArray[np.int64]
    variance: Fraction


def price(reach: SumSensitivity, terms: Terms[Any]) -> SumPrice:
    """Find the least noise that keeps the promise."""
    squared = reach.squared_sensitivity(terms.relation, terms.rows_per_unit)

    def event(multiplier: Fraction) -> events.Gaussian:
        return events.Gaussian(variance=multiplier * multiplier * squared, squared_sensitivity=Fraction(squared))

    multiplier = privacy.calibrate(event, epsilon=terms.epsilon, delta=terms.delta, relation=terms.relation)
    return SumPrice(variance=check_noise_variance(multiplier * multiplier * squared), squared_sensitivity=squared)


def summed(embedding: Embedding, rows: NDArray[Any], labels: NDArray[np.int32], classes: int) -> NDArray[np.int64]:
    """Add up the vectors of each class: whole numbers, so the order and the pieces do not matter. This is private."""
    total = np.zeros((classes, embedding.width), dtype=np.int64)
    piece = max(1, _NUMBERS // embedding.width)
    for start in range(0, len(rows), piece):
        vectors, own = embedding.vectors(rows[start : start + piece]), labels[start : start + piece]
        for label in range(classes):
            total[label] += vectors[own == label].sum(axis=0, dtype=np.int64)
    return total
