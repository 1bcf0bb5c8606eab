"""Nine deciles that are released together: their errors beside those of one decile at the whole budget."""

from __future__ import annotations

import math
from typing import Any, Final

from benchmarks.environments import OURS
from benchmarks.results import Goal, Results, gather
from benchmarks.table import Table, number

__all__ = ["goals", "measure", "table"]

COLUMNS: Final = ("even", "normal", "lognormal", "two peaks", "ages, whole years")
RUNS: Final = 60
MOST: Final = {True: 3.5, False: 2.5}  # times the error of one, by whether the budget is pure
Row = dict[str, Any]


def measure(*, quick: bool, runs: int | None = None) -> Results:
    """Release the deciles of every column."""
    gathering = gather(quick=quick)
    if (environment := gathering.environment(OURS)) is not None:
        for name in COLUMNS:
            gathering.run(environment, "discreet_quantiles_at_once", name, str(runs or RUNS))
    return gathering.results("quantiles_at_once")


def ratio(row: Row, error: str = "off") -> float:
    """Return how many times as far off nine are as one; one that is always exact has no error to compare with."""
    alone = float(row[f"{error}_alone"])
    return float(row[error]) / alone if alone else math.nan


def goals(row: Row) -> tuple[Goal, Goal]:
    """Judge one cell by values and by ranks; what is never off reaches them."""
    most = MOST[row["pure"]]

    def reached(error: str) -> bool:
        return bool(row[error] <= most * row[f"{error}_alone"])

    return Goal(f"values ≤ {most:g}×", reached("off")), Goal(f"ranks ≤ {most:g}×", reached("ranks"))


def table(results: Results) -> Table:
    """Show all cells."""
    return Table(
        title="Nine deciles at once, beside one decile at the whole budget: 10,000 rows",
        columns=(
            "data",
            "asked by",
            "budget",
            "runs",
            "ranks off",
            "one: ranks off",
            "ranks / one's",
            "values / one's",
            "goals",
        ),
        rows=tuple(map(_line, results.rows)),
        remarks=(
            "Mean errors of nine deciles, and of the same deciles each released by itself with all of the budget: how "
            "many ranks the value is off its decile, and how far the values lie apart. A value that many rows share "
            "has a run of ranks, and is off only if the decile lies outside of it.",
            "Of a budget of ε alone one decile is chosen by permute-and-flip; ρ = ε² / 8 is what a choice of bounded "
            "range ε costs where losses compose. Nine are chosen at once by the exponential mechanism, either way. In "
            "SQL up to three rows of a person count, for both.",
            "Where rows share few values, as ages do, one decile is nearly always exact: its score grows with how far "
            "inside its run the rank lies. Nine at once have no such score, see the page on several quantiles.",
            *results.missing(),
        ),
    )


def _line(row: Row) -> tuple[str, ...]:
    return (
        row["data"],
        row["way"],
        f"ε = {row['epsilon']}" if row["pure"] else f"ρ = {row['epsilon']}² / 8",
        str(row["runs"]),
        number(row["ranks"]),
        number(row["ranks_alone"]),
        _times(ratio(row, "ranks")),
        _times(ratio(row)),
        ", ".join(map(str, goals(row))),
    )


def _times(found: float) -> str:
    return "one is exact" if math.isnan(found) else number(found)
