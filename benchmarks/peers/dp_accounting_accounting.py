"""dp-accounting: its loss distributions on grids of 1e-3 and 1e-4, and its Renyi accountant."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import dp_accounting as accounting  # type: ignore[import-not-found]
from dp_accounting import pld, rdp

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

ACCOUNTANTS: dict[str, Callable[[], Any]] = {
    "PLD 1e-3": lambda: pld.PLDAccountant(value_discretization_interval=1e-3),
    "PLD 1e-4": lambda: pld.PLDAccountant(value_discretization_interval=1e-4),
    "RDP": rdp.RdpAccountant,
}
# So fine that it tells the true epsilon to 1e-6: on grids of 1e-4, 2e-5 and 1e-5 it answers 6.187745, 6.187714
# and 6.187713.
REFERENCE: dict[str, Callable[[], Any]] = {"PLD 1e-5": lambda: pld.PLDAccountant(value_discretization_interval=1e-5)}


def dpsgd(sigma: float = float(DPSGD_SIGMA)) -> Any:
    """Return the event of a DP-SGD run."""
    step = accounting.PoissonSampledDpEvent(float(DPSGD_PROBABILITY), accounting.GaussianDpEvent(sigma))
    return accounting.SelfComposedDpEvent(step, DPSGD_STEPS)


def repeated() -> Any:
    """Return one Gaussian many times."""
    return accounting.SelfComposedDpEvent(accounting.GaussianDpEvent(float(REPEATED_SIGMA)), REPEATED_TIMES)


def many() -> Any:
    """Return many different Gaussians and Laplaces."""
    gaussians = [accounting.GaussianDpEvent(float(sigma)) for sigma in MANY_GAUSSIANS]
    return accounting.ComposedDpEvent(
        [*gaussians, *(accounting.LaplaceDpEvent(float(scale)) for scale in MANY_LAPLACES)]
    )


EVENTS: dict[str, Callable[[], Any]] = {
    "dpsgd": dpsgd,
    "reference": dpsgd,
    "many": many,
    "repeated": repeated,
}


def epsilon(make: Callable[[], Any], task: str) -> float:
    """Build the event, compose and convert."""
    return float(make().compose(EVENTS[task]()).get_epsilon(float(DELTA)))


def calibrate(make: Callable[[], Any]) -> float:
    """Find the sigma of the DP-SGD run, to 1e-4."""
    bracket = accounting.ExplicitBracketInterval(0.5, 5.0)
    found = accounting.calibrate_dp_mechanism(make, dpsgd, float(TARGET_EPSILON), float(DELTA), bracket, tol=1e-4)
    return float(found)


def main(task: str) -> None:
    """Report one task by every accountant that can do it in reasonable time."""
    for name, make in (REFERENCE if task == "reference" else ACCOUNTANTS).items():
        make().compose(accounting.GaussianDpEvent(3.0)).get_epsilon(0.1)  # Whatever is set up once is not timed.
        if task == "calibrate":
            account(partial(calibrate, make), how=name, bound="upper")
        else:
            account(partial(epsilon, make, task), how=name, bound="upper")


if __name__ == "__main__":
    main(sys.argv[1])
