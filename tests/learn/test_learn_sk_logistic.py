"""Logistic regression with privacy: what it spends, what it finds, and how sure that is."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from sk_purse import Purse, Watched
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression as Plain

import discreet as dp
from discreet.errors import InvalidParameter, Refused
from discreet.learn.convex import delta_bound
from discreet.learn.convex.logistic_gradient import RADIUS
from discreet.learn.sklearn import LogisticRegression
from discreet.learn.sklearn.bounds import read_bounds
from discreet.learn.sklearn.logistic_plan import ColumnScales, LogisticCoordinates, NewtonPlan, ObjectivePlan
from discreet.learn.sklearn.moments import ClassMoments
from discreet.mechanisms.additive_noise import GaussianNoise
from discreet.privacy.events import GDP, ApproxDP
from discreet.privacy.relation import Relation
from discreet.robust.regression_design import HALF

BOTH = ["add-remove", "replace-one"]
METHODS = ["objective", "newton"]
TRUTH = np.array([0.5, 1.0, -1.0])


def sample(n: int, seed: int = 1) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, (rng.random(n) < 1 / (1 + np.exp(-TRUTH[0] - X @ TRUTH[1:]))).astype(np.int64)


def estimator(**changes: Any) -> LogisticRegression:
    given: dict[str, Any] = {"epsilon": 3, "delta": "1e-6", "bounds": (-5, 5), "classes": [0, 1]}
    return LogisticRegression(**(given | changes))


@pytest.mark.statistical
@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize("method", METHODS)
def test_coefficients_are_found(method: str, relation: str) -> None:
    X, y = sample(6000)
    found = estimator(method=method, relation=relation).fit(X, y)
    exact = Plain(C=1e9).fit(X, y)
    assert found.method_ == method
    assert np.allclose(found.coef_, exact.coef_, atol=0.35)
    assert found.intercept_ == pytest.approx(exact.intercept_, abs=0.35)
    assert (found.predict(X) == exact.predict(X)).mean() > 0.9


@pytest.mark.parametrize("method", METHODS)
def test_much_budget_finds_the_exact_fit(method: str) -> None:
    X, y = sample(3000)
    found = estimator(method=method, epsilon=2000).fit(X, y)
    assert np.allclose(found.coef_, Plain(C=1e9).fit(X, y).coef_, atol=0.08)


@pytest.mark.statistical
def test_three_classes_with_names_are_told_apart() -> None:
    rng = np.random.default_rng(4)
    centres = np.array([[1.2, 0.0], [-0.6, 1.2], [-0.6, -1.2]])
    codes = rng.integers(0, 3, 4000)
    X, names = centres[codes] + rng.normal(size=(4000, 2)), np.array(["ash", "elm", "oak"])
    found = estimator(classes=["oak", "ash", "elm"], epsilon=15).fit(X, names[codes])
    assert found.classes_.tolist() == ["ash", "elm", "oak"]
    assert found.coef_.shape == (3, 2)
    assert (found.predict(X) == names[codes]).mean() > 0.65
    assert np.allclose(found.predict_proba(X).sum(axis=1), 1)
    assert found.decision_function(X).shape == (4000, 3)
    assert found.intervals_().shape == (3, 3, 2)
    assert [row.name for row in found.summary().rows][:4] == ["ash: intercept", "ash: x0", "ash: x1", "elm: intercept"]


def test_no_intercept_means_none() -> None:
    X, y = sample(5000)
    found = estimator(fit_intercept=False, epsilon=1000, bounds=[(-5, 5), (-6, 4)]).fit(X, y)
    assert found.intercept_ == pytest.approx([0], abs=1e-12)
    assert np.allclose(found.coef_, Plain(C=1e9, fit_intercept=False).fit(X, y).coef_, atol=0.08)


def test_chances_and_margins_agree() -> None:
    X, y = sample(500)
    found = estimator().fit(X, y)
    chances = found.predict_proba(X)
    assert np.allclose(np.log(chances[:, 1] / chances[:, 0]), found.decision_function(X))
    assert ((chances[:, 1] > 0.5) == (found.predict(X) == 1)).all()
    assert np.allclose(np.exp(found.predict_log_proba(X)), chances)


def test_predictions_clamp_as_the_fit_did() -> None:
    X, y = sample(500)
    found = estimator().fit(X, y)
    assert found.decision_function([[50.0, -7.0]]) == pytest.approx(found.decision_function([[5.0, -5.0]]))


@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize("problems", [1, 4])
@pytest.mark.parametrize("inference", [True, False])
def test_the_parts_of_a_plan_stay_within_what_was_kept_for_them(relation: str, problems: int, inference: bool) -> None:
    plan = ObjectivePlan.for_budget(
        Fraction(1),
        Fraction(1, 10**6),
        relation=Relation(relation),
        features=7,
        problems=problems,
        has_intercept=True,
        inference=inference,
        ridge=None,
        people=1000,
    )
    spent = delta_bound(
        Fraction(1),
        kappa=plan.calibration.kappa,
        sums=plan.sums_spent,
        each=plan.objective.mu_squared,
        problems=problems,
        relation=Relation(relation),
    )
    assert plan.sums_spent <= plan.calibration.sums
    assert plan.ridge >= plan.calibration.ridge
    assert spent <= Fraction(1, 10**6)
    assert plan.event == ApproxDP(epsilon=Fraction(1), delta=Fraction(1, 10**6))


@pytest.mark.parametrize("relation", BOTH)
def test_steps_of_newton_spend_what_the_noise_says(relation: str) -> None:
    noise = GaussianNoise.for_epsilon(1, "1e-6")
    plan = NewtonPlan(features=5, has_intercept=True, relation=Relation(relation), problems=3, noise=noise)
    assert plan.event.mu_squared <= 1 / noise.squared_multiplier
    assert plan.event.mu_squared >= Fraction(99, 100) / noise.squared_multiplier


def test_rows_stay_in_the_ball_and_depend_on_themselves_alone() -> None:
    rng = np.random.default_rng(3)
    steps = rng.integers(-HALF, HALF + 1, size=(300, 4))
    columns = ColumnScales(np.array([0.3, -0.9, 0.0, 0.1]), np.array([0.02, 0.5, 1e-3, 0.2]))
    subject = LogisticCoordinates(read_bounds((-2, 5), 4), columns, 3.0, 0.3)
    rows = subject.rows(columns.look(steps), np.arange(300) % 7 > 0)
    assert ((rows**2).sum(axis=1) <= RADIUS**2).all()
    assert (rows[::7] == 0).all()
    alone = [subject.rows(columns.look(steps[i : i + 1]), np.array([i % 7 > 0])) for i in range(300)]
    assert (np.concatenate(alone) == rows).all()


@pytest.mark.parametrize("has_intercept", [True, False])
def test_coefficients_of_the_ball_mean_the_same_in_the_units_of_the_data(has_intercept: bool) -> None:
    frame = read_bounds([(-2, 5), (0, 10)], 2)
    low, high = frame.limits.T
    origin = -(low + high) / (high - low)
    columns = ColumnScales(origin if not has_intercept else np.array([0.2, -0.1]), np.array([0.5, 0.25]))
    subject = LogisticCoordinates(frame, columns, 50.0, 0.5 * has_intercept)
    X = np.array([[1.0, 3.0], [4.5, 0.5]])
    steps = np.rint((2 * X - low - high) / (high - low) * HALF).astype(np.int64)
    theta = np.array([0.7, -1.3, 2.0][: 2 + has_intercept])
    margins = subject.rows(columns.look(steps), np.array([True, True])) @ theta / RADIUS
    intercept, *slopes = subject.turn @ theta
    assert np.allclose(X @ slopes + intercept, margins, atol=1e-3)
    assert has_intercept or intercept == 0


def test_the_session_pays_once_and_before_anything_is_read() -> None:
    X, y = sample(300)
    purse = Purse()
    found = estimator(session=purse).fit(Watched(X, purse), Watched(y, purse))
    ((event, relation, _),) = purse.charges
    assert event == found.privacy_spent_.event == ApproxDP(epsilon=Fraction(3), delta=Fraction(1, 10**6))
    assert relation is Relation.ADD_REMOVE
    broke = Purse(is_empty=True)
    with pytest.raises(dp.BudgetExceeded):
        estimator(session=broke).fit(Watched(X, broke), Watched(y, broke))


def test_newton_charges_gaussian_noise() -> None:
    X, y = sample(300)
    purse = Purse()
    found = estimator(session=purse, method="newton").fit(X, y)
    assert isinstance(purse.charges[0][0], GDP)
    assert found.privacy_spent_.epsilon <= 3.0001


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("rows", [0, 1])
def test_hardly_any_rows_are_no_error_with_a_session(method: str, rows: int) -> None:
    found = estimator(session=Purse(), method=method).fit(np.zeros((rows, 2)), np.zeros(rows, dtype=int))
    assert np.isfinite(found.coef_).all()


def test_odd_values_and_labels_are_no_error_with_a_session() -> None:
    X, y = sample(400)
    X[0], X[1, 0], y[2] = np.nan, np.inf, 77
    found = estimator(session=Purse()).fit(X, y)
    assert np.isfinite(found.coef_).all()
    with pytest.raises(ValueError, match="NaN"):
        estimator().fit(X, y)


def test_how_many_labels_are_strange_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under replace-one the number of rows is told without noise, so all of them must be counted."""
    counted = []
    measure = ClassMoments.measure

    def watched(self: ClassMoments, rows: Any, labels: Any) -> Any:
        seen = measure(self, rows, labels)
        counted.append(float(seen.counts[0]))
        return seen

    monkeypatch.setattr(ClassMoments, "measure", watched)
    X, y = sample(200)
    for strange in (0, 1, 150):
        labels = np.where(np.arange(200) < strange, 9, y)
        estimator(relation="replace-one", session=Purse()).fit(X, labels)
    assert counted == [200.0, 200.0, 200.0]


