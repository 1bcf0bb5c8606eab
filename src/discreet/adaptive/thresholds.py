"""Thresholds that noise rarely exceeds: exact for noise on the integers."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from discreet.balls import ball, bounds, precision
from discreet.mechanisms.fields import read_confidence
from discreet.noise.laws import Law

__all__ = ["least_excess", "reliable", "share_of_chance"]

_BITS = 256


@lru_cache(1024)
def least_excess(law: Law, chance: Fraction) -> int:
    """Return the smallest t >= 0 with P[X > t] <= chance, for a law that is symmetric about zero.

    Where no ball can tell the two apart, t is one more than it might be.
    """
    return 0 if 2 * chance >= 1 else law.half_width(1 - 2 * chance)


def reliable(law: Law, threshold: int, confidence: Fraction) -> int:
    """Return a number that exceeds the threshold with at least this probability after noise."""
    # P[n + X > threshold] = P[X < n - threshold], by symmetry.
    return threshold + 1 + least_excess(law, 1 - read_confidence(confidence))


@lru_cache(1024)
def share_of_chance(delta: Fraction, trials: int) -> Fraction:
    """Return the largest p, rounded down, for which one of `trials` independent events of chance p has chance delta.

    That is p = 1 - (1 - delta)^(1 / trials), at least delta / trials.
    """
    if trials == 1:
        return delta
    with precision(_BITS + delta.denominator.bit_length()):
        return bounds(-(((-ball(delta)).log1p() / trials).expm1()))[0]
