"""What is asked of everybody who makes synthetic tables: the cells, the limits, and what a script prints."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from benchmarks.peers.protocol import emit
from benchmarks.synth_sets import Coded, kept

__all__ = ["DELTA", "EPSILONS", "asked", "report"]

Sampler: TypeAlias = Callable[[str], NDArray[Any]]  # draws as many rows as the table has, in a named way
EPSILONS: Final = ("0.1", "1", "10")
DELTA: Final = "1e-9"


def asked() -> tuple[Coded, str, str, Path]:
    """Return the table, the method, epsilon, and the file that the sample goes to, as the caller names them."""
    table, method, epsilon, out = sys.argv[1:5]
    return kept(Path(table)), method, epsilon, Path(out)


def report(fit: Callable[[], Sampler], ways: Sequence[str], out: Path) -> None:
    """Time one fit with a sample drawn in the first way; keep a sample of each way. Imports are not in it."""
    cpu, wall = time.process_time(), time.perf_counter()
    sampler = fit()
    samples = {ways[0]: sampler(ways[0])}
    seconds = {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}
    samples |= {way: sampler(way) for way in ways[1:]}
    np.savez(out, **{way: np.asarray(sample, dtype=np.int32) for way, sample in samples.items()})  # type: ignore[arg-type]
    emit(**{clock: round(value, 3) for clock, value in seconds.items()})
