"""Only steps that pay may look at the rows of a session, also inside scikit-learn's own machinery."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.ensemble import BaggingClassifier
from sklearn.feature_selection import RFECV
from sklearn.model_selection import ShuffleSplit, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, PolynomialFeatures
from sklearn.preprocessing import StandardScaler as PlainScaler

import discreet as dp
from discreet.learn.sklearn import GaussianNB, LinearRegression, PrivateSearch, StandardScaler

X = np.linspace(0, 1, 120).reshape(60, 2)
Y = (X[:, 0] > 0.5).astype(int)


class Purse:
    def __init__(self) -> None:
        self.charges: list[Any] = []

    def charge(
        self, event: Any, *, relation: Any, purpose: str, unit: str = "row", idempotency_key: str | None = None
    ) -> None:
        self.charges.append(event)

    def __deepcopy__(self, memo: Any) -> Purse:
        return self


def _bayes(session: Any) -> GaussianNB:
    return GaussianNB(epsilon=1, delta=1e-6, bounds=(-3, 3), classes=[0, 1], session=session)


@pytest.mark.parametrize(
    "around",
    [
        lambda purse: make_pipeline(PlainScaler(), _bayes(purse)),
        lambda purse: make_pipeline(ColumnTransformer([("all", PlainScaler(), [0, 1])]), _bayes(purse)),
        lambda purse: make_pipeline(StandardScaler(epsilon=1, delta=1e-6, bounds=(0, 1)), _bayes(purse)),
        lambda purse: CalibratedClassifierCV(_bayes(purse), cv=2),
        lambda purse: RFECV(_bayes(purse), cv=2, importance_getter="theta_"),
        lambda purse: BaggingClassifier(_bayes(purse), n_estimators=2, oob_score=True),
        lambda purse: OneVsRestClassifier(_bayes(purse)),
        lambda purse: TransformedTargetRegressor(
            LinearRegression(epsilon=1, delta=1e-6, bounds=(0, 1), target_bounds=(0, 1), session=purse),
            transformer=PlainScaler(),
        ),
    ],
)
def test_what_looks_at_rows_without_paying_is_refused_before_the_charge(around: Any) -> None:
    purse = Purse()
    with pytest.raises(dp.Refused):
        around(purse).fit(X, Y)
    assert not purse.charges


def test_a_search_refuses_a_plain_step_although_it_has_no_price_of_its_own() -> None:
    purse = Purse()
    pipeline = make_pipeline(PlainScaler(), _bayes(None))
    search = PrivateSearch(pipeline, {"gaussiannb__var_smoothing": [1e-4, 1]}, epsilon=1, delta=1e-6, session=purse)
    with pytest.raises(dp.Refused):
        search.fit(X, Y)
    assert not purse.charges


def test_pipelines_of_steps_that_pay_or_learn_nothing_are_fitted() -> None:
    purse = Purse()
    scaler = StandardScaler(epsilon=1, delta=1e-6, bounds=(0, 1), session=purse)
    make_pipeline(FunctionTransformer(), PolynomialFeatures(1, include_bias=False), scaler, _bayes(purse)).fit(X, Y)
    assert len(purse.charges) == 2


def test_a_search_without_a_session_may_be_cross_validated_as_other_estimators() -> None:
    search = PrivateSearch(_bayes(None), [{}], epsilon=1, delta=1e-6)
    once = ShuffleSplit(1)
    assert np.isfinite(cross_val_score(search, X, Y, cv=once)).all()
    purse = Purse()
    with pytest.raises(ValueError, match="fits failed"):
        cross_val_score(search.set_params(session=purse), X, Y, cv=once)
    assert not purse.charges
