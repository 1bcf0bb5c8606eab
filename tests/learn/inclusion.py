"""Tell independent coins from everything that only looks like them: single records, pairs of records, pairs of steps.

Under independent coins every statistic here has an exactly known law. `right_coins` refutes them with probability
1e-9 at most.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats

FALSE_ALARM = 1e-9


def single_p(drawn: Any, rate: float) -> float:
    """How often every record is in: independent Binomial(steps, q), by chi-squared, from both ends."""
    steps, count = drawn.shape
    statistic = ((drawn.sum(axis=0) - steps * rate) ** 2).sum() / (steps * rate * (1 - rate))
    return float(2 * min(stats.chi2(count).sf(statistic), stats.chi2(count).cdf(statistic)))


def total_p(drawn: Any, rate: float) -> float:
    """How many are in at all: exactly Binomial(all, q)."""
    return float(stats.binomtest(int(drawn.sum()), drawn.size, rate).pvalue)


def pair_p(drawn: Any, rate: float) -> float:
    """How often two records are in together: over pairs without a common record exactly Binomial(all, q^2)."""
    both = drawn[:, ::2][:, : drawn.shape[1] // 2] & drawn[:, 1::2]
    return float(stats.binomtest(int(both.sum()), both.size, rate**2).pvalue)


def again_p(drawn: Any, rate: float) -> float:
    """How often a record is in two steps in a row: over pairs without a common step exactly Binomial(all, q^2)."""
    both = drawn[::2][: len(drawn) // 2] & drawn[1::2]
    return float(stats.binomtest(int(both.sum()), both.size, rate**2).pvalue)


def right_coins(drawn: Any, rate: float) -> bool:
    """Tell whether these inclusions, a row for every step and a column for every record, may be independent coins."""
    return min(test(drawn, rate) for test in (total_p, single_p, pair_p, again_p)) > FALSE_ALARM / 4


def shuffled(count: int, batch: int, steps: int, permutation: Any) -> Any:
    """What a shuffling loader does: every epoch a new order, cut into batches."""
    drawn = np.zeros((steps, count), bool)
    for start in range(0, steps, count // batch):
        order = permutation(count).reshape(-1, batch)
        for row, chosen in zip(drawn[start:], order, strict=False):
            row[chosen] = True
    return drawn


def fixed_size(count: int, batch: int, steps: int, permutation: Any) -> Any:
    """A fresh sample of fixed size in every step: right for single records, wrong for pairs of records."""
    drawn = np.zeros((steps, count), bool)
    for row in drawn:
        row[permutation(count)[:batch]] = True
    return drawn
