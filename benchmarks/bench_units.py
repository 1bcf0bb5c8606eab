"""What protecting two units at once, and one choice of rows for a family of tables, add to the time of a question."""

from __future__ import annotations

from typing import Any, Final

from benchmarks.environments import OURS
from benchmarks.results import Goal, Results, gather
from benchmarks.table import Table, number, ratio

__all__ = ["measure", "tables"]

BOTH: Final = "both"
ALONE: Final = ("household", "person")
SECOND: Final = 1.4  # times the time of one unit
FAMILY: Final = 1.3  # times the time of a scan with choices of their own
CLOCKS: Final = {"cpu": "CPU", "wall": "wall"}


def measure(*, quick: bool) -> Results:
    """Run our own environment."""
    gathering = gather(quick=quick)
    if (environment := gathering.environment(OURS)) is not None:
        gathering.run(environment, "discreet_units")
    return gathering.results("units")


def tables(results: Results) -> tuple[Table, ...]:
    """Show questions, then families."""
    return _questions(results), _families(results)


def _jobs(results: Results, way: str) -> dict[str, dict[str, Any]]:
    return {row["job"]: row for row in results.rows if row["way"] == way}


def _questions(results: Results) -> Table:
    both = _jobs(results, BOTH)
    size = max((row["rows"] for row in both.values()), default=0)
    lines = []
    for job in both:
        base = _jobs(results, ALONE[0]).get(job)
        for way in (*ALONE, BOTH):
            row = _jobs(results, way).get(job)
            judged = _judged(row, base, SECOND) if way == BOTH else ""
            lines.append(_line(job, "household and person" if way == BOTH else way, row, base, judged))
    return Table(
        title=f"Two promises at once: seconds of a question over {size:,} rows, beside the household alone",
        columns=("question", "protected", "CPU", "wall, least", "wall, median", *_RATIOS, "goals"),
        rows=tuple(lines),
        remarks=(
            "From the text of the question to the released answer, paid anew each time, ledger in memory; two threads, "
            "the ways in turns. 2.5 rows a household, people of a household numbered from 1 to 5, at most three of "
            "them counted. The goal is for the household with its people beside the household alone, by the least time "
            "of each clock.",
            f"Load of the machine at the start: {results.machine.get('load_at_start')}.",
            *results.missing(),
        ),
    )


_RATIOS: Final = ("CPU, ratio", "wall, ratio", "median, ratio")


def _families(results: Results) -> Table:
    own, one = _jobs(results, "own choices"), _jobs(results, "one choice")
    size = max((row["rows"] for row in own.values()), default=0)
    lines = []
    for job, base in own.items():
        lines.append(_line(job, "for each table", base, base, ""))
        lines.append(_line(job, "for all tables", one.get(job), base, _judged(one.get(job), base, FAMILY)))
    return Table(
        title=f"One choice of rows for a family: seconds of a scan of {size:,} rows for eight tables",
        columns=("units", "rows are chosen", "CPU", "wall, least", "wall, median", *_RATIOS, "goals"),
        rows=tuple(lines),
        remarks=(
            "All groupings by sex, age (20 bands) and region (10), with a sum, in one scan. For each table by itself: "
            "at most four rows in each of three groups. For a family: four rows in all, which every table counts.",
        ),
    )


def _line(job: str, way: str, row: dict[str, Any] | None, base: dict[str, Any] | None, goals: str) -> tuple[str, ...]:
    found, beside = row or {}, base or {}
    clocks = ("cpu", "wall", "median")
    ratios = (ratio(found.get(clock), beside.get(clock)) for clock in clocks)
    return (job, way, *(number(found.get(clock)) for clock in clocks), *ratios, goals)


def _judged(row: dict[str, Any] | None, base: dict[str, Any] | None, most: float) -> str:
    goals = []
    for clock, said in CLOCKS.items():
        reached = None if row is None or base is None else row[clock] <= most * base[clock]
        goals.append(Goal(f"≤ {most:g}×, {said}", reached))
    return ", ".join(map(str, goals))
