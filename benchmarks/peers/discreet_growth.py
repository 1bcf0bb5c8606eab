"""Discreet: one bounded question on a file of so many rows, in a process of its own, with its peak memory."""

from __future__ import annotations

import resource
import sys

from benchmarks.crowd_names import JOBS
from benchmarks.peers.crowd_timing import rows_file
from benchmarks.peers.discreet_queries import private, session
from benchmarks.peers.protocol import emit
from benchmarks.timing import once


def main() -> None:
    """Report the job with several rows a user at the size that the command line says."""
    job, rows = JOBS[0], int(sys.argv[1])
    opened = session(job, rows_file(job, rows))
    timing = once(lambda: private(opened))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2  # It counts in kilobytes.
    emit(job="growth", rows=rows, cpu=timing.cpu, wall=timing.wall, gigabytes=peak)


if __name__ == "__main__":
    main()
