"""Discreet: more than two classes, one against the rest and in one softmax, on sets that scikit-learn brings along."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.linear_model import LogisticRegression as Plain
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.estimator_jobs import DELTA, EPSILONS
from benchmarks.learning_sets import SEED, Floats
from benchmarks.peers.protocol import emit, is_quick
from discreet.learn.sklearn import LogisticRegression

# Bounds by what is known of the units, rounded; none is read from the rows.
WINE = [
    (10, 16),
    (0, 7),
    (1, 4),
    (8, 32),
    (60, 180),
    (0, 5),
    (0, 6),
    (0, 1),
    (0, 4),
    (0, 14),
    (0, 2),
    (1, 5),
    (200, 2000),
]
RUNS = {"iris": 40, "wine": 40, "five made up": 10, "digits": 5}


def made_up() -> tuple[Floats, Any]:
    """Draw five classes around five centres."""
    generator = np.random.default_rng(SEED)
    centres, labels = 1.2 * generator.normal(size=(5, 8)), generator.integers(0, 5, 5000)
    return centres[labels] + generator.normal(size=(5000, 8)), labels


def table(name: str) -> tuple[Floats, Any, Any]:
    """Return features, labels and bounds."""
    match name:
        case "iris":
            return *load_iris(return_X_y=True), (0, 10)
        case "wine":
            return *load_wine(return_X_y=True), WINE
        case "digits":
            return *load_digits(return_X_y=True), (0, 16)
        case _:
            return *made_up(), (-8, 8)


def measure(name: str) -> None:
    """Fit divisions of one set in each way."""
    X, y, bounds = table(name)
    runs = 2 if is_quick() else RUNS[name]
    parts = [train_test_split(X, y, test_size=0.3, random_state=run, stratify=y) for run in range(runs)]
    for epsilon in EPSILONS:
        found: dict[str, list[float]] = {"ovr": [], "softmax": [], "not private": []}
        for train, test, labels, wanted in parts:
            for way in ("ovr", "softmax"):
                model = LogisticRegression(
                    epsilon=epsilon,
                    delta=DELTA,
                    bounds=bounds,
                    classes=np.unique(y).tolist(),
                    multi_class=way,
                    inference=False,
                    public_rows=len(train),
                )
                found[way].append(float((model.fit(train, labels).predict(test) == wanted).mean()))
            plain = make_pipeline(StandardScaler(), Plain(max_iter=1000)).fit(train, labels)
            found["not private"].append(float((plain.predict(test) == wanted).mean()))
        for way, scores in found.items():
            emit(part="classes", dataset=name, way=way, epsilon=epsilon, mean=float(np.mean(scores)), scores=scores)


def main() -> None:
    """Measure every set."""
    for name in RUNS:
        measure(name)


if __name__ == "__main__":
    main()
