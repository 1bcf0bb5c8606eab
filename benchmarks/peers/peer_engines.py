"""What a peer on Spark is asked: all at the smallest size, the count at the next, as long as it is let."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.engine_names import COUNTED, SIZES, SUMMED, rows_of
from benchmarks.peers.protocol import is_quick
from benchmarks.peers.spark_timing import limited, opened, plain_jobs, report

__all__ = ["compare"]


def compare(ask: Callable[[Any, str], None], *, seconds: float) -> None:
    """Time the jobs, each beside plain Spark, after a count that warms up."""
    with opened() as spark:
        for rows in SIZES[:1] if is_quick() else SIZES[:2]:
            frame = spark.read.parquet(str(rows_of(rows)))
            frame.createOrReplaceTempView("crowd")
            report(plain_jobs(spark), spark, rows=rows, turns=3, plain="spark")
            if rows == SIZES[0]:
                ask(frame, COUNTED)
            job = SUMMED if rows == SIZES[0] else COUNTED
            limited(partial(ask, frame, job), spark, name=job, rows=rows, seconds=seconds)
