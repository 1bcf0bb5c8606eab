"""Many linear queries of one table: how near their variances are to the least that is possible."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from benchmarks.environments import OURS
from benchmarks.results import Goal, Results, gather
from benchmarks.table import MISSING, Table, number

__all__ = ["measure", "table"]

NEAR: Final = 1.05  # times the optimum


def measure(*, quick: bool, data: Path | None = None) -> Results:
    """Search all strategies; no rows are read."""
    del data
    gathering = gather(quick=quick)
    if (environment := gathering.environment(OURS)) is not None:
        gathering.run(environment, "discreet_workload")
    return gathering.results("workload")


def goals(rows: list[dict[str, Any]]) -> tuple[Goal, ...]:
    """Judge all workloads, each in its worst row."""
    gaussian = [ratio for row in rows for ratio in (row["ratio"], row["replaced"]) if ratio is not None]
    worse = [row for row in rows if row["pure"] > (1 + 1e-9) * min(row["pure_identity"], row["pure_asked"])]
    return (
        Goal("Gaussian noise within 1.05 of the optimum", max(gaussian) <= NEAR if rows else None),
        Goal("Laplace noise never above that on cells, or on queries", not worse if rows else None),
    )


def table(results: Results) -> Table:
    """Show variances as times the optimum, or with Laplace noise as times ours."""
    rows = [row for row in results.rows if row["job"] == "workload"]
    return Table(
        title="Workloads: variances as times the optimum (Gaussian noise), and as times ours (Laplace noise)",
        columns=(
            "workload",
            "cells",
            "answers",
            "of",
            "the optimum",
            "ours",
            "ours, replace-one",
            "noise on cells",
            "noise on queries",
            "bound by singular values",
            "Laplace: ours",
            "Laplace on cells",
            "Laplace on queries",
            "s of CPU",
        ),
        rows=tuple(map(_line, rows)),
        remarks=(
            ", ".join(map(str, goals(rows))) + ".",
            "Variances for ρ = 1/2 (Gaussian noise, variance one for sensitivity one) and, over 2, for ε = 1 (Laplace "
            "noise), add-remove unless it says otherwise. The optimum is a bound below all strategies, proven by the "
            "search itself. Under replace-one it is another one, and none is known of products of several columns. "
            "Seconds are those of the search for Gaussian noise, which is done once for a name and a size. "
            "Margins are of columns with 2, 3, 4, 5 and 6 values.",
            *results.missing(),
        ),
    )


def _line(row: dict[str, Any]) -> tuple[str, ...]:
    of = "largest variance" if row["aim"] == "largest" else "sum of variances"
    ratios = (MISSING if row[name] is None else f"{row[name]:.4f}" for name in ("ratio", "replaced"))
    times = (number(row[name]) for name in ("identity", "asked", "svd"))
    pure = (f"{number(row[name] / row['pure'])}×" for name in ("pure_identity", "pure_asked"))
    sizes = (f"{row['cells']:,}", f"{row['answers']:,}")
    return (row["workload"], *sizes, of, number(row["bound"], 4), *ratios, *times, number(row["pure"], 4), *pure,
            number(row["seconds"], 2))  # fmt: skip
