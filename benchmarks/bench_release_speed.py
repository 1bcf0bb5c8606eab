"""The speed of a release: twelve tables over ten million rows, side by side with the same questions without privacy."""

from __future__ import annotations

from typing import Final

from benchmarks.environments import OURS
from benchmarks.results import Goal, Results, gather
from benchmarks.table import Table, number, ratio

__all__ = ["measure", "table"]

PLAIN: Final = "duckdb"
JOBS: Final = {
    "whole release": "release.publish: price, charge, read, draw, tidy, bundle with report",
    "tables together": "Session.batch: one scan for all tables",
    "tables one by one": "Session.sql, table by table: a scan for each",
}
MOST: Final = 3.5  # times plain DuckDB, for the whole release


def measure(*, quick: bool) -> Results:
    """Run our own environment."""
    gathering = gather(quick=quick)
    if (environment := gathering.environment(OURS)) is not None:
        gathering.run(environment, "discreet_release_speed")
    return gathering.results("release_speed")


def table(results: Results) -> Table:
    """Compare every way with plain DuckDB, by CPU and by the clock on the wall."""
    plain = {clock: results.figure(clock, job=PLAIN) for clock in ("cpu", "wall")}
    rows = [("the same questions in plain DuckDB", number(plain["cpu"]), number(plain["wall"]), "", "")]
    for job, told in JOBS.items():
        cpu, wall = (results.figure(clock, job=job) for clock in ("cpu", "wall"))
        rows.append((told, number(cpu), number(wall), ratio(cpu, plain["cpu"]), ratio(wall, plain["wall"])))
    size = results.figure("rows", job=PLAIN)
    return Table(
        title=f"A release of twelve tables, {int(size or 0):,} rows, a tenth as many people, seconds",
        columns=("job", "CPU", "wall", "CPU / plain", "wall / plain"),
        rows=tuple(rows),
        remarks=(
            ", ".join(map(str, goals(results))),
            "Counts and sums by city, region, sex, age band and product, up to three at once. Each person counts in at "
            "most two groups of a table, with two rows in each, chosen at random for each table anew. "
            f"Peak memory {number(results.figure('gigabytes', job='memory'))} GB. "
            f"Load of the machine at the start: {results.machine.get('load_at_start')}.",
            *results.missing(),
        ),
    )


def goals(results: Results) -> tuple[Goal, ...]:
    """Judge the whole release."""
    found = []
    for clock, said in (("cpu", "CPU"), ("wall", "wall")):
        ours, plain = results.figure(clock, job="whole release"), results.figure(clock, job=PLAIN)
        reached = None if ours is None or plain is None else ours <= MOST * plain
        found.append(Goal(f"≤ {MOST:g}× plain DuckDB, {said}", reached))
    return tuple(found)
