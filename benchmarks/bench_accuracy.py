"""Accuracy: how far private answers are from the exact ones, ours and the peers', on real and synthetic data."""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Iterator
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.accuracy_tables import PLAIN, tables
from benchmarks.cells import ADD_REMOVE, FOLDER, QUANTILES, REPLACE_ONE, Part, write_parts
from benchmarks.datasets import DATASETS, Dataset, Table, available, sampled
from benchmarks.environments import OURS
from benchmarks.limits import Errors, ratio_limits
from benchmarks.results import Gathering, Results, gather

__all__ = ["measure", "tables"]

Floats = NDArray[np.float64]
Method = tuple[str, str]  # subject and name

SCRIPTS: Final = {
    "diffprivlib_accuracy": "diffprivlib",
    "opendp_accuracy": "opendp",
    "python_dp_accuracy": "python-dp",
    "published_accuracy": OURS,
    "discreet_accuracy": OURS,
}
PUBLISHED: Final = "published"
EXPECTED: Final = "expected"  # ends the name of a peer's method that was told what values are likely
# What is asked, and under which relation. The number of rows is public under replace-one only.
TASKS: Final = (
    *product(QUANTILES, (ADD_REMOVE, REPLACE_ONE)),
    ("mean", REPLACE_ONE),
    ("mode", ADD_REMOVE),
    ("regression", ADD_REMOVE),
)
NUMBERS: Final = (*QUANTILES, "mean")
EPSILONS: Final = ("0.1", "0.5", "1")
PARTS: Final = {10**3: 20, 10**4: 10, 10**5: 5, 10**6: 2}  # data sets of each size
QUICK_PARTS: Final = {10**3: 5, 10**4: 2, 10**5: 1}
RUNS, QUICK_RUNS = 5_000, 400  # of a cell, over all its parts


def measure(*, quick: bool, data: Path | None = None) -> Results:
    """Draw the data, ask every subject, and compare."""
    gathering = gather(quick=quick)
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    parts = [part for dataset in available(data) for part in prepared(dataset, data, quick=quick)]
    write_parts(parts)
    for script, subject in SCRIPTS.items():
        if (environment := gathering.environment(subject)) is not None:
            label = PUBLISHED if script.startswith(PUBLISHED) else subject
            gathering.run(environment, script, label=label)
    gathering.rows[:] = judged(parts, gathering)
    shutil.rmtree(FOLDER)
    return gathering.results("accuracy")


def prepared(dataset: Dataset, folder: Path | None, *, quick: bool) -> Iterator[Part]:
    """Write data sets of every size, and name what is asked about them."""
    table = dataset.load(folder or Path())
    candidates = int(table.codes.max()) + 1
    runs = QUICK_RUNS if quick else RUNS
    for size, count in (QUICK_PARTS if quick else PARTS).items():
        for number in range(count):
            some = sampled(table, size, dataset.step, DATASETS.index(dataset), number)
            _write(_name(dataset, size, number), some, candidates)
            for (task, relation), epsilon in product(TASKS, EPSILONS):
                if task in NUMBERS or dataset.name != "outside":
                    yield _part(dataset, some, task, relation, epsilon, number=number, count=count, runs=runs)


def _part(
    dataset: Dataset, some: Table, task: str, relation: str, epsilon: str, *, number: int, count: int, runs: int
) -> Part:
    size, (low, high) = len(some.values), dataset.bounds
    inside = bool(float(low) <= some.values.min() and some.values.max() <= float(high))
    kind = "numbers" if task in NUMBERS else task
    return Part(
        cell=f"{task}-{relation}-{dataset.name}-{size}-{epsilon}",
        number=number,
        share=1 / count,
        runs=runs // count,
        task=task,
        dataset=dataset.name,
        relation=relation,
        size=size,
        epsilon=epsilon,
        delta="0.000001" if size < 10**6 else "0.0000001",
        file=f"{_name(dataset, size, number)}-{kind}.f64",
        columns=some.design.shape[1] if task == "regression" else 1,
        low=low,
        high=high,
        step=dataset.step,
        expected=dataset.expected,
        facts_hold=inside or task not in NUMBERS,
    )


def _name(dataset: Dataset, size: int, number: int) -> str:
    return f"{dataset.name}-{size}-{number}".replace(" ", "_")


def _write(name: str, table: Table, candidates: int) -> None:
    """Write numbers, counts of candidates, and design."""
    counts = np.bincount(table.codes, minlength=candidates).astype(float)
    arrays = {"numbers": table.values.astype(float), "mode": counts, "regression": table.design}
    for kind, array in arrays.items():
        np.ascontiguousarray(array).tofile(FOLDER / f"{name}-{kind}.f64")


