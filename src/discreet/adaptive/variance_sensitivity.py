"""How far one unit moves a variance: at the data, and anywhere."""

from __future__ import annotations

from fractions import Fraction

from discreet.mechanisms.grid import exact_sum
from discreet.mechanisms.ranked import Ranked

__all__ = ["global_variance", "local_variance"]


def global_variance(spread: Fraction, size: int) -> Fraction:
    """Return the sensitivity of the variance, with divisor n, under replace-one, over all data within the bounds.

    Theorem     It is spread^2 (n - 1) / n^2. With the mean c of the others, some bound b has (b - c)^2 >= spread^2 / 4;
                so either (v - c)^2 or what replacing v by b gains is at least spread^2 / 8. The local sensitivity is
                never below an eighth of this constant: no smooth bound is worth its noise, and the constant is used.
    """
    return spread**2 * Fraction(size - 1, size**2)


def local_variance(sample: Ranked) -> Fraction:
    """Return the local sensitivity of the same variance under replace-one, in squared grid steps. It is private.

    Theorem     With the mean c of the others, a value v adds (n - 1) (v - c)^2 / n^2. Replacing it moves that to
                anything between zero, at c, and the larger one at the two bounds.
    """
    n, total = sample.size, exact_sum(sample.values)
    if n < 2:
        return Fraction(0)
    return max(_change(sample, total, value) for value in _candidates(sample, total)) / n**2 / (n - 1)


def _candidates(sample: Ranked, total: int) -> set[int]:
    """Return the values whose replacement can change most.

    Replaced by c, these are the extremes. Replaced by a bound b, the gain (b - c)^2 - (v - c)^2 with (n - 1) c =
    total - v is a concave function of v with its top at (b + total) / (n + 1).
    """
    ordered, found = sample.between(1, sample.size), {0, sample.size - 1}
    for bound in (sample.low, sample.high):
        after = int(ordered.searchsorted(-(-(bound + total) // (sample.size + 1))))
        found |= {max(after - 1, 0), min(after, sample.size - 1)}
    return {int(ordered[index]) for index in found}


def _change(sample: Ranked, total: int, value: int) -> Fraction:
    """Return the largest change for one value, times n^2 (n - 1)."""
    others = sample.size - 1
    rest = total - value  # others * c
    now = (others * value - rest) ** 2
    most = max((others * bound - rest) ** 2 for bound in (sample.low, sample.high))
    return Fraction(max(most - now, now))
