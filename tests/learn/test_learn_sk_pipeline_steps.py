"""What stands before a private estimator is private too, or makes each row from that row alone."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sk_purse import Purse
from sklearn import decomposition
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor, make_column_selector, make_column_transformer
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
)
from sklearn.experimental import enable_iterative_imputer  # noqa: F401 - it makes the next line possible
from sklearn.feature_selection import SelectKBest
from sklearn.impute import IterativeImputer, SimpleImputer
from sklearn.linear_model import LinearRegression as PlainLine
from sklearn.linear_model import LogisticRegression as PlainLogistic
from sklearn.linear_model import RANSACRegressor
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    scale,
)
from sklearn.preprocessing import StandardScaler as PlainScaler
from sklearn.semi_supervised import SelfTrainingClassifier

import discreet as dp
from discreet.errors import Refused
from discreet.learn.sklearn import GaussianNB, LinearRegression, PrivateSearch, RowFunction, StandardScaler

ROWS = 400
rng = np.random.default_rng(5)
X = rng.uniform(0, 1, (ROWS, 2))
Y = (X[:, 0] > 0.5).astype(int)
WORDS = pd.DataFrame({"colour": ["red", "blue"] * (ROWS // 2), "size": X[:, 0]})
COLOURS = [["blue", "red"]]


def bayes(session: Any, bounds: Any = (-3, 3)) -> GaussianNB:
    return GaussianNB(epsilon=1, delta=1e-6, bounds=bounds, classes=[0, 1], session=session)


def line() -> LinearRegression:
    return LinearRegression(epsilon=1, delta=1e-6, bounds=(0, 1), target_bounds=(0, 1))


def union(*steps: Any, **more: Any) -> FeatureUnion:
    return FeatureUnion([(str(place), step) for place, step in enumerate(steps)], **more)


def columns(*parts: Any, **more: Any) -> ColumnTransformer:
    return ColumnTransformer([(str(place), *part) for place, part in enumerate(parts)], **more)


class Own(PlainScaler):
    """A scaler of somebody else, which says that it needs no fit."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags


class OwnPipeline(Pipeline):
    """A pipeline of another library, whose methods live in a module of its own."""

    def fit(self, X: Any, y: Any = None, **params: Any) -> Any:
        rows = X
        for _, step in self.steps[:-1]:
            rows = step.fit_transform(rows, y)
        self.steps[-1][1].fit(rows, y)
        return self


def _rare() -> Any:
    """An encoder that merges categories by how often they occur."""
    encoder = OneHotEncoder(categories=[[0, 1]] * 2, min_frequency=3, handle_unknown="ignore", sparse_output=False)
    return make_pipeline(FunctionTransformer(np.rint), encoder)


LEARNING = [
    lambda end: make_pipeline(PlainScaler(), end),
    lambda end: make_pipeline(decomposition.PCA(1), end),
    lambda end: make_pipeline(SelectKBest(k=1), end),
    lambda end: make_pipeline(SimpleImputer(), end),
    lambda end: make_pipeline(SimpleImputer(strategy="constant", fill_value=0), end),  # Drops columns without values.
    lambda end: make_pipeline(KBinsDiscretizer(3, encode="ordinal"), end),
    lambda end: make_pipeline(OrdinalEncoder(), end),
    lambda end: make_pipeline(OneHotEncoder(sparse_output=False), end),
    lambda end: make_pipeline(_rare(), end),
    lambda end: make_pipeline(FunctionTransformer(scale), end),
    lambda end: make_pipeline(FunctionTransformer(lambda rows: rows), end),
    lambda end: make_pipeline(FunctionTransformer(np.sqrt, kw_args={"where": True}), end),
    lambda end: make_pipeline(Own(), end),
    lambda end: make_pipeline(make_pipeline(PlainScaler()), end),
    lambda end: make_pipeline(make_pipeline(Normalizer(), PlainScaler()), "passthrough", end),
    lambda end: make_pipeline(columns((PlainScaler(), [0, 1])), end),
    lambda end: make_pipeline(columns((Normalizer(), [0]), remainder=PlainScaler()), end),
    lambda end: make_pipeline(columns(("passthrough", lambda rows: [int(np.argmax(rows.var(axis=0)))])), end),
    lambda end: make_pipeline(union(Normalizer(), PlainScaler()), end),
    lambda end: make_pipeline(PlainScaler(), union(StandardScaler(epsilon=1, delta=1e-6, bounds=(0, 1))), Normalizer()),
    lambda end: OwnPipeline([("scale", PlainScaler()), ("end", end)]),
    lambda end: make_pipeline(PlainScaler(), Pipeline([("inner", end)])),
    lambda end: make_pipeline(FunctionTransformer(np.frompyfunc(float, 1, 1)), end),
]


