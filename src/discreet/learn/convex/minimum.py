"""The minimum of a sum of logistic losses plus a ridge and a slope, with a certificate in whole numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.learn.convex.curve import PIECE, TOP, slopes_at
from discreet.learn.convex.gradient import FINE, RADIUS, Labelled, gradient, gradient_slowly, pieces

__all__ = ["LogisticProblem", "minimum"]

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
