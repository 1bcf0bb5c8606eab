"""Which strategy errs least, and what no strategy could do better. All of it follows from public facts."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from discreet.errors import InvalidParameter
from discreet.exact import positive_integer
from discreet.release.running.strategy import ONE, Strategy
from discreet.release.running.tree import DayTree
from discreet.release.running.triangular import dailies, scaled_root, square_root, totals

__all__ = ["MOST_DAYS", "best", "errors_by_day", "largest_error", "least_error", "strategies"]

MOST_DAYS = 3_660  # Ten years; beyond it begin a new series.
_DOWN = 1 - 1e-12  # What floats may have added.
_QUICK_DAYS = 1_100  # Up to here the scaled root is looked at too: its errors take a number of steps that is squared.


def strategies(days: int) -> tuple[Strategy, ...]:
    """Return every strategy for a number of days."""
    if positive_integer(days, name="days") > MOST_DAYS:
        raise InvalidParameter(f"a series has at most {MOST_DAYS:,} days: begin a new one after that")
    scaled = (scaled_root(days),) if days <= _QUICK_DAYS else ()
    return (*scaled, square_root(days), DayTree(days), dailies(days), totals(days))


def largest_error(strategy: Strategy, max_days: int) -> float:
    """Return the standard deviation of the worst total, at a price of mu = 1."""
    return max(errors_by_day(strategy, max_days))


def errors_by_day(strategy: Strategy, max_days: int) -> tuple[float, ...]:
    """Return the standard deviation of every total, at a price of mu = 1."""
    moved = strategy.squared_sensitivity(max_days) / ONE**2
    return tuple(math.sqrt(moved * one) for one in strategy.variances())


@lru_cache(64)
def best(days: int, max_days: int) -> Strategy:
    """Return the strategy whose worst total errs least."""
    return min(strategies(days), key=lambda one: largest_error(one, max_days))


@lru_cache(64)
def least_error(days: int, max_days: int = 1) -> float:
    """Return what the largest and the mean squared error of all totals cannot go below, at mu = 1; rounded down.

    Theorem     Let A = B C be the running sums by a strategy, and let no k days of one unit change C x by more than 1
                at mu = 1. Let W have a column for each stretch of k days in a row, n - k + 1 of them. Every column of
                C W has length at most 1, so ||A W||_* <= ||B||_F ||C W||_F <= ||B||_F sqrt(n - k + 1), and the root
                of the mean variance of the totals is at least ||A W||_* / sqrt(n (n - k + 1)). The worst is no less.
                For k = 1 the singular values of A are 1 / (2 sin((2i - 1) pi / (4n + 2))). It holds for every
                strategy with Gaussian noise. [LM13, MNT20, HKU25]
    """
    single = _one_day(positive_integer(days, name="days"))
    if max_days == 1 or days > _QUICK_DAYS:
        return single  # More days cost no less.
    return max(single, _stretches(days, min(max_days, days)))


def _one_day(days: int) -> float:
    angles = ((2 * i - 1) * math.pi / (4 * days + 2) for i in range(1, days + 1))
    return math.fsum(1 / (2 * math.sin(angle)) for angle in angles) / days * _DOWN


def _stretches(days: int, length: int) -> float:
    ramps = np.clip(np.subtract.outer(np.arange(1, days + 1), np.arange(days - length + 1)), 0, length)  # A W
    norm = float(np.linalg.svd(ramps.astype(float), compute_uv=False).sum())
    return norm / math.sqrt(days * (days - length + 1)) * _DOWN