class Wrapped(BaseEstimator):
    """A model of somebody else, with a private one inside that no parameter shows."""

    def fit(self, X: Any, y: Any) -> Wrapped:
        bayes(None).fit(X, y)
        return self


class Connected(PlainScaler):
    """A scaler of somebody else, with a session that pays for nothing."""

    session = "https"


HELD = [
    lambda end: GridSearchCV(end, {"var_smoothing": [1e-4, 1]}, cv=2, error_score="raise"),
    lambda end: OneVsRestClassifier(end),
    lambda end: VotingClassifier([("end", end)]),
    lambda end: BaggingClassifier(end, n_estimators=1, bootstrap=False),
    lambda end: make_pipeline(Normalizer(), VotingClassifier([("inner", make_pipeline(end))])),
    lambda _: Wrapped(),
]


@pytest.mark.parametrize("made", HELD)
def test_a_private_estimator_within_another_is_found_behind_a_plain_step(made: Any) -> None:
    """The epsilon that it reports would be false for all rows that the scaler has moved."""
    with pytest.raises(dp.Refused, match="is fitted on the rows, and is not private"):
        make_pipeline(PlainScaler(), made(bayes(None))).fit(X, Y)
    make_pipeline(Normalizer(), made(bayes(None))).fit(X, Y)


@pytest.mark.parametrize("paid", [True, False])
def test_what_somebody_else_calls_a_session_pays_for_nothing(paid: bool) -> None:
    with pytest.raises(dp.Refused, match=r"learns from the rows|fitted on the rows"):
        make_pipeline(Connected(), bayes(Purse() if paid else None)).fit(X, Y)


@pytest.mark.parametrize(
    ("bag", "inner"),
    [
        (BaggingClassifier, bayes(None)),
        # Rows that are drawn are told by weights, where an estimator takes these.
        (
            BaggingRegressor,
            LinearRegression(epsilon=1, delta=1e-6, bounds=(0, 1), target_bounds=(0, 1), weight_bounds=(0, 1)),
        ),
    ],
)
def test_rows_that_are_drawn_several_times_are_refused(bag: Any, inner: Any) -> None:
    with pytest.raises(dp.Refused, match="several times"):
        bag(inner, n_estimators=1).fit(X, Y)
    bag(inner, n_estimators=1, bootstrap=False).fit(X, Y)


def test_rows_that_boosting_draws_several_times_are_refused() -> None:
    with pytest.raises(dp.Refused, match="several times"):
        AdaBoostRegressor(line(), n_estimators=1).fit(X, X[:, 0])


@pytest.mark.parametrize("kind", [dp.learn.sklearn.LogisticRegression, dp.learn.sklearn.BoostedTreesClassifier])
def test_weights_that_boosting_makes_of_all_rows_are_refused(kind: Any) -> None:
    """A weight is private to its row. Those of AdaBoost add up to one: a row more makes all others lighter."""
    inner = kind(epsilon=1, delta=1e-6, bounds=(0, 1), classes=[0, 1], weight_bounds=(0, 1))
    with pytest.raises(dp.Refused, match="weighs each row"):
        AdaBoostClassifier(inner, n_estimators=1).fit(X, Y)
    inner.fit(X, Y, np.full(ROWS, 0.5))


def test_rows_that_others_fill_in_or_choose_are_refused() -> None:
    """RANSAC keeps the rows within a spread that all of them tell; an imputer begins with the means of columns."""
    with pytest.raises(dp.Refused, match="fitted on the rows"):
        RANSACRegressor(line(), min_samples=50).fit(X, X[:, 0])
    with pytest.raises(dp.Refused, match="fitted on the rows"):
        IterativeImputer(line()).fit(np.where(X < 0.1, np.nan, X))


