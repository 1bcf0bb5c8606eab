"""The questions by which a location and its error are found: signs, scores, slopes and squares of bounded rows.

Every row becomes a whole number between public limits by itself, so the sensitivity of a sum is exact whatever floats
do. `resolution` is the number of steps up to the largest size a row can have.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import final

import numpy as np

from discreet.mechanisms.budget import Sensitivity
from discreet.mechanisms.grid import exact_sum
from discreet.privacy.relation import Relation
from discreet.robust.psi import Floats, Psi

__all__ = ["GradientStep", "HalveCentre", "HalveScale", "NewtonStep", "Place", "Slope", "Square"]

_NORMAL_MAD = 0.6744897501960817  # The median of |Z|.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What is known about a location so far. All of it is public."""

    low: float  # where the centre is looked for
    high: float
    centre: float
    scale: float
    least: float  # where the median distance from the centre is looked for
    most: float
    slope: float = math.nan  # the sum of the derivatives of psi
    square: float = math.nan  # the sum of its squares
    noise: float = math.nan  # the deviation of the noise on the last sum of psi


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HalveCentre:
    """Ask on which side of the middle of the bracket the quantile lies, and keep that half."""

    share: Fraction
    quantile: Fraction = Fraction(1, 2)

    def sensitivity(self, relation: Relation) -> Sensitivity:
        above, below = self._sizes
        return Sensitivity.scalar(max(above, below) if relation is Relation.ADD_REMOVE else above + below)

    def evaluate(self, state: Place, values: Floats) -> tuple[int, ...]:
        below = int(np.count_nonzero(values < state.centre))
        return (self._sizes[0] * (values.size - below) - self._sizes[1] * below,)

    def learn(self, state: Place, answer: tuple[int, ...], deviation: float) -> Place:
        low, high = (state.centre, state.high) if answer[0] > 0 else (state.low, state.centre)
        return replace(state, low=low, high=high, centre=(low + high) / 2)

    @property
    def _sizes(self) -> tuple[int, int]:
        """What a row above and what a row below the quantile adds: whole numbers in the ratio q to 1 - q."""
        return self.quantile.numerator, self.quantile.denominator - self.quantile.numerator


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HalveScale:
    """Ask whether more than half of the rows lie farther from the centre than the middle of the bracket, in ratios."""

    share: Fraction

    def sensitivity(self, relation: Relation) -> Sensitivity:
        return Sensitivity.scalar(1 if relation is Relation.ADD_REMOVE else 2)

    def evaluate(self, state: Place, values: Floats) -> tuple[int, ...]:
        return (far_minus_near(values - state.centre, math.sqrt(state.least * state.most)),)

    def learn(self, state: Place, answer: tuple[int, ...], deviation: float) -> Place:
        middle = math.sqrt(state.least * state.most)
        least, most = (middle, state.most) if answer[0] > 0 else (state.least, middle)
        return replace(state, least=least, most=most, scale=math.sqrt(least * most) / _NORMAL_MAD)


def far_minus_near(residuals: Floats, reach: float) -> int:
    """Count the residuals beyond `reach`, less those within."""
    far = int(np.count_nonzero(np.abs(residuals) > reach))
    return 2 * far - residuals.size


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NewtonStep:
    """Ask for the sum of psi, and move by its ratio to the sum of slopes asked before."""

    share: Fraction
    psi: Psi
    resolution: int
    bounds: tuple[float, float]

    def sensitivity(self, relation: Relation) -> Sensitivity:
        return _signed(self.resolution, relation)

    def evaluate(self, state: Place, values: Floats) -> tuple[int, ...]:
        return (psi_steps(self.psi, (values - state.centre) / state.scale, self.resolution),)

    def learn(self, state: Place, answer: tuple[int, ...], deviation: float) -> Place:
        unit = float(self.psi.bound) / self.resolution
        # A slope that drowned in noise must not throw the estimate out of its bracket: no step is above one scale.
        step = min(max(answer[0] * unit / state.slope, -1.0), 1.0) if state.slope > 0 else 0.0
        centre = min(max(state.centre + state.scale * step, self.bounds[0]), self.bounds[1])
        return replace(state, centre=centre, noise=deviation * unit)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GradientStep:
    """Ask for the sum of psi, and move by `rate` times it over a public divisor: up where psi is positive."""

    share: Fraction
    psi: Psi
    resolution: int
    bounds: tuple[float, float]
    rate: float
    divisor: int

    def sensitivity(self, relation: Relation) -> Sensitivity:
        return _signed(self.resolution, relation)

    def evaluate(self, state: Place, values: Floats) -> tuple[int, ...]:
        return (psi_steps(self.psi, (values - state.centre) / state.scale, self.resolution),)

    def learn(self, state: Place, answer: tuple[int, ...], deviation: float) -> Place:
        unit = float(self.psi.bound) / self.resolution
        # The derivative of rho(x - m) in m is -psi, so the descent adds psi.
        moved = state.centre + state.scale * self.rate * answer[0] * unit / self.divisor
        return replace(state, centre=min(max(moved, self.bounds[0]), self.bounds[1]), noise=deviation * unit)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Slope:
    """Ask for the sum of the derivatives of psi."""

    share: Fraction
    psi: Psi
    resolution: int

    def sensitivity(self, relation: Relation) -> Sensitivity:
        low, high = self._limits
        return Sensitivity.scalar(max(-low, high) if relation is Relation.ADD_REMOVE else high - low)

    def evaluate(self, state: Place, values: Floats) -> tuple[int, ...]:
        slopes = self.psi.derivative((values - state.centre) / state.scale) / self._unit
        return (exact_sum(np.clip(np.rint(slopes).astype(np.int64), *self._limits)),)

    def learn(self, state: Place, answer: tuple[int, ...], deviation: float) -> Place:
        return replace(state, slope=answer[0] * self._unit)

    @property
    def _unit(self) -> float:
        return float(max(map(abs, self.psi.slopes))) / self.resolution

    @property
    def _limits(self) -> tuple[int, int]:
        largest = max(map(abs, self.psi.slopes))
        low, high = self.psi.slopes
        return math.floor(low / largest * self.resolution), math.ceil(high / largest * self.resolution)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Square:
    """Ask for the sum of the squares of psi."""

    share: Fraction
    psi: Psi
    resolution: int

    def sensitivity(self, relation: Relation) -> Sensitivity:
        return Sensitivity.scalar(self.resolution)  # Squares lie on one side of zero.

    def evaluate(self, state: Place, values: Floats) -> tuple[int, ...]:
        parts = self.psi.psi((values - state.centre) / state.scale) / float(self.psi.bound)
        steps = np.rint(parts * parts * self.resolution).astype(np.int64)
        return (exact_sum(np.clip(steps, 0, self.resolution)),)

    def learn(self, state: Place, answer: tuple[int, ...], deviation: float) -> Place:
        return replace(state, square=max(answer[0], 0) * float(self.psi.bound) ** 2 / self.resolution)


def psi_steps(psi: Psi, u: Floats, resolution: int) -> int:
    """Add up psi, each row rounded to whole steps and held within its bound."""
    steps = np.rint(psi.psi(u) * (resolution / float(psi.bound))).astype(np.int64)
    return exact_sum(np.clip(steps, -resolution, resolution))


def _signed(size: int, relation: Relation) -> Sensitivity:
    """A row adds at most `size`; one that is replaced may go from one end to the other."""
    return Sensitivity.scalar(size if relation is Relation.ADD_REMOVE else 2 * size)
