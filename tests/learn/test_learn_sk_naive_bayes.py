"""Gaussian naive Bayes: near to the plain one where noise is small, of no opinion where it is not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from learn.sk_purse import Purse, Watched
from sklearn.naive_bayes import GaussianNB as Plain

import discreet as dp
from discreet.errors import InvalidParameter, Refused
from discreet.learn.sklearn.moments import ClassSums, class_laws
from discreet.learn.sklearn.naive_bayes import GaussianNB

MADE = np.random.default_rng(11)
LABELS = MADE.integers(0, 3, size=6000)
ROWS = MADE.normal(size=(6000, 4)) + np.eye(4)[LABELS] * 2
BOUNDS = (-5, 7)


def bayes(**fields: Any) -> GaussianNB:
    return GaussianNB(**({"epsilon": 1, "delta": 1e-6, "bounds": BOUNDS, "classes": [0, 1, 2]} | fields))


def test_agrees_with_scikit_learn_where_noise_is_negligible() -> None:
    ours, plain = bayes(epsilon=10_000, var_smoothing="1e-9").fit(ROWS, LABELS), Plain().fit(ROWS, LABELS)
    assert ours.theta_ == pytest.approx(plain.theta_, abs=1e-3)
    assert ours.var_ == pytest.approx(plain.var_, rel=1e-2)
    assert ours.class_prior_ == pytest.approx(plain.class_prior_, abs=1e-3)
    assert ours.predict_proba(ROWS) == pytest.approx(plain.predict_proba(ROWS), abs=0.02)
    assert np.exp(ours.predict_log_proba(ROWS)).sum(axis=1) == pytest.approx(1)


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_is_nearly_as_right_as_without_noise(relation: str) -> None:
    plain = Plain().fit(ROWS, LABELS).score(ROWS, LABELS)
    fit = bayes(relation=relation).fit(ROWS, LABELS)
    assert fit.score(ROWS, LABELS) > plain - 0.03
    assert 0.99 < fit.privacy_spent_.epsilon <= 1


def test_classes_that_noise_hides_are_hardly_told_apart() -> None:
    """Ten rows each say nothing next to noise of a hundred: the laws are wide and nobody is sure of anything."""
    deep = ClassSums(
        counts=np.array([10.0, 12.0]),
        sums=np.array([[3.0], [-4.0]]),
        squares=np.array([[2.0], [2.0]]),
        count_deviation=100.0,
        sum_deviation=100.0,
        gap_deviation=100.0,
        centre=0.7,
    )
    laws = class_laws(deep, 1e-4)
    assert (laws.variances > 1).all()
    assert abs(laws.means[0] - laws.means[1])[0] < 0.5


def test_differences_that_stand_out_are_kept_and_others_shrink() -> None:
    sums = ClassSums(
        counts=np.array([1000.0, 1000.0]),
        sums=np.array([[300.0, 8.0], [-300.0, -8.0]]),
        squares=np.full((2, 2), 200.0),
        count_deviation=10.0,
        sum_deviation=10.0,
        gap_deviation=10.0,
        centre=0.7,
    )
    means = class_laws(sums, 1e-4).means
    assert means[0, 0] == pytest.approx(0.3, rel=0.01)
    assert 0 < means[0, 1] < 0.9 * 0.008


def test_the_session_pays_once_and_before_anything_is_read() -> None:
    purse = Purse()
    fit = bayes(session=purse).fit(Watched(ROWS[:50], purse), Watched(LABELS[:50], purse))
    assert [event for event, _, _ in purse.charges] == [fit.privacy_spent_.event]
    empty = Purse(is_empty=True)
    with pytest.raises(dp.BudgetExceeded):
        bayes(session=empty).fit(Watched(ROWS[:50], empty), Watched(LABELS[:50], empty))


def test_scores_of_a_sessions_data_are_refused() -> None:
    fit = bayes(session=Purse()).fit(ROWS, LABELS)
    with pytest.raises(Refused, match="PrivateSearch"):
        fit.score(ROWS, LABELS)


def test_strange_labels_belong_to_no_class() -> None:
    labels = LABELS.astype(object)
    labels[:3] = ["x", None, 17]
    fit = bayes(session=Purse()).fit(ROWS, labels)
    assert fit.classes_.tolist() == [0, 1, 2]
    assert fit.class_count_.sum() == pytest.approx(5997, abs=200)


def test_a_class_that_does_not_occur_is_hardly_ever_predicted() -> None:
    fit = bayes(classes=[0, 1, 2, 3]).fit(ROWS, LABELS)
    assert (fit.predict(ROWS) == 3).mean() < 0.01


@pytest.mark.parametrize("wrong", [{"var_smoothing": 0}, {"delta": None}, {"classes": [1]}, {"epsilon": 0}])
def test_nonsense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        bayes(**wrong).fit(ROWS, LABELS)