def test_rows_that_are_taken_before_others_are_refused() -> None:
    """The ten that are surest are ten of all rows; whether a row is sure enough, it tells alone."""
    some = np.where(np.arange(ROWS) < 200, Y, -1)
    with pytest.raises(dp.Refused, match="fitted on the rows"):
        SelfTrainingClassifier(bayes(None), criterion="k_best", max_iter=1).fit(X, some)
    SelfTrainingClassifier(bayes(None), criterion="threshold", max_iter=1).fit(X, some)


@pytest.mark.parametrize("made", LEARNING)
@pytest.mark.parametrize("paid", [True, False])
def test_a_plain_step_that_learns_from_rows_is_refused_before_any_charge(made: Any, paid: bool) -> None:
    purse = Purse() if paid else None
    with pytest.raises(dp.Refused, match=r"learns from the rows|fitted on the rows"):
        made(bayes(purse)).fit(X, Y)
    assert purse is None or not purse.charges


@pytest.mark.parametrize(
    "made",
    [
        lambda end: TransformedTargetRegressor(end, transformer=PlainScaler()),
        lambda end: StackingRegressor([("plain", PlainLine())], final_estimator=end),
    ],
)
def test_targets_and_predictions_of_plain_models_are_refused_without_a_session_too(made: Any) -> None:
    with pytest.raises(dp.Refused, match="fitted on the rows"):
        made(line()).fit(X, X[:, 0])


def test_classes_that_plain_models_predict_are_refused_without_a_session_too() -> None:
    with pytest.raises(dp.Refused, match="fitted on the rows"):
        StackingClassifier([("plain", PlainLogistic())], final_estimator=bayes(None)).fit(X, Y)


def test_model_selection_around_such_a_pipeline_fails() -> None:
    steps = make_pipeline(PlainScaler(), bayes(None))
    with pytest.raises(ValueError, match="is fitted on the rows, and is not private"):
        GridSearchCV(steps, {"gaussiannb__var_smoothing": [1e-4, 1]}, cv=2).fit(X, Y)
    with pytest.raises(dp.Refused):
        PrivateSearch(steps, {"gaussiannb__var_smoothing": [1e-4, 1]}, epsilon=1, delta=1e-6).fit(X, Y)


ROW_BY_ROW = [
    lambda: Normalizer(),
    lambda: Binarizer(threshold=0.5),
    lambda: PolynomialFeatures(2),
    lambda: FunctionTransformer(),
    lambda: FunctionTransformer(np.sqrt),
    lambda: SimpleImputer(strategy="constant", fill_value=0, keep_empty_features=True),
    lambda: OrdinalEncoder(categories=[[0, 1]] * 2, handle_unknown="use_encoded_value", unknown_value=-1),
    lambda: OneHotEncoder(categories=[[0, 1]] * 2, handle_unknown="ignore", sparse_output=False),
    lambda: RowFunction(lambda rows: np.log1p(rows)),
    lambda: columns((Normalizer(), [0]), remainder="passthrough"),
    lambda: columns(("passthrough", make_column_selector(pattern="a")), remainder="passthrough"),
    lambda: union(Normalizer(), make_pipeline(Binarizer(), Normalizer())),
    lambda: "passthrough",
]


@pytest.mark.parametrize("made", ROW_BY_ROW)
@pytest.mark.parametrize("paid", [True, False])
def test_steps_that_make_each_row_from_that_row_alone_may_stand_before(made: Any, paid: bool) -> None:
    purse = Purse() if paid else None
    table = pd.DataFrame(X, columns=["a", "b"])
    make_pipeline(made(), bayes(purse)).fit(table, Y)
    assert purse is None or len(purse.charges) == 1


@pytest.mark.parametrize("paid", [True, False])
def test_declared_categories_beside_a_private_scaler_are_accepted(paid: bool) -> None:
    purse = Purse() if paid else None
    before = make_column_transformer(
        (OneHotEncoder(categories=COLOURS, handle_unknown="ignore", sparse_output=False), ["colour"]),
        (StandardScaler(epsilon=1, delta=1e-6, bounds=(0, 1), session=purse), ["size"]),
    )
    make_pipeline(before, bayes(purse)).fit(WORDS, Y)
    assert purse is None or len(purse.charges) == 2


