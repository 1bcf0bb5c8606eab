"""What private estimators share: refusals, charges before reading, sessions that survive copies, declared classes."""

from __future__ import annotations

import copy
import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from learn.sk_purse import Purse
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.utils.validation import validate_data

import discreet as dp
from discreet.errors import InvalidParameter, Refused
from discreet.learn.sklearn.base import PrivatePredictor
from discreet.learn.sklearn.bounds import BoundedArray, declared_bounds, read_bounds
from discreet.learn.sklearn.naive_bayes import GaussianNB
from discreet.learn.sklearn.validation import class_codes, read_classes
from discreet.privacy import PureDP, Relation


class Unread:
    """A table of known shape of which every value is a secret until it is paid for."""

    shape = (3, 2)

    def __len__(self) -> int:
        return 3

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("read before it was paid for")

    def __getitem__(self, _: Any) -> Any:
        raise AssertionError("read before it was paid for")


class Constant(PrivatePredictor, RegressorMixin, BaseEstimator):
    """An estimator that reads everything and learns nothing."""

    def __init__(self, *, epsilon, delta=None, bounds=None, relation="add-remove", public_rows=None, session=None):
        self.epsilon, self.delta, self.bounds = epsilon, delta, bounds
        self.relation, self.public_rows, self.session = relation, public_rows, session

    def fit(self, X: Any, y: Any) -> Constant:
        table = self._table(X, y, y_numeric=True)
        self._paid(PureDP(self._epsilon()))
        self.frame_, self.steps_ = table.frame, table.steps()
        table.target()
        return self

    def predict(self, X: Any) -> Any:
        return self._seen(X).sum(axis=1) * 0


X, Y = np.array([[0.0, 10.0], [5.0, 20.0], [50.0, -7.0]]), np.array([1.0, 2.0, 3.0])


def test_nothing_is_read_before_it_is_paid_for() -> None:
    with pytest.raises(AssertionError, match="read before"):
        Constant(epsilon=1, bounds=(0, 10), session=Purse()).fit(Unread(), Y)
    with pytest.raises(dp.BudgetExceeded):
        Constant(epsilon=1, bounds=(0, 10), session=Purse(is_empty=True)).fit(Unread(), Y)


def test_what_was_spent_is_told_and_charged() -> None:
    purse = Purse()
    fit = Constant(epsilon="0.1", bounds=(0, 10), session=purse).fit(X, Y)
    assert purse.charges == [(PureDP("0.1"), Relation.ADD_REMOVE, "fit of Constant")]
    assert fit.privacy_spent_.event == PureDP("0.1")
    assert fit.privacy_spent_.epsilon == pytest.approx(0.1)
    assert str(fit.privacy_spent_) == "ε = 0.1 (add-remove neighbours)"


def test_values_are_clamped_and_moved_to_the_frame() -> None:
    fit = Constant(epsilon=1, bounds=[(0, 10), (10, 20)]).fit(X, Y)
    half = 1 << 20
    assert fit.steps_.tolist() == [[-half, -half], [0, half], [half, -half]]
    assert fit.frame_.scaled(X).tolist() == [[-1, -1], [0, 1], [1, -1]]


def test_with_a_session_no_value_is_an_error_and_without_one_it_is_as_in_scikit_learn() -> None:
    bad = X.copy()
    bad[0, 0], bad[1, 1] = np.nan, np.inf
    fit = Constant(epsilon=1, bounds=(0, 20), session=Purse()).fit(bad, np.array(["a", None, 3.0], dtype=object))
    assert fit.steps_[0, 0] == 0  # The middle.
    assert fit.steps_[1, 1] == 1 << 20
    with pytest.raises(ValueError, match="NaN"):
        Constant(epsilon=1, bounds=(0, 20)).fit(bad, Y)


def test_a_text_is_an_error_without_a_session_that_does_not_show_it() -> None:
    texts = np.array([[1.0, "Mallory"], [2.0, 3.0]], dtype=object)
    for table, target in ((texts, Y[:2]), (pd.DataFrame(texts), Y[:2])):
        with pytest.raises(ValueError, match="needs numbers") as caught:
            Constant(epsilon=1, bounds=(0, 20)).fit(table, target)
        assert "Mallory" not in str(caught.value)
        assert caught.value.__suppress_context__
    trees = dp.learn.sklearn.BoostedTreesRegressor(
        epsilon=1, delta=1e-6, bounds=(0, 20), target_bounds=(0, 9), weight_bounds=(0, 1)
    )
    calls = [
        lambda: trees.fit(X, Y, ["Mallory"] * 3),
        lambda: Constant(epsilon=1, bounds=(0, 20)).fit(X, Y).predict(texts),
    ]
    calls.append(
        lambda: (
            dp.learn.sklearn.PoissonRegressor(epsilon=1, delta=1e-6, bounds=(0, 20), target_bounds=(0, 9))
            .fit(X, Y)
            .predict(texts)
        )
    )
    for call in calls:
        with pytest.raises(ValueError, match="needs numbers"):
            call()


