"""Estimators in scikit-learn's shape: how well they predict, against diffprivlib and without privacy."""

from __future__ import annotations

import math
from pathlib import Path
from statistics import mean, stdev
from typing import Any, Final

from benchmarks.environments import ROOT
from benchmarks.estimator_jobs import DELTA, EPSILONS, keep
from benchmarks.learning_sets import LEARNING_SETS, TESTED
from benchmarks.results import Goal, Results, gather
from benchmarks.table import MISSING, Table, number

__all__ = ["goals", "measure", "tables"]

OURS: Final = "discreet-sklearn"
FOLDER: Final = ROOT / ".bench" / "estimators"
LEAST_COVERAGE: Final = 0.93
_LIMIT: Final = 3.0902  # The normal quantile of 99.9 %.
METRICS: Final = {"regression": ("R²",), "classification": ("AUC", "accuracy")}
ESTIMATORS: Final = {"regression": ("linear regression",), "classification": ("logistic regression", "naive Bayes")}


def measure(*, quick: bool, data: Path | None) -> Results:
    """Fit everything, one at a time; without a folder there is nothing to fit."""
    gathering = gather(quick=quick)
    if data is None:
        gathering.failures[OURS] = "not measured: name a folder with the real data sets by --data"
        return gathering.results("estimators")
    for known in LEARNING_SETS:
        keep(known.name, known.task, known.load(data), FOLDER)
    for subject, script in ((OURS, "discreet_estimators"), ("diffprivlib", "diffprivlib_estimators")):
        if (environment := gathering.environment(subject)) is not None:
            gathering.run(environment, script, str(FOLDER))
            if subject == OURS:
                gathering.run(environment, "discreet_intervals")
                gathering.run(environment, "discreet_classes")
    gathering.failures = {name.replace(str(FOLDER), "DATA"): why for name, why in gathering.failures.items()}
    return gathering.results("estimators")


def goals(results: Results) -> tuple[Goal, ...]:
    """Judge every cell that the peer has too, and every row of intervals."""
    cells = (_goal(results, *cell) for cell in _cells())
    return *cells, *(_covers(row) for row in results.rows if row.get("part") == "coverage")


def tables(results: Results) -> tuple[Table, ...]:
    """Show one row for each data set, estimator and measure, and then the intervals."""
    against = (f"ε = {epsilon}: ours / diffprivlib" for epsilon in EPSILONS)
    columns = ("data", "estimator", "measure", *against, "not private", "goal")
    rows = []
    for known in LEARNING_SETS:
        for estimator in ESTIMATORS[known.task]:
            for metric in METRICS[known.task]:
                rows.append(_row(results, known.name, estimator, metric))
    title = "Estimators on held-out rows"
    first = Table(title=title, columns=columns, rows=tuple(rows), remarks=_remarks(results))
    return first, *_classes(results), _coverage(results)


def _classes(results: Results) -> tuple[Table, ...]:
    """Show softmax beside one class against the rest, where that was measured."""
    rows = [row for row in results.rows if row.get("part") == "classes"]
    found = {(row["dataset"], row["epsilon"], row["way"]): row for row in rows}
    sets = list(dict.fromkeys(row["dataset"] for row in rows))
    cells = [
        (
            name,
            *(
                " / ".join(_written(found.get((name, epsilon, way))) for way in ("ovr", "softmax"))
                for epsilon in EPSILONS
            ),
            _written(found.get((name, EPSILONS[0], "not private"))),
        )
        for name in sets
    ]
    table = Table(
        title="Accuracy of logistic regressions of more than two classes",
        columns=("data", *(f"ε = {epsilon}: one against the rest / softmax" for epsilon in EPSILONS), "not private"),
        rows=tuple(cells),
        remarks=(f"Means over divisions of the rows, 30 % of them held out; δ = {DELTA}, `inference=False`.",),
    )
    return (table,) if cells else ()


def _coverage(results: Results) -> Table:
    rows = [row for row in results.rows if row.get("part") == "coverage"]
    columns = ("estimator", "residuals", "n", "ε", "told", "coverage, worst", "mean", "±", "± without privacy", "goal")
    return Table(
        title="Coverage of 95 % intervals of coefficients",
        columns=columns,
        rows=tuple(_covered(row) for row in rows),
        remarks=(
            f"{rows[0]['runs'] if rows else 0:,} samples a row: four normal features between -5 and 5, an intercept, "
            f"targets between -10 and 10, residuals of deviation 1, or, “uneven”, of 0.5 + |x1|; δ = {DELTA}, "
            "add-remove, `public_rows` is n. “Worst” is the least covered coefficient. “Told” is the share of fits "
            "with intervals; the others say that noise hides them, and are not counted.",
            f"The goal is a coverage of at least {LEAST_COVERAGE}, up to 99.9 % limits of counting.",
        ),
    )


