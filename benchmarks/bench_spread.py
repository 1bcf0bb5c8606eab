"""Private SQL on real data: the predicted ± against the spread of real releases, and what intervals cover."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Final

from benchmarks.environments import OURS
from benchmarks.results import Goal, Results, gather
from benchmarks.spread_names import CONFIDENCE, EPSILON, LIMITS, Z
from benchmarks.table import MISSING, Table, number

__all__ = ["measure", "table"]

NAMES: Final = {
    "retail": "online_retail_ii",
    "hospital": "diabetes130",
    "flights": "nycflights13",
    "adult": "Adult",
}


def measure(*, quick: bool, data: Path | None) -> Results:
    """Ask real data; without a folder there is nothing to ask."""
    gathering = gather(quick=quick)
    if data is None:
        gathering.failures[OURS] = "not measured: name a folder with the real data sets by --data"
    elif (environment := gathering.environment(OURS)) is not None:
        gathering.run(environment, "discreet_spread", str(data.resolve()))
        gathering.failures = {
            name.replace(str(data.resolve()), "DATA"): why for name, why in gathering.failures.items()
        }
    return gathering.results("spread")


def fits(row: dict[str, Any]) -> bool | None:
    """Whether the predicted ± lies within the limits of the 95 % quantile of the errors."""
    if row["predicted"] is None or row["thresholded"]:
        return None
    return bool(row["low"] <= row["predicted"] <= row["high"])


def covers(row: dict[str, Any]) -> bool:
    """Whether intervals hold the exact answer as often as they promise, within binomial limits."""
    slack = Z * math.sqrt(CONFIDENCE * (1 - CONFIDENCE) / row["cells"])
    return bool(row["covered"] / row["cells"] >= CONFIDENCE - slack)


def goals(results: Results) -> tuple[Goal, ...]:
    """Judge all columns."""
    predicted = [fits(row) for row in results.rows if fits(row) is not None]
    covered = [covers(row) for row in results.rows]
    return (
        Goal("every predicted ± within its limits", all(predicted) if predicted else None),
        Goal("every interval covers as often as it says", all(covered) if covered else None),
    )


def table(results: Results) -> Table:
    """Show every column that was asked for."""
    draws = max((row["draws"] for row in results.rows), default=0)
    limits = ", ".join(f"{NAMES[name]} {groups} × {rows}" for name, (groups, rows) in LIMITS.items())
    return Table(
        title=f"Predicted ± and the errors of {draws:,} releases on real data, epsilon {EPSILON}",
        columns=("data", "query", "column", "groups", "predicted ±", "95 % of errors are below", "covered"),
        rows=tuple(_row(row) for row in results.rows),
        remarks=(
            ", ".join(map(str, goals(results))) + ".",
            f"Each unit counts in at most so many groups × rows: {limits}. The exact answer is that of the data after "
            "clamping and bounding, which are done once; noise is drawn by the code that releases. Limits of the "
            "quantile and of the coverage hold with 99.9 % each. Of a mean the ± depends on the data and is not "
            "predicted; its intervals may cover more than they promise. Of thresholded groups only those count that "
            "are shown every time.",
            *results.missing(),
        ),
    )


def _row(row: dict[str, Any]) -> tuple[str, ...]:
    fit = {True: "", False: " (NO)", None: ""}[fits(row)]
    return (
        NAMES[row["dataset"]],
        row["query"].partition("/")[2] + (", thresholded" if row["thresholded"] else ""),
        row["column"],
        str(row["groups"]),
        MISSING if row["predicted"] is None else number(row["predicted"], 4),
        f"{number(row['low'], 4)} to {number(row['high'], 4)}{fit}",
        f"{100 * row['covered'] / row['cells']:.2f} %{'' if covers(row) else ' (NO)'}",
    )
