"""The loss made of straight pieces, its exact gradient, and minima with a certificate."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from discreet.errors import InvalidParameter
from discreet.learn.convex.logistic_gradient import (
    FINE,
    PIECE,
    RADIUS,
    STEEPEST,
    TOP,
    VALUES,
    Labelled,
    LogisticCurvature,
    LogisticScores,
    gradient,
    gradient_slowly,
)
from discreet.learn.convex.objective_perturbation import UNIT, LogisticProblem, ObjectivePerturbation, minimum
from discreet.privacy.relation import Relation

BOTH = [Relation.ADD_REMOVE, Relation.REPLACE_ONE]


def sample(n: int, d: int, seed: int = 1) -> Labelled:
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, d))
    rows /= np.maximum(1.0, np.linalg.norm(rows, axis=1))[:, None]
    labels = rng.random(n) < 1 / (1 + np.exp(-4 * rows[:, 0]))
    return Labelled(np.trunc(rows * RADIUS).astype(np.int64), labels.astype(np.int64))


def mechanism(**changes: object) -> ObjectivePerturbation:
    given = {"dimension": 3, "mu_squared": Fraction(1, 4), "ridge": Fraction(2), "output_mu_squared": Fraction(1, 100)}
    return ObjectivePerturbation(**(given | changes))  # type: ignore[arg-type]


def test_the_curve_rises_is_symmetric_and_near_the_logistic_one() -> None:
    knots = np.arange(len(VALUES)) / (1 << PIECE) - 16
    assert (np.diff(VALUES) >= 0).all()
    assert (VALUES + VALUES[::-1] == 1 << TOP).all()
    assert np.abs(VALUES / (1 << TOP) - 1 / (1 + np.exp(-knots))).max() <= 2.0**-19 + 1e-12
    # Between knots 1/64 apart a straight line is off by at most the largest second derivative / 8 / 64^2.
    assert 0.0963 / 8 / 64**2 + 2.0**-19 < 1e-5
    assert Fraction(int(np.diff(VALUES).max()), 1 << (TOP - PIECE)) == STEEPEST <= Fraction(26, 100)


@pytest.mark.parametrize("size", [0.0, 1e-9, 0.01, 1.0, 30.0, 1e5])
def test_the_fast_gradient_agrees_with_exact_integers(size: float) -> None:
    data = sample(300, 4)
    place = np.rint(np.random.default_rng(2).normal(size=4) * size * 2.0**FINE).astype(np.int64)
    assert gradient(data, place) == gradient_slowly(data, place.tolist())


def test_the_gradient_of_nobody_is_zero() -> None:
    assert gradient(Labelled(np.zeros((0, 2), np.int64), np.zeros(0, np.int64)), np.array([5, 7])) == (0, 0)


def test_what_a_row_adds_to_sums_does_not_depend_on_the_others() -> None:
    data, place = sample(257, 3), np.array([3, -2, 1]) << FINE
    scores = LogisticScores(dimension=3, relation=Relation.ADD_REMOVE, mu_squared=Fraction(1))
    curvature = LogisticCurvature(dimension=3, relation=Relation.ADD_REMOVE, mu_squared=Fraction(1))
    parts = [Labelled(data.rows[i : i + 1], data.labels[i : i + 1]) for i in range(257)]
    assert (sum(scores.exact(part, place) for part in parts) == scores.exact(data, place)).all()
    assert (sum(curvature.exact(part, place) for part in parts) == curvature.exact(data, place)).all()


def test_a_minimum_is_certified_and_near_the_true_one() -> None:
    data, subject = sample(2000, 3), mechanism()
    place = subject.search(data, [123_456, -9_876_543, 5])
    slope = tuple(part << (UNIT - subject.bits) for part in (123_456, -9_876_543, 5))
    problem = LogisticProblem(ridge=subject.ridge_units, slope=slope, tolerance=int(subject.tolerance * (1 << UNIT)))
    assert problem.certifies(problem.derivative(data, place))
    # Millions of times closer, with finer and slower numbers.
    finer = LogisticProblem(ridge=problem.ridge, slope=slope, tolerance=problem.tolerance >> 24)
    nearer, fine = minimum(finer, data)
    assert fine > FINE
    apart = sum((Fraction(a, 1 << FINE) - Fraction(b, 1 << fine)) ** 2 for a, b in zip(place, nearer, strict=True))
    assert apart <= subject.reach**2


def test_more_rows_than_prepared_for_are_searched_with_finer_numbers() -> None:
    data = sample(400, 3)
    few = mechanism(rows=1, mu_squared=Fraction(1 << 20))
    problem = LogisticProblem(ridge=few.ridge_units, slope=(0, 0, 0), tolerance=int(few.tolerance * (1 << UNIT)))
    assert minimum(problem, data)[1] > FINE
    places = (np.array(one.search(data, [0, 0, 0])) / 2.0**FINE for one in (few, mechanism()))
    assert np.allclose(*places, atol=1e-6)


def test_a_wrong_place_gets_no_certificate() -> None:
    data, subject = sample(500, 3), mechanism()
    place = subject.search(data, [0, 0, 0])
    problem = LogisticProblem(
        ridge=subject.ridge_units, slope=(0, 0, 0), tolerance=int(subject.tolerance * (1 << UNIT))
    )
    assert not problem.certifies(problem.derivative(data, [place[0] + (1 << 30), *place[1:]]))


def test_noise_on_the_end_covers_all_ends_that_the_certificate_allows() -> None:
    subject = mechanism()
    apart = 2 * subject.reach * (1 << FINE)
    assert apart**2 / subject.output_variance <= subject.output_mu_squared
    assert apart**2 / subject.output_variance >= subject.output_mu_squared * Fraction(99, 100)
    # Without what rounding the slope adds, the claim would be broken.
    ridge = Fraction(subject.ridge_units, 1 << FINE)
    assert subject.reach * ridge >= subject.tolerance + Fraction(1, 1 << (subject.bits + 1))


@pytest.mark.parametrize("relation", BOTH)
def test_scores_and_matrices_stay_within_their_sensitivities_and_reach_them(relation: Relation) -> None:
    rng = np.random.default_rng(5)
    angles = rng.uniform(0, 2 * np.pi, 120)
    rows = np.trunc(np.column_stack([np.cos(angles), np.sin(angles)]) * RADIUS).astype(np.int64)
    parts = [Labelled(row[None, :], np.array([label])) for row in rows for label in (0, 1)]
    for place, at_zero in ((np.array([0, 0]), True), (np.array([9, 5]) << FINE, False)):
        scores = LogisticScores(dimension=2, relation=relation, mu_squared=Fraction(1), at_zero=at_zero)
        found = np.array([scores.exact(part, place) for part in parts], dtype=np.float64)
        largest = _largest(found, relation)
        # Gradients of two rows are never quite opposite where both are long: they both point along theta.
        reached = 0.97 if relation is Relation.ADD_REMOVE or at_zero else 0.8
        assert reached * scores.squared_sensitivity <= largest <= scores.squared_sensitivity
    curvature = LogisticCurvature(dimension=2, relation=relation, mu_squared=Fraction(1))
    flat = np.array([curvature.exact(part, np.array([0, 0])).reshape(-1) for part in parts], dtype=np.float64)
    assert 0.97 * curvature.squared_sensitivity <= _largest(flat, relation) <= curvature.squared_sensitivity


def _largest(found: np.ndarray, relation: Relation) -> float:
    if relation is Relation.ADD_REMOVE:
        return float((found**2).sum(axis=1).max())
    return max(float(((found - row) ** 2).sum(axis=1).max()) for row in found)


def test_sums_without_noise_are_those_of_floats() -> None:
    data, theta = sample(3000, 3), np.array([2.0, -1.0, 0.5])
    place, rows = np.rint(theta * 2.0**FINE).astype(np.int64), data.rows / RADIUS
    chances = 1 / (1 + np.exp(-rows @ theta))
    scores = LogisticScores(dimension=3, relation=Relation.ADD_REMOVE, mu_squared=Fraction(10**12))
    assert np.allclose(scores.measure(data, place), rows.T @ (data.labels - chances), atol=0.2)
    curvature = LogisticCurvature(dimension=3, relation=Relation.ADD_REMOVE, mu_squared=Fraction(10**9))
    exact = (rows * (chances * (1 - chances))[:, None]).T @ rows
    assert np.allclose(curvature.measure(data, place), exact, rtol=0.01, atol=0.5)


@pytest.mark.parametrize(
    "changes", [{"ridge": 0}, {"ridge": Fraction(1, 1 << 30)}, {"mu_squared": -1}, {"dimension": 0}]
)
def test_nonsense_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises(InvalidParameter):
        mechanism(**changes)
