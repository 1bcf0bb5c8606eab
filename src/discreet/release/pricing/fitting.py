"""Whether an event fits into what one release may spend, and the largest number for which something does."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from discreet.privacy import delta
from discreet.privacy.events import ApproxDP, Event, Repeated
from discreet.privacy.leaves import leaves
from discreet.privacy.relation import Relation
from discreet.query.planning import joint_event
from discreet.release.plan import Allowance

__all__ = ["fits", "largest", "near_rho"]

_FURTHEST = 20  # How many halvings below the start something is looked for.
_MOST = Fraction(2) ** 16  # No total is above: a thousand tables of the largest rho.


def fits(event: Event, allowance: Allowance) -> bool:
    """Whether an event is within (epsilon, delta), by the tight accountant.

    What shows a group that nobody listed fails with a chance of its own; taken off first, the rest is mostly one
    Gaussian, whose delta has a closed form. Chances add up to no less than the chance of any.
    """
    assert allowance.epsilon is not None
    assert allowance.delta is not None
    parts = leaves(event, relation=Relation.ADD_REMOVE)
    shown = {part: part.delta for part in parts if isinstance(part, ApproxDP) and part.epsilon == 0}
    left = allowance.delta - sum(parts[part] * chance for part, chance in shown.items())
    rest = [Repeated(part, count) for part, count in parts.items() if part not in shown]
    if left <= 0 or not rest:
        return left >= 0
    return delta(joint_event(rest), allowance.epsilon, relation=Relation.ADD_REMOVE) <= left


def near_rho(allowance: Allowance) -> Fraction:
    """Return a power of two near the rho of Gaussian noise within (epsilon, delta)."""
    assert allowance.epsilon is not None
    assert allowance.delta is not None
    near = float(allowance.epsilon) ** 2 / (4 * math.log(1 / float(allowance.delta)) + 2 * float(allowance.epsilon))
    return Fraction(2) ** math.floor(math.log2(near))


def largest(holds: Callable[[Fraction], bool], start: Fraction, *, steps: int) -> Fraction | None:
    """Return about the largest number that holds, from below; what holds for one holds for smaller ones."""
    low, high = start, 2 * start
    while holds(high) and high < _MOST:
        low, high = high, 2 * high
    while not holds(low):
        low, high = low / 2, low
        if low < start / 2**_FURTHEST:
            return None
    for _ in range(steps):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
