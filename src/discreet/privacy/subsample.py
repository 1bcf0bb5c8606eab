"""Privacy amplification: an (epsilon, delta)-private mechanism that runs on a secret sample.

The sample must stay secret and be drawn as said: a shuffled pass over mini-batches is neither of these.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from discreet.balls import ball
from discreet.errors import InvalidParameter
from discreet.exact import Number, positive_integer, probability, up
from discreet.privacy import closed_forms
from discreet.privacy.enclosures import enclose, float_up
from discreet.privacy.event_tree import grouped
from discreet.privacy.events import ApproxDP

if TYPE_CHECKING:
    from flint import arb

__all__ = ["poisson", "with_replacement", "without_replacement"]

_MOST_COPIES = 256  # More copies of one unit than this are bounded together.


def poisson(epsilon: Number, delta: Number, q: Number) -> tuple[float, float]:
    """Return (log(1 + q (e^epsilon - 1)), q delta): each unit joins with chance q; ADD_REMOVE. [BBG18]

    Args:
        epsilon: Spent on the sample.
        delta: Spent on the sample.
        q: The chance of each unit to be in the sample.

    Returns:
        Epsilon and delta for the whole data (amplification by subsampling), rounded up.

    Examples:
        >>> epsilon, delta = dp.privacy.subsample.poisson(1, 0, 0.01)
        >>> round(epsilon, 4), delta
        (0.017, 0.0)
    """
    chance = probability(q, name="q")
    guarantee = ApproxDP(epsilon, delta)
    return amplified(guarantee.epsilon, chance), up(chance * guarantee.delta)


def without_replacement(epsilon: Number, delta: Number, sample_size: int, population: int) -> tuple[float, float]:
    """Return (log(1 + q (e^epsilon - 1)), q delta) with q = sample_size / population; REPLACE_ONE. [BBG18]

    Args:
        epsilon: Spent on the sample.
        delta: Spent on the sample.
        sample_size: How many units are drawn.
        population: How many units there are, a public number.

    Returns:
        Epsilon and delta for the whole data, rounded up.

    Raises:
        InvalidParameter: If the sample is larger than the population.

    Examples:
        >>> epsilon, delta = dp.privacy.subsample.without_replacement(1, 0, 10, 1000)
        >>> round(epsilon, 4), delta
        (0.017, 0.0)
    """
    size, total = _sizes(sample_size, population)
    if size > total:
        raise InvalidParameter("sample_size must not exceed population")
    return poisson(epsilon, delta, Fraction(size, total))


def with_replacement(epsilon: Number, delta: Number, sample_size: int, population: int) -> tuple[float, float]:
    """Return epsilon and delta of a mechanism on a sample that may hold a unit many times; REPLACE_ONE.

    Theorem     epsilon' = log(1 + q (e^epsilon - 1)), q = 1 - (1 - 1/n)^m, and delta' is the mean over the
                number k >= 1 of copies of one unit of the delta at epsilon of a group of k. [BBG18]

    From (epsilon, delta) alone a group of two or more is known to be private only at k epsilon, so delta' is not
    small even where delta is 0; a sample without replacement is the better choice.

    Args:
        epsilon: Spent on the sample.
        delta: Spent on the sample.
        sample_size: How many draws, each from all units.
        population: How many units there are, a public number.

    Returns:
        Epsilon and delta for the whole data, rounded up.

    Examples:
        >>> epsilon, delta = dp.privacy.subsample.with_replacement(1, 0, 10, 1000)
        >>> round(epsilon, 4), delta > 0
        (0.017, True)
    """
    size, total = _sizes(sample_size, population)
    guarantee = ApproxDP(epsilon, delta)
    chance = enclose(lambda: -(ball(size) * ball(Fraction(-1, total)).log1p()).expm1()) if total > 1 else ball(1)
    level = enclose(lambda: (chance * ball(guarantee.epsilon).expm1()).log1p())
    return min(float_up(level), up(guarantee.epsilon)), _mean_group_delta(guarantee, size, total)


def amplified(epsilon: Fraction, q: Fraction) -> float:
    """Return log(1 + q (e^epsilon - 1)), rounded up and never above epsilon. [BBG18]"""
    return min(up(epsilon), float_up(enclose(lambda: (ball(q) * ball(epsilon).expm1()).log1p())))


def _sizes(sample_size: int, population: int) -> tuple[int, int]:
    return positive_integer(sample_size, name="sample_size"), positive_integer(population, name="population")


def _mean_group_delta(guarantee: ApproxDP, size: int, total: int) -> float:
    copies = min(size, _MOST_COPIES)
    deltas = [closed_forms.profile(grouped(guarantee, k), guarantee.epsilon) for k in range(1, copies + 1)]

    def formula() -> arb:
        mean = sum((_chance_of(k, size, total) * delta for k, delta in enumerate(deltas, start=1)), ball(0))
        if copies == size:
            return mean
        # By the union bound over the draws, P[more than K copies] <= C(m, K+1) n^-(K+1).
        return mean + ball(size).bin(copies + 1) * ball(Fraction(1, total)) ** (copies + 1)

    return min(1.0, float_up(enclose(formula)))


def _chance_of(k: int, size: int, total: int) -> arb:
    """Enclose the binomial chance of k copies of one unit among `size` draws from `total`."""
    return ball(size).bin(k) * ball(Fraction(1, total)) ** k * ball(Fraction(total - 1, total)) ** (size - k)
