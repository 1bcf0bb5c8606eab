"""From noisy counts, sums and squares to the mean and the spread of each class: free, since noisy sums are public."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.learn.sklearn.class_moments import ClassSums

__all__ = ["ClassLaws", "class_laws", "pooled"]

Floats: TypeAlias = NDArray[np.float64]

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
