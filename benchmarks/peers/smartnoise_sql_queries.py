"""SmartNoise SQL on DuckDB through its PostgreSQL reader, from the Parquet file; it finds the keys by a threshold."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import duckdb
import snsql  # type: ignore[import-not-found]

from benchmarks.crowd_names import CITIES, DELTA, EPSILON, HIGH, QUERY, Job
from benchmarks.peers.crowd_timing import ROWS, report
from benchmarks.peers.protocol import is_quick
from benchmarks.peers.smartnoise_sql_corpus import Connection


def prepare(job: Job, path: Path) -> Mapping[str, Callable[[], object]]:
    """Describe the table and name the call."""
    connection = duckdb.connect()
    connection.execute(f"CREATE VIEW crowd AS SELECT * FROM read_parquet('{path}')")
    owner = {"row_privacy": True} if job.by_row else {"max_ids": job.max_groups * job.max_rows, "sample_max_ids": True}
    table = owner | {
        "rows": 1_000_000 if is_quick() else ROWS,
        "censor_dims": True,
        "user_id": {"name": "user_id", "type": "int", "private_id": not job.by_row},
        "city": {"name": "city", "type": "int", "lower": 0, "upper": CITIES - 1},
        "income": {"name": "income", "type": "float", "lower": 0.0, "upper": float(HIGH)},
    }
    known = {"": {"main": {"crowd": table}}}
    sql = QUERY.replace("FROM crowd", "FROM main.crowd")

    def ask() -> object:
        privacy = snsql.Privacy(epsilon=float(EPSILON), delta=DELTA)
        reader = snsql.from_connection(Connection(connection), privacy=privacy, metadata=known, engine="postgres")
        return reader.execute(sql)

    return {"": ask}


if __name__ == "__main__":
    report(prepare, rows=ROWS, how="DuckDB, Parquet")
