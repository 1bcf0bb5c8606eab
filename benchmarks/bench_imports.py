"""Imports: CPU seconds of importing each library, and what its environment weighs."""

from __future__ import annotations

from typing import Final

from benchmarks.environments import OURS
from benchmarks.results import Goal, Results, gather
from benchmarks.table import MISSING, Table, number, ratio

__all__ = ["goals", "measure", "table"]

PARTS: Final = tuple(f"discreet.{part}" for part in ("noise", "privacy", "mechanisms", "statistics", "verify", "plots"))
LIBRARIES: Final = ("flint", "cryptography.hazmat.primitives.ciphers", "scipy.fft", "scipy.special")
# What is shown, the environment it is measured in, and the modules imported in it.
LOADED: Final = "discreet, every part and its libraries"
IMPORTS: Final = {
    "discreet": (OURS, ("discreet",)),
    "discreet, every part": (OURS, PARTS),
    LOADED: (OURS, (*PARTS, *LIBRARIES)),
    "opendp": ("opendp", ("opendp.prelude",)),
    "python-dp": ("python-dp", ("pydp",)),
    "diffprivlib": ("diffprivlib", ("diffprivlib",)),
    "dp-accounting": ("dp-accounting", ("dp_accounting",)),
    "prv-accountant": ("prv-accountant", ("prv_accountant",)),
    "opacus": ("opacus", ("opacus",)),
}
LIMIT_S: Final = 0.15
FRESH: Final = 10  # interpreters each, after one that fills the disk cache


def measure(*, quick: bool) -> Results:
    """Import everything in fresh interpreters, in turns over the subjects."""
    gathering = gather(quick=quick)
    for turn in range(1 + (3 if quick else FRESH)):
        for what, (subject, modules) in IMPORTS.items():
            if (environment := gathering.environment(subject)) is not None:
                gathering.run(environment, "import_time", *modules, what=what, turn=turn)
    for subject in dict.fromkeys(subject for subject, _ in IMPORTS.values()):
        if (environment := gathering.environment(subject)) is not None:
            gathering.rows.append({"subject": subject, "megabytes": environment.megabytes()})
    return gathering.results("imports")


def fastest(results: Results, what: str, figure: str) -> float | None:
    """Return the smallest of a figure over the interpreters, the first of which only warmed the disk cache."""
    found = [row[figure] for row in results.rows if row.get("what") == what and row["turn"]]
    return min(found, default=None)


def goals(results: Results) -> tuple[Goal, ...]:
    """Judge our import."""
    ours = fastest(results, "discreet", "above_numpy_s")
    return (Goal(f"≤ {LIMIT_S} s above NumPy", None if ours is None else ours <= LIMIT_S),)


def table(results: Results) -> Table:
    """List the subjects."""
    columns = ("library", "NumPy, s", "above NumPy, s", "above / ours", "environment, MB", "goals")
    return Table(
        title="CPU seconds of an import in a fresh interpreter",
        columns=columns,
        rows=tuple(_row(results, what) for what in IMPORTS),
        remarks=(
            "`import discreet` loads a part when it is first used. The ratio therefore compares with the row "
            f"“{LOADED}”: SciPy, python-flint and cryptography too, which the first answer may load.",
            "NumPy is imported first where the environment has it, whether or not the library would load it; "
            "python-dp has none. OpenDP is installed without its Polars extra.",
            "The environment is all that pip installed for it, compiled files included, without pip.",
            *results.missing(),
        ),
    )


def _row(results: Results, what: str) -> tuple[str, ...]:
    subject, _ = IMPORTS[what]
    above = fastest(results, what, "above_numpy_s")
    size = max((row["megabytes"] for row in results.rows if _is_size(row, subject)), default=None)
    return (
        what,
        number(fastest(results, what, "numpy_s")),
        number(above),
        MISSING if subject == OURS else ratio(above, fastest(results, LOADED, "above_numpy_s")),
        number(size),
        ", ".join(map(str, goals(results))) if what == "discreet" else "",
    )


def _is_size(row: dict[str, object], subject: str) -> bool:
    return row["subject"] == subject and "megabytes" in row
