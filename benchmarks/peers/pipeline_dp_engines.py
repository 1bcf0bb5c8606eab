"""PipelineDP on Spark 3.5, beside plain Spark of that version: `pipeline_dp_engines SECONDS`."""

from __future__ import annotations

import sys
from typing import Any

import pipeline_dp  # type: ignore[import-not-found]

from benchmarks.crowd_names import CITIES, DELTA, EPSILON, HIGH
from benchmarks.engine_names import COUNTED, JOB, SUMMED
from benchmarks.peers.peer_engines import compare

METRICS = {COUNTED: ("COUNT",), SUMMED: ("COUNT", "SUM", "MEAN")}


def ask(frame: Any, job: str) -> None:
    """Aggregate once the rows that Spark reads."""
    accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=float(EPSILON), total_delta=DELTA)
    engine = pipeline_dp.DPEngine(accountant, pipeline_dp.SparkRDDBackend(frame.sparkSession.sparkContext))
    wanted = pipeline_dp.AggregateParams(
        noise_kind=pipeline_dp.NoiseKind.LAPLACE,
        metrics=[getattr(pipeline_dp.Metrics, name) for name in METRICS[job]],
        max_partitions_contributed=JOB.max_groups,
        max_contributions_per_partition=JOB.max_rows,
        min_value=0,
        max_value=HIGH,
    )
    extractors = pipeline_dp.DataExtractors(
        privacy_id_extractor=lambda row: row[0],
        partition_extractor=lambda row: row[1],
        value_extractor=lambda row: row[2],
    )
    rows = frame.select("user_id", "city", "income").rdd
    found = engine.aggregate(rows, wanted, extractors, public_partitions=list(range(CITIES)))
    accountant.compute_budgets()
    found.collect()


if __name__ == "__main__":
    compare(ask, seconds=float(sys.argv[1]))
