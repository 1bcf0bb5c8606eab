"""Discreet on Spark 4, beside plain Spark of the same version: `discreet_engines ROWS TURNS [SCRATCH]`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

import discreet as dp
from benchmarks.crowd_names import CITIES, EPSILON, HIGH
from benchmarks.engine_names import COUNTED, JOB, SUMMED, TEXTS, rows_of
from benchmarks.peers.protocol import emit
from benchmarks.peers.spark_timing import opened, plain_jobs, report
from benchmarks.timing import below, peak
from discreet.query.spark.partition_reports import Report


def main() -> None:
    """Ask ours and plain Spark in turns, from Parquet to the answer."""
    rows, turns, scratch = int(sys.argv[1]), int(sys.argv[2]), [one for one in sys.argv[3:] if one != "--quick"]
    with opened() as spark:
        frame = spark.read.parquet(str(rows_of(rows, *scratch)))
        frame.createOrReplaceTempView("crowd")
        session = dp.Session(
            {"crowd": frame},
            unit=dp.Unit("user_id", JOB.max_groups, JOB.max_rows),
            budget=dp.Budget(epsilon=10**6, delta="1e-2"),
            columns={"city": dp.categories(range(CITIES)), "income": dp.between(0.0, float(HIGH))},
            ledger="memory",
            dataset="crowd",
            principal="analyst",
            resources=dp.query.Resources(seconds=1800),
        )
        told: dict[str, float] = {}
        ours = {COUNTED: _asked(session, TEXTS[COUNTED]), SUMMED: _weighed(_asked(session, TEXTS[SUMMED]), spark, told)}
        report({**ours, **plain_jobs(spark)}, spark, rows=rows, turns=turns, plain="spark")
        emit(job="constants", rows=rows, **told)


def _asked(session: dp.Session, text: str) -> Callable[[], object]:
    return lambda: session.sql(text, epsilon=EPSILON).release()


def _weighed(ask: Callable[[], object], spark: Any, told: dict[str, float]) -> Callable[[], None]:
    """Look at what a question shuffles and what comes to the driver, which takes no time to speak of."""
    status, read = spark.sparkContext._jsc.sc().statusStore(), Report.from_bytes

    def asked() -> None:
        sizes: list[int] = []

        def weighed(written: bytes) -> Report:
            sizes.append(len(written))
            return read(written)

        before = _shuffled(status)
        with patch.object(Report, "from_bytes", weighed):
            ask()
        told.update(shuffled=_shuffled(status) - before, parts=len(sizes), reported=sum(sizes), task=_task_memory())

    return asked


def _task_memory() -> float:
    """Return the most gigabytes that a Python process of Spark had in memory; it serves one task after the other."""
    peaks = [0.0]
    for process in below(os.getpid()):
        with suppress(OSError):  # It ended just now.
            if Path(f"/proc/{process}/comm").read_text().startswith("python"):
                peaks.append(peak(process))
    return max(peaks)


def _shuffled(status: Any) -> int:
    """Return the bytes that were written for shuffles so far."""
    executors = status.executorList(True)
    return sum(int(executors.apply(place).totalShuffleWrite()) for place in range(executors.size()))


if __name__ == "__main__":
    main()
