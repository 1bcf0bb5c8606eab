"""Discreet: the first call with a parameter, which builds its tables; one fresh process for each."""

from __future__ import annotations

import sys

from benchmarks.peers.discreet_noise import JOBS, SAMPLES
from benchmarks.peers.protocol import emit
from benchmarks.timing import once


def main(job: str, parameter: str, call: str) -> None:
    """Time the first call after another parameter has loaded the libraries."""
    draw, _, _ = JOBS[job]
    size = None if call == "scalar" else SAMPLES
    draw("7/3", size=size)
    timing = once(lambda: draw(parameter, size=size))
    emit(job=job, parameter=parameter, call=call, first_ms=timing.cpu * 1e3)


if __name__ == "__main__":
    main(*sys.argv[1:4])