def test_complex_numbers_and_targets_to_score_are_not_shown_either() -> None:
    """Without a session: scikit-learn shows the whole table where a number is complex, and labels of another kind."""
    known: dict[str, Any] = {"epsilon": 1, "delta": 1e-6, "bounds": (0, 20)}
    line = dp.learn.sklearn.LinearRegression(**known, target_bounds=(0, 9)).fit(X, Y)
    counts = dp.learn.sklearn.PoissonRegressor(**known, target_bounds=(0, 9)).fit(X, Y)
    classes = dp.learn.sklearn.LogisticRegression(**known, classes=[0, 1]).fit(X, np.array([0, 1, 0]))
    strange, names = X.astype(complex) + 0.8128j, np.array(["Mallory", 1.0, 2.0], dtype=object)
    calls: list[Any] = [
        lambda: line.fit(strange, Y),
        lambda: line.fit(X, strange[:, 0]),
        lambda: line.predict(strange),
        lambda: line.score(X, names),
        lambda: line.score(X, Y, names),
        lambda: counts.score(X, names),
        lambda: classes.score(X, np.array(["Mallory"] * 3)),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=r"needs (real )?numbers|of one kind") as caught:
            call()
        assert "Mallory" not in str(caught.value)
        assert "8128" not in str(caught.value)
        assert caught.value.__suppress_context__


def test_no_rows_at_all_are_no_error_with_a_session() -> None:
    fit = Constant(epsilon=1, bounds=(0, 20), session=Purse()).fit(np.empty((0, 2)), np.empty(0))
    assert fit.steps_.shape == (0, 2)


def test_columns_of_pandas_keep_their_names_and_odd_cells_are_missing() -> None:
    table = pd.DataFrame({"age": [1.0, None, 3.0], "city": ["x", "7", None]})
    fit = Constant(epsilon=1, bounds=(0, 14), session=Purse()).fit(table, Y)
    assert fit.feature_names_in_.tolist() == ["age", "city"]
    assert fit.steps_[:, 1].tolist() == [0, 0, 0]
    with pytest.raises(ValueError, match="feature names"):
        fit.predict(table.rename(columns={"age": "old"})[["old", "city"]].assign(city=0.0).fillna(0))


@pytest.mark.parametrize("shape", [(3,), (3, 0), (3, 2, 1)])
def test_shapes_are_public_and_wrong_ones_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(InvalidParameter):
        Constant(epsilon=1, bounds=(0, 1), session=Purse()).fit(np.zeros(shape), Y)
    with pytest.raises(InvalidParameter, match="one value for each row"):
        Constant(epsilon=1, bounds=(0, 1), session=Purse()).fit(X, Y[:2])


def test_a_target_of_no_known_kind_is_refused_before_it_is_paid_for() -> None:
    purse = Purse()
    with pytest.raises(InvalidParameter, match="a column must be"):
        Constant(epsilon=1, bounds=(0, 1), session=purse).fit(X, {0: 1, 1: 2, 2: 3})
    assert not purse.charges


def test_missing_bounds_name_three_ways_out() -> None:
    with pytest.raises(Refused) as caught:
        Constant(epsilon=1).fit(X, Y)
    assert all(way in str(caught.value) for way in ("publicly known", "StandardScaler", "private_bounds"))


@pytest.mark.parametrize("bounds", ["ab", (1, 0), (0,), [(0, 1)], [(0, 1), (0, 1), (0, 1)], (0, float("inf")), 3, []])
def test_bounds_that_are_none_are_refused(bounds: Any) -> None:
    with pytest.raises(InvalidParameter):
        Constant(epsilon=1, bounds=bounds).fit(X, Y)


def test_bounds_may_be_an_array_or_pairs_or_one_pair() -> None:
    one = read_bounds((0, 1), 2)
    assert one == read_bounds([(0, 1), (0, 1)], 2) == read_bounds(np.array([[0, 1], [0, 1]]), 2)
    assert one == read_bounds(None, 2, brought=(0.0, 1.0))


@pytest.mark.parametrize(
    "wrong", [{"epsilon": 0}, {"epsilon": None}, {"epsilon": float("nan")}, {"relation": "both"}, {"public_rows": 0}]
)
def test_wrong_numbers_are_refused_at_fit_and_not_before(wrong: dict[str, Any]) -> None:
    estimator = Constant(epsilon=1, bounds=(0, 1)).set_params(**wrong)
    with pytest.raises(InvalidParameter):
        estimator.fit(X, Y)


def test_a_clone_and_a_deep_copy_pay_from_the_same_session_and_a_pickle_is_refused() -> None:
    purse = Purse()
    estimator = Constant(epsilon=1, bounds=(0, 1), session=purse)
    assert clone(estimator).session is purse
    assert clone(estimator).get_params() == estimator.get_params()
    table = pd.DataFrame({"x": [1.0]})
    with dp.Session(table, unit="row", budget=dp.Budget(1), ledger="memory", dataset="t", principal="ana") as session:
        fitted = Constant(epsilon="0.1", bounds=(0, 60), session=session).fit(X, Y)
        twin = copy.deepcopy(fitted)
        assert twin.session is session
        assert twin.privacy_spent_ == fitted.privacy_spent_
        clone(fitted).fit(X, Y)
        assert len([entry for entry in session.history() if "Constant" in str(entry)]) == 2
        with pytest.raises(Refused, match="sent elsewhere"):
            pickle.dumps(fitted)


