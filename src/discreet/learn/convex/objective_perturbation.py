"""Objective perturbation: a random slope is added to the loss, and the minimum is certified in whole numbers."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import Final, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet import noise
from discreet.errors import InvalidParameter
from discreet.exact import positive, positive_integer
from discreet.learn.convex.logistic_gradient import (
    FINE,
    PIECE,
    RADIUS,
    STEEPEST,
    TOP,
    Labelled,
    gradient,
    gradient_slowly,
    pieces,
    slopes_at,
)
from discreet.mechanisms.parameters import check_noise_variance, settle

__all__ = ["LogisticProblem", "ObjectivePerturbation", "minimum"]

# --- objective ---
# Objective perturbation: a random slope is added to the loss, and the minimum is told, nearly exactly.


_RIDGES = (Fraction(1, 1 << 20), Fraction(1 << 30))
_FINEST = 60  # Bits of the slope's step.
_WIDEST = 79  # Bits of a variance that samplers take.
_PREPARED = 1 << 20


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectivePerturbation:
    """Release the minimum of sum l(x theta, y) + ridge |theta|^2 / 2 + b theta, with b ~ N(0, 1 / mu_squared).

    Rows are whole numbers in the unit ball; l is the logistic loss made of straight pieces (`curve`).

    Guarantee   of the ideal minimum, what `calibrated` says for each = `mu_squared` and
                kappa = log(1 + steepest / ridge); of what is told about where the search ended, Gaussian privacy with
                mu^2 = `output_mu_squared`, which counts among the sums.
    Theorem     Let b be continuous; the slope that is drawn is b rounded to a public grid, exactly. The gradient of the
                loss with that slope is at most `tolerance` long where the search ended, in exact arithmetic. The loss
                is convex with the ridge, so the end is at most `reach` from the ideal minimum, whatever the search
                did. Given the ideal minimum, the ends of two searches are therefore at most 2 `reach` apart, and
                Gaussian noise for that distance hides which of them it was. [INS19, KST12]
    Utility     the error of the minimum is that of one noisy gradient over the second derivative; the noise on the
                end is smaller by orders.
    """

    dimension: int
    mu_squared: Fraction  # 1 / variance of the slope, in units of the longest row
    ridge: Fraction  # in units of the squared longest row
    output_mu_squared: Fraction
    rows: int = _PREPARED  # how many rows are prepared for: more make the search slow, not wrong

    def __post_init__(self) -> None:
        settle(
            self,
            dimension=positive_integer(self.dimension, name="dimension"),
            mu_squared=positive(self.mu_squared, name="mu_squared"),
            ridge=positive(self.ridge, name="ridge"),
            output_mu_squared=positive(self.output_mu_squared, name="output_mu_squared"),
            rows=positive_integer(self.rows, name="rows"),
        )
        if not _RIDGES[0] <= self.ridge <= _RIDGES[1]:
            raise InvalidParameter("the ridge must lie between 2^-20 and 2^30, in units of the squared longest row")
        check_noise_variance(self.slope_variance)
        check_noise_variance(self.output_variance)

    @property
    def ridge_units(self) -> int:
        """The ridge in units of 2^-42, rounded up."""
        return -int(-self.ridge * (1 << FINE) // 1)

    @property
    def tolerance(self) -> Fraction:
        """How long the gradient may be where the search ends: twice what the nearest point of the grid may have."""
        root = Fraction(isqrt(self.dimension << 20) + 1, 1 << 10)
        return (self.rows * STEEPEST + self.ridge) * root / (1 << FINE)

    @property
    def bits(self) -> int:
        """The slope is a multiple of 2^-bits: rounding moves it by half the tolerance, or more if noise is too wide."""
        step = self.tolerance / (isqrt(self.dimension) + 1)
        widest = (_WIDEST - int(1 / self.mu_squared).bit_length()) // 2
        return max(min(int(1 / step).bit_length(), widest, _FINEST), 1)

    @property
    def reach(self) -> Fraction:
        """How far the end of the search may be from the ideal minimum."""
        rounding = Fraction(isqrt(self.dimension) + 1, 1 << (self.bits + 1))
        return (self.tolerance + rounding) / Fraction(self.ridge_units, 1 << FINE)

    @property
    def slope_variance(self) -> Fraction:
        """In squared steps of 2^-bits."""
        return (1 << (2 * self.bits)) / self.mu_squared

    @property
    def output_variance(self) -> Fraction:
        """In squared steps of 2^-42; two ends of a search are at most twice the reach apart, rounded to a step each."""
        apart = 2 * self.reach * (1 << FINE) + isqrt(self.dimension) + 1
        return apart**2 / self.output_mu_squared

    def release(self, data: Labelled) -> tuple[Fraction, ...]:
        """Draw a slope, search, and tell the end of the search with noise."""
        slope = noise.rounded_gaussian(size=self.dimension, variance=self.slope_variance)
        place = self.search(data, slope.tolist())
        drawn = noise.rounded_gaussian(size=self.dimension, variance=self.output_variance)
        return tuple(Fraction(at + extra, 1 << FINE) for at, extra in zip(place, drawn.tolist(), strict=True))

    def search(self, data: Labelled, slope: list[int]) -> list[int]:
        """Return where the search ends for a slope, in steps of 2^-42. This is private."""
        allowed = int(self.tolerance * (1 << UNIT))
        whole = tuple(part << (UNIT - self.bits) for part in slope)
        place, fine = minimum(LogisticProblem(ridge=self.ridge_units, slope=whole, tolerance=allowed), data)
        return [round(Fraction(at, 1 << (fine - FINE))) for at in place]


# --- minimum ---
# The minimum of a sum of logistic losses plus a ridge and a slope, with a certificate in whole numbers.


Floats: TypeAlias = NDArray[np.float64]

UNIT: Final = 2 * FINE  # Gradients are whole numbers of 2^-84.
_STEPS: Final = 100
_LARGEST: Final = (1 << 62) - 1
_FINER: Final = 20  # Bits.
_SHARE: Final = 32  # Bits of a share of a move.
_ONE: Final = 1 << _SHARE
_HALVINGS: Final = 64
_BLOCK: Final = 1 << 16  # Rows.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LogisticProblem:
    """sum of losses + ridge |theta|^2 / 2 + slope theta, with numbers that are exact."""

    ridge: int  # in units of 2^-42
    slope: tuple[int, ...]  # in units of 2^-84
    tolerance: int  # l2 norm of the gradient, in units of 2^-84

    def derivative(self, data: Labelled, place: list[int], fine: int = FINE) -> list[int]:
        """Return the gradient of the whole at place * 2^-fine, in units of 2^-(fine + 42). This is private."""
        quick = fine == FINE and max(map(abs, place), default=0) < _LARGEST
        losses = gradient(data, np.array(place, dtype=np.int64)) if quick else gradient_slowly(data, place, fine)
        shift = fine - FINE
        return [
            loss + self.ridge * at + (slope << shift) for loss, at, slope in zip(losses, place, self.slope, strict=True)
        ]

    def certifies(self, derivative: list[int], fine: int = FINE) -> bool:
        return sum(part * part for part in derivative) <= (self.tolerance << (fine - FINE)) ** 2


def minimum(problem: LogisticProblem, data: Labelled) -> tuple[list[int], int]:
    """Return coefficients and the bits of their step, where the exact gradient is no longer than the tolerance.

    Floats only propose; each proposal is judged by the exact gradient. If the step of 2^-42 is too coarse, as it is for
    more rows than were prepared for, the same is done with finer ones and slower numbers.

    It always ends, and never in an error, which would tell of the rows: the loss falls with every move, and along
    Newton's direction on a convex loss with a ridge that leads to the minimum.
    """
    place, fine = [round(float(value) * 2.0**FINE) for value in _by_floats(problem, data)], FINE
    while True:
        for _ in range(_STEPS):
            derivative = problem.derivative(data, place, fine)
            if problem.certifies(derivative, fine):
                return place, fine
            before, place = place, _nearer(problem, data, place, derivative, fine)
            if place == before:
                break
        place, fine = [at << _FINER for at in place], fine + _FINER


def _nearer(problem: LogisticProblem, data: Labelled, place: list[int], derivative: list[int], fine: int) -> list[int]:
    """Go along Newton's direction until the loss, on that line, falls at most half as steeply, and not beyond its end.

    The curve has pieces, some of them flat, and on the next one the second derivative may be many times that of this
    one or none at all: a full step may go too far or not far enough, over and over.
    """
    size = np.array([float(part) * 2.0 ** -(FINE + fine) for part in derivative])
    move = np.linalg.solve(_curvature(problem, data, [at >> (fine - FINE) for at in place]), size)
    way = [-round(float(part) * 2.0**fine) for part in move]
    steepness = -sum(a * b for a, b in zip(derivative, way, strict=True))
    high: int | None = None
    low, share, reached = 0, _ONE, place
    for _ in range(_HALVINGS):
        point = [at + (part * share >> _SHARE) for at, part in zip(place, way, strict=True)]
        there = problem.derivative(data, point, fine)
        rise = sum(a * b for a, b in zip(there, way, strict=True))
        if problem.certifies(there, fine) or -steepness <= 2 * rise <= 0:
            return point
        if rise < 0:
            low, reached = share, point
        else:
            high = share
        share = 2 * share if high is None else (low + high) // 2
    return reached


def _curvature(problem: LogisticProblem, data: Labelled, place: list[int]) -> Floats:
    """Return the second derivative on the pieces where the margins are, in floats. This is private."""
    near = np.array([min(max(at, -_LARGEST), _LARGEST) for at in place], dtype=np.int64)
    total = problem.ridge * 2.0**-FINE * np.eye(len(place))
    for start in range(0, len(data.rows), _BLOCK):
        rows = data.rows[start : start + _BLOCK].astype(np.float64)
        slopes = slopes_at(pieces(rows, near)[0]) * 2.0 ** (PIECE - TOP)
        total += (rows * slopes[:, None]).T @ rows / RADIUS**2
    return total


def _by_floats(problem: LogisticProblem, data: Labelled) -> Floats:
    """Take Newton steps on the smooth curve, shortened until the loss falls."""
    rows, labels = data.rows / RADIUS, data.labels.astype(np.float64)
    ridge = problem.ridge * 2.0**-FINE
    slope = np.array([float(part) for part in problem.slope]) * 2.0**-UNIT
    place = np.zeros(rows.shape[1])
    for _ in range(_STEPS):
        chances, value = _look(rows, labels, ridge, slope, place)
        down = rows.T @ (chances - labels) + ridge * place + slope
        curvature = (rows * (chances * (1 - chances))[:, None]).T @ rows + ridge * np.eye(len(place))
        move = np.linalg.solve(curvature, down)
        gain, length = float(down @ move), 1.0
        if gain <= 1e-13 * (1 + abs(value)):
            break
        while length > 1e-6 and _look(rows, labels, ridge, slope, place - length * move)[1] > value - length * gain / 4:
            length /= 2
        place = place - length * move
    return place


def _look(rows: Floats, labels: Floats, ridge: float, slope: Floats, place: Floats) -> tuple[Floats, float]:
    margins = np.clip(rows @ place, -700.0, 700.0)
    losses = np.logaddexp(0.0, margins) - labels * margins
    value = float(losses.sum() + ridge * (place @ place) / 2 + slope @ place)
    return 1 / (1 + np.exp(-margins)), value