def test_a_copy_pays_from_the_same_purse() -> None:
    purse = Purse()
    assert clone(estimator(session=purse)).session is purse


@pytest.mark.parametrize(
    "wrong",
    [
        {"epsilon": 0},
        {"epsilon": "much"},
        {"delta": 0},
        {"delta": 2},
        {"method": "magic"},
        {"regularisation": -1},
        {"regularisation": 1, "method": "newton"},
        {"fit_intercept": "yes"},
        {"classes": [1]},
        {"relation": "friends"},
        {"public_rows": 0},
    ],
    ids=repr,
)
def test_nonsense_is_refused_before_anything_is_paid(wrong: dict[str, Any]) -> None:
    purse = Purse()
    with pytest.raises((InvalidParameter, Refused)):
        estimator(**({"session": purse} | wrong)).fit(*sample(50))
    assert not purse.charges


def test_without_bounds_or_classes_it_says_how_to_go_on() -> None:
    with pytest.raises(Refused, match="bounds"):
        estimator(bounds=None).fit(*sample(50))
    with pytest.raises(Refused, match="classes"):
        estimator(classes=None).fit(*sample(50))


def test_a_larger_ridge_makes_smaller_coefficients() -> None:
    X, y = sample(2000)
    small = estimator(epsilon=1000).fit(X, y)
    large = estimator(epsilon=1000, regularisation=1000).fit(X, y)
    assert np.abs(large.coef_).max() < 0.5 * np.abs(small.coef_).max()


