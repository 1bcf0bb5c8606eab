"""Faults, mistakes and scales that tests put into the tasks of Spark: executors import them from here, by name."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa

from discreet.query.spark import partition_tasks

LONGEST = 300  # Seconds that an attempt waits.
FIRST = {"route": 2, "count_part": 0}  # The driver's own word has the first two partitions of those that are routed.


def kills(folder: Path, times: int, step: str, *words: Any) -> Any:
    """Take a step of a task; the first task kills its executor, so many times in all, as when a machine dies."""
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    if context.partitionId() == FIRST[step]:
        killed = len(list(folder.iterdir()))
        if killed < times:
            (folder / str(killed)).touch()
            os.kill(_parent(os.getppid()), signal.SIGKILL)
            time.sleep(LONGEST)  # Until this process notices that its executor is gone.
    return getattr(partition_tasks, step)(*words)


def _parent(process: int) -> int:
    """Return the parent of a process: that of the daemon, which forks the processes of tasks, is the executor."""
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def lags(folder: Path, ends: bool, step: str, *words: Any) -> Any:
    """Take a step of a task; the first attempt at the first partition waits for the second to begin, or for ever.

    If it ends, neither attempt returns before both have ended: Spark kills whoever is behind once one has returned.
    """
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    if context.partitionId() != FIRST[step]:
        return getattr(partition_tasks, step)(*words)
    attempt = context.attemptNumber()
    other = 0 if attempt else 1
    (folder / f"{attempt} began").touch()
    _await(folder / (f"{other} began" if ends or attempt else "never"))
    found = getattr(partition_tasks, step)(*words)
    (folder / f"{attempt} ended").touch()
    if ends:
        _await(folder / f"{other} ended")
    return found


def _await(file: Path) -> None:
    end = time.monotonic() + LONGEST
    while not file.exists() and time.monotonic() < end:
        time.sleep(0.02)


def weighs(folder: Path, step: str, *words: Any) -> Any:
    """Take a step of a task, and tell the most bytes that this process ever held."""
    found = getattr(partition_tasks, step)(*words)
    lines = Path("/proc/self/status").read_text().splitlines()
    (peak,) = (line.split()[1] for line in lines if line.startswith("VmHWM"))
    (folder / f"{os.getpid()}").write_text(str(int(peak) << 10))
    return found


def routes_by_rows(*words: Any) -> Iterator[pa.RecordBatch]:
    """Route as a wrong partitioner does, which looks at where a row is and not at whose it is."""
    by_rows = patch.object(
        partition_tasks._UnitReader, "parts", lambda self, rows: np.arange(rows.num_rows) % self._parts
    )
    with by_rows:
        yield from partition_tasks.route(*words)


def loses_rows(*words: Any) -> Iterator[pa.RecordBatch]:
    """Route, and lose the first batch on the way."""
    batches = iter(partition_tasks.route(*words))
    next(batches)
    yield from batches


def vanishes(*words: Any) -> Iterator[pa.RecordBatch]:
    """Route, unless this is the last source: of that nothing is sent."""
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    routed = partition_tasks.route(*words)
    return routed if context.partitionId() < 3 else iter(())
