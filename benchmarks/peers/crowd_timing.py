"""Time the jobs of private SQL: whole calls from a Parquet file to the answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from benchmarks.crowd_names import JOBS, Job, folder
from benchmarks.peers.protocol import emit, is_quick
from benchmarks.timing import Timing, alternate

__all__ = ["ROWS", "report", "rows_file"]

ROWS = 10_000_000


def rows_file(job: Job, rows: int) -> Path:
    """Return where the rows of a job lie."""
    return folder() / f"{job.kind}-{rows}.parquet"


def report(prepare: Callable[[Job, Path], Mapping[str, Callable[[], object]]], *, rows: int, how: str) -> None:
    """Time what `prepare` returns for each job, by subject; "" is the one whose environment this is."""
    size = min(rows, 1_000_000) if is_quick() else rows
    for job in JOBS:
        calls = prepare(job, rows_file(job, size))
        repetitions = 2 if is_quick() else 5
        for subject, timing in alternate(calls, repetitions=repetitions, seconds=60).items():
            _emit(job, size, subject, timing, how)


def _emit(job: Job, rows: int, subject: str, timing: Timing, how: str) -> None:
    named = {"subject": subject} if subject else {}
    emit(job=job.name, rows=rows, cpu=timing.cpu, wall=timing.wall, repetitions=timing.repetitions, how=how, **named)
