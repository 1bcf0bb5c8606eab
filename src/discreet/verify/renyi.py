"""The Renyi divergence of order a: log(sum of P^a Q^(1-a)) / (a - 1). [Mir17]

As with ratios, what a listing leaves out cannot be compared: the upper end holds but for outcomes of
probability `slack` at most; the lower end is free of that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from discreet.balls import ball
from discreet.verify.claim import Claim
from discreet.verify.enclosure import Enclosure, Real, above, below, log_above, log_below, total, worst
from discreet.verify.laws import Aligned, OutputLaw, align

if TYPE_CHECKING:
    from flint import arb

__all__ = ["examine_renyi", "sharp_renyi"]


def examine_renyi(pairs: Sequence[tuple[OutputLaw, OutputLaw]], claim: Claim, slack: Fraction) -> Enclosure:
    """Enclose the largest divergence of all pairs."""
    return worst(sharp_renyi(align(*pair), claim.at, slack, index) for index, pair in enumerate(pairs))


def sharp_renyi(pair: Aligned, order: Fraction, slack: Fraction, index: int = 0) -> Enclosure:
    """Enclose the divergence of one pair in balls."""
    first = pair.first
    comparable = pair.shared & (first.lower > 0) & (pair.lower > 0)
    rest = ball(order - 1)
    known = ball(0)
    for p, q in zip(pair.of_first(comparable), pair.of_second(comparable), strict=True):
        known += (p / q) ** rest * p
    apart = total(pair.of_first(~comparable)) + ball(first.outcomes.tail)
    upper = log_above(above(known)) / (order - 1) if above(apart) <= slack else math.inf
    lower = log_below(_least(pair, known, rest)) / (order - 1)
    return Enclosure(lower, max(lower, upper), index)


def _least(pair: Aligned, known: arb, rest: arb) -> Real:
    """Bound the sum from below: outcomes that only the first lists are one, as likely as the tail."""
    alone = below(total(pair.of_first(~pair.shared)))
    if alone <= 0:
        return below(known)
    tail = pair.second.outcomes.tail
    if tail == 0:
        return math.inf
    merged = ball(Fraction(alone))
    return below(known + (merged / ball(tail)) ** rest * merged)
