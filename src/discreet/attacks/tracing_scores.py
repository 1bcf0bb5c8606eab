"""How an attacker scores a person against published counts: the higher, the more like a member.

A score is a sum over attributes of points for the person's own value, so a release is turned into a table of points
once, and anybody is looked up in it.
"""

from __future__ import annotations

from enum import Enum
from typing import final

import numpy as np

from discreet.attacks.populations import Population
from discreet.attacks.vectors import Floats, Integers

__all__ = ["Score", "points", "score_all"]

_IMPOSSIBLE = -1e6  # Points for a value that no member can have: finite, so that sums stay numbers.


@final
class Score(Enum):
    """Which test is made of the counts."""

    INNER_PRODUCT = "inner-product"  # <x - p, mean - p> [DSSUV15]
    LIKELIHOOD_RATIO = "likelihood-ratio"  # the best test if attributes are independent [SOJH09]
    DISTANCE = "distance"  # how much nearer to the mean than to the population [HSR08]


def points(score: Score, counts: Floats, people: int, population: Population, deviation: float) -> Floats:
    """Return the points for each number of copies (rows) of each attribute (columns)."""
    values = np.arange(population.copies + 1)[:, None]
    match score:
        case Score.INNER_PRODUCT:
            table = (values - population.means) * (counts / people - population.means)
        case Score.DISTANCE:
            own, mean = values / population.copies, counts / (people * population.copies)
            table = np.abs(own - population.frequencies) - np.abs(own - mean)
        case Score.LIKELIHOOD_RATIO if deviation == 0:
            table = _exact_ratio(values, counts, people, population)
        case Score.LIKELIHOOD_RATIO:
            table = _noisy_ratio(values, counts, people, population, deviation)
    return np.asarray(np.maximum(table, _IMPOSSIBLE), dtype=np.float64)


def score_all(rows: Integers, table: Floats) -> Floats:
    """Add up the points of many people."""
    total = np.full(len(rows), float(table[0].sum()))
    for value in range(1, len(table)):
        total += (rows == value) @ (table[value] - table[0])
    return total


def _exact_ratio(values: Integers, counts: Floats, people: int, population: Population) -> Floats:
    """Return log P(count | the person is a member) / P(count | a stranger), exactly.

    Of N = k n copies c are of the attribute. If x of a member's k are, c - x of the other N - k must be: the ratio is
    Bin(c - x; N - k, p) / Bin(c; N, p) = C(N - k, c - x) / C(N, c) / (p^x (1 - p)^(k - x)).
    """
    from scipy.special import gammaln

    copies, shares = population.copies, population.frequencies
    total, others = people * copies, copies - values
    with np.errstate(invalid="ignore"):
        chosen = gammaln(counts + 1) - gammaln(counts - values + 1)
        left = gammaln(total - counts + 1) - gammaln(total - counts - others + 1)
        ways = chosen + left - gammaln(total + 1) + gammaln(total - copies + 1)
    ratio: Floats = ways - values * np.log(shares) - others * np.log1p(-shares)
    return ratio


def _noisy_ratio(values: Integers, counts: Floats, people: int, population: Population, deviation: float) -> Floats:
    """Return the same for a noisy count, as if sums and noise were normal."""
    with_them = (people - 1) * population.variances + deviation**2
    without = people * population.variances + deviation**2
    near = (counts - values - (people - 1) * population.means) ** 2 / with_them
    far = (counts - people * population.means) ** 2 / without
    ratio: Floats = (far - near + np.log(without / with_them)) / 2
    return ratio
