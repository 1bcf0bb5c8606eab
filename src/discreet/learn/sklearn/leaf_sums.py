"""Sums of residuals in the leaves of trees, and from noisy counts of cells to columns in which trees may be cut."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet import noise
from discreet.exact import positive, positive_integer
from discreet.mechanisms.parameters import settle
from discreet.mechanisms.vector_mean import clip_to_ball
from discreet.noise.limits import check_noise_variance
from discreet.privacy import events
from discreet.privacy.relation import Relation, read_relation
from discreet.robust.regression_design import HALF

__all__ = ["CELLS", "LeafSums", "cells_of", "grouped", "nonnegative", "random_leaves", "smoothed"]

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

CELLS: Final = 128  # Of equal width, between the bounds of a column.
_DOUBT: Final = 1.5  # Variances of noise by which the halves of an interval must differ before that is believed.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LeafSums:
    """Add up the residuals of the rows in each leaf of one tree; a row is in one leaf.

    Residuals are vectors of whole numbers, shortened here to at most `radius`, whoever made them.

    Guarantee   Gaussian privacy with mu^2 = `mu_squared`, for all leaves together.
    Theorem     With or without a row one leaf moves by its residual, at most `radius` long. A replaced row moves one
                leaf by at most twice the radius, or two leaves by the radius each, which is less. [DRS22]
    Utility     noise of radius / mu on every leaf, however many there are: cuts must not come from the exact rows.
    """

    outputs: int
    radius: int
    relation: Relation
    mu_squared: Fraction

    def __post_init__(self) -> None:
        settle(self, relation=read_relation(self.relation))
        settle(
            self,
            outputs=positive_integer(self.outputs, name="outputs"),
            radius=positive_integer(self.radius, name="radius"),
            mu_squared=positive(self.mu_squared, name="mu_squared"),
        )
        check_noise_variance(self.variance)

    @property
    def loss(self) -> int:
        """The squared distance by which one row moves all leaves together, in squared steps."""
        return self.radius**2 * (1 if self.relation is Relation.ADD_REMOVE else 4)

    @property
    def variance(self) -> Fraction:
        return self.loss / self.mu_squared

    @property
    def event(self) -> events.GDP:
        return events.GDP(mu_squared=self.loss / self.variance)

    def exact(self, places: Integers, residuals: Integers, leaves: int) -> Integers:
        """Return the sums, one row a leaf; they are private."""
        short = clip_to_ball(residuals, self.radius)
        # Whole numbers below 2^53 add up exactly in floats, in any order.
        sums = [np.bincount(places, weights=column, minlength=leaves) for column in short.T]
        return np.rint(np.stack(sums, axis=1)).astype(np.int64)

    def measure(self, places: Integers, residuals: Integers, leaves: int) -> Integers:
        """Add noise; the caller answers for leaves that other rows have not moved."""
        found = self.exact(places, residuals, leaves)
        return found + noise.rounded_gaussian(size=found.shape, variance=self.variance)


# --- columns: Where a tree may be cut: in bins of about as many rows each, as noisy counts of cells tell. ---


def cells_of(steps: Integers) -> Integers:
    """Return in which cell each value is, for rows in steps from -HALF to HALF; each number by itself."""
    found: Integers = (steps + HALF) * CELLS // (2 * HALF + 1)
    return found


def smoothed(counts: Floats, variance: float, total: float) -> Floats:
    """Return how many rows each cell has, all together `total`, from counts with noise of this variance.

    The bounds are halved again and again. Halves differ as their counts do, less what noise may have done, so that
    where noise hides the rows they are taken to lie evenly. It is free: noisy counts are public.
    """
    levels = [counts]
    while len(levels[-1]) > 1:
        levels.append(levels[-1].reshape(-1, 2).sum(axis=1))
    mass = np.array([max(total, 1.0)])
    for level in reversed(levels[:-1]):
        halves = level.reshape(-1, 2)
        apart = halves[:, 0] - halves[:, 1]
        hidden = _DOUBT * 2 * variance * len(counts) / len(level)
        apart = apart * np.maximum(0.0, 1 - hidden / np.maximum(apart**2, 1e-9))
        first = np.clip((mass + apart) / 2, 0.0, mass)
        mass = np.stack([first, mass - first], axis=1).ravel()
    return mass


def grouped(sizes: Floats, groups: int) -> Integers:
    """Put neighbours together into at most so many groups of about the same size; return the group of each."""
    middles = (np.cumsum(sizes) - sizes / 2) / max(float(sizes.sum()), np.finfo(np.float64).tiny)
    wanted = np.maximum.accumulate(np.clip((middles * groups).astype(np.int64), 0, groups - 1))
    found: Integers = np.unique(wanted, return_inverse=True)[1].astype(np.int64)
    return found


def nonnegative(counts: Floats, total: float) -> Floats:
    """Return the nearest counts that are not below zero and add up to `total`."""
    total = max(total, 1.0)
    ordered = np.sort(counts)[::-1]
    excess = (np.cumsum(ordered) - total) / np.arange(1, len(counts) + 1)
    kept = int(np.nonzero(ordered > excess)[0][-1])
    found: Floats = np.maximum(counts - excess[kept], 0.0)
    return found


def random_leaves(groups: int, leaves: int) -> Integers:
    """Cut so many groups, which are in order, at random into at most so many leaves; return the leaf of each."""
    cuts = np.zeros(groups, dtype=np.int64)
    if groups > 1:
        cuts[noise.permutation(groups - 1)[: leaves - 1] + 1] = 1
    found: Integers = np.cumsum(cuts)
    return found
