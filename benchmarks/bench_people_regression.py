"""Regression that protects patients with all their stays: coverage of intervals, and error beside one stay each."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Final

from benchmarks.environments import OURS
from benchmarks.results import Goal, Results, gather
from benchmarks.table import Table, number

__all__ = ["goals", "measure", "table"]

CORRELATIONS: Final = ("0", "0.3", "0.8")
EPSILONS: Final = ("1", "2")
RUNS: Final = 2_000
CONFIDENCE: Final = 0.95
ERROR: Final = 1.3  # times that of one row a person
_SURELY: Final = 2.6  # deviations, of a binomial count


def measure(*, quick: bool, data: Path | None = None, runs: int | None = None) -> Results:
    """Simulate every correlation and epsilon; the features are of real stays."""
    gathering = gather(quick=quick)
    if data is None:
        gathering.failures[OURS] = "not run: the features are those of diabetes130, see --data"
    elif (environment := gathering.environment(OURS)) is not None:
        for epsilon in EPSILONS:
            for correlation in CORRELATIONS:
                words = (correlation, epsilon, str(runs or RUNS), str(data))
                gathering.run(environment, "discreet_people_regression", *words)
    return gathering.results("people_regression")


def coverage(row: dict[str, Any]) -> list[float]:
    """Return in which part of the runs with intervals each coefficient was held."""
    return [held / row["bounded"] for held in row["held"]] if row["bounded"] else [math.nan]


def goals(row: dict[str, Any]) -> tuple[Goal, Goal]:
    """Judge one cell: intervals that cover, but for chance, and an error that is not much above one row a person's."""
    room = _SURELY * math.sqrt(CONFIDENCE * (1 - CONFIDENCE) / max(row["bounded"], 1))
    worst = max(many / one for many, one in zip(row["error"], row["error_alone"], strict=True))
    return (
        Goal("covers", min(coverage(row)) >= CONFIDENCE - room),
        Goal(f"error ≤ {ERROR:g}× one row a person", worst <= ERROR),
    )


def table(results: Results) -> Table:
    """Show all cells."""
    return Table(
        title="Regression over hospital stays, 4,000 patients with all their stays protected: intervals of 95 %",
        columns=(
            "correlation",
            "ε",
            "runs",
            "without interval",
            "covered of the others, %",
            "error / one row a person",
            "goals",
        ),
        rows=tuple(map(_line, results.rows)),
        remarks=(
            "Features of stays in diabetes130, patients drawn with replacement; made-up responses, of whose variance "
            "around a line the said part is common to a patient. At most 10 stays of a patient count, which share the "
            "weight of one; δ = 10⁻⁶, a tenth of the price for intervals by person. Coverage and error are the least "
            "and the greatest of five coefficients, the error beside that of one stay of each of the same patients.",
            "Where noise leaves a direction unmeasured, a release has no interval but the whole line: such runs are "
            "told apart, and covered is of the others. A cell covers if it is not below 95 % by more than chance "
            f"({_SURELY} deviations).",
            *results.missing(),
        ),
    )


def _line(row: dict[str, Any]) -> tuple[str, ...]:
    held = [100 * each for each in coverage(row)]
    ratios = [many / one for many, one in zip(row["error"], row["error_alone"], strict=True)]
    return (
        f"{row['correlation']:g}",
        row["epsilon"],
        f"{row['runs']:,}",
        f"{row['runs'] - row['bounded']:,}",
        f"{min(held):.1f} to {max(held):.1f}",
        f"{number(min(ratios))} to {number(max(ratios))}",
        ", ".join(map(str, goals(row))),
    )