def test_with_a_session_an_encoder_must_not_fail_on_a_value() -> None:
    purse = Purse()
    encoder = OneHotEncoder(categories=[[0, 1]] * 2, sparse_output=False)  # An unknown value is an error.
    with pytest.raises(dp.Refused):
        make_pipeline(encoder, bayes(purse)).fit(X.round(), Y)
    assert not purse.charges
    make_pipeline(encoder, bayes(None)).fit(X.round(), Y)  # Nobody is charged, and errors are scikit-learn's.


@pytest.mark.parametrize("kind", [{"dtype_include": "number"}, {"dtype_exclude": "object"}])
def test_with_a_session_columns_are_not_picked_by_kinds_that_pandas_finds_in_values(kind: dict[str, str]) -> None:
    """One word among numbers makes another kind of a whole column, and which columns there are would show it."""
    purse, table = Purse(), pd.DataFrame(X, columns=["a", "b"])
    before = columns((Normalizer(), make_column_selector(**kind)))
    with pytest.raises(dp.Refused, match="learns from the rows"):
        make_pipeline(before, bayes(purse)).fit(table, Y)
    assert not purse.charges
    make_pipeline(before, bayes(None)).fit(table, Y)


def test_a_plain_model_may_follow_a_private_step_that_nobody_pays_for() -> None:
    """The reported epsilon is that of the scaler, and holds for it; the model behind promises nothing."""
    scaler = StandardScaler(epsilon=1, delta=1e-6, bounds=(0, 1))
    make_pipeline(scaler, PlainLogistic()).fit(X, Y)


class TestRowFunctions:
    """A function is declared to be of one row, and tried."""

    @pytest.mark.parametrize(
        "func",
        [
            scale,
            lambda rows: rows - rows.mean(axis=0),
            lambda rows: rows / np.abs(rows).max(),
            lambda rows: np.argsort(np.argsort(rows, axis=0), axis=0),
            lambda rows: rows[np.argsort(rows[:, 0])],
            lambda rows: rows[:-1] if len(rows) > 1 else rows,
            lambda rows: rows[rows[:, 0] > 0],
            lambda rows: np.cumsum(rows, axis=0),
            lambda rows: np.where(rows > np.median(rows, axis=0), 1, 0),
            lambda rows: rows + len(rows),
            lambda rows: rows + np.arange(len(rows))[:, None],
            lambda rows: rows.ravel(),
            lambda rows: np.roll(rows, 1, axis=0),
            lambda rows: np.where(np.isnan(rows), np.nanmean(rows, axis=0), rows),
            lambda rows: SimpleImputer(strategy="median").fit_transform(rows),
            lambda rows: pd.DataFrame(rows).ffill().to_numpy(),
            lambda rows: np.nan_to_num(rows, posinf=rows[np.isfinite(rows)].max(initial=0)),
            lambda rows: np.column_stack([rows, pd.DataFrame(rows).duplicated()]),
        ],
    )
    def test_functions_in_which_rows_meet_are_refused_before_any_charge(self, func: Any) -> None:
        purse = Purse()
        with pytest.raises(dp.Refused, match="that row alone"):
            make_pipeline(RowFunction(func), bayes(purse)).fit(X, Y)
        assert not purse.charges

    @pytest.mark.parametrize(
        "func",
        [
            np.log1p,
            np.nan_to_num,
            lambda rows: rows[:, :1] * rows[:, 1:],
            lambda rows: np.column_stack([rows, rows.sum(axis=1)]),
        ],
    )
    def test_functions_of_single_rows_are_applied(self, func: Any) -> None:
        found = RowFunction(func).fit(X).transform(X)
        assert np.array_equal(found, func(X))

    @pytest.mark.parametrize("error", [ValueError, KeyError, ZeroDivisionError, RuntimeError, AssertionError])
    def test_a_row_on_which_it_fails_is_missing_and_the_others_stay(self, error: type[Exception]) -> None:
        def picky(rows: Any) -> Any:
            if (rows == 0.25).any():
                raise error("a value of a person")
            return rows

        table = X.copy()
        table[7] = 0.25
        found = RowFunction(picky).fit(X).transform(table)
        assert np.isnan(found[7]).all()
        assert np.array_equal(np.delete(found, 7, axis=0), np.delete(table, 7, axis=0))

    @pytest.mark.parametrize("func", [lambda rows: rows[:, ::-1], lambda rows: rows + rows.sum(axis=1)[:, None]])
    def test_names_of_columns_that_were_moved_or_mixed_are_not_kept(self, func: Any) -> None:
        """Bounds by name would clamp one column to those of another."""
        steps = make_pipeline(RowFunction(func), bayes(None, {"a": (0, 1), "b": (0, 9)})).set_output(transform="pandas")
        with pytest.raises(dp.Refused, match="bounds does not fit the columns"):
            steps.fit(pd.DataFrame(X, columns=["a", "b"]), Y)

    def test_names_are_kept_where_each_column_is_made_from_its_own(self) -> None:
        table = pd.DataFrame(X, columns=["a", "b"])
        assert RowFunction(np.log1p).fit(table).get_feature_names_out().tolist() == ["a", "b"]
        wide = RowFunction(lambda rows: np.column_stack([rows, rows[:, 0]])).fit(table)
        assert wide.get_feature_names_out().tolist() == ["row0", "row1", "row2"]


