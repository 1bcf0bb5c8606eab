"""Time jobs on Spark, local[2]: the fastest of a few turns, by the wall clock and by the CPU of all processes."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

from benchmarks.engine_names import DISTINCT, PLAIN, PLAIN_COUNT, TEXTS
from benchmarks.peers.protocol import emit
from benchmarks.timing import Timing, alternate, once

__all__ = ["limited", "opened", "plain_jobs", "report"]

_ADOPT: Final = 36  # PR_SET_CHILD_SUBREAPER of prctl(2)
# Arrow in the JVM needs these on Java 17; Spark 4 says them itself.
_OPENS: Final = (
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED --add-opens=java.base/java.nio=ALL-UNNAMED "
    "-Dio.netty.tryReflectionSetAccessible=true"
)


@contextmanager
def opened() -> Iterator[Any]:
    """Start Spark with two threads, and no more shuffle partitions than they need; every subject has the same."""
    from pyspark.sql import SparkSession

    # Python workers that outlive their parent stay ours, so that the CPU which they took is still counted.
    ctypes.CDLL(None).prctl(_ADOPT, 1, 0, 0, 0)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.driver.memory": "6g",
        "spark.driver.extraJavaOptions": _OPENS,
        "spark.log.level": "ERROR",
        "spark.sql.shuffle.partitions": "8",
        "spark.sql.warehouse.dir": str(Path(".bench/spark-warehouse").resolve()),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    builder: Any = SparkSession.builder.master("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    try:
        yield session
    finally:
        session.stop()


def plain_jobs(session: Any) -> dict[str, Callable[[], object]]:
    """Return what Spark is asked without privacy, on the view `crowd`."""

    def asked(text: str) -> object:
        return session.sql(text).collect()

    return {name: partial(asked, TEXTS[name]) for name in (DISTINCT, PLAIN_COUNT, PLAIN)}


def report(jobs: Mapping[str, Callable[[], object]], session: Any, *, rows: int, turns: int, plain: str = "") -> None:
    """Run jobs in turns and print one row for each; those of plain Spark are by a subject of their own."""
    best = alternate(jobs, repetitions=turns, seconds=600)
    for job, timing in best.items():
        _emit(job, timing, session, rows, {"subject": plain} if plain and not job.endswith("bounded") else {})


def limited(job: Callable[[], object], session: Any, *, name: str, rows: int, seconds: float) -> None:
    """Run a job once; if it is not done in so many seconds, cancel it and say so."""
    stop = threading.Timer(seconds, session.sparkContext.cancelAllJobs)
    stop.start()
    start = time.perf_counter()
    try:
        timing = once(job)
    except Exception:
        if time.perf_counter() - start < seconds:
            raise
        emit(job=name, rows=rows, wall=seconds, stopped=True, spark=session.version)
    else:
        _emit(name, timing, session, rows, {})
    finally:
        stop.cancel()


def _emit(job: str, timing: Timing, session: Any, rows: int, labels: dict[str, str]) -> None:
    told = {"cpu": timing.cpu, "wall": timing.wall, "repetitions": timing.repetitions}
    emit(job=job, rows=rows, spark=session.version, **told, **labels)
