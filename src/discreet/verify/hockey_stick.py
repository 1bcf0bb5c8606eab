"""The hockey-stick divergence: the least delta for which a pair of laws is (epsilon, delta) close. [BBG18]

H(P, Q) = sum over outcomes of max(P - e^epsilon Q, 0). What a listing leaves out of P counts in full above
and not at all below; what Q leaves out may be anything up to its tail.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from discreet.balls import ball, ball_down, ball_up
from discreet.verify.claim import Claim
from discreet.verify.enclosure import Enclosure, above, below, total, worst
from discreet.verify.laws import Aligned, OutputLaw, align

if TYPE_CHECKING:
    from flint import arb

__all__ = ["examine_hockey_stick", "sharp_hockey_stick"]

_ROUNDING = 2.0**-51  # Per outcome: two roundings of a term and one of the sum, of numbers that sum to 1.
_CLEAR = 1 - 2.0**-40  # Terms that differ by more in floats differ.


def examine_hockey_stick(pairs: Sequence[tuple[OutputLaw, OutputLaw]], claim: Claim, slack: Fraction) -> Enclosure:
    """Enclose the largest divergence of all pairs; balls are used only where floats leave the claim open."""
    factor = ball(claim.at).exp()
    ends = ball_down(factor), ball_up(factor)
    rough = [_quick(align(*pair), *ends, index) for index, pair in enumerate(pairs)]
    top = worst(rough)
    if top.lower > claim.value:
        return _sharper(top, sharp_hockey_stick(align(*pairs[top.pair]), factor, top.pair))
    top = max(rough, key=lambda one: one.upper)
    doubtful = {one.pair for one in rough if one.upper > claim.value + slack} | {top.pair}
    exact = [sharp_hockey_stick(align(*pairs[index]), factor, index) for index in doubtful]
    return worst([*exact, *(one for one in rough if one.pair not in doubtful)])


def _sharper(rough: Enclosure, exact: Enclosure) -> Enclosure:
    return Enclosure(max(rough.lower, exact.lower), rough.upper, rough.pair)


def _quick(pair: Aligned, least: float, most: float, index: int) -> Enclosure:
    """Enclose the divergence in floats, with the rounding of all sums added outwards."""
    margin = (len(pair.shared) + 8) * _ROUNDING
    gaps = pair.first.upper - least * pair.lower
    upper = float(np.sum(gaps, where=gaps > 0)) + pair.first.tail + margin
    gaps = pair.first.lower - most * pair.upper
    certain = float(np.sum(gaps, where=pair.shared & (gaps > 0)))
    alone = float(np.sum(pair.first.lower, where=~pair.shared)) - most * pair.second.tail
    return Enclosure(max(0.0, certain + max(0.0, alone) - margin), min(1.0, upper), index)


def sharp_hockey_stick(pair: Aligned, factor: arb, index: int = 0) -> Enclosure:
    """Enclose the divergence in balls; only terms whose sign floats leave open are looked at one by one."""
    first, second = pair.first, pair.second
    above_zero = pair.shared & (first.lower * _CLEAR > ball_up(factor) * pair.upper)
    below_zero = pair.shared & (first.upper < ball_down(factor) * pair.lower * _CLEAR)
    certain = total(pair.of_first(above_zero)) - factor * total(pair.of_second(above_zero))
    open_gaps = pair.shared & ~above_zero & ~below_zero
    doubtful = ball(0)
    for one, other in zip(pair.of_first(open_gaps), pair.of_second(open_gaps), strict=True):
        gap = one - factor * other
        if gap > 0:
            certain += gap
        else:
            doubtful += gap.max(ball(0))
    alone = total(pair.of_first(~pair.shared))
    unseen = Fraction(below(alone - factor * ball(second.outcomes.tail)))
    lower = Fraction(below(certain)) + max(Fraction(0), unseen)
    upper = Fraction(above(certain + doubtful + alone)) + first.outcomes.tail
    return Enclosure(max(Fraction(0), lower), min(Fraction(1), upper), index)