def _covers(row: dict[str, Any]) -> Goal:
    chance = _LIMIT * math.sqrt(LEAST_COVERAGE * (1 - LEAST_COVERAGE) / max(row["told"], 1))
    return Goal(f"≥ {LEAST_COVERAGE}", row["least"] >= LEAST_COVERAGE - chance if row["told"] else None)


def _covered(row: dict[str, Any]) -> tuple[str, ...]:
    return (
        f"{row['estimator']} ({row['method']})",
        row["residuals"],
        f"{row['n']:,}",
        row["epsilon"],
        f"{row['told'] / row['runs']:.0%}",
        f"{row['least']:.3f}",
        f"{row['mean']:.3f}",
        number(row["width"]),
        number(row["exact_width"]),
        str(_covers(row)),
    )


def _cells() -> list[tuple[str, str, str, str]]:
    return [
        (known.name, estimator, metric, epsilon)
        for known in LEARNING_SETS
        for estimator in ESTIMATORS[known.task]
        for metric in METRICS[known.task]
        for epsilon in EPSILONS
    ]


def _found(
    results: Results, who: str, dataset: str, estimator: str, metric: str, epsilon: str
) -> dict[str, Any] | None:
    return results.find(who=who, dataset=dataset, estimator=estimator, metric=metric, epsilon=epsilon)


def _goal(results: Results, dataset: str, estimator: str, metric: str, epsilon: str) -> Goal:
    text = f"{dataset}, {estimator}, {metric}, ε = {epsilon}"
    ours = _found(results, "discreet", dataset, estimator, metric, epsilon)
    theirs = _found(results, "diffprivlib", dataset, estimator, metric, epsilon)
    if ours is None or theirs is None:
        return Goal(text, None)
    return Goal(text, ours["mean"] > theirs["mean"] or _is_chance(ours["scores"], theirs["scores"]))


def _is_chance(ours: list[float], theirs: list[float]) -> bool:
    """Whether the mean difference over the same splits is within two of its standard errors."""
    differences = [a - b for a, b in zip(ours, theirs, strict=True)]
    return abs(mean(differences)) <= 2 * stdev(differences) / math.sqrt(len(differences))


def _row(results: Results, dataset: str, estimator: str, metric: str) -> tuple[str, ...]:
    cells = [
        " / ".join(
            _written(_found(results, who, dataset, estimator, metric, epsilon)) for who in ("discreet", "diffprivlib")
        )
        for epsilon in EPSILONS
    ]
    reached = [_goal(results, dataset, estimator, metric, epsilon).reached for epsilon in EPSILONS]
    plain = _written(_found(results, "not private", dataset, estimator, metric, ""))
    goal = MISSING if None in reached else ("yes" if all(reached) else "NO")
    return dataset, estimator, metric, *cells, plain, goal


def _written(row: dict[str, Any] | None) -> str:
    return MISSING if row is None else f"{row['mean']:.3f}"


def _remarks(results: Results) -> tuple[str, ...]:
    runs = next((len(row["scores"]) for row in results.rows if "scores" in row and "part" not in row), 0)
    return (
        f"Means over {runs} splits, the same for everybody; one row in {TESTED} is held out. R² below zero is worse "
        "than predicting the mean.",
        f"Ours spends ε with δ = {DELTA}, add-remove; diffprivlib claims pure ε. Both are told the same bounds, and "
        "predictions of all three are moved into those of the target. Ours is also told about how many rows there are.",
        "Where diffprivlib's claim is not met: its linear regression with an intercept spends (d + 2) / (d + 1) of ε; "
        "its logistic regression is perturbed as if solved exactly, and is not; its classes are read from the data; "
        "its noise is floating-point.",
        "The goal is a higher mean than diffprivlib's at every ε, or one that two standard errors of the difference "
        "over the same splits do not tell apart: where both are as good as without privacy, neither can be better.",
        *results.missing(),
    )
