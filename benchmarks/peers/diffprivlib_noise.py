"""diffprivlib: there is no vector call, so it is called in a loop.

The Laplace job is its geometric mechanism, which draws integers through a float. For the Gaussian it has a
discrete law, whose time grows with sigma (`discrete_gaussian`, small sigma only), and a float law
(`gaussian`), which is the faster one and stands in the table.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from diffprivlib import mechanisms  # type: ignore[import-not-found]

from benchmarks.jobs import LAPLACE_SCALES, SCALAR_PARAMETERS, SIGMAS
from benchmarks.peers.protocol import report_calls, report_samples

SAMPLES = 20_000
CALLS = 2_000
LARGEST_DISCRETE_SIGMA = 100  # Beyond it one sample takes milliseconds.


def laplace(scale: float) -> Any:
    """Build the geometric mechanism, the discrete Laplace law."""
    return mechanisms.Geometric(epsilon=1 / scale, sensitivity=1)


def gaussian(sigma: float) -> Any:
    """Build the float Gaussian of this sigma: it grows in proportion to the sensitivity."""
    unit = mechanisms.GaussianAnalytic(epsilon=1.0, delta=1e-6, sensitivity=1)
    return mechanisms.GaussianAnalytic(epsilon=1.0, delta=1e-6, sensitivity=sigma / unit._scale)


def discrete_gaussian(sigma: float) -> Any:
    """Build the discrete Gaussian; its sigma can only be chosen through epsilon, so it is set."""
    mechanism = mechanisms.GaussianDiscrete(epsilon=1.0, delta=1e-6)
    mechanism._scale = sigma
    return mechanism


def _repeat(randomise: Callable[[int], float]) -> Callable[[int], list[float]]:
    return lambda count: [randomise(0) for _ in range(count)]


def main() -> None:
    """Report every job."""
    small = tuple(sigma for sigma in SIGMAS if float(sigma) <= LARGEST_DISCRETE_SIGMA)
    jobs = (
        ("laplace", laplace, LAPLACE_SCALES, "Geometric in a loop, discrete law through a float"),
        ("gaussian", gaussian, SIGMAS, "GaussianAnalytic in a loop, float law"),
        ("discrete_gaussian", discrete_gaussian, small, "GaussianDiscrete in a loop, discrete law"),
    )
    for job, make, parameters, how in jobs:
        samples = SAMPLES if job != "discrete_gaussian" else SAMPLES // 20
        for parameter in parameters:
            draw = _repeat(make(float(parameter)).randomise)
            report_samples(draw, job=job, parameter=parameter, samples=samples, how=how)
    for job, make, _, how in jobs[:2]:
        for parameter in SCALAR_PARAMETERS:
            mechanism = make(float(parameter))
            report_calls(
                partial(mechanism.randomise, 0),
                job=job,
                parameter=parameter,
                calls=CALLS,
                how=how.replace(" in a loop", ""),
            )


if __name__ == "__main__":
    main()
