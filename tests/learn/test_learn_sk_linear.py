"""Private lines in scikit-learn's shape: what they cost, what they find, and how often their intervals cover."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from learn.sk_purse import Purse
from sklearn.base import clone
from sklearn.linear_model import Ridge as ExactRidge
from sklearn.pipeline import make_pipeline

import discreet as dp
from discreet.errors import InvalidParameter, Refused
from discreet.learn.sklearn import LinearRegression, Ridge, RobustRegressor, StandardScaler
from discreet.privacy import GDP, Relation, epsilon

USUAL: dict[str, Any] = {"epsilon": 1, "delta": "1e-6", "bounds": (-5, 5), "target_bounds": (-10, 10)}
TRUTH = np.array([1.0, 1.0, -0.5, 0.25])  # The intercept first.
ALL = (
    LinearRegression(**USUAL),
    LinearRegression(**USUAL, method="robust"),
    LinearRegression(**USUAL, method="noisy_statistics"),
    LinearRegression(**USUAL, method="adassp"),
    LinearRegression(**USUAL, method="tukey"),
    Ridge(**USUAL),
    RobustRegressor(**USUAL),
    RobustRegressor(**USUAL, method="gradient_descent", public_rows=4000),
)


def sample(generator: Any, size: int) -> tuple[Any, Any]:
    features = generator.normal(size=(size, 3))
    return features, TRUTH[0] + features @ TRUTH[1:] + generator.normal(size=size)


X, Y = sample(np.random.default_rng(7), 4000)


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("estimator", ALL, ids=lambda one: f"{type(one).__name__}-{getattr(one, 'method', '')}")
def test_a_fit_charges_what_it_says_and_no_more_than_was_asked(estimator: Any, relation: Relation) -> None:
    purse = Purse()
    fit = clone(estimator).set_params(session=purse, relation=relation, public_rows=300).fit(X[:300], Y[:300])
    ((event, charged, purpose),) = purse.charges
    assert (event, charged) == (fit.privacy_spent_.event, relation)
    assert purpose == f"fit of {type(estimator).__name__}"
    assert fit.privacy_spent_.epsilon <= 1 + 1e-9
    assert epsilon(event, "1e-6", relation=relation) >= 0.99  # Nothing is left over.


def test_intervals_are_a_part_of_the_budget_and_not_more() -> None:
    with_them, without = (LinearRegression(**USUAL, inference=flag).fit(X, Y) for flag in (True, False))
    assert isinstance(with_them.privacy_spent_.event, GDP)
    spent = [float(fit.privacy_spent_.event.mu_squared) for fit in (with_them, without)]
    assert spent[0] == pytest.approx(spent[1], rel=1e-6)
    with pytest.raises(Refused, match="inference=True"):
        without.intervals_()
    assert "No intervals" in str(without.summary())


def test_the_method_follows_from_public_facts_alone() -> None:
    few, many, unknown = 200, 10**5, None
    for size, method in ((few, "robust"), (many, "refined"), (unknown, "refined")):
        assert LinearRegression(**USUAL, public_rows=size).fit(X, Y).method_ == method
    fit = LinearRegression(**USUAL, relation="replace-one").fit(X[:200], Y[:200])  # Where the size is public.
    assert fit.method_ == "robust"


@pytest.mark.parametrize("estimator", ALL[:1] + ALL[5:7], ids=lambda one: type(one).__name__)
@pytest.mark.statistical
def test_a_fit_is_near_the_line_and_one_to_a_shuffled_target_is_not(estimator: Any) -> None:
    generous = type(estimator)(**USUAL | {"epsilon": 30})
    fit = generous.fit(X, Y)
    assert np.abs(np.append(fit.intercept_, fit.coef_) - TRUTH).max() < 0.25  # Ten times its spread.
    wrong = type(estimator)(**USUAL | {"epsilon": 30}).fit(X, Y[np.random.default_rng(1).permutation(len(Y))])
    assert np.abs(wrong.coef_[0] - TRUTH[1]) > 0.25


@pytest.mark.statistical
def test_ridge_agrees_with_scikit_learn() -> None:
    exact = ExactRidge(alpha=3000).fit(X, Y)
    fit = Ridge(**USUAL | {"epsilon": 30}, alpha=3000).fit(X, Y)
    assert np.abs(fit.coef_ - exact.coef_).max() < 0.1
    assert np.abs(TRUTH[1] - exact.coef_[0]) > 0.3  # So a fit without the penalty would not pass.


@pytest.mark.statistical
def test_intervals_cover_and_those_of_the_exact_fit_would_not() -> None:
    """Of 144 intervals that cover by 93 %, fewer than 75 % do with probability 1e-10; of those by 45 %, more do so."""
    generator, size = np.random.default_rng(3), 4000
    covered, narrow = [], []
    for _ in range(36):
        rows, targets = sample(generator, size)
        fit = LinearRegression(**USUAL | {"epsilon": "0.4"}).fit(rows, targets)
        low, high = fit.intervals_(0.95).T
        if not np.isfinite(low).all():
            continue
        covered.append((low <= TRUTH) & (high >= TRUTH))
        # The wrong neighbour: as wide as sampling alone asks for.
        narrow.append(np.abs((low + high) / 2 - TRUTH) <= 1.96 / math.sqrt(size))
    assert len(covered) >= 18
    assert np.mean(covered) >= 0.75
    assert np.mean(narrow) < 0.75


@pytest.mark.soak
@pytest.mark.statistical
@pytest.mark.parametrize(
    ("estimator", "size", "epsilon"),
    [(LinearRegression, 1000, 3), (LinearRegression, 5000, 1), (RobustRegressor, 5000, 1)],
)
def test_each_interval_covers_in_two_thousand_simulations(estimator: Any, size: int, epsilon: int) -> None:
    generator = np.random.default_rng((11, size))
    covered = []
    for _ in range(2000):
        rows, targets = sample(generator, size)
        fit = estimator(**USUAL | {"epsilon": epsilon}, public_rows=size).fit(rows, targets)
        if fit._intervals(Fraction(95, 100)) is not None:
            low, high = fit.intervals_(0.95).T
            covered.append((low <= TRUTH) & (high >= TRUTH))
    assert len(covered) > 1500
    assert np.mean(covered, axis=0).min() >= 0.93 - 3.0902 * math.sqrt(0.93 * 0.07 / len(covered))


def test_intervals_that_were_paid_for_are_always_given() -> None:
    """Where noise hides everything they are unbounded: whatever the truth is, it is inside."""
    for method in ("refined", "robust", "noisy_statistics"):
        fit = LinearRegression(**USUAL | {"epsilon": "0.01"}, method=method).fit(X[:100], Y[:100])
        assert fit.intervals_().tolist() == [[-math.inf, math.inf]] * len(TRUTH)
        assert "Intervals are unbounded: " in str(fit.summary())
    few = LinearRegression(**USUAL, public_rows=300)
    for seed in range(20):  # Some of these were refused.
        low, high = few.fit(*sample(np.random.default_rng(seed), 300)).intervals_().T
        assert (low < high).all()


def test_a_descent_that_has_not_arrived_tells_no_interval() -> None:
    """So few steps are not enough for columns that fill a fifth of their bounds: an interval would be false."""
    estimator = RobustRegressor(**USUAL | {"epsilon": 30}, method="gradient_descent", public_rows=4000)
    fit = estimator.set_params(iterations=10).fit(X, Y)
    assert abs(fit.coef_[0] - TRUTH[1]) > 0.3
    assert np.isinf(fit.intervals_()).all()


def test_a_declined_fit_predicts_a_public_constant() -> None:
    fit = LinearRegression(**USUAL, method="tukey").fit(X[:50], Y[:50])
    assert fit.declined_
    assert set(fit.predict(X[:5])) == {0.0}
    assert "declined" in str(fit.summary())
    with pytest.raises(Refused):
        fit.intervals_()


# At ε = 1 the slope of the scores is lost in noise once in 25 fits; at 50 it is never.
SURE = USUAL | {"epsilon": 50}


@pytest.mark.parametrize(
    ("estimator", "line"),
    [
        (
            LinearRegression(**SURE, method="refined"),
            "for the line of the source.*least squares of all rows is another",
        ),
        (LinearRegression(**SURE, method="robust"), "for the robust line of.*least squares of all rows is another"),
        (RobustRegressor(**SURE), "for the robust line of.*least squares of all rows is another"),
        (LinearRegression(**SURE, method="noisy_statistics"), "for the least-squares line of.*covers.$"),
    ],
)
def test_a_summary_says_of_which_line_its_intervals_are(estimator: Any, line: str) -> None:
    """On a curve with a long tail, lines that shorten the tail are others than that of least squares."""
    assert re.search(line, estimator.fit(X, Y).summary().covers)


@pytest.mark.statistical
def test_a_curved_tail_is_covered_by_noisy_statistics_and_not_by_robust() -> None:
    """The known limit: an exact line of least squares, which intervals of the Huber line lie far from."""
    generator = np.random.default_rng(3)
    tail = np.minimum(generator.lognormal(size=(20000, 1)), 20)
    target = 3 / (1 + tail[:, 0]) + generator.normal(size=20000) / 10
    truth = np.polyfit(tail[:, 0], target, 1)[0]
    known = {"epsilon": 10, "delta": 1e-6, "bounds": (0, 20), "target_bounds": (-1, 4), "public_rows": 20000}
    for method, covers in (("noisy_statistics", True), ("robust", False)):
        low, high = LinearRegression(**known, method=method).fit(tail, target).intervals_(0.999999999)[1]
        assert (low <= truth <= high) == covers


def test_a_summary_names_columns_and_says_what_is_covered() -> None:
    # At ε = 1 the slope of the scores is lost in noise once in 25 fits; at 50 it is never.
    fit = LinearRegression(**USUAL | {"epsilon": 50}).fit(pd.DataFrame(X, columns=["age", "<b>", "height"]), Y)
    text = str(fit.summary())
    lines = text.splitlines()
    assert lines[0] == "LinearRegression (refined): ε = 50, δ = 1e-6 (add-remove neighbours)"
    assert lines[1].split("  ")[-1].strip() == "95 % interval"
    assert [line.split()[0] for line in lines[2:6]] == ["intercept", "age", "<b>", "height"]
    assert "sampling and noise together" in lines[-2]
    assert lines[-1].startswith("Protected are the rows as they were handed in")
    assert "<b>" not in fit.summary()._repr_html_()
    assert "90 % interval" in str(fit.summary(0.9))
    inner, outer = fit.intervals_(0.5), fit.intervals_(0.99)
    assert (outer[:, 0] < inner[:, 0]).all()
    assert (outer[:, 1] > inner[:, 1]).all()


def test_predictions_stay_within_the_bounds_of_the_target_and_features_within_theirs() -> None:
    fit = LinearRegression(**USUAL).fit(X, Y)
    far = np.full((1, 3), 1e9)
    assert fit.predict(far) == fit.predict(np.full((1, 3), 5.0))
    narrow = LinearRegression(**USUAL | {"target_bounds": (-1, 1)}).fit(X, Y)
    assert np.abs(narrow.predict(X)).max() <= 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"method": "best"},
        {"inference": "no"},
        {"delta": None},
        {"delta": 0},
        {"epsilon": -1},
        {"target_bounds": (1, 0)},
        {"public_rows": 10**7, "delta": "1e-6"},
    ],
)
def test_wrong_parameters_are_refused_before_anything_is_paid(wrong: dict[str, Any]) -> None:
    purse = Purse()
    with pytest.raises(InvalidParameter):
        LinearRegression(**USUAL | wrong, session=purse).fit(X, Y)
    assert not purse.charges


def test_a_target_without_bounds_is_refused_with_ways_out() -> None:
    with pytest.raises(Refused, match="way out"):
        Ridge(**USUAL | {"target_bounds": None}).fit(X, Y)
    with pytest.raises(InvalidParameter, match="public_rows"):
        RobustRegressor(**USUAL, method="gradient_descent").fit(X, Y)


def test_with_a_session_odd_values_are_no_errors_and_change_nothing_else() -> None:
    odd = np.array(X[:200], dtype=object)
    odd[0, 0], odd[1, 1], odd[2, 2] = None, "text", float("nan")
    target = [None, "x", *Y[2:200].tolist()]
    for estimator in ALL[:1] + ALL[5:7]:
        fit = type(estimator)(**USUAL, session=Purse()).fit(odd, target)
        assert np.isfinite(fit.coef_).all()


@pytest.mark.parametrize("estimator", ALL, ids=lambda one: f"{type(one).__name__}-{getattr(one, 'method', '')}")
def test_no_rows_one_row_and_equal_rows_are_no_errors_with_a_session(estimator: Any) -> None:
    for rows in (X[:0], X[:1], np.zeros((30, 3)), np.full((30, 3), np.inf)):
        fit = clone(estimator).set_params(session=Purse()).fit(rows, np.zeros(len(rows)))
        assert np.isfinite(fit.predict(X[:2])).all()


def test_a_pipeline_takes_the_bounds_of_its_scaler_and_both_pay_the_same_session() -> None:
    purse = Purse()
    scaler = StandardScaler(epsilon="0.5", delta="1e-7", bounds=(-100, 100), session=purse)
    line = LinearRegression(epsilon="0.5", delta="1e-7", target_bounds=(-10, 10), session=purse)
    pipeline = make_pipeline(scaler, line).fit(X, Y)
    assert len(purse.charges) == 2
    assert pipeline.predict(X[:3]).shape == (3,)


def test_a_budget_that_does_not_suffice_stops_the_fit() -> None:
    table = pd.DataFrame({"x": [1.0]})
    budget = dp.Budget(epsilon=1, delta=1e-5)
    with dp.Session(table, unit="row", budget=budget, ledger="memory", dataset="t", principal="ana") as session:
        LinearRegression(**USUAL | {"epsilon": "0.4"}, session=session).fit(X[:100], Y[:100])
        with pytest.raises(dp.BudgetExceeded):
            LinearRegression(**USUAL | {"epsilon": 5}, session=session).fit(X[:100], Y[:100])
