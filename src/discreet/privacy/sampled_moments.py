"""Log moments of an event that runs on a secret sample, from the log moments of the event itself.

`inner(k)` encloses (k - 1) D_k of the event without sampling, and `q` is the chance of one unit to be sampled.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

from discreet.balls import ball
from discreet.errors import InvalidParameter

if TYPE_CHECKING:
    from flint import arb

__all__ = ["LARGEST_ORDER", "fixed_size", "poisson_general", "poisson_symmetric"]

LogMoments: TypeAlias = "Callable[[Fraction], arb]"

LARGEST_ORDER = 4096  # The sums below have one term for each whole number up to the order.


def poisson_symmetric(q: Fraction, order: Fraction, inner: LogMoments) -> arb:
    """Enclose the log moment under add-remove when a reflection exchanges each pair of neighbours.

    Theorem     With y = dP/dQ for P with the unit and Q without, removing the unit has the moment
                E_Q[(1 - q + q y)^a], a binomial sum of the moments of y at whole a. Adding it has a smaller
                one, because the reflection exchanges P and Q. [MTZ19]
    """
    whole = inner(order)
    if q == 1:
        return whole
    sampled = _between_whole_orders(order, lambda a: _binomial_excess(q, a, inner).log1p())
    return _smaller(sampled, whole)  # At whole orders it is smaller anyway; between them it need not be.


def poisson_general(q: Fraction, order: Fraction, inner: LogMoments) -> arb:
    """Enclose the log moment under add-remove for any event: the larger one of removing and adding the unit.

    Theorem     Adding has the moment E_Q[w^(1-a)], w = 1 + q (y - 1) >= 1 - q. The Taylor series of w^(1-a) at
                one with the remainder of second order gives
                w^(1-a) <= 1 - (a-1)(w-1) + a (a-1) / 2 (w-1)^2 (1-q)^(-a-1), and E_Q[(y-1)^2] = e^(D_2) - 1.
                Sampling never makes a divergence larger, so the inner one is a bound too.
    """
    whole = inner(order)
    if q == 1:
        return whole
    removing = poisson_symmetric(q, order, inner)
    spread = ball(q) ** 2 * ball(order * (order - 1) / 2) * inner(Fraction(2)).expm1()
    adding = (spread * (-ball(order + 1) * ball(1 - q).log()).exp()).log1p()
    return _larger(removing, _smaller(adding, whole))


def fixed_size(q: Fraction, order: Fraction, inner: LogMoments, pairs: int) -> arb:
    """Enclose the log moment under replace-one of a sample of fixed size without replacement.

    Theorem     If one pair (P, Q) is the worst at every epsilon, the sampled event has the profile
                q delta(epsilon) at log(1 + q (e^epsilon - 1)) for epsilon >= 0 [BBG18], in both directions. A
                moment is an integral of profiles [SV16], so with w = 1 + q (y - 1), y = dP/dQ, it is at most
                1 + E_Q[(w^a - 1 - a (w-1)) + (w^(1-a) - 1 + (a-1)(w-1)); w > 1]. The first bracket is
                nonnegative everywhere, so its mean is at most the binomial sum less one; the second is at most
                a (a-1) / 2 (w-1)^2 where w > 1, so its mean is at most a (a-1) / 2 q^2 (e^(D_2) - 1).
                If there is no such pair, the profile is at most the sum of two such terms, for the exchanged
                unit in the sample against another unit and against its replacement: `pairs` = 2.
                Sampling never makes a divergence larger, so the inner one is a bound too.
    """
    whole = inner(order)
    if q == 1:
        return whole

    def at_whole_order(a: int) -> arb:
        spread = ball(q) ** 2 * (a * (a - 1) // 2) * inner(Fraction(2)).expm1()
        return (pairs * (_binomial_excess(q, a, inner) + spread)).log1p()

    return _smaller(_between_whole_orders(order, at_whole_order), whole)


def _binomial_excess(q: Fraction, order: int, inner: LogMoments) -> arb:
    """Enclose E[(1 - q + q y)^a] - 1 = sum over k >= 2 of C(a, k) (1-q)^(a-k) q^k (E[y^k] - 1). [MTZ19]

    The terms k = 0 and k = 1 vanish, since E[y] = 1; so no digits are lost however close the sum is to zero.
    """
    odds = ball(q / (1 - q))
    weight, excess = ball(1 - q) ** order, ball(0)
    for k in range(1, order + 1):
        weight = weight * odds * (order - k + 1) / k
        if k > 1:
            excess += weight * inner(Fraction(k)).expm1()
    return excess


def _between_whole_orders(order: Fraction, at_whole_order: Callable[[int], arb]) -> arb:
    """Interpolate: a log moment is a convex function of the order, and zero at one. [MTZ19]"""
    if order > LARGEST_ORDER:
        raise InvalidParameter(f"order must be at most {LARGEST_ORDER} for a sampled event")
    low, high = math.floor(order), math.ceil(order)
    lower = at_whole_order(low) if low > 1 else ball(0)
    if low == high:
        return lower
    share = ball(order - low)
    return (1 - share) * lower + share * at_whole_order(high)


def _larger(first: arb, second: arb) -> arb:
    """Return a ball around the larger of two; one that is not finite is the larger."""
    return first.max(second) if first.is_finite() and second.is_finite() else first + second


def _smaller(first: arb, second: arb) -> arb:
    """Return a ball around the smaller of two; one that is not finite says nothing."""
    if not first.is_finite():
        return second
    return first.min(second) if second.is_finite() else first
