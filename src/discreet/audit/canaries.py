"""Audits of training that see scores of canaries: many runs, and every step of two runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from typing import final

import numpy as np

from discreet.audit.limits import at_most
from discreet.errors import InvalidParameter

__all__ = ["Errors", "epsilon_from_errors", "errors_of", "mu_from_errors"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Errors:
    """How often a test that was fixed beforehand was wrong: false alarms without the canary, misses with it."""

    false_alarms: int
    misses: int
    without: int  # runs or steps without the canary
    with_it: int

    def limits(self, error: float) -> tuple[float, float]:
        """Return what both rates are at most, together wrong with probability `error` at most."""
        return at_most(self.false_alarms, self.without, error / 2), at_most(self.misses, self.with_it, error / 2)


def errors_of(without: Sequence[float], with_it: Sequence[float]) -> Errors:
    """Choose the threshold on one half of the scores, and count errors on the other."""
    outs, ins = np.asarray(without, np.float64), np.asarray(with_it, np.float64)
    if min(len(outs), len(ins)) < 4:
        raise InvalidParameter("there must be at least four scores of each kind")
    if np.isnan(outs).any() or np.isnan(ins).any():
        raise InvalidParameter("a score is not a number, and tells nothing of a canary: find out why, or leave it out")
    a, b = len(outs) // 2, len(ins) // 2
    tried = np.unique(np.concatenate([outs[:a], ins[:b]]))
    alarms = 1 - np.searchsorted(np.sort(outs[:a]), tried, "left") / a
    missed = np.searchsorted(np.sort(ins[:b]), tried, "left") / b
    cut = float(tried[int(np.argmin(alarms + missed))])
    return Errors(
        false_alarms=int(np.count_nonzero(outs[a:] >= cut)),
        misses=int(np.count_nonzero(ins[b:] < cut)),
        without=len(outs) - a,
        with_it=len(ins) - b,
    )


def epsilon_from_errors(errors: Errors, *, delta: float, error: float) -> float:
    """Return an epsilon that is below the true one, but for a chance of `error`. [JUO20]"""
    if not 0 <= delta < 1:
        raise InvalidParameter("delta must be a probability below 1")
    alarms, misses = errors.limits(error)
    found = [log((1 - delta - one) / other) for one, other in ((alarms, misses), (misses, alarms)) if one + delta < 1]
    return max([0.0, *found])


def mu_from_errors(errors: Errors, *, error: float) -> float:
    """Return the like for µ of Gaussian privacy, which holds only if the trade-off curve is Gaussian. [NHSB23]"""
    from scipy.stats import norm

    alarms, misses = errors.limits(error)
    return max(0.0, float(norm.ppf(1 - alarms) - norm.ppf(misses)))
