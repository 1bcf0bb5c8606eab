"""Small worlds on one axis, in which the law of a minimum with a random slope is known as a density."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.learn.convex.logistic_gradient import PIECE, TOP, VALUES

Floats = NDArray[np.float64]
World = tuple[Any, ...]  # rows on one axis, with their labels, and their weights where they have any

POINTS = [(x, y) for x in (-1.0, -0.5, 0.5, 1.0) for y in (0, 1)]


def curve(margins: Floats) -> tuple[Floats, Floats]:
    """Return value and slope of the curve made of straight pieces, in floats."""
    place = np.clip(margins, -15.999, 15.999) * (1 << PIECE)
    piece = np.floor(place).astype(int)
    rises = np.diff(VALUES)[piece + len(VALUES) // 2]
    values = VALUES[piece + len(VALUES) // 2] + rises * (place - piece)
    return values / (1 << TOP), rises / (1 << (TOP - PIECE))


@dataclass(frozen=True)
class Minimum:
    """The ideal minimum of the losses of a world, with a ridge and a slope of this deviation."""

    sigma: float
    ridge: float

    def density(self, world: World, theta: Floats) -> Floats:
        """Return the density: that of the slope which makes theta the minimum, times the Jacobian."""
        down, curved = self.ridge * theta, np.full_like(theta, self.ridge)
        for row, times in Counter(world).items():
            x, y, weighs = (*row, times) if len(row) == 2 else (*row[:2], times * row[2])
            values, slopes = curve(x * theta)
            down, curved = down + weighs * (values - y) * x, curved + weighs * slopes * x * x
        return np.asarray(np.exp(-((down / self.sigma) ** 2) / 2) / (self.sigma * np.sqrt(2 * np.pi)) * curved)

    def axis(self, beyond: float = 0.0) -> tuple[Floats, float]:
        """Return places that are dense and far enough for sums to be integrals, for at most three rows or `beyond`."""
        far = (3 + 8 * self.sigma) / self.ridge + beyond
        theta = np.linspace(-far, far, 20_001)
        return theta, float(theta[1] - theta[0])


@dataclass(frozen=True)
class PlaneMinimum:
    """The same for rows in the plane, ((x, z), label)."""

    sigma: float
    ridge: float

    def density(self, world: tuple[tuple[tuple[float, float], int], ...], side: Floats) -> Floats:
        """Return the density on a square of places."""
        a, b = np.meshgrid(side, side, indexing="ij")
        down, curved = [self.ridge * a, self.ridge * b], [np.full_like(a, self.ridge), np.zeros_like(a)]
        matrix = [curved[0], curved[1], curved[0].copy()]
        for (x, z), y in world:
            values, slopes = curve(x * a + z * b)
            down = [down[0] + (values - y) * x, down[1] + (values - y) * z]
            matrix = [m + slopes * part for m, part in zip(matrix, (x * x, x * z, z * z), strict=True)]
        jacobian = matrix[0] * matrix[2] - matrix[1] ** 2
        squares = (down[0] ** 2 + down[1] ** 2) / self.sigma**2
        return np.asarray(np.exp(-squares / 2) / (2 * np.pi * self.sigma**2) * jacobian)


def hockey(first: Floats, second: Floats, width: float, epsilon: float) -> float:
    """Return how much of the first law lies above e^epsilon times the second."""
    return float(np.maximum(first - np.exp(epsilon) * second, 0).sum() * width)


def added(largest: int) -> list[tuple[World, World]]:
    """List all pairs of worlds in which one has one row more."""
    worlds = [world for size in range(largest) for world in combinations_with_replacement(POINTS, size)]
    return [(world, (*world, point)) for world, point in product(worlds, POINTS)]


def replaced(size: int) -> list[tuple[World, World]]:
    """List all pairs of worlds of one size that differ in one row."""
    rest = list(combinations_with_replacement(POINTS, size - 1))
    return [((*world, a), (*world, b)) for world in rest for a in POINTS for b in POINTS if a != b]


def worst(mechanism: Minimum, pairs: list[tuple[World, World]], epsilon: float, beyond: float = 0.0) -> float:
    """Return the largest delta over all pairs, in both directions."""
    theta, width = mechanism.axis(beyond)
    laws = {world: mechanism.density(world, theta) for pair in pairs for world in pair}
    return max(
        max(hockey(laws[a], laws[b], width, epsilon), hockey(laws[b], laws[a], width, epsilon)) for a, b in pairs
    )