def test_a_worker_that_hides_the_pipeline_is_refused_with_a_session() -> None:
    from joblib import parallel_backend

    purse = Purse()
    both = union(StandardScaler(epsilon=1, delta=1e-6, bounds=(0, 1), session=purse), PlainScaler(), n_jobs=2)
    with parallel_backend("threading", n_jobs=2), pytest.raises(dp.Refused):
        both.fit(X, Y)
    assert not purse.charges


@pytest.mark.parametrize(
    ("step", "told"),
    [
        (OneHotEncoder(sparse_output=False), "(OneHotEncoder: say categories=[[…], …])"),
        (SimpleImputer(strategy="constant", fill_value=1), "(SimpleImputer: say keep_empty_features=True)"),
        (SimpleImputer(), '(SimpleImputer: say strategy="constant", fill_value=…, keep_empty_features=True)'),
        (PlainScaler(), "(StandardScaler of scikit-learn: use that of discreet.learn.sklearn)"),
        (FunctionTransformer(lambda rows: rows), "(FunctionTransformer: say RowFunction(func)"),
    ],
)
def test_a_refusal_names_the_step_and_what_it_lacks(step: Any, told: str) -> None:
    line = LinearRegression(epsilon=1, delta=1e-6, bounds=(0, 1), target_bounds=(0, 1))
    for inner in (step, make_column_transformer((step, [0, 1]))):
        with pytest.raises(Refused, match=re.escape(told)):
            make_pipeline(inner, line).fit(np.ones((4, 2)), np.ones(4))


def test_with_a_session_a_refusal_names_what_an_encoder_or_one_of_ours_lacks() -> None:
    line = LinearRegression(epsilon=1, delta=1e-6, bounds=(0, 1), target_bounds=(0, 1), session=Purse())
    coder = OneHotEncoder(categories=[[0, 1]] * 2, sparse_output=False)
    for step, told in (
        (coder, '(OneHotEncoder: say handle_unknown="ignore")'),
        (StandardScaler(epsilon=1, delta=1e-6, bounds=(0, 1)), "(StandardScaler: say session=…)"),
    ):
        with pytest.raises(Refused, match=re.escape(told)):
            make_pipeline(step, line).fit(np.ones((4, 2)), np.ones(4))


def test_bounds_that_a_column_transformer_loses_are_asked_for_with_a_pair_that_does() -> None:
    scaler = make_column_transformer((StandardScaler(epsilon=1, delta=1e-6, bounds=(0, 1)), [0, 1]))
    line = LinearRegression(epsilon=1, delta=1e-6, target_bounds=(0, 1))
    with pytest.raises(Refused, match=r"within a ColumnTransformer.*they are lost"):
        make_pipeline(scaler, line).fit(np.ones((40, 2)), np.ones(40))
    assert make_pipeline(scaler, line.set_params(bounds=(-4, 4))).fit(np.ones((40, 2)), np.ones(40))[
        -1
    ].coef_.shape == (2,)


def test_a_gap_without_a_session_names_the_imputer_that_is_taken() -> None:
    line = LinearRegression(epsilon=1, delta=1e-6, bounds=(0, 1), target_bounds=(0, 1))
    with pytest.raises(ValueError, match=r'NaN.*Imputer\(bounds=….*SimpleImputer with strategy="constant"'):
        line.fit(np.array([[np.nan], [1.0]]), np.ones(2))
