"""The fits of a private logistic regression: from rows in a ball to coefficients and their covariance."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.learn.convex.gradient import FINE, Labelled
from discreet.learn.sklearn.logistic_plan import NewtonPlan, ObjectivePlan

__all__ = ["Fitted", "by_newton", "by_objective"]

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

_LARGEST = 2.0**19  # Of a coefficient; beyond it the steps of 2^-42 would not fit 63 bits.


@final
@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """One fit in the coordinates of the ball; all of it is public."""

    coefficients: Floats  # to predict with
    estimate: Floats  # without the pull of the ridge, for inference
    covariance: Floats | None  # of the estimate, by sampling and by noise


def by_objective(plan: ObjectivePlan, data: Labelled) -> Fitted:
    """Find the minimum with a random slope, and measure the matrix there if intervals are wanted."""
    objective, matrix = plan.objective, plan.curvature
    found = np.array([float(value) for value in objective.release(data)])
    if matrix is None:
        return Fitted(found, found, None)
    ridge, slope = float(objective.ridge), 1 / float(objective.mu_squared)
    curvature = matrix.measure(data.rows, _steps(found))
    inverse, doubt = _inverse(curvature, matrix.deviation)
    # At the minimum H (theta - truth) = score - slope - ridge theta, to first order.
    pull = ridge * found
    estimate = found + inverse @ pull
    moved = _blurred(matrix.deviation, estimate - found)
    covariance = inverse @ (curvature + (slope + moved) * np.eye(len(found))) @ inverse
    covariance = covariance + float(objective.output_variance) * 4.0**-FINE * np.eye(len(found))
    return Fitted(found, estimate, np.full_like(covariance, math.inf) if doubt else covariance)


def by_newton(plan: NewtonPlan, data: Labelled) -> Fitted:
    """Take early steps over the matrix at zero, which no curvature exceeds, and a last one over that of the fit."""
    place = np.zeros(plan.dimension)
    gram = plan.gram
    first = _raised(gram.measure(data.rows, _steps(place)), gram.deviation)
    for scores in plan.early:
        place = place + np.linalg.solve(first, scores.measure(data, _steps(place)))
    matrix, last = plan.matrix, plan.last
    curvature = matrix.measure(data.rows, _steps(place))
    move = np.asarray(np.linalg.solve(_raised(curvature, matrix.deviation), last.measure(data, _steps(place))))
    found = place + move
    inverse, doubt = _inverse(curvature, matrix.deviation)
    noise = last.deviation**2 + _blurred(matrix.deviation, move)
    covariance = inverse @ (curvature + noise * np.eye(len(found))) @ inverse
    return Fitted(found, found, np.full_like(covariance, math.inf) if doubt else covariance)


def _steps(place: Floats) -> Integers:
    return np.rint(np.clip(place, -_LARGEST, _LARGEST) * 2.0**FINE).astype(np.int64)


def _blurred(deviation: float, move: Floats) -> float:
    """Return the variance of each entry of noise * move, for noise with half the variance off the diagonal."""
    return float(deviation**2 * (move @ move) / 2)


def _least(deviation: float, size: int) -> float:
    """Return about the length of the noise on a matrix: sqrt(2 size) deviations."""
    return deviation * math.sqrt(2 * size)


def _raised(matrix: Floats, deviation: float) -> Floats:
    """Raise the eigenvalues that drown in the noise, so that no step is too long."""
    values, vectors = np.linalg.eigh(matrix)
    raised: Floats = (vectors * np.maximum(values, max(2 * _least(deviation, len(values)), 1e-9))) @ vectors.T
    return raised


def _inverse(matrix: Floats, deviation: float) -> tuple[Floats, bool]:
    """Invert a noisy matrix; tell whether some eigenvalue is not told from nothing, so that no error is known."""
    values, vectors = np.linalg.eigh(matrix)
    least = _least(deviation, len(values))
    inverse: Floats = (vectors / np.maximum(values, least)) @ vectors.T
    return inverse, bool(values.min() < least)
