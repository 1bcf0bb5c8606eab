"""Networks in scikit-learn's shape: paid for while their tables are empty, trained by the run of `make_private`."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import torch
from learn.sk_purse import Purse, Watched
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from torch import nn

import discreet as dp
from discreet.errors import InvalidParameter, Refused
from discreet.learn.sklearn.neural import DPClassifier, DPRegressor
from discreet.learn.sklearn.scalers import MinMaxScaler
from discreet.learn.sklearn.search import PrivateSearch
from discreet.privacy import epsilon
from discreet.privacy.relation import Relation

torch.set_num_threads(1)
MADE = np.random.default_rng(5)
ROWS = MADE.uniform(-1, 1, size=(1500, 2))
LABELS = np.where(ROWS[:, 0] + ROWS[:, 1] > 0, "yes", "no")
TARGET = 10 * ROWS[:, 0] + 5


def classifier(**fields: Any) -> DPClassifier:
    known = {"epsilon": 4, "delta": 1e-6, "public_rows": 1500, "bounds": (-1, 1), "classes": ["no", "yes"], "epochs": 8}
    return DPClassifier(**({"module": linear, "learning_rate": 0.1} | known | fields))


def regressor(**fields: Any) -> DPRegressor:
    known = {"epsilon": 4, "delta": 1e-6, "public_rows": 1500, "bounds": (-1, 1), "target_bounds": (-5, 15)}
    return DPRegressor(**({"module": linear, "learning_rate": 0.1, "epochs": 10} | known | fields))


def linear(inputs: int, outputs: int) -> nn.Module:
    return nn.Linear(inputs, outputs)


def test_a_classifier_learns_and_tells_its_price() -> None:
    fit = classifier().fit(ROWS, LABELS)
    assert fit.score(ROWS, LABELS) > 0.85
    assert fit.predict_proba(ROWS).sum(axis=1) == pytest.approx(1)
    assert fit.privacy_spent_.event == fit.plan_.event
    assert 3.9 < fit.privacy_spent_.epsilon <= 4
    assert epsilon(fit.plan_.event, 1e-6, relation=Relation.ADD_REMOVE) == fit.privacy_spent_.epsilon


def test_a_regressor_learns_and_stays_within_its_bounds() -> None:
    fit = regressor().fit(ROWS, TARGET)
    assert fit.score(ROWS, TARGET) > 0.8
    assert fit.predict(ROWS * 1e9).max() <= 15


def test_a_module_is_copied_and_a_fit_can_be_pickled() -> None:
    own = nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 2))
    before = [weight.detach().clone() for weight in own.parameters()]
    fit = classifier(module=own, epochs=1).fit(ROWS, LABELS)
    assert all((one == other).all() for one, other in zip(own.parameters(), before, strict=True))
    assert (pickle.loads(pickle.dumps(fit)).predict(ROWS) == fit.predict(ROWS)).all()
    assert len(list(clone(classifier(module=own)).module.parameters())) == 4


def test_nothing_is_read_before_it_is_paid_for_and_it_is_paid_once() -> None:
    purse = Purse()
    fit = classifier(epochs=1, session=purse).fit(Watched(ROWS, purse), Watched(LABELS, purse))
    ((event, relation, purpose),) = purse.charges
    assert (event, relation, purpose) == (fit.plan_.event, Relation.ADD_REMOVE, "training: fit of DPClassifier")
    empty = Purse(is_empty=True)
    with pytest.raises(dp.BudgetExceeded):
        regressor(session=empty).fit(Watched(ROWS, empty), Watched(TARGET, empty))


def test_with_a_session_odd_values_and_labels_are_no_error() -> None:
    odd, labels = ROWS.copy(), LABELS.astype(object)
    odd[0], labels[1] = np.nan, None
    assert classifier(epochs=1, session=Purse()).fit(odd, labels).classes_.tolist() == ["no", "yes"]


def test_a_pipeline_and_a_search_take_it() -> None:
    steps = make_pipeline(
        MinMaxScaler(epsilon=1, bounds=(-2, 2), feature_range=(-1, 1)), classifier(bounds=None, epochs=2)
    )
    assert clone(steps).fit(ROWS, LABELS).predict(ROWS[:3]).shape == (3,)
    chosen = PrivateSearch(
        classifier(epochs=1), {"learning_rate": [1e-6, 0.1]}, epsilon=8, delta=1e-6, holdout=0.05, public_rows=1500
    ).fit(ROWS, LABELS)
    assert chosen.privacy_spent_.epsilon <= 8
    assert chosen.best_estimator_.public_rows == 1425
    with pytest.raises(ValueError, match="PrivateSearch"):
        cross_val_score(classifier(session=Purse()), ROWS, LABELS, cv=2)


@pytest.mark.parametrize("wrong", [{"public_rows": None}, {"relation": "replace-one"}, {"bounds": None}])
def test_what_cannot_be_private_is_refused_with_a_way_out(wrong: dict[str, Any]) -> None:
    with pytest.raises(Refused) as caught:
        classifier(**wrong).fit(ROWS, LABELS)
    assert caught.value.way_out
    with pytest.raises(Refused, match="target_bounds"):
        regressor(target_bounds=None).fit(ROWS, TARGET)


@pytest.mark.parametrize(
    "wrong",
    [
        {"module": 3},
        {"module": nn.Linear(3, 2)},
        {"module": nn.Linear(2, 5)},
        {"optimizer": "adam"},
        {"batch_size": 0},
        {"learning_rate": 0},
        {"classes": ["no"]},
        {"delta": None},
    ],
)
def test_nonsense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        classifier(**wrong).fit(ROWS, LABELS)


def test_another_optimiser_may_be_chosen() -> None:
    made: list[Any] = []

    def momentum(weights: Any) -> torch.optim.Optimizer:
        made.append(torch.optim.SGD(weights, lr=0.5, momentum=0.9))
        return made[0]

    assert classifier(optimizer=momentum, epochs=1).fit(ROWS, LABELS).predict(ROWS).shape == (1500,)
    assert len(made) == 1


class Payers(Purse):
    """A purse that notes for whom it pays."""

    def charge(self, event: Any, *, unit: str = "row", **told: Any) -> None:
        super().charge(event, unit=unit, **told)
        self.unit = unit


@pytest.mark.parametrize("kind", ["classifier", "regressor"])
def test_people_with_several_rows_are_trained_on_as_records_and_paid_for(kind: str) -> None:
    ids, purse = {"patient": np.repeat(np.arange(500), 3)}, Payers()
    model, target = (classifier, LABELS) if kind == "classifier" else (regressor, TARGET)
    fit = model(public_rows=500, session=purse).fit(
        Watched(ROWS, purse), target if kind == "regressor" else target.astype(object), unit=ids, max_rows=2
    )
    assert purse.unit == "patient"
    assert (fit.plan_.unit, fit.plan_.max_rows) == ("patient", 2)
    assert fit.plan_.event == model(public_rows=500).fit(ROWS[:500], target[:500]).plan_.event
    assert str(fit.privacy_spent_).endswith("for one patient with all their rows (add-remove neighbours)")
    alone = model(public_rows=500).fit(ROWS, target, unit=list(range(1500)))
    assert alone.plan_.max_rows == 1
    with pytest.raises(InvalidParameter):
        model().fit(ROWS, target, max_rows=2)
    with pytest.raises(Refused):
        model(session=purse).fit(ROWS, target, unit=list(range(1500)))
    assert len(purse.charges) == 1
