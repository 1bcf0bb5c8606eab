"""Synthetic tables with nothing tuned: five tables of mixed types, their public code books, and method="auto"."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from benchmarks.auto_domains import AUTO_DELTA, AUTO_EPSILON, AUTO_SETS
from benchmarks.environments import OURS
from benchmarks.results import Gathering, Goal, Results, gather
from benchmarks.table import Table, number

__all__ = ["goals", "measure", "table", "tables"]

ENOUGH: Final = 5000  # Rows below which noise, not the method, decides at this epsilon.
NEAR: Final = 0.01  # An AUC of synthetic rows that is this far below that of real ones.
LABELLED: Final = ("Heart disease, Cleveland", "Adult", "Diabetes, 130 hospitals")
SECONDS: Final = 40.0  # Of CPU, for 45 columns.


def measure(*, quick: bool, data: Path | None) -> Results:
    """Fit every table in a process of its own; without a folder there are none."""
    gathering = gather(quick=quick)
    if data is None:
        gathering.failures[OURS] = "not measured: name a folder with the real data sets by --data"
    elif (environment := gathering.environment(OURS)) is not None:
        for one in AUTO_SETS[-2:] if quick else AUTO_SETS:
            gathering.run(environment, "discreet_synth_auto", str(data.resolve()), one.name)
        gathering.run(environment, "discreet_synth_reach")
        _label(gathering, data, quick=quick)
        gathering.failures = {
            name.replace(str(data.resolve()), "DATA"): why for name, why in gathering.failures.items()
        }
    return gathering.results("synth_auto")


def _label(gathering: Gathering, data: Path, *, quick: bool) -> None:
    """Learn the labels of real tables from synthetic rows."""
    if (environment := gathering.environment("discreet-sklearn")) is not None:
        for name in LABELLED[:1] if quick else LABELLED:
            gathering.run(environment, "discreet_synth_label", str(data.resolve()), name)


def goals(results: Results) -> tuple[Goal, ...]:
    """Judge that all of them come out, and that links between columns are kept where there are enough rows."""
    rows = [row for one in AUTO_SETS if (row := results.find(table=one.name)) is not None]
    large = [row for row in rows if row["rows"] >= ENOUGH]
    return (
        Goal(f"all {len(AUTO_SETS)} tables fitted within ε = {AUTO_EPSILON}", _all(rows)),
        Goal(
            "pairs of columns nearer than independent columns are, from 5,000 rows on",
            all(row["auto"][1] < row["independent"][1] for row in large) if large else None,
        ),
    )


def table(results: Results) -> Table:
    """One row a table."""
    found = [row for one in AUTO_SETS if (row := results.find(table=one.name)) is not None]
    return Table(
        title=f"Five tables with nothing tuned, ε = {AUTO_EPSILON}, δ = {AUTO_DELTA}",
        columns=(
            "table",
            "rows",
            "columns",
            "protected",
            "method",
            "one column",
            "two columns",
            "independent, two",
            "rows drawn again, two",
            "seconds of CPU",
            "MB",
        ),
        rows=tuple(_row(row) for row in found),
        remarks=(
            "Mean total variation distance between marginals of a sample and of the real table, in the cells of the "
            "domain. Domains are from public code books; categories and bins that stand in none are found privately, "
            "within the same ε and δ.",
            *map(str, goals(results)),
            *results.missing(),
        ),
    )


def tables(results: Results) -> tuple[Table, ...]:
    """Show the tables that were measured, and below them what is hard in one way each, where that was measured, too."""
    return (table(results), _reach(results)) if results.find(reach="label") is not None else (table(results),)


def _reach(results: Results) -> Table:
    rows = [row for row in results.rows if "reach" in row]
    return Table(
        title="Made-up tables that are hard in one way each",
        columns=("what", "ε", "AIM", "beside it", "limit", "goal", "reached"),
        rows=tuple(_reached(row) for row in rows),
        remarks=(
            "AUC of a logistic regression of 6,000 synthetic rows on rows it never saw, where nine columns each tell a "
            "little: with label=, beside it without, and of the real rows. Values found of 50 that nobody listed, in "
            "one of five such columns, 10,000 rows by Zipf's law. Seconds of CPU of a fit of 8,000 rows. Real tables: "
            "the AUC on a fifth of the rows that no fit saw, of a logistic regression of synthetic rows and of the "
            "real others. Correlation of a heavy-tailed column and its logarithm: AIM's, beside it MST's, the real.",
        ),
    )


def _reached(row: dict[str, Any]) -> tuple[str, ...]:
    if row["reach"] == "label":
        near = _yes(row["with"] >= row["real"] - NEAR) if row["epsilon"] == "1" else ""
        goal = f"limit - {NEAR}" if row["epsilon"] == "1" else ""
        return (
            "AUC with a label",
            row["epsilon"],
            *(f"{row[way]:.3f}" for way in ("with", "without", "real")),
            goal,
            near,
        )
    if row["reach"] == "real label":
        shown = (f"{row[way]:.3f}" for way in ("with", "without", "real"))
        return f"AUC with a label, {row['table']}", row["epsilon"], *shown, "", ""
    if row["reach"] == "resolutions":
        shown = (f"{row[way]:.3f}" for way in ("aim", "mst", "real"))
        return f"correlation with a logarithm, {row['rows']:,} rows", row["epsilon"], *shown, "", ""
    if row["reach"] == "values":
        return "values found", row["epsilon"], number(row["found"]), "", str(row["listed"]), "", ""
    goal, reached = (number(SECONDS), _yes(row["cpu"] <= SECONDS)) if row["columns"] == 45 else ("", "")
    return f"seconds, {row['columns']} columns", "1", number(row["cpu"]), "", "", goal, reached


def _yes(reached: bool) -> str:
    return "yes" if reached else "no"


def _all(rows: list[dict[str, Any]]) -> bool | None:
    return all(row["epsilon"] <= AUTO_EPSILON for row in rows) if len(rows) == len(AUTO_SETS) else None


def _row(row: dict[str, Any]) -> tuple[str, ...]:
    whom = "a row" if row["unit"] == "row" else "a person"
    return (
        row["table"],
        f"{row['rows']:,}",
        str(row["columns"]),
        whom,
        row["method"],
        number(row["auto"][0]),
        number(row["auto"][1]),
        number(row["independent"][1]),
        number(row["resample"][1]),
        number(row["cpu"]),
        number(row["megabytes"]),
    )
