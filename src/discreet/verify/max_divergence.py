"""The max divergence: the least epsilon for which a pair of laws is epsilon close, with no delta. [DMNS06]

Ratios of probabilities that a listing leaves out cannot be compared. So the upper end says: all ratios are at
most e^upper but for outcomes of probability `slack` at most; the lower end is free of that.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.balls import ball, ball_down
from discreet.exact import down
from discreet.verify.claim import Claim
from discreet.verify.enclosure import Enclosure, Real, below, log_above, log_below, total
from discreet.verify.hockey_stick import sharp_hockey_stick
from discreet.verify.laws import Aligned, OutputLaw, align

__all__ = ["examine_max_divergence"]

_UP, _DOWN = 1 + 2.0**-50, 1 - 2.0**-50  # Cover the rounding of one division.


class _Ratio(NamedTuple):
    lower: float
    upper: float  # over the outcomes that both list
    apart: float  # the probability of all others, rounded up
    pair: int


def examine_max_divergence(pairs: Sequence[tuple[OutputLaw, OutputLaw]], claim: Claim, slack: Fraction) -> Enclosure:
    """Enclose the largest log-ratio of all pairs."""
    ratios = [_quick(align(*pair), index) for index, pair in enumerate(pairs)]
    top = max(ratios, key=lambda one: one.lower)
    lower = log_below(_sharp_lower(align(*pairs[top.pair]), top.lower))
    if lower > claim.value:
        return Enclosure(lower, max(lower, _upper(ratios, slack)), top.pair)
    factor = ball(claim.value).exp()
    limit, most = ball_down(factor), down(slack)
    doubtful = [one for one in ratios if one.upper > limit or one.apart > most]
    failing = [one for one in doubtful if sharp_hockey_stick(align(*pairs[one.pair]), factor).upper > slack]
    # A divergence of at most `slack` at the claimed epsilon is the claim up to the slack, whatever ratios
    # that are equal to e^epsilon look like once rounded.
    upper = _upper(failing, slack) if failing else min(claim.value, _upper(ratios, slack))
    return Enclosure(lower, max(lower, upper), top.pair)


def _upper(ratios: Sequence[_Ratio], slack: Fraction) -> Real:
    if any(one.apart > down(slack) for one in ratios):
        return float("inf")
    return log_above(max(one.upper for one in ratios))


def _quick(pair: Aligned, index: int) -> _Ratio:
    """Enclose the largest ratio in floats."""
    first, shared = pair.first, pair.shared
    upper = _largest(first.upper[shared], pair.lower[shared]) * _UP
    lower = _largest(first.lower[shared], pair.upper[shared]) * _DOWN
    alone = float(np.sum(first.lower, where=~shared))
    if alone > 0:
        lower = max(lower, alone / pair.second.tail * (1 - 2.0**-30) if pair.second.tail else float("inf"))
    apart = float(np.sum(first.upper, where=~shared)) + first.tail
    return _Ratio(lower, upper, apart * (1 + 2.0**-30), index)


def _largest(numerator: NDArray[np.float64], denominator: NDArray[np.float64]) -> float:
    if not len(numerator):
        return 0.0
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return float(np.max(np.where(numerator > 0, numerator / denominator, 0.0)))


def _sharp_lower(pair: Aligned, rough: float) -> Real:
    """Return a lower bound on the largest ratio: the most telling outcome in balls, or what is not shared."""
    shared = pair.shared
    if not shared.any():
        return _alone(pair)
    likely = np.divide(pair.first.lower, pair.upper, out=np.zeros(len(shared)), where=shared)
    here = int(np.argmax(likely))
    ratio = pair.first.masses[here] / pair.second.masses[pair.place[here]]
    return max(rough, _alone(pair), below(ratio))


def _alone(pair: Aligned) -> Real:
    """Outcomes that only the first law lists have, in the second, its tail at most, all together."""
    listed = below(total(pair.of_first(~pair.shared)))
    if listed <= 0:
        return Fraction(0)
    tail = pair.second.outcomes.tail
    return Fraction(listed) / tail if tail else float("inf")
