"""The speed of private SQL: a group-by with bounded contributions, side by side with plain DuckDB and the peers."""

from __future__ import annotations

import statistics
from typing import Final

from benchmarks.corpus.policies import DATASETS
from benchmarks.corpus.worlds import write_worlds
from benchmarks.crowd import crowd
from benchmarks.crowd_names import CITIES, EPSILON, JOBS, Job
from benchmarks.environments import OURS, ROOT
from benchmarks.results import Gathering, Goal, Results, gather
from benchmarks.table import MISSING, Table, number, ratio

__all__ = ["measure", "tables"]

SCRIPTS: Final = {
    OURS: "discreet_queries",
    "opendp-polars": "opendp_polars_queries",
    "pyqrlew": "pyqrlew_queries",
    "smartnoise-sql": "smartnoise_sql_queries",
    "pipeline-dp": "pipeline_dp_queries",
}
PEERS: Final = {
    "opendp-polars": "OpenDP (Polars)",
    "pyqrlew": "Qrlew (DuckDB)",
    "smartnoise-sql": "SmartNoise SQL (DuckDB)",
    "pipeline-dp": "PipelineDP (local)",
}
PLAIN: Final = "duckdb"
SIZES: Final = (200_000, 1_000_000, 10_000_000)
GROWTH: Final = (10_000_000, 30_000_000, 100_000_000)
# By job: at most so many times plain DuckDB; at least so many times as fast as these peers.
GOALS: Final[dict[str, tuple[float, dict[str, float]]]] = {
    JOBS[0].name: (3.5, {"opendp-polars": 20.0, "pyqrlew": 20.0}),
    JOBS[1].name: (1.4, {"opendp-polars": 5.0}),
    JOBS[2].name: (3.0, {}),
}
MOST_GIGABYTES: Final = 4.0
MOST_MILLISECONDS: Final = 20.0
LINEAR: Final = 1.3  # times as long a row at the largest size as at the smallest


def measure(*, quick: bool) -> Results:
    """Make the rows, then run every subject, one at a time; growth and planning after that."""
    for size in SIZES[:-1] if quick else SIZES:
        for kind in dict.fromkeys(job.kind for job in JOBS):
            crowd(kind, size)
    gathering = gather(quick=quick)
    for subject, script in SCRIPTS.items():
        if (environment := gathering.environment(subject)) is not None:
            gathering.run(environment, script)
    _more_of_ours(gathering, sizes=() if quick else GROWTH)
    return gathering.results("queries")


def _more_of_ours(gathering: Gathering, *, sizes: tuple[int, ...]) -> None:
    for dataset in DATASETS.values():
        write_worlds(ROOT / ".bench" / "corpus", dataset)
    if (environment := gathering.environment(OURS)) is None:
        return
    gathering.run(environment, "discreet_planning")
    for rows in sizes:
        crowd(JOBS[0].kind, rows)
        gathering.run(environment, "discreet_growth", str(rows))


def tables(results: Results) -> tuple[Table, ...]:
    """Show the jobs, how time grows, and how long planning takes."""
    return speed(results), growth(results), planning(results)


def seconds(results: Results, subject: str, job: Job, clock: str = "cpu") -> float | None:
    """Return the seconds of ten million rows; a smaller job is scaled up."""
    row = results.find(subject=subject, job=job.name)
    return None if row is None else float(row[clock]) * max(SIZES) / int(row["rows"])


