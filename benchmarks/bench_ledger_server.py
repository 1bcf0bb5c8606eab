"""The ledger on a PostgreSQL server: durable charges in a second, from one writer and from many at once."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from benchmarks.bench_ledger import best, judged, writers
from benchmarks.environments import ROOT
from benchmarks.results import Goal, Results, gather
from benchmarks.table import Table, number

__all__ = ["goals", "measure", "table"]

WRITERS: Final = 16
ONE: Final = "server, one writer"
MANY: Final = f"server, {WRITERS} processes"
GOALS: Final = {ONE: 300, MANY: 1500}
WISHED: Final = 2000  # for many
BARE: Final = "server, one bare commit"


def measure(*, quick: bool) -> Results:
    """Measure one writer and many on a cluster of its own, and a file and a bare commit beside it, in turns."""
    gathering, count = gather(quick=quick), 100 if quick else 1000
    with _server() as (cluster, folder):
        for turn in range(1 if quick else 3):
            for what, job in _jobs(cluster, folder, count).items():
                gathering.rows.append({"subject": "discreet", "what": what, "turn": turn} | job())
    return gathering.results("ledger_server")


def _jobs(cluster: Any, folder: Path, count: int) -> dict[str, Callable[[], dict[str, Any]]]:
    many = count // 4
    return {
        BARE: lambda: _bare(cluster, count),
        "file, one writer": lambda: writers(_new(folder), 1, count),
        f"file, {WRITERS} processes": lambda: writers(_new(folder), WRITERS, many),
        ONE: lambda: writers(_schema(cluster), 1, count, anchor=_new(folder)),
        MANY: lambda: writers(_schema(cluster), WRITERS, many, anchor=_new(folder)),
        f"server, {WRITERS} threads of one process": lambda: writers(
            _schema(cluster), WRITERS, many, anchor=_new(folder), threads=True
        ),
    }


@contextmanager
def _server() -> Iterator[tuple[Any, Path]]:
    """Make the same cluster as the tests do, with fsync on."""
    sys.path.insert(0, str(ROOT / "tests"))
    with import_module("postgres_cluster").own_cluster() as cluster, TemporaryDirectory() as folder:
        yield cluster, Path(folder)


def _schema(cluster: Any) -> str:
    return f"{cluster.dsn()}?schema=bench_{time.time_ns()}"


def _new(folder: Path) -> Path:
    return folder / f"made-{time.time_ns()}"


def _bare(cluster: Any, count: int) -> dict[str, Any]:
    psycopg: Any = import_module("psycopg")
    with psycopg.connect(cluster.dsn(), autocommit=True) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS bare (i bigint, x text)")
        start = time.perf_counter()
        for i in range(count):
            connection.execute("INSERT INTO bare VALUES (%s, %s)", (i, "x" * 500))
        return {"per_second": count / (time.perf_counter() - start), "count": count}


def goals(results: Results) -> tuple[Goal, ...]:
    """Judge what was promised."""
    return judged(results, GOALS)


def table(results: Results) -> Table:
    """List the jobs, each beside a bare commit of the same server."""
    verdicts, bare = dict(zip(GOALS, goals(results), strict=True)), best(results, BARE)
    jobs = dict.fromkeys(row["what"] for row in results.rows)
    rates = {what: best(results, what) for what in jobs}
    many = rates.get(MANY) or 0
    return Table(
        title="Durable charges in a second, on a PostgreSQL server",
        columns=("what", "a second", "bare commits", "goals"),
        rows=tuple(
            (what, number(rate), "" if not rate or not bare else f"{rate / bare:.2f}", str(verdicts.get(what, "")))
            for what, rate in rates.items()
        ),
        remarks=(
            "A charge is flushed by the server and anchored on this machine before it returns. One flush serves all "
            "who wait. Each process, and each thread, has a connection of its own; the server, and all of them, share "
            "the cores of one machine. The best of three turns.",
            f"{WISHED:,} a second are wished from many processes: {'reached' if many >= WISHED else 'not reached'}.",
            *results.missing(),
        ),
    )


if __name__ == "__main__":
    print(table(measure(quick="--quick" in sys.argv)).text())
