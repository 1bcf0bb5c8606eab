"""OpenDP: discrete Laplace and discrete Gaussian on vectors of 64-bit integers, given as a NumPy array.

NumPy in is a little faster than a list in; 32 bits are as fast as 64. What comes out is a list.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
import opendp.prelude as dp  # type: ignore[import-not-found]

from benchmarks.jobs import LAPLACE_SCALES, SCALAR_PARAMETERS, SIGMAS
from benchmarks.peers.protocol import report_calls, report_samples

SAMPLES = 100_000
CALLS = 1_000


@cache
def laplace(scale: float, *, vector: bool) -> Callable[[Any], Any]:
    """Build the measurement, which is not timed."""
    metric = dp.l1_distance(T="i64") if vector else dp.absolute_distance(T="i64")
    built: Callable[[Any], Any] = dp.m.make_laplace(_domain(vector), metric, scale=scale)
    return built


@cache
def gaussian(scale: float, *, vector: bool) -> Callable[[Any], Any]:
    """Build the measurement, which is not timed."""
    metric = dp.l2_distance(T="f64") if vector else dp.absolute_distance(T="f64")
    built: Callable[[Any], Any] = dp.m.make_gaussian(_domain(vector), metric, scale=scale)
    return built


def _domain(vector: bool) -> Any:
    atom = dp.atom_domain(T="i64")
    return dp.vector_domain(atom) if vector else atom


def _on_zeros(release: Callable[[Any], Any]) -> Callable[[int], Any]:
    return lambda count: release(np.zeros(count, np.int64))


def main() -> None:
    """Report every job."""
    dp.enable_features("contrib")
    for job, make, parameters in (("laplace", laplace, LAPLACE_SCALES), ("gaussian", gaussian, SIGMAS)):
        how = f"make_{job}, i64, {{}}, discrete law"
        for parameter in parameters:
            release = make(float(parameter), vector=True)
            report_samples(
                _on_zeros(release),
                job=job,
                parameter=parameter,
                samples=SAMPLES,
                how=how.format("NumPy vector in"),
            )
        for parameter in SCALAR_PARAMETERS:
            release = make(float(parameter), vector=False)
            report_calls(
                partial(release, 0),
                job=job,
                parameter=parameter,
                calls=CALLS,
                how=how.format("scalar"),
            )


if __name__ == "__main__":
    main()
