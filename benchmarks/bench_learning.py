"""Learning: what private training reaches on MNIST, and private trees on eight tables."""

from __future__ import annotations

import math
from pathlib import Path
from statistics import mean, stdev
from typing import Any, Final

from benchmarks.environments import ROOT
from benchmarks.estimator_jobs import DELTA as TREES_DELTA
from benchmarks.estimator_jobs import EPSILONS, keep
from benchmarks.learning_sets import TESTED, TREE_SETS
from benchmarks.mnist import DELTA, MNIST_RUNS, PUBLIC_SIZE, RECIPES, Recipe
from benchmarks.results import Goal, Results, gather
from benchmarks.table import MISSING, Table, number

__all__ = ["goals", "measure", "measure_trees", "table", "trees_goals", "trees_table"]

OURS: Final = "discreet-torch"


def measure(*, quick: bool, data: Path | None) -> Results:
    """Train every model as often as its recipe says; without a folder there is nothing to learn."""
    gathering = gather(quick=quick)
    if data is None:
        gathering.failures[OURS] = "not measured: name a folder with MNIST by --data"
    elif (environment := gathering.environment(OURS)) is not None:
        for model in dict.fromkeys(recipe.model for recipe in RECIPES.values()):
            gathering.run(environment, "discreet_learning", str(data.resolve()), model)
        gathering.failures = {
            name.replace(str(data.resolve()), "DATA"): why for name, why in gathering.failures.items()
        }
    return gathering.results("learning")


def goals(results: Results, recipe: Recipe) -> Goal:
    """Judge the mean of all runs of a recipe."""
    runs = _runs(results, recipe)
    reached = mean(run["accuracy"] for run in runs) >= recipe.goal if runs else None
    return Goal(f"≥ {recipe.goal} %", reached)


def table(results: Results) -> Table:
    """One row a recipe."""
    made = results.figure("minutes", part="features", model="linear")
    return Table(
        title=f"MNIST, δ = {DELTA}: accuracy on the 10,000 digits that are set apart, in per cent",
        columns=(
            "model",
            "ε",
            "accuracy, mean",
            "lowest",
            "highest",
            "published",
            "batch",
            "steps",
            "minutes a run",
            "goal",
        ),
        rows=tuple(_row(results, recipe) for recipe in RECIPES.values()),
        remarks=(
            f"{MNIST_RUNS} runs each with exact sampling and exact noise, one thread; rows are added or removed, and "
            f"{PUBLIC_SIZE:,} is the public size. The features of all digits take {number(made, 2)} minutes once.",
            "Rates, batches, clips and steps were found on MNIST itself, as those of published figures are. On private "
            "data such a search costs: PrivateSearch pays for it.",
            "Published: Tramèr and Boneh 2021, at ε = 3.",
            *results.missing(),
        ),
    )


def _runs(results: Results, recipe: Recipe) -> list[dict[str, Any]]:
    wanted = {"part": "run", "model": recipe.model, "wanted": recipe.epsilon}
    return [row for row in results.rows if wanted.items() <= row.items()]


def _row(results: Results, recipe: Recipe) -> tuple[str, ...]:
    runs = _runs(results, recipe)
    found = [run["accuracy"] for run in runs]
    told = [f"{which(found):.2f}" for which in (mean, min, max)] if found else [MISSING] * 3
    return (
        recipe.name,
        f"{max(run['epsilon'] for run in runs):.3f}" if runs else str(recipe.epsilon),
        *told,
        recipe.published,
        f"{recipe.batch:,}",
        f"{recipe.steps:,}",
        number(mean(run["minutes"] for run in runs), 2) if runs else MISSING,
        str(goals(results, recipe)),
    )


# --- trees ---

FOLDER: Final = ROOT / ".bench" / "trees"
_APART: Final = 0.02  # By which real boosting must beat real lines before private boosting is asked to.