def judged(parts: list[Part], gathering: Gathering) -> Iterator[dict[str, Any]]:
    """Put the parts of every cell together, and compare our methods with the best peer's."""
    asked: dict[tuple[str, int], list[dict[str, Any]]] = defaultdict(list)
    for row in gathering.rows:
        asked[row["cell"], row["number"]].append(row)
    cells: dict[str, list[Part]] = defaultdict(list)
    for part in parts:
        cells[part.cell].append(part)
    for cell in cells.values():
        yield _compared(cell[0], _together(cell, asked), exact=float(np.median([exact(part) for part in cell])))


def _together(cell: list[Part], asked: dict[tuple[str, int], list[dict[str, Any]]]) -> dict[Method, Errors]:
    found: dict[Method, list[Floats]] = defaultdict(list)
    for part in cell:
        for row in asked[part.cell, part.number]:
            found[row["label"], row["method"]].append(errors(part, np.fromfile(FOLDER / row["file"])))
    return {method: Errors(np.concatenate(some), by_mean=cell[0].task == "mode") for method, some in found.items()}


def _compared(part: Part, found: dict[Method, Errors], exact: float) -> dict[str, Any]:
    """Sum up a cell: the error of every method with its limits, and ours over the best peer's."""
    facts = {name: getattr(part, name) for name in ("task", "relation", "dataset", "size", "epsilon", "facts_hold")}
    ratios = {
        name: ratio_limits(error, found[best_peer(found, expected=name != PLAIN)])
        for (subject, name), error in found.items()
        if subject == OURS
    }
    return {
        **facts,
        "exact": None if np.isnan(exact) else _short(exact),
        "errors": {": ".join(method): [*_limits(error), len(error.errors)] for method, error in found.items()},
        "best_peer": ": ".join(best_peer(found, expected=True)),
        "ratios": {name: list(map(_short, limits)) for name, limits in ratios.items()},
    }


def best_peer(found: dict[Method, Errors], *, expected: bool) -> Method:
    """Return the peer's method of the smallest error, with or without those that use the guess of the law."""
    peers = [name for name in found if name[0] != OURS and (expected or not name[1].endswith(EXPECTED))]
    return min(peers, key=lambda name: found[name].typical)


def _limits(error: Errors) -> list[float]:
    return list(map(_short, (error.typical, *error.limits())))


def errors(part: Part, estimates: Floats) -> Floats:
    """Compare answers with the exact one; an answer that was declined is infinitely far away."""
    if part.task == "mode":
        counts = np.append(np.fromfile(FOLDER / part.file), 0.0)
        return np.asarray(1 - counts[np.where(np.isnan(estimates), -1, estimates).astype(int)] / counts.max())
    if part.task == "regression":
        coefficients, root, deviation = _least_squares(part.file, part.columns)
        apart = (estimates.reshape(-1, len(coefficients)) - coefficients) @ root.T
        distances = np.linalg.norm(apart, axis=1) / deviation
        return np.where(np.isnan(distances), np.inf, distances)
    # Every answer is read on the public grid, the mean's too fine for it to matter.
    rounded = estimates if part.task == "mean" else np.rint(estimates / float(part.step)) * float(part.step)
    apart = np.abs(rounded - exact(part)) / max(abs(exact(part)), float(part.step))
    return np.where(np.isnan(apart), np.inf, np.where(apart < 1e-12, 0.0, apart))


def exact(part: Part) -> float:
    """Return the non-private value: a statistic, the number of the most frequent, or the deviation of residuals."""
    return _exact(part.file, part.task)


@lru_cache(64)
def _exact(file: str, task: str) -> float:
    data = np.fromfile(FOLDER / file)
    if task in QUANTILES:
        # The lower of the values of this rank: every definition in use lies within one rank of it.
        return float(np.quantile(data, float(QUANTILES[task]), method="inverted_cdf"))
    return float(data.mean() if task == "mean" else data.max() if task == "mode" else np.nan)


@lru_cache(64)
def _least_squares(file: str, columns: int) -> tuple[Floats, Floats, float]:
    """Return the coefficients, a root of the Gram matrix over n, and the deviation of the response."""
    design = np.fromfile(FOLDER / file).reshape(-1, columns)
    table = np.column_stack([design[:, :-1], np.ones(len(design))])
    coefficients = np.asarray(np.linalg.lstsq(table, design[:, -1], rcond=None)[0], dtype=np.float64)
    root: Floats = np.asarray(np.linalg.qr(table, mode="r")) / np.sqrt(len(design))
    return coefficients, root, float(design[:, -1].std())


def _short(value: float) -> float:
    return float(f"{value:.4g}")
