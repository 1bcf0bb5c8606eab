"""A profile of a wide table: how long it takes, and how often its intervals hold what they say."""

from __future__ import annotations

from typing import Any, Final

from benchmarks.environments import OURS
from benchmarks.results import Goal, Results, gather
from benchmarks.table import Table, number

__all__ = ["measure", "table"]

MOST_SECONDS: Final = 60
WHOM: Final = {"row": "each row", "person": "people with several rows"}


def measure(*, quick: bool) -> Results:
    """Run our own environment."""
    gathering = gather(quick=quick)
    if (environment := gathering.environment(OURS)) is not None:
        gathering.run(environment, "discreet_profile")
    return gathering.results("profile")


def goals(results: Results) -> tuple[Goal, ...]:
    """Judge the time of both units, and the intervals."""
    times = [results.figure("cpu", unit=unit) for unit in WHOM]
    cells, held = (results.figure(name, unit="row") for name in ("cells", "held"))
    return (
        Goal(
            f"at most {MOST_SECONDS} s of CPU for all columns",
            None if None in times else all(time is not None and time <= MOST_SECONDS for time in times),
        ),
        Goal("95 % of the intervals hold the exact count", None if not cells or not held else held >= 0.94 * cells),
    )


def table(results: Results) -> Table:
    """Show both units."""
    rows = [row for unit in WHOM if (row := results.find(unit=unit)) is not None]
    size = f"{rows[0]['columns']} columns and {rows[0]['rows']:,} rows" if rows else "a wide table"
    return Table(
        title=f"A profile of {size}, nothing declared, ε = 1, δ = 1e-6 for all of it",
        columns=("protected", "seconds of CPU", "seconds", "± of a count", "page, MB"),
        rows=tuple(_row(row) for row in rows),
        remarks=(*_held(results), *map(str, goals(results)), *results.missing()),
    )


def _row(row: dict[str, Any]) -> tuple[str, ...]:
    page = row["page"] / 1e6
    return (WHOM[row["unit"]], number(row["cpu"]), number(row["seconds"]), f"{row['plus_minus']:,}", number(page, 2))


def _held(results: Results) -> tuple[str, ...]:
    row = results.find(unit="row")
    if row is None:
        return ()
    return (
        f"{row['held']:,} of {row['cells']:,} intervals at 95 % held the exact count "
        f"({row['held'] / row['cells']:.1%}); {row['clear']:,} counts were more than twice their ±.",
    )
