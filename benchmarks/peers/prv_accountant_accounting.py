"""prv-accountant: numerical composition with an interval of a chosen width."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

from prv_accountant import (  # type: ignore[import-not-found]
    GaussianMechanism,
    LaplaceMechanism,
    PoissonSubsampledGaussianMechanism,
    PRVAccountant,
)
from prv_accountant.dpsgd import find_noise_multiplier  # type: ignore[import-not-found]

from benchmarks.jobs import (
    DELTA,
    DPSGD_PROBABILITY,
    DPSGD_SIGMA,
    DPSGD_STEPS,
    MANY_GAUSSIANS,
    MANY_LAPLACES,
    REPEATED_SIGMA,
    REPEATED_TIMES,
    TARGET_EPSILON,
)
from benchmarks.peers.protocol import account

Run: TypeAlias = tuple[list[Any], list[int]]  # mechanisms, and how often each runs


def epsilon(build: Callable[[], Run], error: float) -> tuple[float, float]:
    """Compose and convert; the middle number is an estimate, the outer ones are bounds."""
    mechanisms, times = build()
    accountant = PRVAccountant(prvs=mechanisms, max_self_compositions=times, eps_error=error, delta_error=1e-9)
    lower, _, upper = accountant.compute_epsilon(delta=float(DELTA), num_self_compositions=times)
    return float(lower), float(upper)


def dpsgd() -> Run:
    """Return the mechanism of a DP-SGD run and how often it runs."""
    step = PoissonSubsampledGaussianMechanism(
        sampling_probability=float(DPSGD_PROBABILITY), noise_multiplier=float(DPSGD_SIGMA)
    )
    return [step], [DPSGD_STEPS]


def repeated() -> Run:
    """Return one Gaussian many times."""
    return [GaussianMechanism(float(REPEATED_SIGMA))], [REPEATED_TIMES]


def many() -> Run:
    """Return many different Gaussians and Laplaces."""
    gaussians = [GaussianMechanism(float(sigma)) for sigma in MANY_GAUSSIANS]
    laplaces = [LaplaceMechanism(mu=float(1 / scale)) for scale in MANY_LAPLACES]
    mechanisms = [*gaussians, *laplaces]
    return mechanisms, [1] * len(mechanisms)


def calibrate() -> float:
    """Find the sigma of the DP-SGD run."""
    found = find_noise_multiplier(
        sampling_probability=float(DPSGD_PROBABILITY),
        num_steps=DPSGD_STEPS,
        target_epsilon=float(TARGET_EPSILON),
        target_delta=float(DELTA),
        eps_error=0.1,
    )
    return float(found)


def main(task: str) -> None:
    """Report one task."""
    epsilon(lambda: ([GaussianMechanism(3.0)], [1]), 0.1)  # Whatever is set up once is not timed.
    if task == "calibrate":
        account(calibrate, how="PRV 0.1", bound="upper")
        return
    build = {"dpsgd": dpsgd, "many": many, "repeated": repeated}[task]
    for error in (0.1, 0.01) if task != "many" else (0.1,):
        account(partial(epsilon, build, error), how=f"PRV {error}", bound="interval")


if __name__ == "__main__":
    main(sys.argv[1])
