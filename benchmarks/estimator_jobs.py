"""What is asked of every estimator in the table, by whomever it is."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.learning_sets import Bounded, Floats, split
from benchmarks.peers.protocol import emit, is_quick

__all__ = ["DELTA", "EPSILONS", "auc", "keep", "kept", "r_squared", "report"]

EPSILONS: Final = ("0.1", "1", "3")
DELTA: Final = "1e-6"
RUNS: Final = 10


def keep(name: str, task: str, table: Bounded, folder: Path) -> None:
    """Write a table for scripts whose environments cannot read Parquet."""
    folder.mkdir(parents=True, exist_ok=True)
    bounds, ends = np.array(table.bounds), np.array(table.target_bounds)
    np.savez(folder / f"{name}.npz", X=table.X, y=table.y, bounds=bounds, ends=ends, task=np.array(task))


def kept(path: Path) -> tuple[str, Bounded]:
    """Read a table and its task."""
    with np.load(path) as file:
        bounds = [(float(low), float(high)) for low, high in file["bounds"]]
        table = Bounded(file["X"], file["y"], bounds, (float(file["ends"][0]), float(file["ends"][1])))
        return str(file["task"]), table


def report(
    table: Bounded, score: Callable[[Bounded, Any, Any], dict[str, float]], runs: int = RUNS, /, **labels: object
) -> None:
    """Fit and score on fresh halves again and again, and print the means."""
    start, found = time.process_time(), []
    for repetition in range(3 if is_quick() else runs):
        fitted, held = split(table, repetition)
        found.append(score(table, fitted, held))
    seconds = (time.process_time() - start) / len(found)
    for metric in found[0]:
        scores = [round(one[metric], 6) for one in found]
        emit(**labels, metric=metric, mean=float(np.mean(scores)), scores=scores, seconds=round(seconds, 3))


def folder() -> Path:
    """Return where the tables were written, as the caller says."""
    return Path(sys.argv[1])


def r_squared(truth: Floats, predicted: Floats) -> float:
    """Return the share of the variance that a prediction explains; below zero it is worse than the mean."""
    return float(1 - ((truth - predicted) ** 2).sum() / ((truth - truth.mean()) ** 2).sum())


def auc(truth: Floats, scores: Floats) -> float:
    """Return how often a case scores above a non-case, ties counting half."""
    order = np.argsort(scores, kind="stable")
    distinct, back, counts = np.unique(scores[order], return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    ranks = np.empty(len(scores))
    ranks[order] = (ends - (counts - 1) / 2)[back]
    cases = truth == 1
    lowest = cases.sum() * (cases.sum() + 1) / 2
    return float((ranks[cases].sum() - lowest) / (cases.sum() * (~cases).sum())) if len(distinct) > 1 else 0.5
