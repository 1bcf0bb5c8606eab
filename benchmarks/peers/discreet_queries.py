"""Discreet and plain DuckDB in turns: a question from a Parquet file to the private answer, ledger included."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import duckdb

import discreet as dp
from benchmarks.crowd_names import CITIES, EPSILON, HIGH, QUERY, Job
from benchmarks.peers.crowd_timing import ROWS, report

__all__ = ["private", "session"]


def session(job: Job, path: Path) -> dp.Session:
    """Open a session on the rows; the cities are public."""
    return dp.Session(
        {"crowd": path},
        unit="row" if job.by_row else dp.Unit("user_id", job.max_groups, job.max_rows),
        budget=dp.Budget(epsilon=10**6, delta="1e-2"),
        columns={"city": dp.categories(range(CITIES)), "income": dp.between(0.0, float(HIGH))},
        ledger="memory",
        dataset="crowd",
        principal="analyst",
    )


def private(opened: dp.Session) -> object:
    """Ask once."""
    return opened.sql(QUERY, epsilon=EPSILON).release()


def plain(path: Path) -> Callable[[], object]:
    """Return the same question without privacy."""
    connection = duckdb.connect()
    connection.execute(f"CREATE VIEW crowd AS SELECT * FROM read_parquet('{path}')")
    return lambda: connection.execute(QUERY).fetchall()


def prepare(job: Job, path: Path) -> Mapping[str, Callable[[], object]]:
    """Name the two calls."""
    return {"": partial(private, session(job, path)), "duckdb": plain(path)}


if __name__ == "__main__":
    report(prepare, rows=ROWS, how="Parquet")
