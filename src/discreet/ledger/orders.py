"""The few Rényi orders that an (epsilon, delta) account keeps, and how much each of them holds."""

from __future__ import annotations

import math
from fractions import Fraction

from discreet.balls import ball
from discreet.ledger.budget import Budget
from discreet.ledger.sums import RENYI_UNIT
from discreet.privacy.rigorous import enclose, float_down

__all__ = ["MOST_ORDERS", "caps", "choose_orders"]

MOST_ORDERS = 16
_STEPS = range(-4, 5)  # Half powers of two around the order that is best for Gaussian noise.
_SMALLEST, _LARGEST = Fraction(9, 8), 10**6


def choose_orders(budget: Budget) -> tuple[Fraction, ...]:
    """Choose orders for a budget from public facts. Any choice is sound; a good one wastes little.

    Gaussian noise that uses up epsilon at delta has rho with sqrt(rho) = sqrt(L + epsilon) - sqrt(L), L = log 1/delta,
    and its best order is 1 + sqrt(L / rho). [BS16] Others have theirs near it.
    """
    if budget.delta_of_conversion == 0:
        return ()
    log_delta = math.log(len(_STEPS)) - _log(budget.delta_of_conversion)
    epsilon = float(budget.epsilon or 0)
    root = epsilon / (math.sqrt(log_delta + epsilon) + math.sqrt(log_delta))
    best = math.sqrt(log_delta) / root
    orders = {_rounded(1 + best * 2 ** (step / 2)) for step in _STEPS}
    return _useful(budget, tuple(sorted(orders)))


def _log(value: Fraction) -> float:
    return math.log(value.numerator) - math.log(value.denominator)


def _rounded(order: float) -> Fraction:
    """Take whole orders where they are dense: moments of samples are cheaper and tighter there."""
    exact = Fraction(round(order)) if order >= 4 else Fraction(round(order * 8), 8)
    return min(max(exact, _SMALLEST), Fraction(_LARGEST))


def _useful(budget: Budget, orders: tuple[Fraction, ...]) -> tuple[Fraction, ...]:
    """Drop orders that could not admit anything, so that the others share their delta."""
    kept = tuple(order for order, cap in zip(orders, caps(budget, orders), strict=True) if cap > 0)
    return kept if len(kept) == len(orders) else _useful(budget, kept)


def caps(budget: Budget, orders: tuple[Fraction, ...]) -> tuple[int, ...]:
    """Return the largest divergence of each order that converts to epsilon at its part of delta, rounded down.

    epsilon = D + log(1 - 1/a) - (log delta + log a) / (a - 1), solved for D. [CKS20] In units of 2^-64.
    """
    return tuple(_cap(budget, order, len(orders)) for order in orders)


def _cap(budget: Budget, order: Fraction, count: int) -> int:
    epsilon, delta = budget.epsilon or Fraction(0), budget.delta_of_conversion / count
    if delta <= 0:
        return -1

    def formula() -> object:
        a = ball(order)
        return ball(epsilon) - (-1 / a).log1p() + (ball(delta).log() + a.log()) / (a - 1)

    return math.floor(Fraction(float_down(enclose(formula))) * RENYI_UNIT)  # type: ignore[arg-type]
