"""Discreet and plain DuckDB in turns: twelve tables of ten million rows, from a Parquet file to the bundle."""

from __future__ import annotations

import resource
import tempfile
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path

import duckdb

import discreet as dp
from benchmarks.peers.protocol import emit, is_quick
from benchmarks.shopping import QUERIES, plan_text, purchases
from benchmarks.timing import alternate, once
from discreet import release
from discreet.release.plan import ReleasePlan
from discreet.release.release_order import ask_table

ROWS = 10_000_000


def plain(path: Path) -> Callable[[], object]:
    """Return the twelve questions without privacy, one after the other."""

    def ask() -> object:
        connection = duckdb.connect()
        connection.execute(f"CREATE VIEW shopping AS SELECT * FROM read_parquet('{path}')")
        return [connection.execute(query).fetchall() for query in QUERIES]

    return ask


def calls(path: Path, folder: Path) -> Mapping[str, Callable[[], object]]:
    """Name the jobs; every release has a ledger of its own, since it would be given again for free otherwise."""
    turns = count()

    def plan() -> ReleasePlan:
        place = folder / str(next(turns))
        place.mkdir()
        (place / "plan.toml").write_text(plan_text(path), encoding="utf-8")
        return release.read_release_plan(place / "plan.toml")

    def apart() -> object:
        said = plan()
        with dp.Session.from_policy(said.policy, principal="speed") as session:
            return [ask_table(session, table).release() for table in release.price(said).tables]

    def together() -> object:
        said = plan()
        with dp.Session.from_policy(said.policy, principal="speed") as session:
            plans = {table.name: ask_table(session, table) for table in release.price(said).tables}
            return session.batch(plans, idempotency_key="speed", purpose="speed").release()

    return {
        "duckdb": plain(path),
        "whole release": lambda: release.publish(plan(), principal="speed"),
        "tables together": together,
        "tables one by one": apart,
    }


def main() -> None:
    """Report every job, and the peak of memory after all of them."""
    rows = ROWS // 10 if is_quick() else ROWS
    path = purchases(Path(".bench") / "release", rows).resolve()
    with tempfile.TemporaryDirectory() as folder:
        jobs = dict(calls(path, Path(folder)))
        long = jobs.pop("tables one by one")
        timed = alternate(jobs, repetitions=2 if is_quick() else 5, seconds=200)
        timed["tables one by one"] = once(long)
    for job, timing in timed.items():
        emit(job=job, rows=rows, cpu=timing.cpu, wall=timing.wall, repetitions=timing.repetitions)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2  # It counts in kilobytes.
    emit(job="memory", rows=rows, gigabytes=peak)


if __name__ == "__main__":
    main()
