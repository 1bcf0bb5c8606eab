"""An interval for the mean rate of independent coins, from how many of them came up."""

from __future__ import annotations

from fractions import Fraction
from math import isqrt

from discreet.balls import ball, precision
from discreet.mechanisms.accuracy import Interval

__all__ = ["rate_interval"]

_STEPS = 1 << 50  # Rates are whole numbers of these parts.
_SHARP = 1000  # The ends are found to this part of their distance from the observed rate, on the safe side.


def rate_interval(successes: int, trials: int, confidence: Fraction) -> Interval:
    """Enclose the mean of the chances of `trials` independent coins, of which `successes` came up.

    Theorem     For coins of one chance these are the ends of Clopper and Pearson. For coins of different chances
                with the same mean, a tail at least one away from the mean is no heavier. The two counts next to
                an end, where that does not apply, get the trivial end. [CP34, Hoe56]
    """
    allowed = (1 - confidence) / 2
    low = Fraction(0) if successes <= 1 else 1 - _highest(trials - successes, trials, allowed)
    high = Fraction(1) if successes >= trials - 1 else _highest(successes, trials, allowed)
    return low, high


def _highest(successes: int, trials: int, allowed: Fraction) -> Fraction:
    """Return a rate, rounded up, from which on P[at most `successes`] is below `allowed`."""
    observed = successes * _STEPS // trials
    low, reach = observed, _STEPS // (isqrt(trials) + 1) + 1
    while (high := min(observed + reach, _STEPS)) < _STEPS and not _small(high, successes, trials, allowed):
        low, reach = high, 2 * reach
    while high - low > 1 + (high - observed) // _SHARP:
        middle = (low + high) // 2
        low, high = (low, middle) if _small(middle, successes, trials, allowed) else (middle, high)
    return Fraction(high, _STEPS)


def _small(rate: int, successes: int, trials: int, allowed: Fraction) -> bool:
    """Tell whether P[Binomial(trials, rate) <= successes] is surely below `allowed`."""
    with precision(64):
        # The binomial tail is a regularised incomplete beta function.
        miss = ball(1 - Fraction(rate, _STEPS))
        return bool(miss.beta_lower(trials - successes, successes + 1, regularized=1) < ball(allowed))
