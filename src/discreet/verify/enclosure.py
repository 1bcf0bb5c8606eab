"""What an examination of all pairs returns: two ends of the worst divergence, and its pair."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from discreet.balls import ball, bounds

if TYPE_CHECKING:
    from flint import arb

__all__ = ["Enclosure", "Real", "above", "below", "log_above", "log_below", "total", "worst"]

Real: TypeAlias = Fraction | float  # A float only if infinite, or if rounded outwards already.


class Enclosure(NamedTuple):
    """A divergence lies between `lower` and `upper`; `pair` is the position of the pair meant."""

    lower: Real
    upper: Real
    pair: int = 0


def worst(found: Iterable[Enclosure]) -> Enclosure:
    """Enclose the largest of many; the pair is the one that reaches furthest for sure."""
    known = list(found)
    top = max(known, key=lambda one: (one.lower, one.upper))
    return Enclosure(top.lower, max(one.upper for one in known), top.pair)


def below(value: arb) -> Real:
    """Return the lower end of a ball; minus infinity if it has none."""
    return bounds(value)[0] if value.is_finite() else -math.inf


def above(value: arb) -> Real:
    """Return the upper end of a ball; infinity if it has none."""
    return bounds(value)[1] if value.is_finite() else math.inf


def log_below(ratio: Real) -> Real:
    """Return a lower bound on the logarithm of a ratio, not below 0."""
    if ratio <= 1:
        return Fraction(0)
    return math.inf if math.isinf(ratio) else max(Fraction(0), below(ball(Fraction(ratio)).log()))


def log_above(ratio: Real) -> Real:
    """Return an upper bound on the logarithm of a ratio, not below 0."""
    if ratio <= 1:
        return Fraction(0)
    return math.inf if math.isinf(ratio) else above(ball(Fraction(ratio)).log())


def total(masses: Iterable[arb]) -> arb:
    """Add up balls."""
    return sum(masses, ball(0))
