"""The minimum of a sum of logistic losses plus a ridge and a slope, with a certificate in whole numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.learn.convex.gradient import FINE, RADIUS, Labelled, gradient, gradient_slowly

__all__ = ["Problem", "minimum"]

Floats: TypeAlias = NDArray[np.float64]

UNIT: Final = 2 * FINE  # Gradients are whole numbers of 2^-84.
_STEPS: Final = 100
_REFINED: Final = 20
_LARGEST: Final = 1 << 62


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
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


def minimum(problem: Problem, data: Labelled) -> tuple[list[int], int]:
    """Return coefficients and the bits of their step, where the exact gradient is no longer than the tolerance.

    Floats only propose; each proposal is judged by the exact gradient. If the step of 2^-42 is too coarse, as it is for
    more rows than were prepared for, the same is done with finer ones and slower numbers.
    """
    start, curvature = _by_floats(problem, data)
    for fine in (FINE, FINE + 20, FINE + 60):
        place = [round(float(value) * 2.0**FINE) << (fine - FINE) for value in start]
        for _ in range(_REFINED):
            derivative = problem.derivative(data, place, fine)
            if problem.certifies(derivative, fine):
                return place, fine
            size = np.array([float(part) * 2.0**-UNIT for part in derivative]) * 2.0 ** (FINE - fine)
            move = np.linalg.solve(curvature, size)
            place = [at - round(float(part) * 2.0**fine) for at, part in zip(place, move, strict=True)]
    raise ArithmeticError("the minimum was not found to the precision that the guarantee needs")


def _by_floats(problem: Problem, data: Labelled) -> tuple[Floats, Floats]:
    """Take Newton steps, shortened until the loss falls; return the place and the second derivative there."""
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
    return place, curvature


def _look(rows: Floats, labels: Floats, ridge: float, slope: Floats, place: Floats) -> tuple[Floats, float]:
    margins = np.clip(rows @ place, -700.0, 700.0)
    losses = np.logaddexp(0.0, margins) - labels * margins
    value = float(losses.sum() + ridge * (place @ place) / 2 + slope @ place)
    return 1 / (1 + np.exp(-margins)), value
