"""Discreet: how often the intervals of coefficients cover what the samples were drawn from."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.estimator_jobs import DELTA
from benchmarks.learning_sets import SEED, Floats
from benchmarks.peers.protocol import emit, is_quick
from discreet.errors import Refused
from discreet.learn import sklearn as private

RUNS = 2_000
TRUTH = np.array([1.0, 1.0, -0.5, 0.25, 0.0])  # The intercept first.
CASES = (
    ("LinearRegression", "even", 1000, "3"),
    ("LinearRegression", "even", 2000, "1"),
    ("LinearRegression", "even", 5000, "0.3"),
    ("LinearRegression", "uneven", 2000, "3"),
    ("RobustRegressor", "even", 2000, "3"),
)


def sample(generator: Any, size: int, residuals: str) -> tuple[Floats, Floats]:
    """Draw rows from a line with noise."""
    features = generator.normal(size=(size, len(TRUTH) - 1))
    spread = 1.0 if residuals == "even" else 0.5 + np.abs(features[:, 0])
    return features, TRUTH[0] + features @ TRUTH[1:] + spread * generator.normal(size=size)


def exact_reach(features: Floats, targets: Floats) -> float:
    """Return the mean reach of the usual intervals of least squares without privacy."""
    rows = np.column_stack([np.ones(len(features)), features])
    fit = np.linalg.lstsq(rows, targets, rcond=None)[0]
    variance = ((targets - rows @ fit) ** 2).sum() / (len(rows) - rows.shape[1])
    return float(1.96 * np.sqrt(variance * np.diag(np.linalg.inv(rows.T @ rows))).mean())


def measure(kind: str, residuals: str, size: int, epsilon: str) -> None:
    """Fit many samples and count."""
    generator = np.random.default_rng((SEED, size, int(10 * float(epsilon))))
    usual = {"epsilon": epsilon, "delta": DELTA, "bounds": (-5, 5), "target_bounds": (-10, 10)}
    estimator = getattr(private, kind)(**usual, public_rows=size)
    covered, reaches, exact = [], [], []
    runs = RUNS // 20 if is_quick() else RUNS
    for _ in range(runs):
        X, y = sample(generator, size, residuals)
        exact.append(exact_reach(X, y))
        try:
            low, high = estimator.fit(X, y).intervals_(0.95).T
        except Refused:
            continue
        covered.append((low <= TRUTH) & (high >= TRUTH))
        reaches.append((high - low).mean() / 2)
    shares = np.mean(covered, axis=0) if covered else np.zeros(len(TRUTH))
    emit(
        part="coverage",
        estimator=kind,
        method=estimator.method_,
        residuals=residuals,
        n=size,
        epsilon=epsilon,
        runs=runs,
        told=len(covered),
        least=float(shares.min()),
        mean=float(shares.mean()),
        width=float(np.mean(reaches)) if reaches else None,
        exact_width=float(np.mean(exact)),
    )


def main() -> None:
    """Measure every case."""
    for case in CASES:
        measure(*case)


if __name__ == "__main__":
    main()
