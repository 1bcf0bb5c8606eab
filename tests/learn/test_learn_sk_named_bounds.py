"""Bounds by name reach the columns they were declared for, or are refused; by place they never stand behind a move."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sk_purse import Purse
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import Normalizer, OneHotEncoder, PolynomialFeatures

import discreet as dp
from discreet import robust
from discreet.learn import sklearn as private
from discreet.learn.sklearn import (
    PCA,
    GaussianNB,
    KMeans,
    LinearRegression,
    LogisticRegression,
    MinMaxScaler,
    PrivateSearch,
    Ridge,
    RobustRegressor,
    RowFunction,
    StandardScaler,
)

ROWS = 300
rng = np.random.default_rng(11)
TABLE = pd.DataFrame({"balance": rng.uniform(0, 3000, ROWS), "income": rng.uniform(0, 70_000, ROWS)})
BY_NAME = {"income": (0, 70_000), "balance": (0, 3000)}
Y = (TABLE["balance"] > 1500).astype(int)
SPENT: dict[str, Any] = {"epsilon": 1, "delta": 1e-6}
ESTIMATORS = [
    lambda **more: LinearRegression(**SPENT, target_bounds=(0, 1), **more),
    lambda **more: Ridge(**SPENT, target_bounds=(0, 1), **more),
    lambda **more: RobustRegressor(**SPENT, target_bounds=(0, 1), **more),
    lambda **more: LogisticRegression(**SPENT, classes=[0, 1], **more),
    lambda **more: GaussianNB(**SPENT, classes=[0, 1], **more),
    lambda **more: StandardScaler(**SPENT, **more),
    lambda **more: MinMaxScaler(**SPENT, **more),
    lambda **more: PCA(**SPENT, coverage=None, **more),
    lambda **more: KMeans(2, **SPENT, **more),
]


@pytest.mark.parametrize("made", ESTIMATORS)
@pytest.mark.parametrize("order", [["balance", "income"], ["income", "balance"]])
def test_names_decide_whatever_the_order_of_the_columns(made: Any, order: list[str]) -> None:
    table = TABLE[order]
    fit = made(bounds=BY_NAME).fit(table, Y)
    assert [float(high) for _, high in fit.frame_.bounds] == [BY_NAME[name][1] for name in order] or made is MIN_MAX
    if hasattr(fit, "predict"):
        assert len(fit.predict(table)) == ROWS


MIN_MAX = ESTIMATORS[6]  # Its frame is what it has found.


@pytest.mark.parametrize("made", ESTIMATORS)
@pytest.mark.parametrize(
    ("table", "bounds", "told"),
    [
        (TABLE, {"balance": (0, 3000)}, "there are none for income"),
        (TABLE, {**BY_NAME, "age": (0, 120)}, "there is no column age"),
        (TABLE.to_numpy(), BY_NAME, "have no names"),
        (TABLE.set_axis([0, 1], axis=1), BY_NAME, "have no names"),
    ],
    ids=["missing", "unknown", "array", "numbers"],
)
def test_what_cannot_be_matched_is_refused_before_any_charge(made: Any, table: Any, bounds: Any, told: str) -> None:
    purse = Purse()
    for session in (purse, None):
        with pytest.raises(dp.Refused, match=told):
            made(bounds=bounds, session=session).fit(table, Y)
    assert not purse.charges


def test_tables_of_polars_have_names() -> None:
    fit = GaussianNB(**SPENT, classes=[0, 1], bounds=BY_NAME, session=Purse()).fit(
        pl.DataFrame({name: TABLE[name].to_numpy() for name in ("income", "balance")}), Y
    )
    assert [float(high) for _, high in fit.frame_.bounds] == [70_000, 3000]


def students() -> pd.DataFrame:
    return TABLE.assign(student=np.where(rng.random(ROWS) < 0.3, "Yes", "No"))


def one_hot() -> ColumnTransformer:
    encoder = OneHotEncoder(categories=[["No", "Yes"]], handle_unknown="ignore", sparse_output=False, drop="first")
    return make_column_transformer((encoder, ["student"]), remainder="passthrough", verbose_feature_names_out=False)


def bayes(bounds: Any, session: Any = None) -> GaussianNB:
    return GaussianNB(**SPENT, classes=[0, 1], bounds=bounds, session=session)


MOVING = [
    lambda: one_hot(),
    lambda: make_pipeline(one_hot()),
    lambda: FeatureUnion([("rows", Normalizer()), ("same", "passthrough")]),
    lambda: PolynomialFeatures(1),
    lambda: RowFunction(lambda rows: rows[:, ::-1]),
    lambda: PCA(**SPENT, coverage=None, bounds=BY_NAME),
]


@pytest.mark.parametrize("made", MOVING)
def test_bounds_by_place_behind_a_step_that_makes_or_moves_columns_are_refused(made: Any) -> None:
    """balance, income, student go in, student comes out first: (0, 3000) was for balance."""
    purse, table = Purse(), students() if made in MOVING[:2] else TABLE
    bounds = [(0, 3000), (0, 70_000), (0, 1)]
    for session in (purse, None):
        with pytest.raises(dp.Refused, match=r"makes or moves columns|no session is charged"):
            make_pipeline(made(), bayes(bounds, session)).fit(table, Y)
    assert not purse.charges


def test_names_travel_through_a_pipeline_with_pandas_output() -> None:
    pipeline = make_pipeline(one_hot(), bayes({**BY_NAME, "student_Yes": (0, 1)})).set_output(transform="pandas")
    fit = pipeline.fit(students(), Y)[-1]
    assert fit.feature_names_in_.tolist() == ["student_Yes", "balance", "income"]
    assert [float(high) for _, high in fit.frame_.bounds] == [1, 3000, 70_000]
    with pytest.raises(dp.Refused, match="have no names"):
        make_pipeline(one_hot(), bayes({**BY_NAME, "student_Yes": (0, 1)})).fit(students(), Y)


def test_bounds_by_place_stay_where_columns_do() -> None:
    bounds = [(0, 3000), (0, 70_000)]
    scaler = MinMaxScaler(**SPENT, bounds=bounds)
    make_pipeline(Normalizer(), "passthrough", scaler, bayes([(0, 1), (0, 1)])).fit(TABLE, Y)
    make_pipeline(one_hot(), bayes((0, 70_000))).fit(students(), Y)  # One pair for all columns.
    inside = make_column_transformer((StandardScaler(**SPENT, bounds=bounds), ["balance", "income"]))
    make_pipeline(inside, bayes((-4, 4))).fit(TABLE, Y)
    Pipeline([("first", bayes(bounds))]).fit(TABLE, Y)


def test_a_search_hands_names_on() -> None:
    search = PrivateSearch(bayes(BY_NAME), {"var_smoothing": [1e-4, 1]}, epsilon=1, delta=1e-6)
    fit = search.fit(TABLE[["income", "balance"]], Y)
    assert [float(high) for _, high in fit.best_estimator_.frame_.bounds] == [70_000, 3000]
    assert len(fit.predict(TABLE[["income", "balance"]])) == ROWS


@pytest.mark.parametrize("fitted", [dp.regression, robust.regression])
def test_regressions_take_bounds_by_name(fitted: Any) -> None:
    known: dict[str, Any] = {"relation": dp.Relation.ADD_REMOVE, "y_bounds": (0, 1), "epsilon": 50, "delta": 1e-6}
    table = TABLE[["income", "balance"]]
    y = TABLE["balance"] / 3000
    found = fitted(table, y, x_bounds=BY_NAME, **known).value
    assert float(found[2]) == pytest.approx(1 / 3000, rel=0.3)
    for wrong in ({"income": (0, 1)}, {**BY_NAME, "age": (0, 1)}):
        with pytest.raises(dp.Refused, match="does not fit the columns"):
            fitted(table, y, x_bounds=wrong, **known)
    with pytest.raises(dp.Refused, match="have no names"):
        fitted(table.to_numpy(), y, x_bounds=BY_NAME, **known)


def test_networks_take_them_too() -> None:
    network = private.DPClassifier(
        **SPENT, classes=[0, 1], bounds=BY_NAME, public_rows=ROWS, batch_size=64, epochs=1
    ).fit(TABLE[["income", "balance"]], Y)
    assert [float(high) for _, high in network.frame_.bounds] == [70_000, 3000]