@pytest.mark.parametrize("epsilon", ["0.001", "0.01", 10000])
def test_budgets_far_from_the_usual_are_fitted(epsilon: Any) -> None:
    assert np.isfinite(estimator(epsilon=epsilon).fit(*sample(200)).coef_).all()


def test_the_summary_says_what_it_knows() -> None:
    X, y = sample(6000)
    found = estimator().fit(X, y)
    shown = str(found.summary("0.9"))
    assert "LogisticRegression (objective): ε = 3, δ = 1e-6" in shown
    assert "90 % interval" in shown
    assert found.intervals_().shape == (3, 2)
    with pytest.raises(Refused, match="no intervals"):
        estimator(inference=False).fit(X, y).intervals_()
    hidden = estimator(epsilon="0.05").fit(X[:100], y[:100])
    assert "noise hides" in str(hidden.summary())
    assert np.isinf(hidden.intervals_()).all()


def covered(runs: int, n: int, **changes: Any) -> tuple[int, int, int]:
    """Count coefficients with an interval, those inside it, and those inside a fifth of it."""
    told = hits = short = 0
    for seed in range(runs):
        ends = estimator(**changes).fit(*sample(n, seed)).intervals_()
        if not np.isfinite(ends).all():
            continue
        told += 3
        middle, reach = ends.mean(axis=1), (ends[:, 1] - ends[:, 0]) / 2
        hits += int((np.abs(middle - TRUTH) <= reach).sum())
        short += int((np.abs(middle - TRUTH) <= reach / 5).sum())
    return told, hits, short


@pytest.mark.statistical
@pytest.mark.parametrize("method", METHODS)
def test_intervals_of_coefficients_cover(method: str) -> None:
    """30 fits of 3: a coverage of 0.94 falls below 0.7 less than once in 10^9, and a fifth of the width fails."""
    told, hits, short = covered(30, 3000, method=method, epsilon=2, public_rows=3000)
    assert told >= 60
    assert hits >= 0.7 * told > short


@pytest.mark.soak
@pytest.mark.statistical
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("relation", BOTH)
def test_intervals_cover_93_of_100_over_2000_fits(method: str, relation: str) -> None:
    """Of 6,000 coefficients, within the 99.9 % limits of chance; hardly any interval is refused."""
    told, hits, _ = covered(2000, 3000, method=method, relation=relation, epsilon=2, public_rows=3000)
    print(f"{method}, {relation}: {hits} of {told} covered")
    assert told >= 0.98 * 6000
    assert hits >= 0.93 * told - 3.1 * (0.93 * 0.07 * told) ** 0.5


