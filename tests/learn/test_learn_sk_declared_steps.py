"""Imputer and binner: declared, each number by itself, and allowed before private estimators."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sk_purse import Purse
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer

from discreet.errors import InvalidParameter, Refused
from discreet.learn.sklearn import Binner, Imputer, LinearRegression, LogisticRegression

NUMBERS = (-3.0, 0.0, 18.0, 64.5, 200.0, np.nan, np.inf)
STEPS: dict[str, Any] = {
    "imputer": Imputer(bounds=[(0, 120), (0, 10)]),
    "indicator": Imputer([1, 2], add_indicator=True),
    "onehot": Binner([[0, 18, 65], [0, 1, 2, 3]]),
    "ordinal": Binner([0, 18, 65], encode="ordinal"),
}


class Unread:
    """A table whose shape is public; a look at a value fails the test."""

    shape = (3, 2)

    def __len__(self) -> int:
        return 3

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("a value was looked at in fit")


@pytest.mark.parametrize("name", STEPS)
def test_a_fit_looks_at_no_value(name: str) -> None:
    STEPS[name].fit(Unread())


@pytest.mark.parametrize("name", STEPS)
def test_each_row_comes_from_that_row_alone_for_all_small_tables(name: str) -> None:
    """All rows of seven numbers a column, alone and together: no neighbour moves another row."""
    rows = np.array(list(product(NUMBERS, repeat=2)))
    step = STEPS[name].fit(rows)
    together = np.asarray(step.transform(rows))
    alone = np.concatenate([np.asarray(step.transform(row[None, :])) for row in rows])
    assert np.array_equal(together, alone, equal_nan=True)
    fewer = np.asarray(step.fit(rows[1:]).transform(rows[1:]))
    assert np.array_equal(fewer, together[1:], equal_nan=True)


@pytest.mark.parametrize("mutant", [SimpleImputer(strategy="mean"), KBinsDiscretizer(2, encode="ordinal")])
def test_the_same_law_refutes_steps_that_learn(mutant: Any) -> None:
    rows = np.array([[1.0, 2.0], [np.nan, 1.0], [9.0, 0.0]])
    if isinstance(mutant, KBinsDiscretizer):
        rows = np.nan_to_num(rows)
    together = mutant.fit(rows).transform(rows)
    assert not np.array_equal(mutant.fit(rows[:2]).transform(rows[:2]), together[:2])
    line = LinearRegression(epsilon=1, delta=1e-6, bounds=(0, 9), target_bounds=(0, 1))
    with pytest.raises(Refused):
        make_pipeline(mutant, line).fit(rows, np.zeros(3))


def test_gaps_are_filled_by_what_is_declared() -> None:
    rows = np.array([[np.nan, 1.0], [7.0, -np.inf]])
    table = pd.DataFrame({"a": ["x", "7"], "b": [1.0, None]})
    assert Imputer(3).fit_transform(rows).tolist() == [[3, 1], [7, 3]]
    assert Imputer(3).fit_transform(rows.astype(object)).tolist() == [[3, 1], [7, 3]]
    assert Imputer([3, 4]).fit_transform(rows).tolist() == [[3, 1], [7, 4]]
    assert Imputer(bounds=(0, 10)).fit_transform(rows).tolist() == [[5, 1], [7, 5]]
    mixed = Imputer({"b": 9}, bounds={"a": (0, 10), "b": (0, 1)}, add_indicator=True).fit(table)
    assert mixed.transform(table).tolist() == [[5, 1, 1, 0], [7, 9, 0, 1]]
    assert mixed.get_feature_names_out().tolist() == ["a", "b", "a_missing", "b_missing"]


def test_bins_have_declared_edges() -> None:
    column = np.array([[-5.0], [0.0], [17.9], [18.0], [65.0], [999.0], [np.nan]])
    ordinal = Binner([0, 18, 65], encode="ordinal").fit(column).transform(column)
    assert np.array_equal(np.asarray(ordinal)[:, 0], [0, 0, 0, 1, 1, 1, np.nan], equal_nan=True)
    assert ordinal.bounds == (0.0, 1.0)
    coded = Binner({"age": [0, 18, 65, 99]}).fit(pd.DataFrame({"age": column[:, 0]}))
    found = coded.transform(pd.DataFrame({"age": column[:, 0]}))
    assert np.asarray(found).sum(axis=1).tolist() == [1] * 6 + [0]
    assert coded.get_feature_names_out().tolist() == ["age[0, 18)", "age[18, 65)", "age[65, 99]"]
    assert Binner([0, 1, 2], drop_first=True).fit_transform(np.array([[0.5], [1.5]])).tolist() == [[0], [1]]


@pytest.mark.parametrize(
    "wrong",
    [
        Imputer(),
        Imputer([1]),
        Imputer("mean"),
        Imputer(np.nan),
        Imputer({"a": 1}, bounds=(0, 1)),
        Imputer(0, add_indicator="yes"),
        Binner(),
        Binner([0, 1]),
        Binner([0, 2, 1]),
        Binner([[0, 1, 2]]),
        Binner({"a": [0, 1, 2]}),
        Binner([0, 1, np.inf]),
        Binner("age"),
        Binner([0, 1, 2], encode="quantile"),
        Binner([0, 1, 2], encode="ordinal", drop_first=True),
    ],
    ids=repr,
)
def test_what_is_not_declared_is_refused(wrong: Any) -> None:
    with pytest.raises((InvalidParameter, Refused)):
        wrong.fit(np.zeros((2, 2)))


def test_names_that_fit_no_column_are_refused() -> None:
    table = pd.DataFrame({"a": [1.0], "b": [2.0]})
    for wrong in (Imputer({"c": 1}, bounds=(0, 1)), Binner({"a": [0, 1, 2]}), Binner({"a": [0, 1, 2], "c": [0, 1, 2]})):
        with pytest.raises(Refused):
            wrong.fit(table)


@pytest.mark.parametrize("purse", [None, Purse()])
def test_they_may_stand_before_private_estimators_and_only_these_pay(purse: Any) -> None:
    rng = np.random.default_rng(0)
    rows = rng.uniform(0, 10, (3000, 2))
    target = rows[:, 0] + 2 * (rows[:, 1] > 5)
    rows[rng.random((3000, 2)) < 0.05] = np.nan
    known: dict[str, Any] = {"epsilon": 4, "delta": 1e-6, "session": purse}
    line = LinearRegression(**known, bounds=(0, 10), target_bounds=(0, 15))
    assert make_pipeline(Imputer(bounds=(0, 10)), line).fit(rows, target)[-1].coef_[0] > 0.7
    # The binner tells its bounds; a gap that is left would be an error where no session pays.
    binned = make_pipeline(
        Imputer(0), Binner([0, 2, 5, 8, 10]), LogisticRegression(**known, classes=[0, 1], inference=False)
    )
    labels = (target > 6).astype(int)
    assert (binned.fit(rows, labels).predict(rows) == labels).mean() > 0.7
    assert purse is None or len(purse.charges) == 2


def test_bounds_by_place_stay_where_columns_do() -> None:
    rows, target = np.tile([[1.0, 2.0]], (50, 1)), np.zeros(50)
    line = LinearRegression(epsilon=1, delta=1e-6, bounds=[(0, 10), (0, 5)], target_bounds=(0, 1))
    make_pipeline(Imputer(0), line).fit(rows, target)
    make_pipeline(Binner([0, 1, 2], encode="ordinal"), line).fit(rows, target)
    for moving in (Imputer(0, add_indicator=True), Binner([0, 1, 2], drop_first=True)):
        with pytest.raises(Refused):
            make_pipeline(moving, line).fit(rows, target)
