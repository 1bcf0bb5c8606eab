"""Estimators of people with several rows: rows bounded per unit, paid for units, refused where nothing is proven."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import Pipeline

import discreet as dp
from discreet.errors import Refused
from discreet.learn import sklearn as private
from discreet.learn.sklearn.base import TrainingTable
from discreet.privacy.events import Event

RNG = np.random.default_rng(3)
IDS = pd.Series(pd.array(np.repeat(np.arange(300), 4), dtype="Int64"), name="patient")
IDS[::10] = pd.NA
X = pd.DataFrame({"a": RNG.uniform(0, 10, 1200), "b": RNG.uniform(-1, 1, 1200)})
Y = 2 * X["a"] - X["b"]
LABELS = (X["a"] > 5).astype(int).to_numpy()
KNOWN: dict[str, Any] = {"epsilon": 2, "delta": 1e-6, "bounds": [(0, 10), (-1, 1)]}
REGRESSION = KNOWN | {"target_bounds": (-10, 30)}


class Purse:
    """A payer that notes what it is charged, and for whom."""

    def __init__(self) -> None:
        self.paid: list[tuple[Event, str]] = []

    def charge(
        self, event: Event, *, relation: Any, purpose: str, unit: str = "row", idempotency_key: str | None = None
    ) -> None:
        self.paid.append((event, unit))


def models(session: Any) -> dict[str, tuple[Any, Any, int]]:
    """Each estimator with its target and how many rows of a unit it takes."""
    classes = {"classes": [0, 1]}
    paying: dict[str, Any] = {"session": session}
    return {
        "linear": (private.LinearRegression(**REGRESSION, **paying), Y, 3),
        "once": (private.LinearRegression(**REGRESSION, **paying, method="noisy_statistics"), Y, 3),
        "adassp": (private.LinearRegression(**REGRESSION, **paying, method="adassp"), Y, 3),
        "huber": (private.LinearRegression(**REGRESSION, **paying, method="robust", inference=False), Y, 3),
        "ridge": (private.Ridge(**REGRESSION, **paying), Y, 3),
        "robust": (private.RobustRegressor(**REGRESSION, **paying, inference=False), Y, 3),
        "bayes": (private.GaussianNB(**KNOWN, **classes, **paying), LABELS, 3),
        "pca": (private.PCA(**KNOWN, **paying, coverage=None), None, 3),
        "scaler": (private.StandardScaler(**KNOWN, **paying, coverage=None), None, 3),
        "tukey": (private.LinearRegression(**REGRESSION, **paying, method="tukey"), Y, 1),
        "intervals": (private.RobustRegressor(**REGRESSION, **paying), Y, 1),
        "logistic": (private.LogisticRegression(**KNOWN, **classes, **paying), LABELS, 1),
        "pca, coverage": (private.PCA(**KNOWN, **paying, coverage=0.9), None, 1),
        "scaler, coverage": (private.StandardScaler(**KNOWN, **paying, coverage=0.9), None, 1),
        "range": (private.MinMaxScaler(epsilon=2, bounds=KNOWN["bounds"], **paying), None, 1),
    }


@pytest.mark.parametrize("name", models(None))
def test_each_estimator_pays_for_people_what_was_asked_and_reads_no_more_of_their_rows(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    purse, read = Purse(), []
    columns = TrainingTable.columns

    def noted(table: TrainingTable) -> list[Any]:
        found = columns(table)
        units = table.units()
        assert units is not None
        assert len(units) == len(found[0])
        read.append(int(np.bincount(units).max()))
        return found

    monkeypatch.setattr(TrainingTable, "columns", noted)
    model, target, most = models(purse)[name]
    model.fit(X, target, unit=IDS, max_rows=most)
    assert read == [most] * len(read)
    assert read
    ((event, unit),) = purse.paid
    assert unit == "patient"
    spent = model.privacy_spent_
    assert (spent.event, spent.unit, spent.max_rows) == (event, "patient", most)
    assert spent.epsilon <= 2 * (1 + 1e-6)
    assert f"for one patient, of whom at most {most} row" in str(spent)
    # It costs what rows do.
    monkeypatch.undo()
    alone, target, _ = models(None)[name]
    assert alone.fit(X, target).privacy_spent_.epsilon == pytest.approx(spent.epsilon, rel=1e-6)


@pytest.mark.parametrize("name", [name for name, (_, _, most) in models(None).items() if most == 1])
def test_several_rows_are_refused_where_one_is_proven(name: str) -> None:
    purse = Purse()
    model, target, _ = models(purse)[name]
    with pytest.raises(Refused):
        model.fit(X, target, unit=IDS, max_rows=2)
    assert not purse.paid


def test_a_group_of_rows_takes_noise_as_much_more_as_there_are_rows() -> None:
    seen = []
    for most in (1, 3):
        model = private.GaussianNB(**KNOWN, classes=[0, 1])
        table = model._table(X, LABELS, unit=IDS, max_rows=most)
        seen.append(model._row_gaussian(table).squared_multiplier)
        # Rows protected, not people: the event of rows, at the noise of rows, is a ninth of what people lose.
        assert table.event_of(dp.privacy.GDP(mu_squared=1)) == dp.privacy.GDP(mu_squared=most**2)
    assert seen[1] == 9 * seen[0]


def test_a_session_of_people_pays_for_a_pipeline_and_is_told_so() -> None:
    table = X.assign(patient=IDS)
    session = dp.Session(
        table,
        unit=dp.Unit("patient", name="person"),
        budget=dp.Budget(epsilon=9, delta=1e-5),
        ledger="memory",
        dataset="stays",
        principal="ana",
    )
    pipe = Pipeline(
        [
            ("scaler", private.StandardScaler(**KNOWN, session=session)),
            ("model", private.LinearRegression(epsilon=2, delta=1e-6, target_bounds=(-10, 30), session=session)),
        ]
    )
    with pytest.raises(Refused):
        pipe.fit(X, Y)
    pipe.fit(X, Y, scaler__unit=IDS, model__unit=IDS, model__max_rows=4)
    assert len(session.ledger.history()) >= 2
    assert "for one person, of whom at most 4 rows count" in str(pipe[-1].privacy_spent_)
    assert "for one person" in repr(pipe[-1].release_)


def test_a_search_counts_one_row_of_each_person() -> None:
    purse = Purse()
    search = private.PrivateSearch(
        private.GaussianNB(epsilon=1, delta=1e-6, bounds=KNOWN["bounds"], classes=[0, 1]),
        {"var_smoothing": [1e-3, 1e-2]},
        epsilon=2,
        delta=1e-6,
        session=purse,
    )
    search.fit(X, LABELS, unit=IDS)
    assert [unit for _, unit in purse.paid] == ["patient"]
    with pytest.raises(Refused):
        search.fit(X, LABELS, unit=IDS, max_rows=2)


def test_replace_one_and_unnamed_ids_are_refused_before_any_charge() -> None:
    purse = Purse()
    with pytest.raises(Refused):
        private.LinearRegression(**REGRESSION, relation="replace-one").fit(X, Y, unit=IDS)
    with pytest.raises(Refused):
        private.LinearRegression(**REGRESSION, session=purse).fit(X, Y, unit=IDS.to_list())
    assert not purse.paid
