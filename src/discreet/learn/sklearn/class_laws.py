"""From noisy counts, sums and squares to the mean and the spread of each class: free, since noisy sums are public."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.learn.sklearn.class_moments import ClassSums

__all__ = ["ClassLaws", "class_laws", "pooled"]

Floats: TypeAlias = NDArray[np.float64]

_FEWEST = 1.0  # Rows that a class is taken to have at least.


class ClassLaws(NamedTuple):
    """What the rows of each class look like, in the frame in which bounds are -1 and 1; one row a class."""

    counts: Floats
    means: Floats
    variances: Floats


def class_laws(measured: ClassSums, floor: float) -> ClassLaws:
    """Return means and variances, each drawn to that of all classes as far as noise may have moved it away.

    A difference to all classes counts by the share of its square that noise does not explain, a mean by its own
    noise as well: a row is that much further from it. No variance is below `floor`, or below what noise hides.
    """
    counts = np.maximum(measured.counts, _FEWEST)[:, None]
    common = pooled(measured, floor)
    noise = measured.sum_deviation / counts
    means = common.means + _told(np.clip(measured.sums / counts, -1, 1) - common.means, noise)
    hidden = measured.gap_deviation / counts
    seen = np.clip(measured.squares / counts, 0, 1) - means**2
    within = _within(counts, seen, common, means)
    variances = within + _told(seen - within, hidden)
    return ClassLaws(counts[:, 0], means, np.maximum(variances, np.maximum(floor, hidden)) + noise**2)


def pooled(measured: ClassSums, floor: float) -> ClassLaws:
    """Return the law of all rows together, as if they were one class."""
    counts = np.maximum(measured.counts.sum(keepdims=True), _FEWEST)[:, None]
    means = np.clip(measured.sums.sum(axis=0, keepdims=True) / counts, -1, 1)
    squares = np.clip(measured.squares.sum(axis=0, keepdims=True) / counts, 0, 1)
    hidden = measured.gap_deviation * len(measured.counts) ** 0.5 / counts
    return ClassLaws(counts[:, 0], means, np.maximum(squares - means**2, np.maximum(floor, hidden)))


def _within(counts: Floats, seen: Floats, common: ClassLaws, means: Floats) -> Floats:
    """Return the spread around the means of classes, averaged over the classes by their size."""
    shares = counts / counts.sum()
    between = (shares * (means - common.means) ** 2).sum(axis=0, keepdims=True)
    found: Floats = np.maximum(common.variances - between, (shares * np.maximum(seen, 0)).sum(axis=0, keepdims=True))
    return found


def _told(difference: Floats, noise: Floats) -> Floats:
    """Keep the share of a difference whose square noise of this deviation does not explain."""
    kept: Floats = difference * np.maximum(0, 1 - noise**2 / np.maximum(difference**2, noise**2))
    return kept
