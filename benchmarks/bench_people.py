"""Training on people with twenty rows: accuracy of user-level DP-SGD beside group privacy, at equal ε for people."""

from __future__ import annotations

from typing import Any, Final

from benchmarks.people_jobs import BATCH, DELTA, EACH, EPSILONS, PEOPLE, SEEDS, STEPS, TRIED
from benchmarks.results import Goal, Results, gather
from benchmarks.table import Table

__all__ = ["goals", "measure", "table"]

OURS: Final = ("Discreet", f"at most {EACH}")
GROUP: Final = ("Opacus", f"noise for {EACH} rows")
SCRIPTS: Final = {"Discreet": ("discreet-torch", "discreet_people"), "Opacus": ("opacus", "opacus_people")}
ROWS: Final = (
    ("Discreet", "at most 1"),
    ("Discreet", "at most 5"),
    OURS,
    GROUP,
    ("Opacus", "one row a person"),
    ("Opacus", "not private"),
)
_WORDS: Final = {
    "Discreet": "Discreet, {} of a person's rows in a step",
    "noise": f"Opacus, all rows, noise for {EACH} of them (group privacy)",
    "one": "Opacus, one row of each person",
    "not": "plain torch, all rows, not private",
}


def measure(*, quick: bool) -> Results:
    """Train in every way, at every ε, in an environment each."""
    gathering = gather(quick=quick)
    for who, (subject, script) in SCRIPTS.items():
        if (environment := gathering.environment(subject)) is None:
            continue
        for epsilon in EPSILONS:
            gathering.run(environment, script, str(epsilon), str(1 if quick else SEEDS), who=who, epsilon=epsilon)
    return gathering.results("people")


def best(results: Results, row: tuple[str, str], epsilon: int) -> list[float] | None:
    """Return the accuracies with the clip and learning rate whose mean is best."""
    who, way = row
    found: list[dict[str, Any]] = [
        each for each in results.rows if (each["who"], each["way"], each["epsilon"]) == (who, way, epsilon)
    ]
    tried = [[float(value) for value in each["accuracies"]] for each in found]
    return max(tried, key=_mean) if tried else None


def goals(results: Results, epsilon: int) -> Goal:
    """Judge one ε: not behind group privacy."""
    ours, theirs = best(results, OURS, epsilon), best(results, GROUP, epsilon)
    reached = None if ours is None or theirs is None else _mean(ours) >= _mean(theirs)
    return Goal(f"≥ group privacy at ε = {epsilon}", reached)


def table(results: Results) -> Table:
    """Put all ways side by side."""
    return Table(
        title=f"Accuracy on other people's rows, per cent: {PEOPLE:,} people with {EACH} rows each, ε for a person",
        columns=("trained by", *(f"ε = {epsilon}" for epsilon in EPSILONS), "goals"),
        rows=tuple(_row(results, row) for row in ROWS),
        remarks=(
            f"Made-up rows whose variance is to a fifth common to a person; a network of 738 weights, {STEPS} steps, "
            f"{BATCH} people or a fifth of the rows expected in each, δ = {DELTA:g}. Means of {SEEDS} tables, with the "
            f"least and the greatest. Of {len(TRIED)} pairs of clip and learning rate each way is shown with its best, "
            "which is not private, and the same for everybody.",
            f"Group privacy is Opacus' noise for one row times {EACH}. That is generous to it: rows of one person are "
            "sampled by coins of their own, for which this factor is not proven.",
            *results.missing(),
        ),
    )


def _row(results: Results, row: tuple[str, str]) -> tuple[str, ...]:
    who, way = row
    words = _WORDS["Discreet"].format(way) if who == "Discreet" else _WORDS[way.split()[0]]
    cells = [_shown(best(results, row, epsilon)) for epsilon in EPSILONS]
    judged = ", ".join(str(goals(results, epsilon)) for epsilon in EPSILONS) if row == OURS else ""
    return (words, *cells, judged)


def _shown(accuracies: list[float] | None) -> str:
    if accuracies is None:
        return "–"
    mean, low, high = (f"{100 * each:.1f}" for each in (_mean(accuracies), min(accuracies), max(accuracies)))
    return f"{mean} ({low} to {high})"


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
