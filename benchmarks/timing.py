"""CPU time of the process, the minimum over repetitions; the wall clock beside it.

Other processes of the machine lengthen the wall clock and, through shared caches, the CPU time too. The
minimum is the figure least disturbed by them, so it is taken for everybody alike.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import TypeVar

__all__ = ["Timing", "alternate", "fastest", "once"]

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of one run: the fastest of `repetitions`, CPU and wall each on its own."""

    cpu: float
    wall: float
    repetitions: int

    def per(self, items: int) -> Timing:
        """Return the share of one of `items`."""
        return Timing(self.cpu / items, self.wall / items, self.repetitions)

    def best(self, other: Timing) -> Timing:
        """Return the better of each clock."""
        return Timing(min(self.cpu, other.cpu), min(self.wall, other.wall), self.repetitions + other.repetitions)


def once(job: Callable[[], object]) -> Timing:
    """Time one run."""
    cpu, wall = time.process_time(), time.perf_counter()
    job()
    return Timing(time.process_time() - cpu, time.perf_counter() - wall, 1)


def fastest(job: Callable[[], object], *, repetitions: int = 7, seconds: float = 20.0) -> Timing:
    """Time up to `repetitions` runs, at least one, and stop early when `seconds` have passed."""
    return alternate({"job": job}, repetitions=repetitions, seconds=seconds)["job"]


def alternate(
    jobs: Mapping[K, Callable[[], object]], *, repetitions: int = 7, seconds: float = 20.0
) -> dict[K, Timing]:
    """Time several jobs in turns, so that a busy minute of the machine hits all of them."""
    start = time.perf_counter()
    best = {name: once(job) for name, job in jobs.items()}
    for _ in range(repetitions - 1):
        if time.perf_counter() - start > seconds:
            break
        best = {name: best[name].best(once(job)) for name, job in jobs.items()}
    return best
