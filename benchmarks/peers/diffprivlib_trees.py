"""diffprivlib's random forest on the table of trees, with the bounds and classes that everybody is told."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any, Final

import numpy as np
from diffprivlib import models  # type: ignore[import-not-found]

from benchmarks.estimator_jobs import EPSILONS, auc, folder, kept, report
from benchmarks.learning_sets import Bounded

RUNS: Final = 3


def forest(table: Bounded, fitted: Any, held: Any, epsilon: float) -> dict[str, float]:
    """Fit and score a forest."""
    low, high = np.array(table.bounds).T
    X, y = np.clip(table.X, low, high), table.y.astype(int)
    model = models.RandomForestClassifier(epsilon=epsilon, bounds=(low, high), classes=[0, 1]).fit(X[fitted], y[fitted])
    scores = model.predict_proba(X[held])[:, 1]
    return {"AUC": auc(y[held], scores), "accuracy": float((model.predict(X[held]) == y[held]).mean())}


def main() -> None:
    """Fit everything."""
    warnings.simplefilter("ignore")
    for path in sorted(folder().glob("*.npz")):
        _, table = kept(path)
        for epsilon in EPSILONS:
            labels = {"dataset": path.stem, "estimator": "random forest", "who": "diffprivlib", "epsilon": epsilon}
            report(table, partial(forest, epsilon=float(epsilon)), RUNS, **labels)


if __name__ == "__main__":
    main()
