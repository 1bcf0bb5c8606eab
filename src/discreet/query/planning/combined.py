"""How far noise on two numbers together moves what is computed from both."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from discreet.query.planning.noises import NumberNoise

__all__ = ["reach_of_sum"]


def reach_of_sum(terms: Sequence[tuple[Fraction, NumberNoise]], confidence: Fraction) -> Fraction:
    """Return a half width that encloses a weighted sum of independent noises with at least this probability."""
    there = [(abs(weight), one) for weight, one in terms if weight]
    each = 1 - (1 - confidence) / max(1, len(there))
    return sum((weight * one.reach(each) for weight, one in there), Fraction(0))
