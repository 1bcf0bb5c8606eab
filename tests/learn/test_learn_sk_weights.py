"""Declared weights of rows and classes: never more than the heaviest row in any sum, and the line that they ask for."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import log
from typing import Any

import numpy as np
import pytest
import sklearn.linear_model as plain
from convex_worlds import Minimum, hockey
from sk_purse import Purse, Watched

import discreet as dp
from discreet.errors import InvalidParameter, Refused
from discreet.lab.verify.small_worlds import neighbours, worlds
from discreet.learn import sklearn as private
from discreet.learn.convex import delta_bound
from discreet.learn.convex.logistic_gradient import (
    FINE,
    RADIUS,
    STEEPEST,
    WEIGHT,
    Labelled,
    LogisticCurvature,
    LogisticScores,
    exponential_curve,
    gradient,
    gradient_slowly,
)
from discreet.privacy.relation import Relation
from discreet.robust.noisy_moments import Moments, exact_moments
from discreet.robust.regression_design import HALF, RegressionColumns
from discreet.robust.reweighting import SharedWeights, shares_of, weight_grid, weight_shares

ADD_REMOVE, REPLACE_ONE = BOTH = (Relation.ADD_REMOVE, Relation.REPLACE_ONE)
ONE = 1 << WEIGHT

RNG = np.random.default_rng(5)
X = RNG.uniform(0, 10, (4000, 1))
GROUP = RNG.random(4000) < 0.5
Y = np.where(GROUP, 2 * X[:, 0], 20 - X[:, 0]) + RNG.normal(size=4000)
LABELS = (np.where(GROUP, X[:, 0] - 5, 5 - X[:, 0]) + RNG.logistic(size=4000) > 0).astype(int)
LINE: dict[str, Any] = {"epsilon": 4, "delta": 1e-6, "bounds": [(0, 10)], "target_bounds": (-20, 40)}
CURVE: dict[str, Any] = {"epsilon": 4, "delta": 1e-6, "bounds": [(0, 10)], "classes": [0, 1]}


# --- sums of least squares, over all neighbours of small worlds ---

CORNERS = [((10, 0), 10), ((6, 8), -10), ((-8, 6), 10), ((0, -10), -7), ((3, 4), 10)]
RECORDS = [(row, response, weight) for (row, response), weight in product(CORNERS, (0, HALF // 3, HALF, 3 * HALF))]


def apart(relation: Relation, *, clamped: bool) -> tuple[Fraction, Fraction]:
    """Return the largest squared distance of moments of neighbours, in units of the noise, and what is paid."""
    moments = Moments(dimension=2, relation=relation, mu_squared=Fraction(1, 7), weight=Fraction(1), radius=10)
    found = worlds(RECORDS, (1,) if relation is REPLACE_ONE else (0, 1, 2))

    def told(data: Any) -> tuple[Any, Any]:
        rows = np.array([row for row, _, _ in data], dtype=np.int64).reshape(-1, 2)
        responses = np.array([response for _, response, _ in data], dtype=np.int64)
        weights = np.array([weight for _, _, weight in data], dtype=np.int64)
        records = RegressionColumns([*rows.T, responses], weights=weights)
        shares = shares_of(records, relation) if clamped else SharedWeights(None, weights)
        return exact_moments(*shares.divided(rows, responses))

    sums = [told(data) for data in found]

    def loss(one: int, other: int) -> Fraction:
        gram, cross = sums[one][0] - sums[other][0], sums[one][1] - sums[other][1]
        diagonal, off = int((np.diag(gram) ** 2).sum()), 2 * int(gram[0, 1]) ** 2
        return Fraction(diagonal + off) / moments.gram_variance + int((cross**2).sum()) / moments.cross_variance

    return max(loss(*pair) for pair in neighbours(found, relation)), moments.event.mu_squared


@pytest.mark.parametrize("relation", BOTH)
def test_weighted_moments_move_no_more_than_is_paid_for(relation: Relation) -> None:
    found, paid = apart(relation, clamped=True)
    assert paid / 2 < found <= paid


@pytest.mark.parametrize("relation", BOTH)
def test_mutant_weights_beyond_the_declared_ones_are_refuted(relation: Relation) -> None:
    found, paid = apart(relation, clamped=False)
    assert found > paid


def test_rows_of_a_person_and_their_weights_are_together_no_longer_than_one_row() -> None:
    for weights in product((0, HALF // 2, HALF), repeat=3):
        units = SharedWeights(np.zeros(3, dtype=np.int64), np.array(weights))
        rows, residuals = np.array([[6, 8], [-10, 0], [8, 6]]) * 100, np.array([1000, -1000, 1000])
        near, kept = units.divided(rows, residuals)
        gram, cross = exact_moments(near, kept)
        assert max(np.linalg.norm(gram), np.linalg.norm(cross)) <= 1000**2
        scores = units.scores(near, kept)
        assert scores is not None
        assert np.linalg.norm(scores) <= 1000**2


def test_shares_of_weights_are_exact_and_clamped() -> None:
    grid = weight_grid((0, 4))
    assert weight_shares(grid, [0, 1, 2, 4, 9, -3]).tolist() == [0, HALF // 4, HALF // 2, HALF, HALF, 0]
    # A bound that no grid has is rounded up, never down.
    assert weight_grid((0, 0.1 + 0.2)).high >= Fraction(0.1 + 0.2)


# --- logistic sums and minima ---


def rows_on_a_circle(weights: tuple[int, ...], count: int = 40) -> list[Labelled]:
    angles = np.linspace(0, 2 * np.pi, count)
    rows = np.trunc(np.column_stack([np.cos(angles), np.sin(angles)]) * RADIUS).astype(np.int64)
    return [
        Labelled(row[None, :], np.array([label]), weights=np.array([weight]))
        for row in rows
        for label in (0, 1)
        for weight in weights
    ]


@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize("heaviest", [ONE, 2 * ONE])
def test_weighted_scores_and_matrices_stay_within_their_sensitivities(relation: Relation, heaviest: int) -> None:
    """A mutant that lets weights exceed the heaviest moves all of them by more than is paid for."""
    parts, is_right = rows_on_a_circle((ONE // 3, heaviest)), heaviest == ONE
    for place, at_zero in ((np.array([0, 0]), True), (np.array([9, 5]) << FINE, False)):
        scores = LogisticScores(dimension=2, relation=relation, mu_squared=Fraction(1), at_zero=at_zero)
        found = np.array([scores.exact(part, place) for part in parts], dtype=np.float64)
        assert (_largest(found, relation) <= scores.squared_sensitivity) == is_right
    curvature = LogisticCurvature(dimension=2, relation=relation, mu_squared=Fraction(1), weighted=True)
    flat = np.array([curvature.exact(part, np.array([0, 0])).reshape(-1) for part in parts], dtype=np.float64)
    assert (_largest(flat, relation) <= curvature.squared_sensitivity) == is_right
    if is_right:
        assert _largest(flat, relation) >= 0.97 * curvature.squared_sensitivity


def _largest(found: Any, relation: Relation) -> float:
    if relation is ADD_REMOVE:
        return float((found**2).sum(axis=1).max())
    return max(float(((found - row) ** 2).sum(axis=1).max()) for row in found)


def test_a_matrix_that_was_not_prepared_for_weights_is_refused() -> None:
    (part, *_) = rows_on_a_circle((ONE // 3,), 2)
    with pytest.raises(InvalidParameter):
        LogisticCurvature(dimension=2, relation=ADD_REMOVE, mu_squared=Fraction(1)).exact(part, np.array([0, 0]))


@pytest.mark.parametrize("size", [0.0, 0.01, 1.0, 30.0])
@pytest.mark.parametrize("offset", [None, 0, -150])
def test_the_fast_gradient_of_weighted_rows_agrees_with_exact_integers(size: float, offset: int | None) -> None:
    rng = np.random.default_rng(2)
    rows = np.trunc(rng.uniform(-0.5, 0.5, (300, 4)) * RADIUS).astype(np.int64)
    weights = rng.integers(0, ONE + 1, 300)
    labels = rng.integers(0, 2, 300) if offset is None else rng.integers(0, (1 << 18) + 1, 300)
    data = Labelled(rows, labels, weights=weights)
    if offset is not None:
        data = Labelled(rows, labels, exponential_curve(offset), weights)
    place = np.rint(rng.normal(size=4) * size * 2.0**FINE).astype(np.int64)
    assert gradient(data, place) == gradient_slowly(data, place.tolist())


def claimed(mechanism: Minimum, epsilon: float, relation: Relation) -> float:
    kappa = Fraction(log(1 + float(STEEPEST) / mechanism.ridge))
    given: dict[str, Any] = {"kappa": kappa, "sums": Fraction(0), "problems": 1, "relation": relation}
    return float(delta_bound(Fraction(epsilon), each=Fraction(1 / mechanism.sigma**2), **given))


def largest_delta(mechanism: Minimum, weights: tuple[float, ...], relation: Relation, epsilon: float) -> float:
    """Return the largest delta over neighbours of at most two weighted rows, or beside 400 on one side."""
    points = [(x, y, weight) for x in (-1.0, 0.5, 1.0) for y in (0, 1) for weight in weights]
    theta, width = mechanism.axis(beyond=5.0)
    many: Any = ((1.0, 1),) * 400
    bases: list[Any] = [(), *((point,) for point in points), many]
    pairs = [(base, (*base, point)) for base in bases for point in points]
    if relation is REPLACE_ONE:
        pairs = [((*base, a), (*base, b)) for base in ((), many) for a in points for b in points if a != b]
    found = {world: mechanism.density(world, theta) for pair in pairs for world in pair}
    both = [*pairs, *((b, a) for a, b in pairs)]
    return max(hockey(found[a], found[b], width, epsilon) for a, b in both)


@pytest.mark.parametrize("relation", BOTH)
def test_the_bound_dominates_brute_force_for_weighted_rows_and_refutes_heavier_ones(relation: Relation) -> None:
    mechanism, epsilon = Minimum(1.0, 4.0), 3.0
    allowed = claimed(mechanism, epsilon, relation)
    assert largest_delta(mechanism, (0.3, 1.0), relation, epsilon) <= allowed + 1e-7
    assert largest_delta(mechanism, (2.5,), relation, epsilon) > allowed


# --- estimators ---

MODELS: dict[str, Any] = {
    "refined": private.LinearRegression(**LINE, weight_bounds=(0, 4)),
    "once": private.LinearRegression(**LINE, weight_bounds=(0, 4), method="noisy_statistics"),
    "replaced": private.LinearRegression(**LINE, weight_bounds=(0, 4), relation="replace-one"),
    "ridge": private.Ridge(**LINE, weight_bounds=(0, 4)),
    "objective": private.LogisticRegression(**CURVE, weight_bounds=(0, 4)),
    "newton": private.LogisticRegression(**CURVE, weight_bounds=(0, 4), method="newton"),
    "logistic, replaced": private.LogisticRegression(**CURVE, weight_bounds=(0, 4), relation="replace-one"),
}


@pytest.mark.parametrize("name", MODELS)
def test_rows_of_no_weight_are_as_if_they_were_not_there(name: str) -> None:
    """One half has a rising line, the other a falling one; together there is none."""
    model = MODELS[name]
    y = LABELS if hasattr(model, "classes") else Y
    slope = model.fit(X, y, np.where(GROUP, 4.0, 0.0)).coef_.ravel()[0]
    assert slope > (0.5 if hasattr(model, "classes") else 1.9)
    assert model.fit(X, y, np.where(GROUP, 0.0, 4.0)).coef_.ravel()[0] < -0.5
    assert model.privacy_spent_.epsilon <= 4 * (1 + 1e-6)


@pytest.mark.parametrize("name", ["refined", "once", "objective", "newton"])
def test_weights_aim_at_what_those_of_scikit_learn_do(name: str) -> None:
    weights = RNG.uniform(0, 4, 4000) * np.where(GROUP, 1.0, 0.25)
    model = MODELS[name]
    y, twin = (LABELS, plain.LogisticRegression(C=1e6)) if hasattr(model, "classes") else (Y, plain.LinearRegression())
    aim, other = (float(twin.fit(X, y, weight).coef_.ravel()[0]) for weight in (weights, None))
    found = float(model.fit(X, y, weights).coef_.ravel()[0])
    assert abs(found - aim) < abs(other - aim) / 2


def test_a_penalty_is_beside_weights_as_they_are_not_beside_their_shares() -> None:
    weights, alpha = np.full(4000, 4.0), 2e5
    wanted = plain.Ridge(alpha=alpha).fit(X[GROUP], Y[GROUP], weights[GROUP]).coef_[0]
    found = private.Ridge(**LINE, alpha=alpha, weight_bounds=(0, 4)).fit(X[GROUP], Y[GROUP], weights[GROUP]).coef_[0]
    alone = plain.Ridge(alpha=4 * alpha).fit(X[GROUP], Y[GROUP], weights[GROUP]).coef_[0]
    assert abs(found - wanted) < abs(found - alone) / 3


def test_classes_weigh_what_is_declared() -> None:
    known = CURVE | {"bounds": [(0, 10)]}
    for method in ("objective", "newton"):
        light, heavy = (
            private.LogisticRegression(**known, method=method, class_weight=weights).fit(X, LABELS)
            for weights in (None, {1: 5})
        )
        assert heavy.predict(X).mean() > light.predict(X).mean() + 0.1
        assert heavy.privacy_spent_.epsilon <= 4 * (1 + 1e-6)


def test_people_with_several_weighted_rows_are_fitted() -> None:
    people = np.arange(4000) // 2
    weights = np.where(GROUP, 4.0, 0.0)
    line = private.LinearRegression(**LINE, weight_bounds=(0, 4)).fit(X, Y, weights, unit=people, max_rows=2)
    assert abs(line.coef_[0] - 2) < 0.1
    curve = private.LogisticRegression(**CURVE, weight_bounds=(0, 4)).fit(X, LABELS, weights, unit=people, max_rows=2)
    assert curve.coef_[0, 0] > 0.5


@pytest.mark.parametrize(
    ("wrong", "weights"),
    [
        ({}, np.ones(4000)),
        ({"weight_bounds": (1, 5)}, np.ones(4000)),
        ({"weight_bounds": (0, 0)}, np.ones(4000)),
        ({"weight_bounds": (0, 5)}, np.ones(3999)),
        ({"weight_bounds": (0, 5)}, np.ones((4000, 1))),
    ],
)
@pytest.mark.parametrize("kind", ["LinearRegression", "Ridge", "LogisticRegression"])
def test_weights_that_are_not_declared_are_refused(kind: str, wrong: dict[str, Any], weights: Any) -> None:
    purse, known = Purse(), CURVE if kind == "LogisticRegression" else LINE
    with pytest.raises((InvalidParameter, Refused)):
        getattr(private, kind)(**known, **wrong, session=purse).fit(X, LABELS, weights)
    assert not purse.charges


@pytest.mark.parametrize("wrong", ["balanced", {7: 1}, {0: 0}])
def test_weights_of_classes_that_are_not_public_are_refused(wrong: Any) -> None:
    with pytest.raises(InvalidParameter):
        private.LogisticRegression(**CURVE, class_weight=wrong).fit(X, LABELS)


@pytest.mark.parametrize("method", ["robust", "adassp", "tukey"])
def test_methods_without_a_proof_for_weights_refuse_them(method: str) -> None:
    with pytest.raises(InvalidParameter):
        private.LinearRegression(**LINE, method=method, weight_bounds=(0, 1)).fit(X, Y, np.ones(4000))


@pytest.mark.parametrize("kind", ["LinearRegression", "Ridge", "LogisticRegression"])
def test_weights_are_read_once_they_are_paid_for_and_no_value_of_them_is_an_error(kind: str) -> None:
    purse, known = Purse(), CURVE if kind == "LogisticRegression" else LINE
    weights = RNG.uniform(0, 9, 4000)
    weights[:3] = np.nan, np.inf, -np.inf
    model = getattr(private, kind)(**known, weight_bounds=(0, 4), session=purse)
    target = LABELS if kind == "LogisticRegression" else Y
    model.fit(Watched(X, purse), Watched(target, purse), Watched(weights, purse))
    assert len(purse.charges) == 1
    assert np.isfinite(model.coef_).all()


# --- in one call ---


def regress(**given: Any) -> Any:
    known: dict[str, Any] = {"x_bounds": [(0, 10)], "y_bounds": (-20, 40), "epsilon": 4, "delta": 1e-6}
    return dp.regression(X, Y, relation=ADD_REMOVE, **(known | given))


def test_a_regression_in_one_call_takes_weights() -> None:
    weights = np.where(GROUP, 4.0, 0.0)
    assert abs(regress(weights=weights, weight_bounds=(0, 4)).value[1] - 2) < 0.1
    ids = np.arange(4000) // 2
    people = regress(weights=weights, weight_bounds=(0, 4), unit=ids, max_rows=2)
    assert abs(people.value[1] - 2) < 0.1
    rows: Any = dp.regression(
        X.tolist(),
        Y.tolist(),
        relation=REPLACE_ONE,
        x_bounds=[(0, 10)],
        y_bounds=(-20, 40),
        rho=1,
        weights=weights.tolist(),
        weight_bounds=(0, 4),
    )
    assert abs(rows.value[1] - 2) < 0.1


@pytest.mark.parametrize(
    "wrong", [{}, {"weight_bounds": (1, 4)}, {"weight_bounds": (0, 4), "method": "adassp"}, {"weight_bounds": 3}]
)
def test_a_regression_in_one_call_refuses_undeclared_weights(wrong: dict[str, Any]) -> None:
    purse = Purse()
    with pytest.raises((InvalidParameter, Refused)):
        regress(weights=np.ones(4000), session=purse, **wrong)
    assert not purse.charges


@pytest.mark.parametrize("many", [3999, 4001])
@pytest.mark.parametrize("ids", [None, np.arange(4000) // 2])
def test_weights_of_other_rows_are_refused_also_for_people(many: int, ids: Any) -> None:
    with pytest.raises(InvalidParameter, match="weight"):
        regress(weights=np.ones(many), weight_bounds=(0, 4), unit=ids)


@pytest.mark.parametrize("weight", [np.nan, np.inf, 0.5])
def test_shares_that_are_no_whole_numbers_are_refused(weight: float) -> None:
    """Clamped, a NaN stays one, and its row would have become as long as 64 bits allow."""
    design = dp.robust.Design.between([(0, 10)], (-20, 40))
    noise = dp.mechanisms.GaussianNoise.for_rho(1)
    records = RegressionColumns([X[:3, 0], Y[:3]], weights=np.full(3, weight))
    for kind in (dp.robust.RefinedRegression, dp.robust.NoisyStatistics):
        with pytest.raises(InvalidParameter, match="whole"):
            kind(design=design, relation=ADD_REMOVE, noise=noise).release(records)


def test_mechanisms_without_a_proof_refuse_records_with_weights() -> None:
    design = dp.robust.Design.between([(0, 10)], (-20, 40))
    records = RegressionColumns([X[:, 0], Y], weights=np.full(4000, HALF))
    noise = dp.mechanisms.GaussianNoise.for_rho(1)
    with pytest.raises(Refused):
        dp.robust.AdaSSP(design=design, relation=ADD_REMOVE, noise=noise).release(records)
    with pytest.raises(Refused):
        dp.robust.TukeyRegression(
            design=design, relation=ADD_REMOVE, epsilon=Fraction(1), delta=Fraction(1, 10**6)
        ).release(records)
