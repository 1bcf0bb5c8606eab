"""The ledger on a PostgreSQL server: durable charges in a second, from one writer and from many at once.

`python -m benchmarks.bench_ledger_server` prints it; nothing quotes it before a whole run on a quiet machine.
"""

from __future__ import annotations

import multiprocessing
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from benchmarks.bench_ledger import best
from benchmarks.environments import ROOT
from benchmarks.results import Goal, Results, gather
from benchmarks.table import Table, number
from discreet.ledger import Account, Budget, Ledger
from discreet.privacy.events import PureDP
from discreet.privacy.relation import Relation

__all__ = ["goals", "measure", "table"]

ADD: Final = Relation.ADD_REMOVE
ACCOUNT: Final = Account("people", "row", ADD, Budget(1, "1e-6"))
TINY: Final = PureDP("1e-9")
ONE: Final = "server, one writer"
MANY: Final = "server, 16 processes"
GOALS: Final = {ONE: 300, MANY: 1500}
BARE: Final = "server, one bare commit"


def measure(*, quick: bool) -> Results:
    """Measure one writer and many on a cluster of its own, and a file and a bare commit beside it, in turns."""
    gathering, count = gather(quick=quick), 100 if quick else 1000
    with _server() as (cluster, folder):
        for turn in range(1 if quick else 3):
            jobs: dict[str, Callable[[], dict[str, Any]]] = {
                BARE: lambda: _bare(cluster, count),
                "file, one writer": lambda: _writers(folder / f"file-{time.time_ns()}", folder, 1, count),
                "file, 16 processes": lambda: _writers(folder / f"file-{time.time_ns()}", folder, 16, count // 4),
                ONE: lambda: _writers(_schema(cluster), folder, 1, count),
                MANY: lambda: _writers(_schema(cluster), folder, 16, count // 4),
            }
            for what, job in jobs.items():
                gathering.rows.append({"subject": "discreet", "what": what, "turn": turn} | job())
    return gathering.results("ledger_server")


@contextmanager
def _server() -> Iterator[tuple[Any, Path]]:
    """Make the same cluster as the tests do, with fsync on."""
    sys.path.insert(0, str(ROOT / "tests"))
    with import_module("postgres_cluster").own_cluster() as cluster, TemporaryDirectory() as folder:
        yield cluster, Path(folder)


def _schema(cluster: Any) -> str:
    return f"{cluster.dsn()}?schema=bench_{time.time_ns()}"


def _bare(cluster: Any, count: int) -> dict[str, Any]:
    psycopg: Any = import_module("psycopg")
    with psycopg.connect(cluster.dsn(), autocommit=True) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS bare (i bigint, x text)")
        start = time.perf_counter()
        for i in range(count):
            connection.execute("INSERT INTO bare VALUES (%s, %s)", (i, "x" * 500))
        return {"per_second": count / (time.perf_counter() - start), "count": count}


def _spend(place: str | Path, anchor: Path, each: int, start: Any, done: Any) -> None:
    with Ledger.open(place, ACCOUNT, anchor=anchor) as ledger:
        start.wait()
        for _ in range(each):
            ledger.charge(TINY, relation=ADD, purpose="benchmark", principal="analyst", project="project")
    done.put(each)


def _writers(place: str | Path, folder: Path, writers: int, each: int) -> dict[str, Any]:
    context, anchor = multiprocessing.get_context("fork"), folder / f"anchor-{time.time_ns()}"
    Ledger.open(place, ACCOUNT, anchor=anchor).close()
    start, done = context.Barrier(writers + 1), context.Queue()
    running = [context.Process(target=_spend, args=(place, anchor, each, start, done)) for _ in range(writers)]
    for process in running:
        process.start()
    start.wait()
    begun = time.perf_counter()
    total = sum(done.get() for _ in running)
    seconds = time.perf_counter() - begun
    for process in running:
        process.join()
    with Ledger.open(place, ACCOUNT, anchor=anchor) as ledger:
        lost = total - ledger.spent().charges
    return {"per_second": total / seconds, "count": total, "lost": lost}


def goals(results: Results) -> tuple[Goal, ...]:
    """Judge what was promised."""
    found = {what: best(results, what) for what in GOALS}
    return tuple(
        Goal(f"≥ {least:,} a second", None if rate is None else rate >= least)
        for (_, least), rate in zip(GOALS.items(), found.values(), strict=True)
    )


def table(results: Results) -> Table:
    """List the jobs, each beside a bare commit of the same server."""
    judged, bare = dict(zip(GOALS, goals(results), strict=True)), best(results, BARE)
    jobs = dict.fromkeys(row["what"] for row in results.rows)
    rates = {what: best(results, what) for what in jobs}
    return Table(
        title="Durable charges in a second, on a PostgreSQL server",
        columns=("what", "a second", "bare commits", "goals"),
        rows=tuple(
            (what, number(rate), "" if not rate or not bare else f"{rate / bare:.2f}", str(judged.get(what, "")))
            for what, rate in rates.items()
        ),
        remarks=(
            "A charge is flushed by the server and anchored on this machine before it returns. One flush serves all "
            "who wait, so many writers together are faster than a bare commit at a time. The best of three turns.",
            *results.missing(),
        ),
    )


if __name__ == "__main__":
    print(table(measure(quick="--quick" in sys.argv)).text())
