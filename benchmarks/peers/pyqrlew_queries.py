"""Qrlew: the query rewritten once (not timed), then run by DuckDB from the Parquet file; the cities are public."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import duckdb
import pyqrlew as qrlew  # type: ignore[import-not-found]
import sqlalchemy as sa  # type: ignore[import-not-found]

from benchmarks.crowd_names import CITIES, DELTA, EPSILON, HIGH, QUERY, Job
from benchmarks.peers.crowd_timing import ROWS, report
from benchmarks.peers.protocol import is_quick
from benchmarks.peers.pyqrlew_corpus import sized


def rewritten(job: Job, rows: int) -> str:
    """Describe the table and return the private SQL."""
    engine, known = sa.create_engine("sqlite://"), sa.MetaData()
    kinds = {"user_id": sa.BigInteger, "city": sa.BigInteger, "income": sa.Float}
    sa.Table("crowd", known, *(sa.Column(name, kind) for name, kind in kinds.items()))
    known.create_all(engine)
    found = sized(qrlew.Dataset.from_database("speed", engine, None, False, None), {"crowd": rows})
    found = found.with_range(None, "crowd", "income", 0.0, float(HIGH))
    found = found.with_possible_values(None, "crowd", "city", [str(city) for city in range(CITIES)])
    private = found.relation(QUERY).rewrite_with_differential_privacy(
        found,
        [("crowd", [], "_PRIVACY_UNIT_ROW_" if job.by_row else "user_id")],
        {"epsilon": float(EPSILON), "delta": DELTA},
        max_multiplicity=float(job.max_groups * job.max_rows),
        max_multiplicity_share=1.0,
        max_privacy_unit_groups=job.max_groups,
    )
    return str(private.relation().to_query(qrlew.Dialect.PostgreSql))


def prepare(job: Job, path: Path) -> Mapping[str, Callable[[], object]]:
    """Name the call."""
    connection = duckdb.connect()
    columns = "user_id, city::BIGINT AS city, income"
    connection.execute(f"CREATE VIEW crowd AS SELECT {columns} FROM read_parquet('{path}')")
    sql = rewritten(job, 1_000_000 if is_quick() else ROWS)
    return {"": lambda: connection.execute(sql).fetchall()}


if __name__ == "__main__":
    report(prepare, rows=ROWS, how="DuckDB, Parquet")
