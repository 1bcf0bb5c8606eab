"""The worst that any analyst can do against a filter: the best adaptive tree of mechanisms on a small menu.

A transcript of masses p and q under two neighbours adds (p - e^epsilon q)+ to the hockey-stick divergence. At each
node the analyst, who sees the answers so far, stops or picks the next mechanism among those the filter admits. With
L = p / q the most that can be gained per unit of q is v(L) = max((L - e^epsilon)+, max over mechanisms of
sum_y q_y v(L p_y / q_y)), which is the optimum over all adaptive trees.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from discreet.ledger.budget import Sums
from discreet.privacy.events import GDP, ApproxDP, Event, PureDP

Masses = tuple[tuple[float, float], ...]  # (p, q) of each answer


class Rule(Protocol):
    """What a filter does: add an event to the sums, or refuse it."""

    def after(self, before: Sums, event: Event) -> Sums | None: ...


@dataclass(frozen=True)
class Mechanism:
    """A mechanism on two neighbours, with the event that it is charged as."""

    event: Event
    masses: Masses


def response(epsilon: str) -> list[Mechanism]:
    """Randomized response in both directions: the worst of all pure mechanisms."""
    event, odds = PureDP(epsilon), math.exp(Fraction(epsilon))
    kept = odds / (1 + odds)
    masses = ((kept, 1 - kept), (1 - kept, kept))
    return [Mechanism(event, masses), Mechanism(event, masses[::-1])]


def revealing(epsilon: str, delta: str) -> list[Mechanism]:
    """Reveal all with chance delta, else respond: the worst of all approximate mechanisms."""
    event, chance = ApproxDP(epsilon, delta), float(Fraction(delta))
    (inner, _) = response(epsilon)
    rest = tuple(((1 - chance) * p, (1 - chance) * q) for p, q in inner.masses)
    return [Mechanism(event, (*rest, (chance, 0.0), (0.0, chance)))]


def gaussian(mu_squared: Fraction, edges: int = 24) -> list[Mechanism]:
    """N(0, 1) or N(mu, 1) told in bins: post-processing of a Gaussian, and nearly as telling."""
    mu = math.sqrt(mu_squared)
    low, high = -4.5, mu + 4.5
    cuts = [-math.inf, *(low + (high - low) * i / (edges - 1) for i in range(edges)), math.inf]
    bins = list(itertools.pairwise(cuts))
    masses = tuple((_normal(a - mu, b - mu), _normal(a, b)) for a, b in bins)
    event = GDP(mu_squared=mu_squared)
    return [Mechanism(event, masses), Mechanism(event, tuple((q, p) for p, q in masses))]


def _normal(low: float, high: float) -> float:
    """Return the mass of an interval, from the side on which floats are fine."""
    if low > 0:
        return 0.5 * (math.erfc(low / math.sqrt(2)) - math.erfc(high / math.sqrt(2)))
    return 0.5 * (math.erfc(-high / math.sqrt(2)) - math.erfc(-low / math.sqrt(2)))


def worst_delta(
    menu: list[Mechanism],
    rule: Rule,
    start: Sums,
    epsilon: Fraction,
    *,
    reset: Callable[[Sums], Sums] = lambda sums: sums,
) -> float:
    """Return the largest hockey-stick divergence at epsilon over all adaptive trees that the rule admits."""
    level = math.exp(epsilon)
    known: dict[tuple[str, int], float] = {}

    def gain(log_ratio: float, sums: Sums) -> float:
        place = (sums.text(), round(log_ratio * 1e9))
        if place not in known:
            best = max(0.0, math.exp(log_ratio) - level)
            for mechanism in menu:
                after = rule.after(reset(sums), mechanism.event)
                if after is not None:
                    best = max(best, sum(value(p, q, log_ratio, after) for p, q in mechanism.masses))
            known[place] = best
        return known[place]

    def value(p: float, q: float, log_ratio: float, sums: Sums) -> float:
        if q == 0.0:
            return p * math.exp(log_ratio)  # An answer that only one side gives: all of it is lost.
        return q * gain(log_ratio + math.log(p / q), sums) if p > 0 else 0.0

    return gain(0.0, start)
