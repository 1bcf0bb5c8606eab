"""Run a subject's mechanism on two neighbouring counts, and print what came out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from benchmarks.peers.protocol import emit, is_quick

__all__ = ["EPSILON", "report_outputs"]

EPSILON = 1.0
COUNTS = (5, 6)  # of two neighbours
RUNS = 40_000


def report_outputs(mechanisms: Mapping[str, Callable[[int], Any]]) -> None:
    """Print the outputs of each mechanism, one row a data set."""
    runs = RUNS // 10 if is_quick() else RUNS
    for name, mechanism in mechanisms.items():
        for count in COUNTS:
            emit(mechanism=name, count=count, outputs=[float(mechanism(count)) for _ in range(runs)])
