"""CPU time of the process and of those it started, the minimum over repetitions; the wall clock beside it.

Other processes of the machine lengthen the wall clock and, through shared caches, the CPU time too. The
minimum is the figure least disturbed by them, so it is taken for everybody alike.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

__all__ = ["Timing", "alternate", "below", "cpu_seconds", "fastest", "once", "peak"]

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


def cpu_seconds() -> float:
    """Return the CPU time of this process and of all below it: questions run in workers of their own.

    Of one that lives it is the clock of clock_getcpuclockid(3), of those that ended what their parent was told of them.
    Elsewhere than on Linux nothing is told of processes below this one's own.
    """
    ended = os.times()
    total = time.process_time() + ended.children_user + ended.children_system
    for process in below(os.getpid()):
        with suppress(OSError):  # It ended just now.
            told = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
            total += time.clock_gettime((~process << 3) | 2) + sum(map(int, told[13:15])) / os.sysconf("SC_CLK_TCK")
    return total


def below(process: int) -> list[int]:
    """Return the processes that a process started, and those that they started."""
    found: list[int] = []
    for listed in Path(f"/proc/{process}/task").glob("*/children"):
        with suppress(OSError):
            for child in map(int, listed.read_text().split()):
                found += [child, *below(child)]
    return found


def peak(process: int) -> float:
    """Return the most gigabytes that a process had in memory so far."""
    lines = Path(f"/proc/{process}/status").read_text(encoding="ascii").splitlines()
    return next((int(line.split()[1]) * 1024 / 1e9 for line in lines if line.startswith("VmHWM")), 0.0)


def once(job: Callable[[], object]) -> Timing:
    """Time one run."""
    cpu, wall = cpu_seconds(), time.perf_counter()
    job()
    return Timing(cpu_seconds() - cpu, time.perf_counter() - wall, 1)


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
