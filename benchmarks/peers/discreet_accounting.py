"""Discreet: one task in one fresh process, after an unrelated event has loaded the libraries."""

from __future__ import annotations

import sys
from collections.abc import Callable

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
from discreet.exact import Number, up
from discreet.privacy import (
    Composed,
    Event,
    Gaussian,
    Laplace,
    PoissonSampled,
    Relation,
    Repeated,
    calibrate,
    epsilon,
    epsilon_bounds,
)


def dpsgd(sigma: Number = DPSGD_SIGMA) -> Event:
    """Return the event of a DP-SGD run."""
    return Repeated(PoissonSampled(Gaussian(sigma), DPSGD_PROBABILITY), DPSGD_STEPS)


def many() -> Event:
    """Return many different Gaussians and Laplaces."""
    return Composed([*map(Gaussian, MANY_GAUSSIANS), *map(Laplace, MANY_LAPLACES)])


def repeated() -> Event:
    """Return one Gaussian many times."""
    return Repeated(Gaussian(REPEATED_SIGMA), REPEATED_TIMES)


EVENTS: dict[str, Callable[[], Event]] = {"dpsgd": dpsgd, "many": many, "repeated": repeated}


def sigma() -> float:
    """Find the noise of the DP-SGD run that reaches the target."""
    return up(calibrate(dpsgd, epsilon=TARGET_EPSILON, delta=DELTA, relation=Relation.ADD_REMOVE))


def load() -> None:
    """Load the libraries that the peers load when they are imported."""
    mixed = Composed([Repeated(PoissonSampled(Gaussian(3), "0.2"), 3), Laplace(5)])
    for other in (mixed, Gaussian(3)):
        epsilon(other, "1e-3", relation=Relation.ADD_REMOVE)


def main(task: str, call: str) -> None:
    """Report one task by one function."""
    if call != "first":
        load()
    relation = Relation.ADD_REMOVE
    if task == "calibrate":
        account(sigma, how=call, bound="upper")
    elif call == "epsilon_bounds":
        account(lambda: epsilon_bounds(EVENTS[task](), DELTA, relation=relation), how=call, bound="interval")
    else:
        account(lambda: epsilon(EVENTS[task](), DELTA, relation=relation), how=call, bound="upper")


if __name__ == "__main__":
    main(*sys.argv[1:3])
