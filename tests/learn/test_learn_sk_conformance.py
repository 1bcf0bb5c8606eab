"""Every estimator behaves as scikit-learn's checks want, but for what privacy forbids: the same answer twice."""

from __future__ import annotations

from inspect import signature
from typing import Any

import pytest
from sklearn.utils.estimator_checks import check_estimator

from discreet.learn import sklearn as private

TWICE = "determinism: two fits have different noise, and the check compares them"
USUAL: dict[str, Any] = {"epsilon": 1000, "delta": "1e-6", "bounds": (-10, 10)}
REGRESSION = dict.fromkeys(
    ("check_regressor_data_not_an_array", "check_supervised_y_2d", "check_regressors_int", "check_fit_idempotent"),
    TWICE,
)

CLASSIFICATION = dict.fromkeys(
    ("check_classifier_data_not_an_array", "check_supervised_y_2d", "check_fit_idempotent"), TWICE
)
ONCE = {"check_fit_idempotent": TWICE}
FOUND: dict[str, Any] = {"classes": "found in y"}
WEIGHTS = {"check_sample_weight_equivalence_on_dense_data": TWICE}
TOTAL = dict.fromkeys(
    (
        "check_complex_data",
        "check_dtype_object",
        "check_estimators_empty_data_messages",
        "check_transformer_data_not_an_array",
    ),
    "a total rule: values are not looked at in the fit, and none is an error, where the check wants one",
)

# (estimator, what it fails, each with its reason): determinism, accuracy on unbounded data, or a rule that is total.
ESTIMATORS: tuple[tuple[Any, dict[str, str]], ...] = (
    (private.LinearRegression(**USUAL, target_bounds=(-300, 300), weight_bounds=(0, 10)), REGRESSION | WEIGHTS),
    (private.Ridge(**USUAL, target_bounds=(-300, 300), weight_bounds=(0, 10)), REGRESSION | WEIGHTS),
    (private.RobustRegressor(**USUAL, target_bounds=(-300, 300)), REGRESSION),
    (private.StandardScaler(**USUAL), ONCE),
    (private.MinMaxScaler(**USUAL), {}),
    (private.PCA(**USUAL, coverage=None), ONCE),
    (private.GaussianNB(**USUAL, **FOUND), CLASSIFICATION),
    (private.LogisticRegression(**USUAL, **FOUND, weight_bounds=(0, 10)), CLASSIFICATION | WEIGHTS),
    (private.LogisticRegression(**USUAL, **FOUND, weight_bounds=(0, 10), method="newton"), CLASSIFICATION | WEIGHTS),
    (
        private.LogisticRegression(**USUAL, **FOUND, weight_bounds=(0, 10), multi_class="softmax"),
        CLASSIFICATION | WEIGHTS,
    ),
    (private.BoostedTreesClassifier(**USUAL, **FOUND, rounds=8, weight_bounds=(0, 10)), CLASSIFICATION | WEIGHTS),
    (
        private.BoostedTreesRegressor(**USUAL, target_bounds=(-300, 300), rounds=8, weight_bounds=(0, 10)),
        REGRESSION | WEIGHTS,
    ),
    (private.PoissonRegressor(**USUAL, target_bounds=(0, 300), weight_bounds=(0, 10)), REGRESSION | WEIGHTS),
    (private.RandomForestClassifier(**USUAL, **FOUND), CLASSIFICATION),
    (private.KMeans(3, **USUAL), {**ONCE, "check_clustering": TWICE}),
    (private.Imputer(bounds=(-10, 10)), TOTAL),
    (private.Imputer(0, add_indicator=True), TOTAL),
    (private.Binner([-1, 0, 1]), TOTAL),
    (private.Binner([-1, 0, 1], encode="ordinal"), TOTAL),
)
# The same, for `make soak`: each of their fits takes a while.
LONGER: tuple[tuple[Any, dict[str, str]], ...] = (
    (
        private.PrivateSearch(
            private.GaussianNB(**USUAL, **FOUND), {"var_smoothing": [1e-4, 1e-3]}, epsilon=1000, delta="1e-6"
        ),
        CLASSIFICATION,
    ),
    (
        private.DPClassifier(**USUAL, **FOUND, public_rows=100, batch_size=64, epochs=60, learning_rate=0.1),
        CLASSIFICATION,
    ),
    (
        private.DPRegressor(
            **USUAL, target_bounds=(-5, 5), public_rows=100, batch_size=64, epochs=60, learning_rate=0.1
        ),
        REGRESSION,
    ),
)
REASONS = ("determinism: ", "accuracy on unbounded data: ", "a total rule: ")


@pytest.mark.parametrize(
    ("estimator", "failing"),
    [*ESTIMATORS, *(pytest.param(*row, marks=pytest.mark.soak) for row in LONGER)],
    ids=lambda part: type(part).__name__,
)
@pytest.mark.filterwarnings("ignore")
def test_estimators_pass_the_checks_of_scikit_learn(estimator: Any, failing: dict[str, str]) -> None:
    assert all(reason.startswith(REASONS) for reason in failing.values())
    results = check_estimator(estimator, expected_failed_checks=failing, on_skip=None, on_fail=None)
    failed = {result["check_name"]: str(result["exception"]) for result in results if result["status"] == "failed"}
    assert not failed
    checked = {result["check_name"] for result in results}
    assert set(failing) <= checked, "a check is excused that does not exist"


def test_every_estimator_is_checked() -> None:
    named = {type(estimator).__name__ for estimator, _ in (*ESTIMATORS, *LONGER)}
    total = {"RowFunction"}  # It has a total rule for every value, as sessions need, where the checks want errors.
    assert named | total == {name for name in private.__all__ if hasattr(getattr(private, name), "fit")}


def test_all_estimators_protect_people() -> None:
    fits = {name: getattr(private, name).fit for name in private.__all__ if hasattr(getattr(private, name), "fit")}
    rows_alone = {name for name, fit in fits.items() if not {"unit", "max_rows"} <= signature(fit).parameters.keys()}
    assert rows_alone == {"RowFunction", "Imputer", "Binner"}  # They learn nothing from rows.