def test_a_summary_names_the_columns_that_hide_each_other() -> None:
    """Three columns of which two are nearly one: no such budget tells them apart, and the third is not named."""
    generator = np.random.default_rng(5)
    first, third = generator.normal(size=(2, 5000))
    rows = pd.DataFrame({"first": first, "second": first + generator.normal(size=5000) / 1000, "third": third})
    labels = (first + generator.normal(size=5000) > 0).astype(int)
    for method in ("objective", "newton"):
        summary = estimator(method=method, epsilon=1).fit(rows, labels).summary()
        assert "Intervals are unbounded" in summary.covers
        named = summary.covers.partition("Hidden most, together: ")[2]
        assert sorted(named.rstrip(".").split(", ")) == ["first", "second"]
        assert [line.split()[-1] for line in str(summary).splitlines()[2:6]] == ["unbounded"] * 4
        assert summary._repr_html_().count("unbounded") >= 4


# --- softmax: more than two classes in one problem ---

CENTRES = np.random.default_rng(11).normal(size=(4, 3)) * 1.5
CODES = np.random.default_rng(12).integers(0, 4, 6000)
PLACES = CENTRES[CODES] + np.random.default_rng(13).normal(size=(6000, 3))
FOUR: dict[str, Any] = {"delta": 1e-6, "bounds": (-8, 8), "classes": [0, 1, 2, 3], "multi_class": "softmax"}


def test_much_budget_finds_the_multinomial_fit() -> None:
    found = LogisticRegression(epsilon=500, **FOUR).fit(PLACES, CODES)
    wanted = Plain(C=1e4, max_iter=1000).fit(PLACES, CODES)
    assert np.allclose(found.predict_proba(PLACES), wanted.predict_proba(PLACES), atol=0.02)
    # What is common to all classes predicts nothing.
    assert np.allclose(found.coef_.sum(axis=0), 0, atol=1e-9)
    assert found.method_ == "softmax"
    assert np.allclose(found.predict_proba(PLACES).sum(axis=1), 1)


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_softmax_spends_what_was_asked_and_predicts(relation: str) -> None:
    purse = Purse()
    model = LogisticRegression(epsilon=1, **FOUR, relation=relation, session=purse)
    model.fit(Watched(PLACES, purse), Watched(CODES, purse))
    assert len(purse.charges) == 1
    assert model.privacy_spent_.epsilon == 1
    assert (model.predict(PLACES) == CODES).mean() > 0.7


def test_softmax_of_people_and_of_weighted_rows() -> None:
    ids = np.arange(6000) // 3
    by_person = LogisticRegression(epsilon=2, **FOUR).fit(PLACES, CODES, unit=ids, max_rows=3)
    assert (by_person.predict(PLACES) == CODES).mean() > 0.7
    assert by_person._most_slots(4) == 8
    wrong, twice = np.concatenate([CODES, (CODES + 1) % 4]), np.concatenate([PLACES, PLACES])
    weighted = LogisticRegression(epsilon=2, **FOUR, weight_bounds=(0, 2), class_weight={0: 2})
    weighted.fit(twice, wrong, np.repeat([2.0, 0.0], 6000))
    assert (weighted.predict(PLACES) == CODES).mean() > 0.7


def test_softmax_tells_no_intervals_and_keeps_no_budget_for_them() -> None:
    model = LogisticRegression(epsilon=1, **FOUR)
    table = model._table(PLACES, CODES)
    asked, spared = (LogisticRegression(epsilon=1, **FOUR, inference=flag) for flag in (True, False))
    for one in (asked, spared):
        one.n_features_in_ = 3
    assert asked._plan(table, 4, weighted=False) == spared._plan(table, 4, weighted=False)
    model.fit(PLACES, CODES)
    with pytest.raises(Refused, match="softmax"):
        model.intervals_()
    assert "No intervals" in str(model.summary())


@pytest.mark.parametrize("wrong", [{"multi_class": "multinomial"}, {"method": "newton"}])
def test_softmax_by_another_name_or_method_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        LogisticRegression(epsilon=1, **(FOUR | wrong)).fit(PLACES, CODES)


def test_softmax_with_too_many_coefficients_is_refused_before_it_is_charged() -> None:
    purse = Purse()
    with pytest.raises(InvalidParameter):
        LogisticRegression(epsilon=1, **FOUR, session=purse).fit(np.zeros((5, 1100)), np.arange(5) % 4)
    assert not purse.charges


def test_softmax_is_the_default_where_no_intervals_are_asked_for() -> None:
    known = {name: value for name, value in FOUR.items() if name != "multi_class"}
    found = {
        flag: LogisticRegression(epsilon=1, **known, inference=flag).fit(PLACES, CODES).method_
        for flag in (True, False)
    }
    assert found == {True: "objective", False: "softmax"}
    assert (
        LogisticRegression(epsilon=1, **known, inference=False, method="newton").fit(PLACES, CODES).method_ == "newton"
    )
    two = LogisticRegression(epsilon=1, **(known | {"classes": [0, 1]}), inference=False)
    assert two.fit(PLACES, CODES % 2).method_ == "objective"
