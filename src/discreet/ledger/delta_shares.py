"""How the delta of an (epsilon, delta) account is split among its rules, once, when it is opened.

Each rule may go wrong with a chance of its own share, so the shares add up to at most one, and what one rule leaves
unused is no use to another: which rule a transcript ends under may depend on the answers. See docs/ledger.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final, final

from discreet.balls import ball
from discreet.errors import InvalidParameter, LedgerDamaged
from discreet.ledger.budget import UNIT, Budget, Expect
from discreet.privacy.enclosures import enclose, float_down
from discreet.privacy.gaussian import largest_mu_squared

__all__ = ["FIRST", "MOST_ORDERS", "NEWEST", "NO_SHARES", "Shares", "caps", "choose_shares", "shares_after"]

FIRST, NEWEST = 1, 2  # Versions of the rule: an account keeps the one it was opened under.
_CARRIED = 3  # is written for the newest one if something was carried over: releases that forget it refuse the file
MOST_ORDERS = 4
_SMALLEST, _LARGEST = Fraction(9, 8), 10**6
_NEAR = range(-12, 9)  # Eighth powers of two around a guess of the best order.
_LOW_CAP = Fraction(1, 20)  # of epsilon: an order below which next to nothing would be held


@final
@dataclass(frozen=True, slots=True)
class Shares:
    """The share of delta of the Gaussian rule, of each Rényi order, and of events with a delta of their own.

    `carried` is what a pure account had spent when it got its first delta. Those answers have a likelihood ratio of at
    most e^carried, always; whatever is charged after them keeps to epsilon less this. See docs/ledger.md.
    """

    gaussian: Fraction  # 0: the rule is not kept
    orders: tuple[tuple[Fraction, Fraction], ...]  # (order, share), by order
    events: Fraction
    version: int = NEWEST
    carried: Fraction = Fraction(0)

    @classmethod
    def of_first_rule(cls, budget: Budget, orders: tuple[Fraction, ...]) -> Shares:
        """Return the split of an account that was opened under the first rule: equal orders, and no other rule."""
        events = budget.approximate or Fraction(0)
        return cls(Fraction(0), tuple((order, (1 - events) / len(orders)) for order in orders), events, FIRST)

    @property
    def kept(self) -> int:
        """How many sums are kept beside those of epsilon, delta and rho."""
        return len(self.orders) + (self.gaussian > 0)

    def packed(self) -> dict[str, Any]:
        """Return what JSON writes."""
        if self.version == FIRST:
            return {"orders": [str(order) for order, _ in self.orders]}
        orders = [[str(order), str(share)] for order, share in self.orders]
        split = {"gaussian": str(self.gaussian), "orders": orders, "events": str(self.events)}
        if self.carried:
            return {"rule": _CARRIED, "shares": split | {"carried": str(self.carried)}}
        return {"rule": self.version, "shares": split}

    @classmethod
    def unpacked(cls, budget: Budget, packed: Mapping[str, Any]) -> Shares:
        """Read what `packed` returned."""
        version = packed.get("rule", FIRST)
        if version == FIRST:
            return cls.of_first_rule(budget, tuple(Fraction(order) for order in packed["orders"]))
        if version not in (NEWEST, _CARRIED):
            raise LedgerDamaged("this ledger was opened under a rule that this release does not know: use a newer one")
        split = packed["shares"]
        if ("carried" in split) != (version == _CARRIED):
            raise LedgerDamaged("this ledger does not say what was carried over when its data set got a delta")
        orders = tuple((Fraction(order), Fraction(share)) for order, share in split["orders"])
        carried = Fraction(split.get("carried", 0))
        found = cls(Fraction(split["gaussian"]), orders, Fraction(split["events"]), carried=carried)
        if min(found.gaussian, found.events, carried, *(share for _, share in orders)) < 0 or found.total > 1:
            raise LedgerDamaged("the shares of delta in this ledger are more than the whole")
        return found

    @property
    def total(self) -> Fraction:
        """The share of delta that is given to anything."""
        return self.gaussian + self.events + sum((share for _, share in self.orders), Fraction(0))


NO_SHARES: Final = Shares(Fraction(0), (), Fraction(0), FIRST)  # of a budget without a delta


def _hundredths(gaussian: int, best: int, others: int, events: int) -> tuple[Fraction, Fraction, Fraction, Fraction]:
    return Fraction(gaussian, 100), Fraction(best, 100), Fraction(others, 100), Fraction(events, 100)


# The Gaussian rule, the order that is best for many small charges, all other orders together, events with a delta.
_SPLITS: Final[Mapping[Expect | None, tuple[Fraction, Fraction, Fraction, Fraction]]] = {
    None: _hundredths(55, 18, 7, 20),
    "gaussian": _hundredths(80, 8, 2, 10),
    "pure": _hundredths(15, 70, 5, 10),
    "training": _hundredths(5, 40, 40, 15),
    "mixed": _hundredths(30, 17, 3, 50),
}


def shares_after(budget: Budget, spent: Fraction) -> Shares:
    """Split the first delta of an account that was pure until now, and has spent this much of epsilon."""
    rest = (budget.epsilon or Fraction(0)) - spent
    free = Budget(rest, budget.delta, approximate=budget.approximate, expect=budget.expect) if rest > 0 else budget
    return replace(choose_shares(free), carried=spent)


def choose_shares(budget: Budget) -> Shares:
    """Split the delta of a new account, from public facts. Any split is sound; a good one wastes little."""
    if budget.kind != "approximate":
        return NO_SHARES
    gaussian, best, others, events = _SPLITS[budget.expect]
    if budget.approximate is not None:
        scale = (1 - budget.approximate) / (1 - events)
        gaussian, best, others, events = gaussian * scale, best * scale, others * scale, budget.approximate
    orders = _useful(budget, _orders(budget, best, others))
    given = sum((share for _, share in orders), Fraction(0))
    return Shares(gaussian + best + others - given, orders, events)  # What no order can use makes the first rule wider.


def _orders(budget: Budget, best: Fraction, others: Fraction) -> dict[Fraction, Fraction]:
    """Choose the best order for many small charges, one so low that samples have moments, and two around the best."""
    if not best:
        return {}
    middle, lowest = _best_order(budget, best), _lowest_order(budget, others)
    more = {lowest} if budget.expect else {lowest, _rounded(math.sqrt(middle * lowest)), _rounded(float(middle * 2))}
    more -= {middle}
    found = {middle: best if more else best + others}
    return found | {order: others / len(more) for order in more}


def _best_order(budget: Budget, share: Fraction) -> Fraction:
    """Return about the order that holds most charges whose divergence is proportional to the order.

    Gaussian noise that uses up epsilon at delta has rho with sqrt(rho) = sqrt(L + epsilon) - sqrt(L), L = log 1/delta,
    and its best order is 1 + sqrt(L / rho). [BS16] By the better conversion [CKS20] it is a little lower.
    """
    log_delta, epsilon = _log(budget, share), float(budget.epsilon or 0)
    root = epsilon / (math.sqrt(log_delta + epsilon) + math.sqrt(log_delta))
    guess = 1 + math.sqrt(log_delta) / root
    near = {_rounded(guess * 2 ** (step / 8)) for step in _NEAR}
    return max(sorted(near), key=lambda order: _rough_cap(epsilon, log_delta, float(order)) / float(order))


def _lowest_order(budget: Budget, share: Fraction) -> Fraction:
    """Return about the lowest order that holds a twentieth of epsilon: where epsilon = log(1/delta) / (order - 1)."""
    log_delta, epsilon = _log(budget, share), float(budget.epsilon or 0)
    low, high = 1.0, 2.0
    while _rough_cap(epsilon, log_delta, high) < epsilon * _LOW_CAP and high < _LARGEST:
        low, high = high, high * 2
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if _rough_cap(epsilon, log_delta, middle) >= epsilon * _LOW_CAP else (middle, high)
    return _rounded(math.ceil(high) if high >= 4 else math.ceil(high * 8) / 8)


def _log(budget: Budget, share: Fraction) -> float:
    delta = (budget.delta or Fraction(1)) * share
    return math.log(delta.denominator) - math.log(delta.numerator)


def _rough_cap(epsilon: float, log_delta: float, order: float) -> float:
    return epsilon - math.log1p(-1 / order) + (math.log(order) - log_delta) / (order - 1)


def _rounded(order: float) -> Fraction:
    """Take whole orders where they are dense: moments of samples are cheaper and tighter there."""
    if order >= _LARGEST:
        return Fraction(_LARGEST)
    return max(Fraction(round(order)) if order >= 4 else Fraction(round(order * 8), 8), _SMALLEST)


def _useful(budget: Budget, orders: Mapping[Fraction, Fraction]) -> tuple[tuple[Fraction, Fraction], ...]:
    """Drop orders that could not admit anything."""
    epsilon, delta = budget.epsilon or Fraction(0), budget.delta
    return tuple(
        (order, share) for order, share in sorted(orders.items()) if _order_cap(epsilon, delta, order, share) > 0
    )


def caps(budget: Budget, shares: Shares) -> tuple[int, ...]:
    """Return what each kept sum may come to, in units of 2^-64, rounded down: first the Gaussian rule, if kept."""
    epsilon = (budget.epsilon or Fraction(0)) - shares.carried
    by_order = tuple(_order_cap(epsilon, budget.delta, order, share) for order, share in shares.orders)
    return (_gaussian_cap(epsilon, budget.delta, shares.gaussian), *by_order) if shares.gaussian else by_order


def _gaussian_cap(epsilon: Fraction, delta: Fraction | None, share: Fraction) -> int:
    """Return the largest sum of mu^2 that is (epsilon, delta)-private at its share of delta. [BW18, DRS22]"""
    try:
        return math.floor(largest_mu_squared(epsilon, (delta or 0) * share) * UNIT)
    except InvalidParameter:
        return -1  # No Gaussian noise within the range of floats is so private.


def _order_cap(epsilon: Fraction, whole: Fraction | None, order: Fraction, share: Fraction) -> int:
    """Return the largest divergence of an order that converts to epsilon at its share of delta.

    epsilon = D + log(1 - 1/a) - (log delta + log a) / (a - 1), solved for D. [CKS20]
    """
    delta = (whole or Fraction(0)) * share
    if delta <= 0:
        return -1

    def formula() -> object:
        a = ball(order)
        return ball(epsilon) - (-1 / a).log1p() + (ball(delta).log() + a.log()) / (a - 1)

    return math.floor(Fraction(float_down(enclose(formula))) * UNIT)  # type: ignore[arg-type]
