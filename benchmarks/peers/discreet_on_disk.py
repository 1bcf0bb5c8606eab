"""Discreet on files of a folder that memory does not hold: `discreet_on_disk ROWS SCRATCH GIGABYTES`."""

from __future__ import annotations

import os
import sys
import threading
from contextlib import suppress
from typing import Final

import discreet as dp
from benchmarks.crowd_names import CITIES, EPSILON, HIGH
from benchmarks.engine_names import JOB, SUMMED, TEXTS, rows_of
from benchmarks.peers.protocol import emit
from benchmarks.timing import below, once, peak

_LOOK: Final = 0.2  # seconds
_LIBRARIES: Final = 512 << 20  # What a worker may take beyond `memory`, for its libraries and threads.


def main() -> None:
    """Ask once in a process of its own, and look at the memory of the worker meanwhile."""
    rows, scratch, gigabytes = int(sys.argv[1]), sys.argv[2], float(sys.argv[3])
    files = rows_of(rows, scratch)
    memory = int(gigabytes * 1e9) - _LIBRARIES
    session = dp.Session(
        {"crowd": f"{files}/*.parquet"},
        unit=dp.Unit("user_id", JOB.max_groups, JOB.max_rows),
        budget=dp.Budget(epsilon=10**6, delta="1e-2"),
        columns={"city": dp.categories(range(CITIES)), "income": dp.between(0.0, float(HIGH))},
        ledger="memory",
        dataset="crowd",
        principal="analyst",
        resources=dp.query.Resources(memory=memory, seconds=3600),
    )
    peaks: dict[int, float] = {}
    done = threading.Event()
    watcher = threading.Thread(target=_watch, args=(peaks, done))
    watcher.start()
    try:
        timing = once(lambda: session.sql(TEXTS[SUMMED], epsilon=EPSILON).release())
    finally:
        done.set()
        watcher.join()
    size = sum(path.stat().st_size for path in files.iterdir())
    told = {"gigabytes": sum(peaks.values()), "worker": max(peaks.values()), "limit": gigabytes, "bytes": size}
    emit(job="on disk", rows=rows, cpu=timing.cpu, wall=timing.wall, **told)


def _watch(peaks: dict[int, float], done: threading.Event) -> None:
    while not done.wait(_LOOK):
        for process in (os.getpid(), *below(os.getpid())):
            with suppress(OSError):  # It ended just now.
                peaks[process] = max(peaks.get(process, 0.0), peak(process))  # One that ends has none.


if __name__ == "__main__":
    main()
