"""Privacy filters: which sums of adaptively chosen charges are admitted.

A filter admits a charge if the sums after it satisfy its rule. The sums only grow, so a rule that holds at the end
held throughout; that is why the answers may decide what is asked next and how much is spent on it. The proof is in
docs/ledger.md. [RRUV16, FZ21, Lec21, WRRW23]
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Protocol, final

from discreet.errors import UnsupportedEvent
from discreet.ledger.budget import Budget, EventPrice, Sums
from discreet.ledger.delta_shares import FIRST, NO_SHARES, Shares, caps
from discreet.ledger.prices import concentrated_price, mixed_price, own_price, plain_price, pure_price
from discreet.privacy.events import Event
from discreet.privacy.guarantee import curve
from discreet.privacy.relation import Relation

__all__ = [
    "ConcentratedFilter",
    "MixedFilter",
    "NoFilter",
    "PrivacyFilter",
    "PureFilter",
    "filter_for",
    "fitting",
    "fitting_sums",
    "held",
]

_MOST_PRICES = 4096  # Events whose price is remembered.
_PARTS = tuple(Fraction(1, 4**power) for power in range(6))  # of the delta for events, at which a curve is read


class PrivacyFilter(Protocol):
    """A privacy filter: a rule about sums that bounds what adaptively chosen charges spend together."""

    @property
    def budget(self) -> Budget:
        """What the rule keeps to."""

    @property
    def shares(self) -> Shares:
        """How delta is split, and which sums are kept beside those of epsilon, delta and rho."""

    def price(self, event: Event, relation: Relation) -> EventPrice:
        """Return what an event adds to the sums, or refuse an event without a bound."""

    def sum_price(self, event: Event, relation: Relation) -> EventPrice:
        """Return a price that is the sum of the prices of its parts, so that it may be charged part by part."""

    def price_alone(self, event: Event, relation: Relation) -> EventPrice | None:
        """Return what an event costs that is the first and only charge; None if that is nothing else, or too much."""

    def admits(self, sums: Sums) -> bool:
        """Tell whether these sums may stand."""

    def times(self, sums: Sums, price: EventPrice) -> int:
        """Return how many more charges of this price fit."""


@final
@dataclass(frozen=True)
class PureFilter:
    """Pure DP: epsilons add up, exactly. [DMNS06, RRUV16]"""

    budget: Budget
    shares: Shares = NO_SHARES

    def price(self, event: Event, relation: Relation) -> EventPrice:
        return pure_price(event, relation)

    sum_price = price

    def price_alone(self, event: Event, relation: Relation) -> EventPrice | None:
        return None

    def admits(self, sums: Sums) -> bool:
        return _fits(sums.epsilon, self.budget.epsilon)

    def times(self, sums: Sums, price: EventPrice) -> int:
        return _times(sums.epsilon, price.epsilon, self.budget.epsilon)


@final
@dataclass(frozen=True)
class ConcentratedFilter:
    """zCDP: rhos add up, exactly, at every order at once. [BS16, FZ21, WRRW23]"""

    budget: Budget
    shares: Shares = NO_SHARES

    def price(self, event: Event, relation: Relation) -> EventPrice:
        return concentrated_price(event, relation)

    sum_price = price

    def price_alone(self, event: Event, relation: Relation) -> EventPrice | None:
        return None

    def admits(self, sums: Sums) -> bool:
        return _fits(sums.rho, self.budget.rho)

    def times(self, sums: Sums, price: EventPrice) -> int:
        return _times(sums.rho, price.rho, self.budget.rho)


@final
@dataclass(frozen=True)
class MixedFilter:
    """Deltas fit their share, and one rule holds at its own: sums of epsilon, of mu^2, or of divergences of one order.

    What is asked first depends on no answer. So one charge alone may also take all of epsilon and delta; nothing fits
    beside it then.
    """

    budget: Budget
    shares: Shares

    @cached_property
    def caps(self) -> tuple[int, ...]:
        """What each kept sum may come to, in units of 2^-64."""
        return caps(self.budget, self.shares)

    @cached_property
    def delta_of_events(self) -> Fraction:
        """The part of delta that events with a delta of their own may use up."""
        return (self.budget.delta or Fraction(0)) * self.shares.events

    @cached_property
    def _prices(self) -> dict[tuple[Event, Relation], EventPrice]:
        return {}

    @cached_property
    def _prices_alone(self) -> dict[tuple[Event, Relation], EventPrice | None]:
        return {}

    def price(self, event: Event, relation: Relation) -> EventPrice:
        known = self._prices.get((event, relation))
        if known is None:
            if len(self._prices) >= _MOST_PRICES:
                self._prices.clear()
            known = self._prices[event, relation] = self._best_price(event, relation)
        return known

    def sum_price(self, event: Event, relation: Relation) -> EventPrice:
        return mixed_price(event, relation, self.shares)

    def price_alone(self, event: Event, relation: Relation) -> EventPrice | None:
        if self.shares.version == FIRST:
            return None
        asked = (event, relation)
        if asked not in self._prices_alone:
            if len(self._prices_alone) >= _MOST_PRICES:
                self._prices_alone.clear()
            self._prices_alone[asked] = self._read_alone(event, relation)
        return self._prices_alone[asked]

    def admits(self, sums: Sums) -> bool:
        return self._admits_by_rule(sums) or self._admits_alone(sums)

    def times(self, sums: Sums, price: EventPrice) -> int:
        by_rule = [_times(total, more, cap) for total, more, cap in zip(sums.kept, price.kept, self.caps, strict=True)]
        most = max([_times(sums.epsilon, price.epsilon, self.budget.epsilon), *by_rule])
        return min(most, _times(sums.delta, price.delta, self.delta_of_events))

    def _admits_by_rule(self, sums: Sums) -> bool:
        if sums.delta > self.delta_of_events:
            return False
        kept = any(total is not None and total <= cap for total, cap in zip(sums.kept, self.caps, strict=True))
        return kept or _fits(sums.epsilon, self.budget.epsilon)

    def _admits_alone(self, sums: Sums) -> bool:
        """Tell whether these are the sums of one charge that is (epsilon, delta)-private by itself."""
        one = self.shares.version > FIRST and sums.charges == 1
        return one and _fits(sums.epsilon, self.budget.epsilon) and _fits(sums.delta, self.budget.delta)

    def _best_price(self, event: Event, relation: Relation) -> EventPrice:
        """Return the price of the sums; of an event that would never fit by it, the price of its own curve if it does.

        Which of two true prices is paid is decided before the answer is drawn.
        """
        unused = Sums.nothing(self.shares.kept)
        try:
            price = self.sum_price(event, relation)
        except UnsupportedEvent:
            found = self._own_price(event, relation, unused)
            if found is None:
                raise
            return found
        if self.shares.version == FIRST or self._admits_by_rule(unused.plus(price)):
            return price
        return self._own_price(event, relation, unused) or price

    def _own_price(self, event: Event, relation: Relation, unused: Sums) -> EventPrice | None:
        """Return the price by the event's own curve at the delta at which most of them fit an unused account."""
        if self.shares.version == FIRST:
            return None
        read = [self._read_curve(event, relation, self.delta_of_events * part) for part in _PARTS]
        found = [price for price in read if price is not None and self.times(unused, price) > 0]
        return max(found, key=lambda price: self.times(unused, price), default=None)

    def _read_alone(self, event: Event, relation: Relation) -> EventPrice | None:
        """Return the price by the event's own curve at all of delta. What the grid rounds up is no part of it."""
        epsilon, delta = self.budget.epsilon or Fraction(0), self.budget.delta or Fraction(0)
        price = self._read_curve(event, relation, delta)
        if price is None or price.epsilon is None:
            return None
        return replace(price, epsilon=min(price.epsilon, epsilon), delta=min(price.delta, delta))

    def _read_curve(self, event: Event, relation: Relation, delta: Fraction) -> EventPrice | None:
        try:
            known = curve(event, relation)
        except UnsupportedEvent:
            return None
        return own_price(known, self.budget.epsilon or Fraction(0), delta, self.shares)


