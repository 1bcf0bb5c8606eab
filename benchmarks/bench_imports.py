"""Imports: CPU seconds of importing each library, and what its environment weighs."""

from __future__ import annotations

from typing import Final

from benchmarks.environments import OURS
from benchmarks.results import Goal, Results, gather
from benchmarks.table import Table, number, ratio

__all__ = ["goals", "measure", "table"]

MODULES: Final = {
    OURS: "discreet",
    "opendp": "opendp.prelude",
    "python-dp": "pydp",
    "diffprivlib": "diffprivlib",
    "dp-accounting": "dp_accounting",
    "prv-accountant": "prv_accountant",
    "opacus": "opacus",
}
LIMIT_S: Final = 0.15
FRESH: Final = 10  # interpreters each, after one that fills the disk cache


def measure(*, quick: bool) -> Results:
    """Import everything in fresh interpreters, in turns over the subjects."""
    gathering = gather(quick=quick)
    made = [environment for name in MODULES if (environment := gathering.environment(name)) is not None]
    for turn in range(1 + (3 if quick else FRESH)):
        for environment in made:
            gathering.run(environment, "import_time", MODULES[environment.name], turn=turn)
    for environment in made:
        gathering.rows.append({"subject": environment.name, "megabytes": environment.megabytes()})
    return gathering.results("imports")


def fastest(results: Results, subject: str, figure: str) -> float | None:
    """Return the smallest of a figure over the interpreters."""
    found = [row[figure] for row in results.rows if row["subject"] == subject and row.get("turn")]
    return min(found, default=None)


def goals(results: Results) -> tuple[Goal, ...]:
    """Judge our import."""
    ours = fastest(results, OURS, "above_numpy_s")
    return (Goal(f"≤ {LIMIT_S} s above NumPy", None if ours is None else ours <= LIMIT_S),)


def table(results: Results) -> Table:
    """List the subjects."""
    columns = ("library", "module", "NumPy, s", "above NumPy, s", "above / ours", "environment, MB", "goals")
    return Table(
        title="CPU seconds of an import in a fresh interpreter",
        columns=columns,
        rows=tuple(_row(results, subject) for subject in MODULES),
        remarks=(
            "NumPy is imported first where the environment has it, whether or not the library would load it; "
            "python-dp has none. OpenDP is installed without its Polars extra.",
            "The environment is all that pip installed for it, compiled files included, without pip.",
            *results.missing(),
        ),
    )


def _row(results: Results, subject: str) -> tuple[str, ...]:
    above = fastest(results, subject, "above_numpy_s")
    size = max((row["megabytes"] for row in results.rows if _is_size(row, subject)), default=None)
    return (
        subject,
        MODULES[subject],
        number(fastest(results, subject, "numpy_s")),
        number(above),
        ratio(above, fastest(results, OURS, "above_numpy_s")) if subject != OURS else "1×",
        number(size),
        ", ".join(map(str, goals(results))) if subject == OURS else "",
    )


def _is_size(row: dict[str, object], subject: str) -> bool:
    return row["subject"] == subject and "megabytes" in row
