"""Opacus: its Renyi and its numerical accountant; it knows (sampled) Gaussians only."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from opacus.accountants import PRVAccountant, RDPAccountant  # type: ignore[import-not-found]
from opacus.accountants.utils import get_noise_multiplier  # type: ignore[import-not-found]

from benchmarks.jobs import (
    DELTA,
    DPSGD_PROBABILITY,
    DPSGD_SIGMA,
    DPSGD_STEPS,
    REPEATED_SIGMA,
    REPEATED_TIMES,
    TARGET_EPSILON,
)
from benchmarks.peers.protocol import account

ACCOUNTANTS: dict[str, Callable[[], Any]] = {"RDP": RDPAccountant, "PRV": PRVAccountant}
RUNS = {
    "dpsgd": (float(DPSGD_SIGMA), float(DPSGD_PROBABILITY), DPSGD_STEPS),
    "repeated": (float(REPEATED_SIGMA), 1.0, REPEATED_TIMES),
}


def epsilon(make: Callable[[], Any], run: tuple[float, float, int]) -> float:
    """Compose and convert; a run is sigma, sampling probability and the number of steps."""
    accountant = make()
    accountant.history = [run]
    return float(accountant.get_epsilon(delta=float(DELTA)))


def calibrate(name: str) -> float:
    """Find the sigma of the DP-SGD run."""
    found = get_noise_multiplier(
        target_epsilon=float(TARGET_EPSILON),
        target_delta=float(DELTA),
        sample_rate=float(DPSGD_PROBABILITY),
        steps=DPSGD_STEPS,
        accountant=name.lower(),
        epsilon_tolerance=0.01,
    )
    return float(found)


def main(task: str) -> None:
    """Report one task; Laplace noise is unknown to it."""
    for name, make in ACCOUNTANTS.items():
        epsilon(make, (3.0, 0.5, 1))  # Whatever is set up once is not timed.
        if task == "calibrate":
            account(partial(calibrate, name), how=name, bound="upper")
        else:
            account(partial(epsilon, make, RUNS[task]), how=name, bound="upper")


if __name__ == "__main__":
    main(sys.argv[1])