def speed(results: Results) -> Table:
    """Compare every job with plain DuckDB and the peers."""
    columns = ("job", "clock", "Discreet", "plain DuckDB", *PEERS.values(), "ours / plain")
    return Table(
        title=f"Private group-by: seconds, {max(SIZES):,} rows, {CITIES:,} groups, count + sum + mean",
        columns=(*columns, *(f"{name} / ours" for name in PEERS.values()), "goals (CPU)"),
        rows=tuple(_row(results, job, clock) for job in JOBS for clock in ("cpu", "wall")),
        remarks=(
            f"From a Parquet file (zstd) to the answer, epsilon {EPSILON}; a million users with ten rows each on "
            "average, by a power law, or ten million rows of which one in a hundred belongs to a user who has another "
            "one. Ours: clamped, on a grid, bounded at random, exact sums, ledger and all intervals included. Plain "
            "DuckDB in turns with ours, without privacy; it does not read who owns a row.",
            "The jobs differ: OpenDP answers count and sum, the mean is their quotient; it keeps each user's first "
            "groups. Qrlew clips a user's total instead of choosing rows; rewriting its query is not timed. SmartNoise "
            "limits a user's rows in all and finds the keys by a threshold. PipelineDP is timed on 200,000 rows that "
            "are in memory as tuples, and scaled up.",
            *results.missing(),
        ),
    )


def goals(results: Results, job: Job) -> tuple[Goal, ...]:
    """Judge one job by CPU time."""
    most, peers = GOALS[job.name]
    ours, plain = seconds(results, OURS, job), seconds(results, PLAIN, job)
    found = [Goal(f"≤ {most:g}× plain", None if ours is None or plain is None else ours <= most * plain)]
    for peer, least in peers.items():
        theirs = seconds(results, peer, job)
        reached = None if ours is None or theirs is None else theirs >= least * ours
        found.append(Goal(f"≥ {least:g}× {PEERS[peer].partition(' ')[0]}", reached))
    return tuple(found)


def _row(results: Results, job: Job, clock: str) -> tuple[str, ...]:
    ours, plain = seconds(results, OURS, job, clock), seconds(results, PLAIN, job, clock)
    peers = [seconds(results, peer, job, clock) for peer in PEERS]
    return (
        job.name,
        "CPU" if clock == "cpu" else "wall",
        number(ours),
        number(plain),
        *map(number, peers),
        ratio(ours, plain),
        *(ratio(peer, ours) for peer in peers),
        ", ".join(map(str, goals(results, job))) if clock == "cpu" else "",
    )


def growth(results: Results) -> Table:
    """Show that time grows in proportion to the rows and memory stays bounded."""
    rows = [row for row in results.rows if row.get("job") == "growth"]
    each = [row["cpu"] / row["rows"] for row in rows]
    linear = None if len(each) < 2 else each[-1] <= LINEAR * each[0]
    small = None if not rows else max(row["gigabytes"] for row in rows) < MOST_GIGABYTES
    return Table(
        title=f"More rows ({JOBS[0].name}), a process each",
        columns=("rows", "CPU s", "wall s", "CPU ns a row", "peak memory, GB"),
        rows=tuple(
            (
                f"{row['rows']:,}",
                number(row["cpu"]),
                number(row["wall"]),
                number(row["cpu"] / row["rows"] * 1e9),
                number(row["gigabytes"]),
            )
            for row in rows
        ),
        remarks=(
            f"{Goal(f'at most {LINEAR}× as long a row at the largest size', linear)}, "
            f"{Goal(f'under {MOST_GIGABYTES:g} GB', small)}. One tenth as many users as rows.",
        ),
    )


def planning(results: Results) -> Table:
    """Show how long it takes to read, plan and price a query."""
    spent = sorted(row["cpu"] * 1e3 for row in results.rows if row.get("job") == "planning")
    goal = Goal(f"≤ {MOST_MILLISECONDS:g} ms", spent[-1] <= MOST_MILLISECONDS if spent else None)
    cells = (number(statistics.median(spent)), number(spent[-1])) if spent else (MISSING, MISSING)
    return Table(
        title="Reading, planning and pricing a query of the corpus, CPU milliseconds",
        columns=("queries", "median", "longest", "goals"),
        rows=((str(len(spent)), *cells, str(goal)),),
        remarks=("Each the fastest of five.",),
    )
