"""Robustness: how often private intervals cover, and how far outliers move private and exact estimates."""

from __future__ import annotations

import math
from typing import Any, Final

from benchmarks.environments import OURS
from benchmarks.results import Goal, Results, gather
from benchmarks.robust_jobs import ROBUST_BOUNDS, ROBUST_OUTLIER, ROBUST_OUTLIERS
from benchmarks.table import Table, number

__all__ = ["goals", "measure", "tables"]

LEAST_COVERAGE: Final = 0.93
_LIMIT: Final = 3.0902  # The normal quantile of 99.9 %.


def measure(*, quick: bool) -> Results:
    """Run all simulations, one at a time."""
    gathering = gather(quick=quick)
    if (environment := gathering.environment(OURS)) is not None:
        gathering.run(environment, "discreet_robustness")
    return gathering.results("robustness")


def goals(row: dict[str, Any]) -> Goal:
    """Judge one row: coverage up to what chance does in so many runs, or moves up to the noise of a release."""
    if row["part"] == "coverage":
        chance = _LIMIT * math.sqrt(LEAST_COVERAGE * (1 - LEAST_COVERAGE) / row["runs"])
        return Goal(f"≥ {LEAST_COVERAGE}", row["least"] >= LEAST_COVERAGE - chance)
    return Goal("≤ exact + noise", abs(row["private_move"]) <= abs(row["exact_move"]) + row["noise"])


def tables(results: Results) -> tuple[Table, ...]:
    """Show coverage first, then outliers."""
    parts = {name: [row for row in results.rows if row["part"] == name] for name in ("coverage", "outliers")}
    return _coverage(parts["coverage"], results), _outliers(parts["outliers"])


def _coverage(rows: list[dict[str, Any]], results: Results) -> Table:
    columns = ("estimate", "n", "µ", "coverage, worst", "mean", "exact, worst", "± private", "± exact", "goal")
    return Table(
        title="Coverage of 95 % intervals: normal data, scale asked for privately, replace-one",
        columns=columns,
        rows=tuple(_covered(row) for row in rows),
        remarks=(
            f"{rows[0]['runs'] if rows else 0:,} samples a row. “Worst” is the least covered coefficient; a location "
            "has one, the regression five. “Exact” is the interval of the estimate without noise.",
            f"The goal is a coverage of at least {LEAST_COVERAGE}, up to 99.9 % limits of counting; more than 95 % is "
            "shown and not judged.",
            f"Locations: bounds {ROBUST_BOUNDS[0]} to {ROBUST_BOUNDS[1]} for values of deviation 1 around 3. "
            "Regression: four normal columns and an intercept, residuals of deviation 2, Mallows weights.",
            *results.missing(),
        ),
    )


def _covered(row: dict[str, Any]) -> tuple[str, ...]:
    return (
        row["estimate"],
        f"{row['n']:,}",
        row["mu"],
        f"{row['least']:.3f}",
        f"{row['mean']:.3f}",
        f"{row['exact_least']:.3f}",
        number(row["width"]),
        number(row["exact_width"]),
        str(goals(row)),
    )


def _outliers(rows: list[dict[str, Any]]) -> Table:
    columns = ("estimate", "µ", "outliers", "mean moves", "exact moves", "private moves", "noise", "goal")
    return Table(
        title="What gross outliers do",
        columns=columns,
        rows=tuple(_moved(row) for row in rows),
        remarks=(
            f"Of {rows[0]['n'] if rows else 0:,} normal values around 3, the share "
            f"{', '.join(f'{share:.0%}' for share in ROBUST_OUTLIERS)} is set to {ROBUST_OUTLIER:g}. Moves are means "
            f"over {rows[0]['runs'] if rows else 0} samples, from the estimate of the same sample without outliers.",
            "“Noise” is the deviation of one private estimate from the exact one.",
        ),
    )


def _moved(row: dict[str, Any]) -> tuple[str, ...]:
    return (
        row["estimate"],
        row["mu"],
        f"{row['share']:.0%}",
        f"{row['mean_move']:.3f}",
        f"{row['exact_move']:.4f}",
        f"{row['private_move']:.4f} ± {row['private_move_error']:.4f}",
        f"{row['noise']:.4f}",
        str(goals(row)),
    )
