"""diffprivlib on the table of estimators.

It is given features moved to [-1, 1] by the declared bounds, which is better for it than the bounds themselves, and its
predictions are moved into the bounds of the target. Its claims, which are pure epsilon, are taken as they stand:
linear regression   functional mechanism. With an intercept it spends (d + 2) / (d + 1) of what it claims.
logistic regression objective perturbation for rows up to sqrt(d) long. The minimum is found to a tolerance that nobody
                    pays for, the classes are those found in the data, and the noise is that of floats.
naive Bayes         noisy counts, means and variances of the classes found in the data.
"""

from __future__ import annotations

import math
import warnings
from functools import partial
from typing import Any

import numpy as np
from diffprivlib import models  # type: ignore[import-not-found]

from benchmarks.estimator_jobs import EPSILONS, auc, folder, kept, r_squared, report
from benchmarks.learning_sets import Bounded, Floats


def moved(table: Bounded) -> Floats:
    """Return the features between -1 and 1."""
    low, high = np.array(table.bounds).T
    found: Floats = 2 * (np.clip(table.X, low, high) - low) / (high - low) - 1
    return found


def linear(table: Bounded, fitted: Any, held: Any, epsilon: float) -> dict[str, float]:
    """Fit and score a linear regression, of a target between -1 and 1 too."""
    X, (low, high) = moved(table), table.target_bounds
    y = 2 * (np.clip(table.y, low, high) - low) / (high - low) - 1
    model = models.LinearRegression(epsilon=epsilon, bounds_X=(-1.0, 1.0), bounds_y=(-1.0, 1.0))
    predicted = model.fit(X[fitted], y[fitted]).predict(X[held])
    return {"R²": r_squared(y[held], np.clip(predicted, -1, 1))}


def classified(table: Bounded, fitted: Any, held: Any, model: Any) -> dict[str, float]:
    """Fit and score a classifier."""
    X, y = moved(table), table.y
    model.fit(X[fitted], y[fitted])
    scores = np.nan_to_num(model.predict_proba(X[held])[:, 1])
    return {"AUC": auc(y[held], scores), "accuracy": float((model.predict(X[held]) == y[held]).mean())}


def logistic(table: Bounded, fitted: Any, held: Any, epsilon: float) -> dict[str, float]:
    """Fit and score a logistic regression."""
    norm = math.sqrt(len(table.bounds))
    return classified(table, fitted, held, models.LogisticRegression(epsilon=epsilon, data_norm=norm, max_iter=1000))


def bayes(table: Bounded, fitted: Any, held: Any, epsilon: float) -> dict[str, float]:
    """Fit and score naive Bayes."""
    return classified(table, fitted, held, models.GaussianNB(epsilon=epsilon, bounds=(-1.0, 1.0)))


JOBS: dict[str, dict[str, Any]] = {
    "regression": {"linear regression": linear},
    "classification": {"logistic regression": logistic, "naive Bayes": bayes},
}


def main() -> None:
    """Fit everything."""
    warnings.simplefilter("ignore")
    for path in sorted(folder().glob("*.npz")):
        task, table = kept(path)
        for name, job in JOBS[task].items():
            for epsilon in EPSILONS:
                labels = {"dataset": path.stem, "estimator": name, "who": "diffprivlib", "epsilon": epsilon}
                report(table, partial(job, epsilon=float(epsilon)), **labels)


if __name__ == "__main__":
    main()
