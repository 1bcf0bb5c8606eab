"""A function's answer, exactly, if most small random parts of the data give the same one."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from fractions import Fraction
from typing import Any

from discreet.adaptive.aggregators import BlockMode
from discreet.adaptive.isolation import BlockLimits
from discreet.adaptive.program import Program
from discreet.adaptive.subsample_aggregate import SubsampleAndAggregate
from discreet.errors import InvalidParameter
from discreet.exact import Number, exact, positive_integer
from discreet.privacy.relation import Relation

__all__ = ["blocks_needed", "release_if_subsampling_stable"]

_TWO_THIRDS = Fraction(2, 3)


def blocks_needed(
    *,
    epsilon: Number,
    delta: Number,
    agreement: Number = _TWO_THIRDS,
    confidence: Number = Fraction(95, 100),
    memberships: int = 1,
) -> int:
    """Return from how many blocks on the common answer is named, if this part of them gives it. It is public.

    Theorem     If the part a of m blocks agree, their lead is at least 2 ceil(a m) - m, even if all others agree on
                something else; it must be the reliable lead of the mode. With e memberships that is about
                m = 2 e / (2 a - 1) (1 + (ln(1 / (2 delta)) + t) / epsilon) for a confidence of 1 - e^-t / 2. [ST13]
    """
    part = exact(agreement, name="agreement")
    if not Fraction(1, 2) < part <= 1:
        raise InvalidParameter("agreement must be above 1/2 and at most 1: otherwise two answers could have it")
    epsilon, delta = exact(epsilon, name="epsilon"), exact(delta, name="delta")
    mode = BlockMode(blocks=1, domain=None, epsilon=epsilon, delta=delta, entries=memberships)
    lead = mode.reliable_lead(confidence)
    blocks = math.ceil(lead / (2 * part - 1))
    while 2 * math.ceil(part * (blocks - 1)) - (blocks - 1) >= lead:
        blocks -= 1
    return max(blocks, positive_integer(memberships, name="memberships"))


def release_if_subsampling_stable(
    function: Callable[[Any], Any] | Program,
    *,
    epsilon: Number,
    delta: Number,
    relation: Relation,
    domain: tuple[Hashable, ...] | None = None,
    agreement: Number = _TWO_THIRDS,
    confidence: Number = Fraction(95, 100),
    memberships: int = 1,
    limits: BlockLimits | None = None,
    trusted: bool = False,
) -> SubsampleAndAggregate:
    """Make the mechanism that names a function's answer if this part of as many blocks as it takes agree on it.

    Guarantee   (epsilon, delta), whether an answer is given or not.
    Theorem     The blocks' answers are a data set of which one unit replaces one, and their mode is released if it is
                stable. [NRS07, ST13]
    Utility     if `agreement` of the blocks say the same, it is named with probability `confidence` at least.
    """
    blocks = blocks_needed(
        epsilon=epsilon, delta=delta, agreement=agreement, confidence=confidence, memberships=memberships
    )
    mode = BlockMode(
        blocks=blocks,
        domain=domain,
        epsilon=exact(epsilon, name="epsilon"),
        delta=exact(delta, name="delta"),
        entries=memberships,
    )
    return SubsampleAndAggregate(
        function=function,
        aggregator=mode,
        relation=relation,
        memberships=memberships,
        limits=BlockLimits() if limits is None else limits,
        trusted=trusted,
    )
