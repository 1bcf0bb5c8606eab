"""The sum of all rows' vectors, exact, and its release with one draw of Gaussian noise."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol, final

import numpy as np
from numpy.typing import NDArray

from discreet import noise, privacy
from discreet.mechanisms.fields import check_noise_variance
from discreet.privacy import events
from discreet.synth.merf.reach import SumSensitivity
from discreet.synth.method import Terms

__all__ = ["Embedding", "NoisySums", "SumPrice", "price", "summed"]

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
