"""What is measured of a stream of daily counts, so that the totals so far follow from it with little noise.

A strategy is a matrix C with one row for each measurement; the measurements are y = C x + z for the daily counts x and
fresh noise z, and every total is a fixed combination of measurements that were made by then. What leaves is y, and all
else is post-processing. The weights in C are whole multiples of a public step, so that measurements are whole.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Protocol

__all__ = ["BITS", "ONE", "Strategy", "root_up"]

BITS = 22
ONE = 1 << BITS  # Weights and measurements are whole numbers of this part of one person.
_FINE = 40  # Bits behind the point of a root.


class Strategy(Protocol):
    """Public, and the same whatever the data are. Days count from 0."""

    @property
    def name(self) -> str:
        """What it is called."""

    @property
    def days(self) -> int:
        """For how many days it is made."""

    def weights(self, day: int) -> tuple[tuple[int, ...], ...]:
        """Return what is measured when a day has ended: weights, in steps, of all days up to it."""

    def squared_sensitivity(self, max_days: int) -> int:
        """Return the most, in squared steps, that a unit changes all measurements if it is counted on so many days.

        It is the l2 norm, squared; on each of these days the unit counts as one.
        """

    def variances(self) -> tuple[Fraction, ...]:
        """Return the variance of every total if each measurement, in persons, has noise of variance 1; rounded up."""

    def reaches(self) -> tuple[Fraction, ...]:
        """Return how far every total is off if each measurement is off by up to 1: an l1 norm; rounded up."""

    def totals(self, measured: Sequence[Sequence[int]]) -> tuple[Fraction, ...]:
        """Return the totals of the days that were measured, in persons, from what was measured, in steps."""


def root_up(value: Fraction) -> Fraction:
    """Return a number not below the square root, and above it by less than 2^-19."""
    return Fraction(math.isqrt(math.ceil(value * (1 << _FINE))) + 1, 1 << (_FINE // 2))
