"""Discreet, in turns with NumPy's float samplers, which are the limit without security.

NumPy's have the same scale but draw floats from a generator whose state an attacker can recover.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.jobs import LAPLACE_SCALES, SCALAR_PARAMETERS, SIGMAS
from benchmarks.peers.protocol import emit, is_quick, noise_row, report_calls
from benchmarks.timing import alternate
from discreet import noise

SAMPLES = 1_000_000
CALLS = 5_000
JOBS: dict[str, tuple[Callable[..., Any], str, tuple[str, ...]]] = {
    "laplace": (noise.discrete_laplace, "laplace", LAPLACE_SCALES),
    "gaussian": (noise.discrete_gaussian, "normal", SIGMAS),
    "rounded": (noise.rounded_gaussian, "normal", SIGMAS),
}


def compare(job: str, parameter: str) -> None:
    """Report ours and NumPy's for one vector job."""
    ours, theirs, _ = JOBS[job]
    numpy = getattr(np.random.default_rng(), theirs)
    count = SAMPLES // 10 if is_quick() else SAMPLES
    timings = alternate(
        {
            "discreet": lambda: ours(parameter, size=count),
            "numpy": lambda: numpy(0.0, float(parameter), count),
        },
        repetitions=5 if is_quick() else 25,
        seconds=12,
    )
    deviation = statistics.pstdev(ours(parameter, size=20_000).tolist())
    hows = {"discreet": f"{ours.__name__}(…, size={count})", "numpy": f"Generator.{theirs}, float, insecure"}
    for subject, timing in timings.items():
        row = noise_row(job, parameter, "vector", timing.per(count), hows[subject])
        own = {"deviation": deviation} if subject == "discreet" else {}
        emit(**row, **own, subject=subject, samples=count)


def main() -> None:
    """Report every job; the tables are built by a first call, which `discreet_first` times."""
    for job, (draw, theirs, parameters) in JOBS.items():
        for parameter in parameters:
            draw(parameter, size=1000)
            compare(job, parameter)
        for parameter in SCALAR_PARAMETERS:
            numpy = getattr(np.random.default_rng(), theirs)
            calls = {"discreet": partial(draw, int(parameter)), "numpy": partial(numpy, 0.0, float(parameter))}
            for subject, call in calls.items():
                how = f"{draw.__name__}(…)" if subject == "discreet" else f"Generator.{theirs}, float, insecure"
                report_calls(call, job=job, parameter=parameter, calls=CALLS, how=how, subject=subject)


if __name__ == "__main__":
    main()
