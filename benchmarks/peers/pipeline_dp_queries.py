"""PipelineDP on its local backend; its rows are Python tuples in memory, and reading them is not timed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pipeline_dp  # type: ignore[import-not-found]
import pyarrow.parquet as pq

from benchmarks.crowd_names import CITIES, DELTA, EPSILON, HIGH, Job
from benchmarks.peers.crowd_timing import report

ROWS = 200_000  # its time grows in proportion


def ask(job: Job, rows: list[Any]) -> list[Any]:
    """Aggregate once."""
    accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=float(EPSILON), total_delta=DELTA)
    engine = pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend())
    metrics = pipeline_dp.Metrics
    wanted = pipeline_dp.AggregateParams(
        noise_kind=pipeline_dp.NoiseKind.LAPLACE,
        metrics=[metrics.COUNT, metrics.SUM, metrics.MEAN],
        max_partitions_contributed=job.max_groups,
        max_contributions_per_partition=job.max_rows,
        min_value=0,
        max_value=HIGH,
    )
    extractors = pipeline_dp.DataExtractors(
        privacy_id_extractor=lambda row: row[0],
        partition_extractor=lambda row: row[1],
        value_extractor=lambda row: row[2],
    )
    found = engine.aggregate(rows, wanted, extractors, public_partitions=list(range(CITIES)))
    accountant.compute_budgets()
    return list(found)


def prepare(job: Job, path: Path) -> Mapping[str, Callable[[], object]]:
    """Read the rows and name the call."""
    table = pq.read_table(path)
    users = range(table.num_rows) if job.by_row else table["user_id"].to_pylist()
    rows = list(zip(users, table["city"].to_pylist(), table["income"].to_pylist(), strict=True))
    return {"": lambda: ask(job, rows)}


if __name__ == "__main__":
    report(prepare, rows=ROWS, how="local backend, tuples in memory")
