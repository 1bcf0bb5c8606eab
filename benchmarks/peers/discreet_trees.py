"""Discreet's trees and lines, and scikit-learn's without privacy, on the table of trees."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from sklearn import ensemble

from benchmarks.estimator_jobs import EPSILONS, folder, kept, report
from benchmarks.learning_sets import Bounded
from benchmarks.peers.discreet_estimators import PLAIN, classified, usual
from discreet.learn import sklearn as private

RUNS: Final = 3

OURS: dict[str, Callable[..., Any]] = {
    "boosted trees": private.BoostedTreesClassifier,
    "random forest": private.RandomForestClassifier,
    "logistic regression": private.LogisticRegression,
}
REAL: dict[str, Callable[..., Any]] = {
    "boosted trees": lambda *_: ensemble.HistGradientBoostingClassifier(max_iter=100, early_stopping=False),
    "logistic regression": PLAIN["classification"]["logistic regression"],
}


def ours(kind: Callable[..., Any], epsilon: str, table: Bounded, rows: Any) -> Any:
    """Make an estimator of ours, as it comes."""
    return kind(**usual(table, rows, epsilon), classes=[0, 1])


def main() -> None:
    """Fit everything."""
    for path in sorted(folder().glob("*.npz")):
        _, table = kept(path)
        for name, make in REAL.items():
            labels = {"dataset": path.stem, "estimator": name, "who": "not private", "epsilon": ""}
            report(table, partial(classified, make=make), RUNS, **labels)
        for epsilon in EPSILONS:
            for name, kind in OURS.items():
                labels = {"dataset": path.stem, "estimator": name, "who": "discreet", "epsilon": epsilon}
                report(table, partial(classified, make=partial(ours, kind, epsilon)), RUNS, **labels)


if __name__ == "__main__":
    main()