def test_scores_of_a_session_are_refused_and_others_are_not() -> None:
    with pytest.raises(Refused, match="PrivateSearch"):
        Constant(epsilon=1, bounds=(0, 60), session=Purse()).fit(X, Y).score(X, Y)
    assert Constant(epsilon=1, bounds=(0, 60)).fit(X, Y).score(X, Y) < 1


def test_classes_are_declared_or_knowingly_found() -> None:
    with pytest.raises(Refused, match="declare them"):
        read_classes(None, Y, has_session=False)
    with pytest.raises(Refused, match="no charge covers"):
        read_classes("found in y", Y, has_session=True)
    assert read_classes("found in y", np.array([2, 1, 2]), has_session=False).tolist() == [1, 2]
    assert read_classes(["b", "a"], None, has_session=True).tolist() == ["a", "b"]


@pytest.mark.parametrize("classes", ["ab", 3, [1, 1], [[1], [2]], [], [object()], ["a", None]])
def test_odd_classes_are_refused(classes: Any) -> None:
    with pytest.raises(InvalidParameter):
        read_classes(classes, None, has_session=True)


def test_a_strange_label_is_no_error() -> None:
    classes = read_classes([0, 1], None, has_session=True)
    labels = [1, 0, 1.0, True, "x", None, [3], float("nan"), 7]
    assert class_codes(labels, classes).tolist() == [1, 0, 1, 1, -1, -1, -1, -1, -1]


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        (np.array(["yes", "no"]), [0, 1]),
        (np.array([True, False]), ["no", "yes"]),
        (pl.Series(["yes", "no"]), [0, 1]),
        (pl.Series(["yes", "no"], dtype=pl.Categorical), [0, 1]),
        (pa.array([0.0, 1.0]), ["no", "yes"]),
    ],
)
def test_classes_of_another_kind_than_the_target_are_refused_before_the_charge(y: Any, classes: Any) -> None:
    purse = Purse()
    model = GaussianNB(epsilon=1, delta=1e-6, bounds=(0, 1), classes=classes, session=purse)
    with pytest.raises(InvalidParameter, match=r"classes are (texts|numbers) and y holds (numbers|texts)"):
        model.fit(np.zeros((2, 1)), y)
    assert not purse.charges


def test_kinds_that_pandas_decided_by_the_rows_are_not_told_with_a_session() -> None:
    for y in (pd.Series(["yes", "no"]), pd.Series([True, False]), np.array(["yes", "no"], dtype=object), ["yes", 3]):
        assert read_classes([7, 8], y, has_session=True).tolist() == [7, 8]
        assert read_classes(["a", "b"], y, has_session=True).tolist() == ["a", "b"]


@pytest.mark.parametrize("classes", [[0, 1], ["No", "Yes"], ["no", "maybe"]])
def test_without_a_session_labels_outside_of_classes_are_an_error(classes: Any) -> None:
    for y in (np.array(["yes", "no"]), pd.Series(["yes", "no"], dtype=object), pd.Series(["yes", "no"])):
        with pytest.raises(InvalidParameter, match="classes") as told:
            GaussianNB(epsilon=1, delta=1e-6, bounds=(0, 1), classes=classes).fit(np.zeros((2, 1)), y)
        assert "yes" not in str(told.value)
    assert read_classes(["no", "yes", "maybe"], y, has_session=False).tolist() == ["maybe", "no", "yes"]
    assert read_classes([0, 1], np.array([True, False]), has_session=False).tolist() == [0, 1]


def test_classes_may_be_any_column_of_labels() -> None:
    for labels in (["b", "a"], [3, 1], [True, False]):
        for given in (pd.Series(labels), pd.Series(labels).unique(), pd.array(labels), pl.Series(labels)):
            assert read_classes(given, None, has_session=True).tolist() == sorted(labels)
    with pytest.raises(InvalidParameter):
        read_classes(np.array([1, "a"], dtype=object), None, has_session=True)


def test_an_array_brings_its_bounds_along_until_it_is_computed_with() -> None:
    table = BoundedArray.clamped(np.array([[-9.0, 0.5], [2.0, 9.0]]), -1, 1)
    assert table.max() == 1
    assert declared_bounds(table[:, :1]) == (-1, 1)
    assert declared_bounds(table * 2) is None
    assert declared_bounds(np.asarray(table)) is None
    fit = Constant(epsilon=1).fit(table, Y[:2])
    assert fit.frame_.bounds == ((Fraction(-1), Fraction(1)),) * 2


def test_validation_of_scikit_learn_can_look_at_shapes_alone() -> None:
    """What reading before paying rests on: with this flag no value is looked at."""
    validate_data(Constant(epsilon=1), Unread(), Unread(), skip_check_array=True)