@final
@dataclass(frozen=True)
class NoFilter:
    """Admit everything: quotas per window are all there is, and the text says so."""

    budget: Budget
    shares: Shares = NO_SHARES

    def price(self, event: Event, relation: Relation) -> EventPrice:
        return plain_price(event, relation)

    sum_price = price

    def price_alone(self, event: Event, relation: Relation) -> EventPrice | None:
        return None

    def admits(self, sums: Sums) -> bool:
        return True

    def times(self, sums: Sums, price: EventPrice) -> int:
        return sys.maxsize


def filter_for(budget: Budget, shares: Shares) -> PrivacyFilter:
    """Return the rule for a budget."""
    match budget.kind:
        case "pure":
            return PureFilter(budget)
        case "concentrated":
            return ConcentratedFilter(budget)
        case "approximate":
            return MixedFilter(budget, shares)
        case _:
            return NoFilter(budget)


def fitting(rule: PrivacyFilter, sums: Sums, event: Event, relation: Relation) -> EventPrice | None:
    """Return what an event is charged at beside these sums; None if it does not fit."""
    found = fitting_sums(rule, sums, event, relation)
    return None if found is None else found[0]


def fitting_sums(rule: PrivacyFilter, sums: Sums, event: Event, relation: Relation) -> tuple[EventPrice, Sums] | None:
    """Return what an event is charged at beside these sums, and the sums with it; None if it does not fit."""
    try:
        price = rule.price(event, relation)
    except UnsupportedEvent:
        if sums.charges or (alone := rule.price_alone(event, relation)) is None:
            raise
        return alone, sums.plus(alone)
    after = sums.plus(price)
    if rule.admits(after):
        return price, after
    alone = None if sums.charges else rule.price_alone(event, relation)
    return None if alone is None else (alone, sums.plus(alone))


def held(rule: PrivacyFilter, sums: Sums, event: Event, relation: Relation) -> int:
    """Return how many more such events fit beside these sums."""
    price = fitting(rule, sums, event, relation)
    return 0 if price is None else max(1, rule.times(sums, price))


def _fits(total: Fraction | None, limit: Fraction | None) -> bool:
    return total is not None and limit is not None and total <= limit


def _times(total: Fraction | int | None, more: Fraction | int | None, limit: Fraction | int | None) -> int:
    """Return how often `more` can be added without passing the limit."""
    if total is None or more is None or limit is None or total > limit:
        return 0
    return min(sys.maxsize, int((limit - total) // more)) if more else sys.maxsize
