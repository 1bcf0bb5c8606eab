"""Discreet on Spark 4, beside plain Spark of the same version: `discreet_engines ROWS TURNS [SCRATCH]`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import discreet as dp
from benchmarks.crowd_names import CITIES, EPSILON, HIGH
from benchmarks.engine_names import COUNTED, JOB, SUMMED, TEXTS, rows_of
from benchmarks.peers.protocol import emit
from benchmarks.peers.spark_timing import opened, plain_jobs, report
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
        ours = {name: _asked(session, TEXTS[name]) for name in (COUNTED, SUMMED)}
        report({**ours, **plain_jobs(spark)}, spark, rows=rows, turns=turns, plain="spark")
        emit(job="constants", rows=rows, **_constants(ours[SUMMED], spark))


def _asked(session: dp.Session, text: str) -> Callable[[], object]:
    return lambda: session.sql(text, epsilon=EPSILON).release()


def _constants(ask: Callable[[], object], spark: Any) -> dict[str, int]:
    """Ask once more, and look at what the stages shuffled and what came to the driver."""
    status = spark.sparkContext._jsc.sc().statusStore()
    before, sizes, read = _shuffled(status), list[int](), Report.from_bytes

    def weighed(written: bytes) -> Report:
        sizes.append(len(written))
        return read(written)

    with patch.object(Report, "from_bytes", weighed):
        ask()
    return {"shuffled": _shuffled(status) - before, "parts": len(sizes), "reported": sum(sizes)}


def _shuffled(status: Any) -> int:
    """Return the bytes that were written for shuffles so far."""
    executors = status.executorList(True)
    return sum(int(executors.apply(place).totalShuffleWrite()) for place in range(executors.size()))


if __name__ == "__main__":
    main()
