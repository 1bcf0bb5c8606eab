"""python-dp (a binding of Google's C++ library): there is no vector call, so it is called in a loop.

Given an integer it draws on a fine grid and rounds; given a float it is a little slower.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pydp.algorithms.numerical_mechanisms as mechanisms  # type: ignore[import-not-found]

from benchmarks.jobs import LAPLACE_SCALES, SCALAR_PARAMETERS, SIGMAS
from benchmarks.peers.protocol import report_calls, report_samples

SAMPLES = 100_000
CALLS = 10_000


def laplace(scale: float) -> Any:
    """Build the mechanism of this scale."""
    return mechanisms.LaplaceMechanism(epsilon=1 / scale, sensitivity=1.0)


def gaussian(sigma: float) -> Any:
    """Build the mechanism of this standard deviation."""
    return mechanisms.GaussianMechanism.create_from_standard_deviation(sigma)


def _repeat(add_noise: Callable[[int], int]) -> Callable[[int], list[int]]:
    return lambda count: [add_noise(0) for _ in range(count)]


def main() -> None:
    """Report every job."""
    for job, make, parameters in (("laplace", laplace, LAPLACE_SCALES), ("gaussian", gaussian, SIGMAS)):
        how = "add_noise(0) in a loop, rounded law"
        for parameter in parameters:
            mechanism = make(float(parameter))
            draw = _repeat(mechanism.add_noise)
            report_samples(draw, job=job, parameter=parameter, samples=SAMPLES, how=how)
        for parameter in SCALAR_PARAMETERS:
            mechanism = make(float(parameter))
            report_calls(
                partial(mechanism.add_noise, 0),
                job=job,
                parameter=parameter,
                calls=CALLS,
                how="add_noise(0)",
            )


if __name__ == "__main__":
    main()
