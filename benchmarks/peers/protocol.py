"""What a subject's script prints: one JSON object a line, read by `benchmarks.environments`."""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from benchmarks.cells import Part
from benchmarks.jobs import SPEED_SIZES
from benchmarks.timing import Timing, fastest, once

__all__ = [
    "account",
    "answers",
    "emit",
    "is_quick",
    "noise_row",
    "report_calls",
    "report_samples",
    "report_values",
    "within",
]

LONG = 6.0  # seconds
T = TypeVar("T")


def emit(**row: object) -> None:
    """Print one row."""
    print(json.dumps(row), flush=True)


def is_quick() -> bool:
    """Tell whether the run was asked to be short: a tenth of the samples, fewer repetitions."""
    return "--quick" in sys.argv


def report_samples(draw: Callable[[int], Iterable[float]], *, job: str, parameter: str, samples: int, how: str) -> None:
    """Time `draw(samples)`; the deviation of what it drew shows that the scale is the one asked for."""
    count = samples // 10 if is_quick() else samples
    timing = fastest(lambda: draw(count), repetitions=2 if is_quick() else 10, seconds=12)
    deviation = statistics.pstdev(float(value) for value in draw(min(count, 20_000)))
    emit(**noise_row(job, parameter, "vector", timing.per(count), how), samples=count, deviation=deviation)


def report_calls(call: Callable[[], object], *, job: str, parameter: str, calls: int, how: str, **labels: str) -> None:
    """Time one scalar call, as the share of a loop of `calls`."""
    count = max(calls // 10, 10) if is_quick() else calls

    def loop() -> None:
        for _ in range(count):
            call()

    timing = fastest(loop, repetitions=7, seconds=8).per(count)
    emit(**noise_row(job, parameter, "scalar", timing, how), samples=count, **labels)


def noise_row(job: str, parameter: str, call: str, timing: Timing, how: str) -> dict[str, object]:
    """Return what every noise row has; `how` says which call was made and what law it draws."""
    said: dict[str, object] = {"job": job, "parameter": parameter, "call": call, "how": how}
    return said | {"cpu_ns": timing.cpu * 1e9, "wall_ns": timing.wall * 1e9}


def account(compute: Callable[[], float | tuple[float, float]], *, how: str, bound: str) -> None:
    """Time one account: the first call on this event, then the fastest of a few more.

    A pair is a lower and an upper bound; a number alone is what the subject would print as the answer.
    """
    found: list[float | tuple[float, float]] = []
    cold = once(lambda: found.append(compute()))
    # What takes long is not repeated: a first call differs from a later one by far less than that.
    warm = cold if cold.wall > LONG else fastest(compute, repetitions=1 if is_quick() else 5, seconds=LONG)
    lower, upper = found[0] if isinstance(found[0], tuple) else (None, found[0])
    milliseconds = {"cold_ms": cold.cpu * 1e3, "warm_ms": warm.cpu * 1e3, "cold_wall_ms": cold.wall * 1e3}
    emit(how=how, bound=bound, lower=lower, value=upper, **milliseconds)


def report_values(
    make: Callable[[int], Any], calls: Callable[[Any], Mapping[str, Callable[[], object]]], *, how: str
) -> None:
    """Time whole calls on as many values as each size says, in nanoseconds a value."""
    for size in SPEED_SIZES[:1] if is_quick() else SPEED_SIZES:
        for job, call in calls(make(size)).items():
            timing = fastest(call, repetitions=2 if is_quick() else 7, seconds=12).per(size)
            emit(how=how, job=job, size=size, cpu_ns=timing.cpu * 1e9, wall_ns=timing.wall * 1e9)


def answers(part: Part, method: str, estimates: Iterable[float], *, subject: str) -> None:
    """Keep what a method answered, and say where."""
    emit(cell=part.cell, number=part.number, method=method, file=part.save(subject, method, estimates))


def within(seconds: float, part: Part, call: Callable[[], T]) -> list[T]:
    """Ask as often as a part is asked; stop when its share of the cell's CPU time is up."""
    start, found = time.process_time(), list[T]()
    allowed = seconds * part.share * (0.1 if is_quick() else 1.0)
    while len(found) < part.runs and (not found or time.process_time() - start < allowed):
        found.append(call())
    return found
