"""Discreet, and scikit-learn without privacy, on the table of estimators.

Bounds are the declared ones, `public_rows` is the number of rows rounded to two digits, everything else is as it comes.
What is not private sees the same clamped features, and its predictions are moved into the same bounds.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn import linear_model, naive_bayes, pipeline, preprocessing

from benchmarks.estimator_jobs import DELTA, EPSILONS, auc, folder, kept, r_squared, report
from benchmarks.learning_sets import Bounded, Floats
from discreet.learn import sklearn as private

Make = Callable[[Bounded, Any], Any]


def public_rows(rows: Any) -> int:
    """Return what would be known: about how many rows there are."""
    return int(float(f"{len(rows):.1e}"))


def usual(table: Bounded, rows: Any, epsilon: str) -> dict[str, Any]:
    """Return what every private estimator is told."""
    return {"epsilon": epsilon, "delta": DELTA, "bounds": table.bounds, "public_rows": public_rows(rows)}


def clamped(table: Bounded) -> Floats:
    """Return the features within their bounds."""
    low, high = np.array(table.bounds).T
    found: Floats = np.clip(table.X, low, high)
    return found


def regressed(table: Bounded, fitted: Any, held: Any, *, make: Make) -> dict[str, float]:
    """Fit and score a regressor."""
    X = clamped(table)
    predicted = make(table, fitted).fit(X[fitted], table.y[fitted]).predict(X[held])
    return {"R²": r_squared(table.y[held], np.clip(predicted, *table.target_bounds))}


def classified(table: Bounded, fitted: Any, held: Any, *, make: Make) -> dict[str, float]:
    """Fit and score a classifier."""
    X = clamped(table)
    estimator = make(table, fitted).fit(X[fitted], table.y[fitted])
    shares = estimator.predict_proba(X[held])[:, 1]
    return {
        "AUC": auc(table.y[held], shares),
        "accuracy": float((estimator.predict(X[held]) == table.y[held]).mean()),
    }


PLAIN: dict[str, dict[str, Make]] = {
    "regression": {"linear regression": lambda *_: linear_model.LinearRegression()},
    "classification": {
        "logistic regression": lambda *_: pipeline.make_pipeline(
            preprocessing.StandardScaler(), linear_model.LogisticRegression(max_iter=1000)
        ),
        "naive Bayes": lambda *_: naive_bayes.GaussianNB(),
    },
}
OURS: dict[str, dict[str, Callable[[str, Bounded, Any], Any]]] = {
    "regression": {
        "linear regression": lambda epsilon, table, rows: private.LinearRegression(
            **usual(table, rows, epsilon), target_bounds=table.target_bounds
        )
    },
    "classification": {
        "logistic regression": lambda epsilon, table, rows: private.LogisticRegression(
            **usual(table, rows, epsilon), classes=[0, 1]
        ),
        "naive Bayes": lambda epsilon, table, rows: private.GaussianNB(**usual(table, rows, epsilon), classes=[0, 1]),
    },
}
SCORES = {"regression": regressed, "classification": classified}


def main() -> None:
    """Fit everything."""
    for path in sorted(folder().glob("*.npz")):
        task, table = kept(path)
        for name, plain in PLAIN[task].items():
            labels = {"dataset": path.stem, "estimator": name, "who": "not private", "epsilon": ""}
            report(table, partial(SCORES[task], make=plain), **labels)
        for name, ours in OURS[task].items():
            for epsilon in EPSILONS:
                labels = {"dataset": path.stem, "estimator": name, "who": "discreet", "epsilon": epsilon}
                report(table, partial(SCORES[task], make=partial(ours, epsilon)), **labels)


if __name__ == "__main__":
    main()
