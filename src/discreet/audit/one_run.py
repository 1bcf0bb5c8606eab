"""Audit a training run from a single run: many canaries, each in or out by a fair coin, and guesses about them.

Theorem     Let m examples each be included with probability 1/2, independently, and let an attacker see the output of
            an (ε, δ)-DP algorithm and guess r of them. With q = e^ε / (1 + e^ε) and β = P[Bin(r, q) ≥ v], the chance of
            v or more correct guesses is at most β + 2 m δ max_i (P[Bin(r, q) ≥ v - i] - β) / i. [SNJ23]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np

from discreet.errors import InvalidParameter
from discreet.privacy.events import Gaussian
from discreet.privacy.guarantee import epsilon
from discreet.privacy.relation import Relation

__all__ = [
    "Guesses",
    "epsilon_from_guesses",
    "epsilon_from_guesses_gdp",
    "guess",
    "guesses_p_value",
    "mu_from_guesses",
]

_MOST = 60.0  # epsilon, or µ
_HALVINGS = 40


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Guesses:
    """How many canaries there were, about how many a guess was made, and how many guesses were right."""

    canaries: int
    made: int
    right: int

    def __post_init__(self) -> None:
        if not 0 <= self.right <= self.made <= self.canaries or self.canaries < 1:
            raise InvalidParameter("there must be canaries, at most as many guesses, and at most as many right ones")


def guess(scores: Sequence[float], included: Sequence[bool], *, high: int, low: int) -> Guesses:
    """Guess that the `high` best scores are in and the `low` worst are out, and abstain from the rest.

    How many to guess is the auditor's choice, to be made before the scores are seen.
    """
    seen, truth = np.asarray(scores, np.float64), np.asarray(included, bool)
    if len(seen) != len(truth) or high < 0 or low < 0 or high + low > len(seen) or np.isnan(seen).any():
        raise InvalidParameter("there must be a score for each canary, no NaN, and at most one guess for each")
    # Equal scores are taken at their worst: the order in which canaries are listed may tell which of them are in.
    order = np.lexsort((~truth, seen))
    right = int(truth[order[len(order) - high :]].sum()) + int((~truth[order[:low]]).sum())
    return Guesses(canaries=len(order), made=high + low, right=right)


def guesses_p_value(guesses: Guesses, epsilon: float, delta: float) -> float:
    """Return the largest chance of so many right guesses under (epsilon, delta)."""
    from scipy.special import expit
    from scipy.stats import binom

    tails = binom.sf(
        np.arange(guesses.right, -1, -1) - 1, guesses.made, expit(epsilon)
    )  # P[Bin >= v], P[Bin >= v-1], …
    beta = float(tails[0])
    steps = (tails[1:] - beta) / np.arange(1, guesses.right + 1)
    return min(1.0, beta + 2 * guesses.canaries * delta * float(np.max(steps, initial=0.0)))


def epsilon_from_guesses(guesses: Guesses, *, delta: float, error: float) -> float:
    """Return an epsilon that is below the true one, but for a chance of `error`."""
    if not 0 <= delta <= 1 or not 0 < error < 1:
        raise InvalidParameter("delta must be a probability, and error one between 0 and 1")
    return _largest(lambda epsilon: guesses_p_value(guesses, epsilon, delta) <= error)


def epsilon_from_guesses_gdp(guesses: Guesses, *, delta: float, error: float) -> float:
    """Return the like for Gaussian trade-off curves, which is tighter, and holds only if the curve is such a one."""
    if not 0 < delta < 1:
        raise InvalidParameter("delta must be a probability above 0: with none a Gaussian curve has no epsilon")
    mu = mu_from_guesses(guesses, error=error)
    if mu == 0:
        return 0.0
    return epsilon(Gaussian(variance=1, squared_sensitivity=Fraction(mu) ** 2), delta, relation=Relation.ADD_REMOVE)


def mu_from_guesses(guesses: Guesses, *, error: float) -> float:
    """Return a µ of Gaussian privacy that is below the true one, but for a chance of `error`. [MMC24]"""
    return _largest(lambda mu: _refutes_gaussian(guesses, mu, error))


def _refutes_gaussian(guesses: Guesses, mu: float, error: float) -> bool:
    """Follow the recursion of the paper from the number of right guesses down."""
    from scipy.special import ndtr, ndtri

    right, wrong = guesses.right, guesses.made - guesses.right
    r, h = error * right / guesses.canaries, error * wrong / guesses.canaries
    for i in range(right - 1, -1, -1):
        above = max(h, float(ndtr(ndtri(r) - mu)))
        if above == h:
            break
        r = min(r + i / (guesses.made - i) * (above - h), 1.0)
        h = above
    return r + h > guesses.made / guesses.canaries


def _largest(refutes: Callable[[float], bool]) -> float:
    """Bisect for the largest number that is refuted; refutations only become rarer as it grows."""
    if not refutes(1e-9):
        return 0.0
    low, high = 0.0, _MOST
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if refutes(middle) else (low, middle)
    return low