def measure_trees(*, quick: bool, data: Path | None) -> Results:
    """Fit trees and lines to eight tables; without a folder there is nothing to fit."""
    gathering = gather(quick=quick)
    if data is None:
        gathering.failures["discreet-sklearn"] = "not measured: name a folder with the real data sets by --data"
        return gathering.results("trees")
    for known in TREE_SETS:
        keep(known.name, known.task, known.load(data), FOLDER)
    for subject, script in (("discreet-sklearn", "discreet_trees"), ("diffprivlib", "diffprivlib_trees")):
        if (environment := gathering.environment(subject)) is not None:
            gathering.run(environment, script, str(FOLDER))
    gathering.failures = {name.replace(str(FOLDER), "DATA"): why for name, why in gathering.failures.items()}
    return gathering.results("trees")


def trees_goals(results: Results, dataset: str) -> tuple[Goal, ...]:
    """Judge boosted trees against diffprivlib's forest, and against our lines where real ones are worse."""
    real = [_scores(results, "not private", name, dataset, "") for name in ("boosted trees", "logistic regression")]
    curved = bool(real[0] and real[1]) and mean(real[0]) >= mean(real[1]) + _APART
    found = []
    for epsilon in EPSILONS:
        boosted = _scores(results, "discreet", "boosted trees", dataset, epsilon)
        found.append(Goal(f"forest, ε = {epsilon}", _wins(boosted, _peer(results, dataset, epsilon))))
        if curved and float(epsilon) >= 1:
            lines = _scores(results, "discreet", "logistic regression", dataset, epsilon)
            found.append(Goal(f"lines, ε = {epsilon}", _wins(boosted, lines)))
    return tuple(found)


def trees_table(results: Results) -> Table:
    """One row a table."""
    return Table(
        title=f"Trees on eight tables, δ = {TREES_DELTA}: AUC on held-out rows",
        columns=("data", *(_HEAD.format(epsilon) for epsilon in EPSILONS), "not private: boosted / lines", "goal"),
        rows=tuple(_trees_row(results, known.name) for known in TREE_SETS),
        remarks=(
            f"Means over {_splits(results)} splits, the same for everybody; one row in {TESTED} is held out. Each "
            "cell: our boosted trees / our random forest / our logistic regression / diffprivlib's random forest.",
            "diffprivlib claims pure ε, ours spends ε with δ; both are told the same bounds and classes, and all else "
            "is as it comes.",
            "The goals are a higher mean of boosted trees than of that forest at every ε, and than of our logistic "
            f"regression at ε ≥ 1 where without privacy boosting is better by {_APART}; or one that two standard "
            "errors of the difference over the same splits do not tell apart.",
            *results.missing(),
        ),
    )


_HEAD: Final = "ε = {}: boosted / forest / lines / diffprivlib"


def _scores(results: Results, who: str, estimator: str, dataset: str, epsilon: str) -> list[float]:
    row = results.find(who=who, estimator=estimator, dataset=dataset, epsilon=epsilon, metric="AUC")
    return [] if row is None else list(row["scores"])


def _splits(results: Results) -> int:
    return next((len(row["scores"]) for row in results.rows), 0)


def _peer(results: Results, dataset: str, epsilon: str) -> list[float]:
    return _scores(results, "diffprivlib", "random forest", dataset, epsilon)


def _wins(ours: list[float], theirs: list[float]) -> bool | None:
    """Tell whether the mean is higher, or within two standard errors of the difference over the same splits."""
    if not ours or len(ours) != len(theirs):
        return None
    apart = [one - other for one, other in zip(ours, theirs, strict=True)]
    return mean(apart) >= -2 * stdev(apart) / math.sqrt(len(apart))


def _trees_row(results: Results, dataset: str) -> tuple[str, ...]:
    def told(scores: list[float]) -> str:
        return f"{mean(scores):.3f}" if scores else MISSING

    names = ("boosted trees", "random forest", "logistic regression")
    cells = []
    for epsilon in EPSILONS:
        ours = [told(_scores(results, "discreet", name, dataset, epsilon)) for name in names]
        cells.append(" / ".join([*ours, told(_peer(results, dataset, epsilon))]))
    real = " / ".join(told(_scores(results, "not private", name, dataset, "")) for name in (names[0], names[2]))
    return dataset, *cells, real, ", ".join(str(goal) for goal in trees_goals(results, dataset))
