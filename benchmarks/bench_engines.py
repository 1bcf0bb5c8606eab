"""Data where they live: the bounded group-by on Spark beside its peers, on PostgreSQL, and on files beyond memory."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, Final

from benchmarks.crowd import crowd, crowd_files
from benchmarks.crowd_names import CITIES, EPSILON
from benchmarks.engine_names import COUNTED, DISTINCT, JOB, MANY, PLAIN, PLAIN_COUNT, SIZES, SUMMED
from benchmarks.engines_postgres import BOUNDED, PUSHED, postgres_rows
from benchmarks.engines_postgres import PLAIN as POSTGRES_PLAIN
from benchmarks.environments import OURS
from benchmarks.results import Gathering, Goal, Results, gather
from benchmarks.table import MISSING, Table, number, ratio

__all__ = ["ON_SPARK", "measure", "seconds_by_rows", "tables"]

ON_SPARK: Final = "discreet-spark"
PEERS: Final = {
    "tmlt.analytics": ("Tumult Analytics", "tumult_engines", 10.0),
    "pipeline-dp-spark": ("PipelineDP", "pipeline_dp_engines", 5.0),
}
NAMES: Final = {ON_SPARK: "Discreet"} | {peer: name for peer, (name, _, _) in PEERS.items()}
MOST: Final = 3.0  # times COUNT(DISTINCT unit) of the same Spark, at ten million rows
JUDGED: Final = SIZES[1]
LINEAR: Final = 1.3  # times as long a row at the largest size as at ten million
PATIENCE: Final = 90  # seconds for one question of a peer
GIGABYTES: Final = 8.0
POSTGRES: Final = {PUSHED: 1.5, BOUNDED: 6.0}  # times the server's own plain question


def measure(*, quick: bool, scratch: Path | None) -> Results:
    """Measure Spark, PostgreSQL and files on disk, one at a time; what needs much room on disk only with a folder."""
    gathering = gather(quick=quick)
    found = [] if scratch is None else [scratch / f"{JOB.kind}-{rows}" for rows in (SIZES[2], MANY)]
    made = [folder for folder in found if not folder.exists()]
    for rows in SIZES[:2]:
        crowd(JOB.kind, rows)
    _on_spark(gathering, scratch)
    _on_postgres(gathering)
    if scratch is not None:
        _on_disk(gathering, scratch)
    for folder in made:
        shutil.rmtree(folder, ignore_errors=True)
    return gathering.results("engines")


def _on_spark(gathering: Gathering, scratch: Path | None) -> None:
    if (environment := gathering.environment(ON_SPARK)) is not None:
        for rows in SIZES[:1] if gathering.quick else SIZES[:2]:
            gathering.run(environment, "discreet_engines", str(rows), "3", beside=ON_SPARK)
        if scratch is not None and not gathering.quick:
            crowd_files(JOB.kind, SIZES[2], scratch)
            gathering.run(environment, "discreet_engines", str(SIZES[2]), "1", str(scratch), beside=ON_SPARK)
    for peer, (_, script, _) in PEERS.items():
        if (other := gathering.environment(peer)) is not None:
            gathering.run(other, script, str(PATIENCE), beside=peer)


def _on_postgres(gathering: Gathering) -> None:
    for rows in SIZES[:1] if gathering.quick else SIZES[:2]:
        gathering.say(f"postgresql: {rows:,} rows")
        gathering.rows.extend(postgres_rows(rows, repetitions=3, seconds=90.0))


def _on_disk(gathering: Gathering, scratch: Path) -> None:
    if (environment := gathering.environment(OURS)) is None:
        return
    for rows in SIZES[2:] if gathering.quick else (SIZES[2], MANY):
        crowd_files(JOB.kind, rows, scratch)
        gathering.run(environment, "discreet_on_disk", str(rows), str(scratch), str(GIGABYTES))


def tables(results: Results) -> tuple[Table, ...]:
    """Show Spark, how its cost grows, what follows for a cluster, PostgreSQL, and files on disk."""
    return _spark(results), _growth(results), _estimate(results), _postgres(results), _disk(results)


def _wall(results: Results, beside: str, job: str, rows: int) -> float | None:
    return results.figure("wall", beside=beside, job=job, rows=rows)


def _spark(results: Results) -> Table:
    return Table(
        title=f"On Spark, local[2]: seconds of a group-by of {CITIES:,} cities, at most 3 × 2 rows a user",
        columns=("rows", "question", "asked of", "Spark", "wall", "CPU", f"÷ {DISTINCT}", "÷ ours", "goals"),
        rows=tuple(_lines(results)),
        remarks=(
            f"From Parquet (zstd) to the answer, epsilon {EPSILON}; one tenth as many users as rows, active by a power "
            "law. Every library in an environment of its own, on the Spark that it supports, with plain Spark of that "
            "version beside it: two threads, 8 shuffle partitions, 6 GB for the driver. Ours and plain Spark the "
            "fastest of three turns (one at a hundred million rows), a peer's question once, after one that warmed up. "
            f"The goals are judged by the wall clock; ÷ {DISTINCT} is beside the same Spark, which shuffles users "
            "and cities for it.",
            "The jobs differ: Tumult answers count and sum, the mean is their quotient; PipelineDP is handed the rows "
            f"of the DataFrame as an RDD. A question of a peer that is not answered in {PATIENCE} s is stopped, and "
            "ratios are at least those that are told.",
            *results.missing(),
        ),
    )


def _lines(results: Results) -> list[tuple[str, ...]]:
    lines = []
    for rows in SIZES:
        for beside in NAMES:
            for job in (SUMMED, COUNTED, DISTINCT, PLAIN_COUNT, PLAIN):
                row = results.find(beside=beside, job=job, rows=rows)
                if row is not None:
                    lines.append(_line(results, row))
    return lines


def _line(results: Results, row: dict[str, Any]) -> tuple[str, ...]:
    job, rows, beside = row["job"], row["rows"], row["beside"]
    is_bounded, least = job in (SUMMED, COUNTED), "> " if row.get("stopped") else ""
    ours = _wall(results, ON_SPARK, job, rows) if is_bounded and beside != ON_SPARK else None
    distinct = _wall(results, beside, DISTINCT, rows) if job != DISTINCT else None
    return (
        f"{rows:,}",
        job,
        NAMES[beside] if is_bounded else f"plain Spark {row['spark'].rpartition('.')[0]}, beside {NAMES[beside]}",
        row["spark"],
        least + number(row["wall"]),
        MISSING if least else number(row["cpu"]),
        MISSING if distinct is None else least + ratio(row["wall"], distinct),
        MISSING if ours is None else least + ratio(row["wall"], ours),
        ", ".join(map(str, _goals(results, job, rows))) if is_bounded and beside == ON_SPARK else "",
    )


def _goals(results: Results, job: str, rows: int) -> list[Goal]:
    ours, distinct = (_wall(results, ON_SPARK, one, rows) for one in (job, DISTINCT))
    goals = []
    if rows == JUDGED:
        goals.append(
            Goal(f"≤ {MOST:g}× {DISTINCT}", None if ours is None or distinct is None else ours <= MOST * distinct)
        )
    for peer, (name, _, least) in PEERS.items():
        theirs = _wall(results, peer, job, rows)
        if theirs is not None and ours is not None:
            stopped = bool((results.find(beside=peer, job=job, rows=rows) or {}).get("stopped"))
            reached = theirs >= least * ours
            # Whoever was stopped would have taken longer: a goal that is not reached by then is not measured.
            goals.append(Goal(f"≥ {least:g}× {name}", None if stopped and not reached else reached))
    return goals


def seconds_by_rows(results: Results) -> dict[str, tuple[list[float], list[float]]]:
    """Return the curves of the plot: seconds on the wall by rows."""
    named = {
        f"Discreet: {SUMMED}": (ON_SPARK, SUMMED),
        f"Discreet: {COUNTED}": (ON_SPARK, COUNTED),
        f"plain Spark: {DISTINCT}": (ON_SPARK, DISTINCT),
        "plain Spark: COUNT(*)": (ON_SPARK, PLAIN_COUNT),
    }
    curves = {}
    for name, (beside, job) in named.items():
        found = [row for row in results.rows if (row.get("beside"), row["job"]) == (beside, job)]
        points = [(float(row["rows"]), float(row["wall"])) for row in found if not row.get("stopped")]
        if len(points) > 1:
            curves[name] = ([rows for rows, _ in points], [wall for _, wall in points])
    return curves


def _growth(results: Results) -> Table:
    each = {rows: results.figure("wall", beside=ON_SPARK, job=SUMMED, rows=rows) for rows in SIZES}
    base, last = each[JUDGED], each[SIZES[2]]
    linear = None if base is None or last is None else last / SIZES[2] <= LINEAR * base / JUDGED
    goal = Goal(f"at most {LINEAR}× as long a row at {SIZES[2]:,} as at {JUDGED:,}", linear)
    return Table(
        title=f"How the cost grows on Spark ({SUMMED})",
        columns=(
            "rows",
            "wall, ns a row",
            "CPU, ns a row",
            "parts",
            "shuffled, bytes a row",
            "reports to the driver, MB",
        ),
        rows=tuple(_grown(results, rows) for rows, wall in each.items() if wall is not None),
        remarks=(f"{goal}. Bytes are those that Spark wrote for the shuffle (lz4), and those that tasks reported.",),
    )


def _grown(results: Results, rows: int) -> tuple[str, ...]:
    told = results.find(beside=ON_SPARK, job="constants", rows=rows) or {}
    clocks = (results.figure(clock, beside=ON_SPARK, job=SUMMED, rows=rows) for clock in ("wall", "cpu"))
    return (
        f"{rows:,}",
        *(number(None if spent is None else spent / rows * 1e9) for spent in clocks),
        str(told.get("parts", MISSING)),
        number(told["shuffled"] / rows) if told else MISSING,
        number(told["reported"] / 1e6) if told else MISSING,
    )


# --- estimate: what the measured constants say of a cluster that nobody has here. ---


NODES: Final = 100
CORES: Final = 16  # of a node
BYTES_A_SECOND: Final = 1.25e9  # of its network, 10 Gbit/s
ESTIMATED: Final = 10**11
MOST_PARTS: Final = 4096
REPORT_LIMIT: Final = 1 << 30  # spark.driver.maxResultSize, unless it is set


def _estimate(results: Results) -> Table:
    """Scale the largest measured size up: rows linearly, reports by the number of parts."""
    told = [row for row in results.rows if row["job"] == "constants"]
    sizes = [row["rows"] for row in told if results.figure("cpu", beside=ON_SPARK, job=SUMMED, rows=row["rows"])]
    return Table(
        title=f"An estimate: {ESTIMATED:,} rows on {NODES} nodes of {CORES} cores, 10 Gbit/s ({SUMMED})",
        columns=("what", "measured", "of all", "a node or a task"),
        rows=tuple(_scaled(results, max(sizes))) if sizes else (),
        remarks=(
            "Multiplied from the row of the largest size above, and not measured: stragglers, skewed units, retries "
            "and a network that others use come on top. What would break first is in "
            "[Engines](../engines.md#a-hundred-nodes).",
        ),
    )


def _scaled(results: Results, rows: int) -> list[tuple[str, ...]]:
    told = results.find(beside=ON_SPARK, job="constants", rows=rows) or {}
    cpu = (results.figure("cpu", beside=ON_SPARK, job=SUMMED, rows=rows) or 0.0) / rows
    shuffled, report = told["shuffled"] / rows, told["reported"] / told["parts"]
    waves = -(-MOST_PARTS // (NODES * CORES))
    turns = waves * NODES * CORES / MOST_PARTS  # The last wave does not fill all cores.
    work, sent, reports = cpu * ESTIMATED, shuffled * ESTIMATED, report * MOST_PARTS
    return [
        (
            "work of all cores",
            f"{number(cpu * 1e9)} ns a row",
            f"{number(work / 3600)} core hours",
            f"{number(work / NODES / CORES * turns)} s in {waves} waves of tasks",
        ),
        (
            "shuffle",
            f"{number(shuffled)} bytes a row",
            f"{number(sent / 1e12)} TB",
            f"{number(sent / NODES / 1e9)} GB, {number(sent / NODES / BYTES_A_SECOND)} s of network",
        ),
        (
            f"rows of a task, in {MOST_PARTS:,} parts",
            f"{number(rows / told['parts'] / 1e6)} million, {number(told['task'])} GB in memory",
            f"{ESTIMATED:,}",
            f"{number(ESTIMATED / MOST_PARTS / 1e6)} million",
        ),
        (
            "reports to the driver",
            f"{number(report / 1e6)} MB a part",
            f"{number(reports / 1e9)} GB, {number(reports / REPORT_LIMIT)}× of Spark's usual limit",
            "all of it on the driver",
        ),
    ]


# --- one machine ---


def _postgres(results: Results) -> Table:
    return Table(
        title=f"PostgreSQL: seconds on the wall of a group-by of {CITIES:,} cities, count + sum + mean",
        columns=("rows", "question", "wall", "÷ plain", "÷ the question beside", "beside", "goals"),
        rows=tuple(_asked(row) for row in results.rows if row.get("subject") == "postgresql"),
        remarks=(
            "A cluster of its own on the same two cores, rows in the server's cache, the fastest of three turns; whole "
            "incomes. Where rows are the units the server adds up itself; with users as units their rows are streamed "
            "by ADBC into the worker, which bounds them. Durable charges of a ledger on a server are in "
            "[The ledger on a server](ledger-server.md).",
        ),
    )


def _asked(row: dict[str, Any]) -> tuple[str, ...]:
    most = POSTGRES.get(row["job"])
    goal = "" if most is None else str(Goal(f"≤ {most:g}× plain", row["times_plain"] <= most))
    beside = (
        (number(row["times"]) + "×", row["beside"]) if row["beside"] not in (row["job"], POSTGRES_PLAIN) else ("",) * 2
    )
    return (f"{row['rows']:,}", row["job"], number(row["wall"]), f"{number(row['times_plain'])}×", *beside, goal)


def _disk(results: Results) -> Table:
    rows = [row for row in results.rows if row["job"] == "on disk"]
    most = next((row for row in rows if row["rows"] == MANY), None)
    goal = Goal(f"{MANY:,} rows within {GIGABYTES:g} GB", None if most is None else most["gigabytes"] <= GIGABYTES)
    return Table(
        title=f"Files that memory does not hold, one machine ({SUMMED})",
        columns=("rows", "files, GB", "wall", "CPU", "CPU, ns a row", "peak of the worker, GB", "of all processes, GB"),
        rows=tuple(
            (
                f"{row['rows']:,}",
                number(row["bytes"] / 1e9),
                number(row["wall"]),
                number(row["cpu"]),
                number(row["cpu"] / row["rows"] * 1e9),
                number(row["worker"]),
                number(row["gigabytes"]),
            )
            for row in rows
        ),
        remarks=(
            f"{goal}. Parquet by a glob, files of 25 million rows; `Resources(memory=…)` leaves 0.5 GB of the "
            f"{GIGABYTES:g} GB to libraries. Rows beyond it wait in scratch files without a name, partitioned by unit. "
            "Progress is told by elapsed time only.",
        ),
    )
