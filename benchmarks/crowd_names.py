"""The jobs of private SQL at speed, said once for every subject; the standard library only."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["CITIES", "DELTA", "EPSILON", "HIGH", "JOBS", "QUERY", "Job", "folder"]

CITIES: Final = 1_000
HIGH: Final = 200_000  # incomes are clamped from 0 to here
EPSILON: Final = 1
DELTA: Final = 1e-7
QUERY: Final = "SELECT city, COUNT(*) AS n, SUM(income) AS total, AVG(income) AS mean FROM crowd GROUP BY city"


@dataclass(frozen=True, slots=True)
class Job:
    """Which rows, whom to protect, and how much of a user may count."""

    name: str
    kind: str  # of rows
    by_row: bool = False
    max_groups: int = 1
    max_rows: int = 1


JOBS: Final = (
    Job("at most 3 groups × 2 rows a user", "often", max_groups=3, max_rows=2),
    Job("every row is a unit", "once", by_row=True),
    Job("at most 1 row a user, enforced", "once"),
)


def folder() -> Path:
    """Return where the rows lie."""
    return Path(".bench") / "queries"
