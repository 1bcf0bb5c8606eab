"""PostgreSQL beside itself: a plain group-by, and the same question asked privately, on a cluster of its own.

`postgres_rows(10**6)` returns rows for the topic `engines`; `python -m benchmarks.engines_postgres 1000000` prints it.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import discreet as dp
from benchmarks.environments import ROOT
from benchmarks.timing import Timing, below, once
from discreet.query.workers.worker_engine import WorkerEngine

__all__ = ["GOALS", "postgres_rows"]

CITIES: Final = 1_000
HIGH: Final = 200_000  # incomes are clamped from 0 to here
EPSILON: Final = 1
QUERY: Final = "SELECT city, COUNT(*) AS n, SUM(income) AS total, AVG(income) AS mean FROM crowd GROUP BY city"
PLAIN, UNITS = "plain group-by", "plain COUNT(DISTINCT unit), group-by"
PUSHED, STREAMED, BOUNDED = "rows are units, added up there", "rows are units, streamed", "3 groups × 2 rows a user"
# What each job is compared with, and at most so many times of it.
GOALS: Final = {PUSHED: (PLAIN, 1.5), BOUNDED: (UNITS, 6.0)}
# Users are active by a power law, ten rows each on average, and most of their rows are in one city of theirs.
_MAKE: Final = """
CREATE TABLE crowd AS
SELECT u AS user_id, CASE WHEN random() < 0.6 THEN (u * 2654435761 % {cities})::int ELSE c END AS city,
       (30000 * exp(0.7 * random_normal()))::int AS income
FROM (SELECT (power(random(), 2.5) * {users})::bigint AS u, (power(random(), 3) * {cities})::int % {cities} AS c
      FROM generate_series(1, {rows})) AS drawn
"""
_NORMAL: Final = """
CREATE FUNCTION random_normal() RETURNS double precision LANGUAGE sql VOLATILE AS
'SELECT sqrt(-2 * ln(1 - random())) * cos(2 * pi() * random())'
"""


def postgres_rows(rows: int, *, repetitions: int = 5, seconds: float = 300.0) -> list[dict[str, Any]]:
    """Make a cluster, load generated rows, and measure all jobs in turns: the fastest of some repetitions.

    The work is spread over the server, this process and a worker. `wall` is the clock on the wall, which the goals are
    about, and which others on the machine lengthen; `cpu` is the time of all processes that took part, the server's
    included. Each row says what it is compared with, and how many times of that it took, by either clock.
    """
    with _crowd(rows) as cluster, ExitStack() as opened:
        dsn = cluster.dsn()
        jobs: dict[str, Callable[[], object]] = {
            name: opened.enter_context(_plain(dsn, name)) for name in (PLAIN, UNITS)
        }
        for name in (PUSHED, STREAMED, BOUNDED):
            session = opened.enter_context(_session(dsn, by_row=name != BOUNDED))
            jobs[name] = _streamed(session) if name == STREAMED else _asked(session)
        for job in jobs.values():
            job()  # Caches of the server, and the worker, are warm for all alike.
        server = int((cluster.folder / "data" / "postmaster.pid").read_text().split()[0])
        found = {name: _once(job, server) for name, job in jobs.items()}
        start = time.perf_counter()
        for _ in range(repetitions - 1):
            if time.perf_counter() - start < seconds:
                found = {name: found[name].best(_once(job, server)) for name, job in jobs.items()}
    return [_row(name, rows, found) for name in jobs]


def _once(job: Callable[[], object], server: int) -> Timing:
    before, timed = _server_seconds(server), once(job)
    return Timing(timed.cpu + _server_seconds(server) - before, timed.wall, 1)


def _server_seconds(server: int) -> float:
    """Return the CPU time of a server: of its first process, of those that ended, and of those that are below it."""
    ticks = 0
    for process in (server, *below(server)):
        with suppress(OSError):  # It ended just now, and is counted with its parent.
            told = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, told[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def _row(name: str, rows: int, found: dict[str, Timing]) -> dict[str, Any]:
    beside, most = GOALS.get(name, (PLAIN, None))
    mine = found[name]
    return {
        "subject": "postgresql",
        "job": name,
        "rows": rows,
        "wall": mine.wall,
        "cpu": mine.cpu,
        "beside": beside,
        "times": mine.wall / found[beside].wall,
        "times_cpu": mine.cpu / found[beside].cpu,
        "times_plain": mine.wall / found[PLAIN].wall,
        "times_plain_cpu": mine.cpu / found[PLAIN].cpu,
        "goal": most,
    }


@contextmanager
def _crowd(rows: int) -> Iterator[Any]:
    """Make the same cluster as the tests do, with the rows in it."""
    sys.path.insert(0, str(ROOT / "tests"))
    with import_module("postgres_cluster").own_cluster() as cluster:
        cluster.execute(_NORMAL)
        cluster.execute(_MAKE.format(rows=rows, users=rows // 10, cities=CITIES))
        cluster.execute("VACUUM (ANALYZE) crowd")
        yield cluster


@contextmanager
def _plain(dsn: str, name: str) -> Iterator[Callable[[], object]]:
    """Ask without privacy, on a connection that is open."""
    psycopg: Any = import_module("psycopg")
    query = QUERY if name == PLAIN else QUERY.replace("COUNT(*) AS n", "COUNT(DISTINCT user_id) AS n")
    with psycopg.connect(dsn, autocommit=True) as connection:
        yield lambda: connection.execute(query).fetchall()


def _session(dsn: str, *, by_row: bool) -> dp.Session:
    return dp.Session(
        {"crowd": dp.postgres(dsn, "public.crowd")},
        unit="row" if by_row else dp.Unit("user_id", 3, 2),
        budget=dp.Budget(epsilon=10**6, delta="1e-2"),
        columns={"city": dp.categories(range(CITIES)), "income": dp.between(0, HIGH, whole=True)},
        ledger="memory",
        dataset="crowd",
        principal="analyst",
    )


def _asked(session: dp.Session) -> Callable[[], object]:
    """Ask as a user does: the connection, the charge and the noise are included."""
    return lambda: session.sql(QUERY, epsilon=EPSILON).release()


def _streamed(session: dp.Session) -> Callable[[], object]:
    """Ask the same as if the server could not add up."""

    def job() -> object:
        with patch.object(WorkerEngine, "_added", lambda *_: None):
            return session.sql(QUERY, epsilon=EPSILON).release()

    return job


if __name__ == "__main__":
    for size in map(int, sys.argv[1:] or ["1000000"]):
        for line in postgres_rows(size):
            times = f"{line['times']:5.2f}× of {line['beside']}, {line['times_plain']:5.2f}× of plain"
            cpu = f"CPU {line['cpu']:8.2f} s, {line['times_cpu']:5.2f}×, {line['times_plain_cpu']:5.2f}×"
            print(f"{line['rows']:>10,}  {line['job']:<40} {line['wall']:8.3f} s, {times}; {cpu}", flush=True)
