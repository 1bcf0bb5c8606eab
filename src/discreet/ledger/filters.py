"""Filters: which sums may stand at the end, whoever chose the charges and whenever.

A filter admits a charge if the sums after it satisfy its rule. The sums only grow, so a rule that holds at the end
held throughout; that is why the answers may decide what is asked next and how much is spent on it. The proof is in
docs/ledger.md. [RRUV16, FZ21, Lec21, WRRW23]
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Protocol, final

from discreet.ledger.budget import Budget
from discreet.ledger.orders import caps
from discreet.ledger.pricing import concentrated_price, mixed_price, plain_price, pure_price
from discreet.ledger.sums import Price, Sums
from discreet.privacy.events import Event
from discreet.privacy.relation import Relation

__all__ = ["ConcentratedFilter", "Filter", "MixedFilter", "NoFilter", "PureFilter", "filter_for"]

_MOST_PRICES = 4096  # Events whose price is remembered.


class Filter(Protocol):
    """A rule about sums."""

    @property
    def budget(self) -> Budget:
        """What the rule keeps to."""

    @property
    def orders(self) -> tuple[Fraction, ...]:
        """The Rényi orders whose divergences are added up."""

    def price(self, event: Event, relation: Relation) -> Price:
        """Return what an event adds to the sums, or refuse an event without a bound."""

    def admits(self, sums: Sums) -> bool:
        """Tell whether these sums may stand."""

    def times(self, sums: Sums, price: Price) -> int:
        """Return how many more charges of this price fit."""


@final
@dataclass(frozen=True)
class PureFilter:
    """Epsilons add up, exactly. [DMNS06, RRUV16]"""

    budget: Budget
    orders: tuple[Fraction, ...] = ()

    def price(self, event: Event, relation: Relation) -> Price:
        return pure_price(event, relation)

    def admits(self, sums: Sums) -> bool:
        return _fits(sums.epsilon, self.budget.epsilon)

    def times(self, sums: Sums, price: Price) -> int:
        return _times(sums.epsilon, price.epsilon, self.budget.epsilon)


@final
@dataclass(frozen=True)
class ConcentratedFilter:
    """Rhos add up, exactly: at every order at once. [BS16, FZ21, WRRW23]"""

    budget: Budget
    orders: tuple[Fraction, ...] = ()

    def price(self, event: Event, relation: Relation) -> Price:
        return concentrated_price(event, relation)

    def admits(self, sums: Sums) -> bool:
        return _fits(sums.rho, self.budget.rho)

    def times(self, sums: Sums, price: Price) -> int:
        return _times(sums.rho, price.rho, self.budget.rho)


@final
@dataclass(frozen=True)
class MixedFilter:
    """Deltas fit their part, and epsilons add up or the divergences of one order stay below its cap."""

    budget: Budget
    orders: tuple[Fraction, ...]

    @cached_property
    def caps(self) -> tuple[int, ...]:
        """What each order holds, in units of 2^-64."""
        return caps(self.budget, self.orders)

    @cached_property
    def _delta(self) -> Fraction:
        return self.budget.delta_of_events

    @cached_property
    def _prices(self) -> dict[tuple[Event, Relation], Price]:
        return {}

    def price(self, event: Event, relation: Relation) -> Price:
        known = self._prices.get((event, relation))
        if known is None:
            if len(self._prices) >= _MOST_PRICES:
                self._prices.clear()
            known = self._prices[event, relation] = mixed_price(event, relation, self.orders)
        return known

    def admits(self, sums: Sums) -> bool:
        if sums.delta > self._delta:
            return False
        by_order = any(total is not None and total <= cap for total, cap in zip(sums.renyi, self.caps, strict=True))
        return by_order or _fits(sums.epsilon, self.budget.epsilon)

    def times(self, sums: Sums, price: Price) -> int:
        by_order = [
            _times(total, more, cap) for total, more, cap in zip(sums.renyi, price.renyi, self.caps, strict=True)
        ]
        most = max([_times(sums.epsilon, price.epsilon, self.budget.epsilon), *by_order])
        return min(most, _times(sums.delta, price.delta, self.budget.delta_of_events))


@final
@dataclass(frozen=True)
class NoFilter:
    """Admit everything: quotas per window are all there is, and the text says so."""

    budget: Budget
    orders: tuple[Fraction, ...] = ()

    def price(self, event: Event, relation: Relation) -> Price:
        return plain_price(event, relation)

    def admits(self, sums: Sums) -> bool:
        return True

    def times(self, sums: Sums, price: Price) -> int:
        return sys.maxsize


def filter_for(budget: Budget, orders: tuple[Fraction, ...]) -> Filter:
    """Return the rule for a budget."""
    match budget.kind:
        case "pure":
            return PureFilter(budget)
        case "concentrated":
            return ConcentratedFilter(budget)
        case "approximate":
            return MixedFilter(budget, orders)
        case _:
            return NoFilter(budget)


def _fits(total: Fraction | None, limit: Fraction | None) -> bool:
    return total is not None and limit is not None and total <= limit


def _times(total: Fraction | int | None, more: Fraction | int | None, limit: Fraction | int | None) -> int:
    """Return how often `more` can be added without passing the limit."""
    if total is None or more is None or limit is None or total > limit:
        return 0
    return min(sys.maxsize, int((limit - total) // more)) if more else sys.maxsize
