"""Public coordinates in which rows of a logistic regression lie in a ball that is as small as the data allow.

Noise follows the longest row there may be. So columns are first centred and scaled by noisy means and spreads, and rows
that are longer than nearly all others are shortened; both are paid for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.learn.convex.gradient import RADIUS
from discreet.learn.sklearn.bounds import FeatureFrame
from discreet.learn.sklearn.class_moments import ClassSums
from discreet.mechanisms.vector_mean import clip_to_ball
from discreet.robust.design import HALF

__all__ = ["LEVELS", "ColumnScales", "LogisticCoordinates", "standardised"]

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

LEVELS: Final = tuple((2.0 ** np.arange(-2.0, 4.01, 0.25)).tolist())  # Of lengths of rows, over the root of their size.
_LEAST: Final = 2.0**-11  # Of a variance, in the frame.
_FAR: Final = 1 << 24  # Steps; its square, a thousand times, fits 64 bits.


@final
@dataclass(frozen=True, slots=True, eq=False)
class ColumnScales:
    """A centre and a spread for each column, in the frame [-1, 1]."""

    centres: Floats
    spreads: Floats

    def look(self, steps: Integers) -> Floats:
        """Return rows centred and scaled; each number by itself. This is private."""
        return np.asarray((steps / HALF - self.centres) / self.spreads, dtype=np.float64)


def standardised(seen: ClassSums, origin: Floats | None) -> ColumnScales:
    """Choose centres and spreads from noisy sums; the noisier they are, the more alike all columns are taken to be.

    With an `origin` columns keep it as their centre: there is no intercept to make up for another.
    """
    count = max(float(seen.counts[0]), 3 * seen.count_deviation, 1.0)
    error = seen.sum_deviation / count
    means = _shrunken(seen.sums[0] / count, error)
    centres = np.clip(means, -1.0, 1.0) if origin is None else origin
    about = seen.squares[0] / count - 2 * centres * seen.sums[0] / count + centres**2
    noise = math.hypot(seen.gap_deviation, 2 * seen.sum_deviation) / count
    variances = _shrunken(np.maximum(about, 0.0), noise)
    return ColumnScales(centres, np.sqrt(np.maximum(variances, max(_LEAST, noise / 2))))


def _shrunken(values: Floats, error: float) -> Floats:
    """Draw values towards their mean, by how much of their spread is noise."""
    middle = float(values.mean())
    spread = max(float(((values - middle) ** 2).mean()) - error**2, 0.0)
    return np.asarray(middle + (values - middle) * (spread / (spread + error**2 + 1e-12)), dtype=np.float64)


@final
@dataclass(frozen=True, slots=True, eq=False)
class LogisticCoordinates:
    """Rows (constant, features), at most RADIUS steps long."""

    frame: FeatureFrame
    columns: ColumnScales
    longest: float  # standardised features longer than this are shortened
    share: float  # of the intercept's column next to the longest row of features; none without an intercept

    @property
    def has_intercept(self) -> bool:
        return self.share > 0

    @property
    def dimension(self) -> int:
        return len(self.columns.centres) + self.has_intercept

    @property
    def constant(self) -> int:
        """The column of the intercept, in steps."""
        return round(RADIUS * self.share / math.hypot(1, self.share))

    @property
    def features_radius(self) -> int:
        return math.isqrt(RADIUS**2 - self.constant**2)

    def rows(self, standard: Floats, inside: NDArray[np.bool_]) -> Integers:
        """Place standardised rows in the ball, in steps; rows that are not `inside` count nothing. This is private."""
        near = np.rint(standard * (self.features_radius / self.longest))
        steps = clip_to_ball(np.clip(near, -_FAR, _FAR).astype(np.int64), self.features_radius)
        if self.has_intercept:
            steps = np.column_stack([np.full(len(steps), self.constant, dtype=np.int64), steps])
        steps[~inside] = 0
        return steps

    def next_to(self, other: LogisticCoordinates) -> Floats:
        """Return what the coefficients of other coordinates, which differ in the share, are multiplied by here."""
        factors = np.full(self.dimension, other.features_radius / self.features_radius)
        factors[: self.has_intercept] = other.constant / max(self.constant, 1)
        return factors

    @property
    def turn(self) -> Floats:
        """The matrix from coefficients of the ball to (intercept, slopes) in the units of the data.

        A margin is theta_0 c + sum theta_j r (u_j - m_j) / (s_j l), where u = (x - middle) / half.
        """
        low, high = self.frame.limits.T
        per_step = self.features_radius / (RADIUS * self.longest * self.columns.spreads)
        slopes = per_step * 2 / (high - low)
        turned = np.zeros((len(slopes) + 1, self.dimension))
        turned[1:, self.has_intercept :] = np.diag(slopes)
        if self.has_intercept:
            turned[0, 0] = self.constant / RADIUS
            turned[0, 1:] = -per_step * self.columns.centres - slopes * (low + high) / 2
        return turned
