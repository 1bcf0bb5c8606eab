"""Diffusion: how well classifiers do on real digits after learning from drawn ones, beside published figures."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from benchmarks.results import Goal, Results, gather
from benchmarks.table import MISSING, Table, number

__all__ = ["goals", "measure", "table"]

OURS: Final = "discreet-merf"
NAMES: Final = ("LR", "MLP", "CNN")
GOALS: Final = {1: 0.70, 10: 0.88}
# Of DPDM at 28 x 28 after hours on eight graphics cards.
PUBLISHED: Final = {1: (0.867, 0.916, 0.953), 10: (0.908, 0.948, 0.981)}


def measure(*, quick: bool, data: Path | None) -> Results:
    """Fit a model for each epsilon; without a folder there is nothing to learn."""
    gathering = gather(quick=quick)
    if data is None:
        gathering.failures[OURS] = "not measured: name a folder with MNIST by --data"
    elif (environment := gathering.environment(OURS)) is not None:
        gathering.run(environment, "discreet_diffusion", str(data.resolve()))
        gathering.failures = {
            name.replace(str(data.resolve()), "DATA"): why for name, why in gathering.failures.items()
        }
    return gathering.results("diffusion")


def goals(results: Results) -> tuple[Goal, ...]:
    """Judge every classifier by itself."""
    found = []
    for epsilon, goal in GOALS.items():
        for name in NAMES:
            accuracy = results.figure("accuracy", part="classifier", epsilon=epsilon, classifier=name)
            found.append(Goal(f"ε = {epsilon}: {name} ≥ {goal:.2f}", None if accuracy is None else accuracy >= goal))
    return tuple(found)


def table(results: Results) -> Table:
    """Return one row an epsilon, and those of the paper."""
    return Table(
        title="MNIST at 14 x 14, δ = 1e-5: accuracy on the 10,000 real digits that are set apart",
        columns=("learnt from", *NAMES, "minutes to fit", "CPU minutes"),
        rows=(
            _row(results, "real", "20,000 real digits"),
            *(_row(results, epsilon, f"drawn, ε = {epsilon}") for epsilon in GOALS),
            *(_published(epsilon) for epsilon in PUBLISHED),
        ),
        remarks=(
            "20,000 digits are drawn; one thread. DPDM as published learns 28 x 28 pictures on eight graphics cards.",
            *(str(goal) for goal in goals(results)),
            *results.missing(),
        ),
    )


def _row(results: Results, epsilon: object, name: str) -> tuple[str, ...]:
    found = [results.figure("accuracy", part="classifier", epsilon=epsilon, classifier=each) for each in NAMES]
    taken = [results.figure(each, part="fit", epsilon=epsilon) for each in ("minutes", "cpu_minutes")]
    return name, *(number(figure, 3) for figure in found), *(number(figure, 2) for figure in taken)


def _published(epsilon: int) -> tuple[str, ...]:
    figures = (number(figure, 3) for figure in PUBLISHED[epsilon])
    return f"DPDM as published, ε = {epsilon}", *figures, MISSING, MISSING
