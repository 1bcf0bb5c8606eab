"""The fits of a private logistic regression: from clamped rows to coefficients and their errors."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.learn.convex.gradient import FINE, Labelled
from discreet.learn.sklearn.bounds import FeatureFrame
from discreet.learn.sklearn.class_moments import coarser
from discreet.learn.sklearn.logistic_coordinates import LogisticCoordinates, standardised
from discreet.learn.sklearn.logistic_plan import NewtonPlan, ObjectivePlan
from discreet.robust.lens import lengths

__all__ = ["Fits", "fitted"]

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

_LARGEST: Final = 2.0**19  # Of a coefficient; beyond it steps of 2^-42 would not fit 63 bits.


@final
@dataclass(frozen=True, slots=True, eq=False)
class Fits:
    """All problems, one row each, the intercept first, in the units of the data. All of it is public."""

    coefficients: Floats  # to predict with
    estimates: Floats  # without the pull of a ridge
    errors: Floats | None  # standard errors of the estimates


@final
@dataclass(frozen=True, slots=True, eq=False)
class LogisticFit:
    """One problem, the intercept first, in the units of the data. All of it is public."""

    coefficients: Floats
    estimate: Floats
    errors: Floats | None  # by sampling and by noise; infinite where they cannot be told


def fitted(plan: ObjectivePlan | NewtonPlan, frame: FeatureFrame, steps: Integers, codes: Integers) -> Fits:
    """Measure columns and lengths, then fit one problem after the other. It must have been paid for."""
    ground = _prepared(plan, frame, steps, codes)
    labels = [1] if plan.problems == 1 else range(plan.problems)
    fits = [_fit(plan, ground, (codes == label).astype(np.int64)) for label in labels]
    errors = [fit.errors for fit in fits if fit.errors is not None]
    return Fits(
        coefficients=np.array([fit.coefficients for fit in fits]),
        estimates=np.array([fit.estimate for fit in fits]),
        errors=np.array(errors) if errors else None,
    )


@final
@dataclass(frozen=True, slots=True, eq=False)
class Ground:
    """Standardised rows, and coordinates in which they lie in a ball. The rows are private."""

    coordinates: LogisticCoordinates
    standard: Floats = field(repr=False)
    inside: NDArray[np.bool_] = field(repr=False)

    def rows(self, coordinates: LogisticCoordinates) -> Integers:
        return coordinates.rows(self.standard, self.inside)


def _prepared(plan: ObjectivePlan | NewtonPlan, frame: FeatureFrame, steps: Integers, codes: Integers) -> Ground:
    """Choose coordinates by noisy means, spreads and lengths.

    A row whose label is no class adds nothing to a fit. It is counted, in the middle of the bounds: under replace-one
    the number of rows is public, and how many of them have such labels is not.
    """
    preparation, inside = plan.preparation, codes >= 0
    moments = preparation.moments
    steps = np.where(inside[:, None], steps, 0)
    seen = moments.measure(coarser(steps, moments.reach), np.zeros(len(steps), dtype=np.int64))
    low, high = frame.limits.T
    columns = standardised(seen, None if plan.has_intercept else -(low + high) / (high - low))
    standard = columns.look(steps)
    far = np.where(inside, lengths(standard), 0.0)
    (longest,) = preparation.lengths.chosen((far,), _spared(plan, float(seen.counts[0])))
    return Ground(LogisticCoordinates(frame, columns, longest, plan.constant), standard, inside)


def _spared(plan: ObjectivePlan | NewtonPlan, count: float) -> float:
    """Return how many rows may be shortened: as many as move a gradient by about its noise, or as sampling does."""
    people = max(count, 0.0)
    return min(max(plan.features / math.sqrt(plan.preparation.mu_squared), math.sqrt(people)), people / 4)


def _fit(plan: ObjectivePlan | NewtonPlan, ground: Ground, labels: Integers) -> LogisticFit:
    return _by_objective(plan, ground, labels) if isinstance(plan, ObjectivePlan) else _by_newton(plan, ground, labels)


def _by_objective(plan: ObjectivePlan, ground: Ground, labels: Integers) -> LogisticFit:
    """Find the minimum with a random slope, and measure the matrix there if intervals are wanted."""
    objective, matrix, plain = plan.objective, plan.curvature, ground.coordinates
    found = np.array([float(value) for value in objective.release(Labelled(ground.rows(plain), labels))])
    if matrix is None:
        return LogisticFit(plain.turn @ found, plain.turn @ found, None)
    even = replace(plain, share=plan.even_constant)
    factors = even.next_to(plain)
    place = found * factors
    curvature = matrix.measure(ground.rows(even), _steps(place))
    inverse, is_known = _inverse(curvature, matrix.deviation)
    # At the minimum H (theta - truth) = score - slope - ridge theta, to first order: take the last term away.
    pull = inverse @ (float(objective.ridge) * place / factors**2)
    noise = 1 / (float(objective.mu_squared) * factors**2) + _blurred(matrix.deviation, pull)
    last = float(objective.output_variance) * 4.0**-FINE * factors**2
    covariance = inverse @ (curvature + np.diag(noise)) @ inverse + np.diag(last)
    return LogisticFit(plain.turn @ found, even.turn @ (place + pull), _errors(even.turn, covariance, is_known))


def _by_newton(plan: NewtonPlan, ground: Ground, labels: Integers) -> LogisticFit:
    """Take early steps over the matrix at zero, which no curvature exceeds, and a last one over that of the fit."""
    data, turn = Labelled(ground.rows(ground.coordinates), labels), ground.coordinates.turn
    place, gram = np.zeros(plan.dimension), plan.gram
    first = _raised(gram.measure(data.rows, _steps(place)), gram.deviation)
    for scores in plan.early:
        place = place + np.linalg.solve(first, scores.measure(data, _steps(place)))
    matrix, last = plan.matrix, plan.last
    curvature = matrix.measure(data.rows, _steps(place))
    move = np.asarray(np.linalg.solve(_raised(curvature, matrix.deviation), last.measure(data, _steps(place))))
    inverse, is_known = _inverse(curvature, matrix.deviation)
    noise = last.deviation**2 + _blurred(matrix.deviation, move)
    covariance = inverse @ (curvature + noise * np.eye(plan.dimension)) @ inverse
    found = turn @ (place + move)
    return LogisticFit(found, found, _errors(turn, covariance, is_known))


def _steps(place: Floats) -> Integers:
    return np.rint(np.clip(place, -_LARGEST, _LARGEST) * 2.0**FINE).astype(np.int64)


def _blurred(deviation: float, move: Floats) -> float:
    """Return the variance of each entry of noise * move, for noise with half the variance off the diagonal."""
    return float(deviation**2 * (move @ move) / 2)


def _length(deviation: float, size: int) -> float:
    """Return about how long the noise on a matrix is: sqrt(2 size) deviations."""
    return deviation * math.sqrt(2 * size)


def _raised(matrix: Floats, deviation: float) -> Floats:
    """Raise the eigenvalues that drown in the noise, so that no step is too long."""
    values, vectors = np.linalg.eigh(matrix)
    raised: Floats = (vectors * np.maximum(values, max(2 * _length(deviation, len(values)), 1e-9))) @ vectors.T
    return raised


def _inverse(matrix: Floats, deviation: float) -> tuple[Floats, bool]:
    """Invert a noisy matrix, and tell whether all its eigenvalues stand out of the noise.

    In one direction the noise has one deviation, so that an eigenvalue above its length is known to a part.
    """
    values, vectors = np.linalg.eigh(matrix)
    least = max(_length(deviation, len(values)), 3 * deviation)
    inverse: Floats = (vectors / np.maximum(values, least)) @ vectors.T
    return inverse, bool(values.min() >= least)


def _errors(turn: Floats, covariance: Floats, is_known: bool) -> Floats:
    """Return standard errors in the units of the data. For a logistic model the scores vary as the matrix says."""
    if not is_known:
        return np.full(len(turn), math.inf)
    return np.asarray(np.sqrt(np.maximum(np.diag(turn @ covariance @ turn.T), 0.0)))
