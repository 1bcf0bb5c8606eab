"""Learning: what private training reaches on MNIST, beside published figures."""

from __future__ import annotations

from pathlib import Path
from statistics import mean
from typing import Any, Final

from benchmarks.mnist import DELTA, MNIST_RUNS, PUBLIC_SIZE, RECIPES, Recipe
from benchmarks.results import Goal, Results, gather
from benchmarks.table import MISSING, Table, number

__all__ = ["goals", "measure", "table"]

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
