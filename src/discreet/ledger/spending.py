"""What was spent and what is left, as people ask for it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import final

from discreet.exact import down, up
from discreet.ledger.budget import Budget, readable
from discreet.ledger.filters import Filter, MixedFilter
from discreet.ledger.sums import RENYI_UNIT, Sums

__all__ = ["Left", "Spending", "Total", "left_of", "spending_of"]


@final
@dataclass(frozen=True, slots=True)
class Spending:
    """Exact sums of what was spent. None means that something without a bound of this kind is among it."""

    budget: Budget
    charges: int
    epsilon: Fraction | None
    delta: Fraction
    rho: Fraction | None
    renyi: tuple[tuple[Fraction, float | None], ...]  # (order, sum rounded up) for each order that is kept

    def describe(self) -> str:
        """Return what was spent on one line."""
        count = f"{self.charges:,} charge{'s' if self.charges != 1 else ''}"
        match self.budget.kind:
            case "concentrated":
                return f"{count}: Σρ = {readable(self.rho)} of {self.budget.describe()}"
            case "pure":
                return f"{count}: Σε = {readable(self.epsilon)} of {self.budget.describe()}"
            case _:
                sums = f"Σε = {readable(self.epsilon)}, Σδ = {readable(self.delta)}"
                return f"{count}: {sums} of {self.budget.describe()}"

    def __str__(self) -> str:
        return self.describe()


@final
@dataclass(frozen=True, slots=True)
class Left:
    """What still fits: by the sum of epsilons, and the share that is left by the best rule, rounded down."""

    budget: Budget
    epsilon: Fraction | None
    delta: Fraction | None
    rho: Fraction | None
    share: float  # of the budget, by the rule under which most is left

    def describe(self) -> str:
        """Return what is left on one line."""
        match self.budget.kind:
            case "unlimited":
                return "no lifetime limit"
            case "concentrated":
                return f"ρ = {readable(self.rho)} of {readable(self.budget.rho)}"
            case "pure":
                return f"ε = {readable(self.epsilon)} of {readable(self.budget.epsilon)}"
            case _:
                by_sum = f"ε = {readable(self.epsilon)} of {readable(self.budget.epsilon)} by the sum"
                delta = f"δ = {readable(self.delta)} for events with a delta"
                return f"{by_sum}, {int(1000 * self.share) / 10} % by the best rule, {delta}"

    def __str__(self) -> str:
        return self.describe()


@final
@dataclass(frozen=True, slots=True)
class Total:
    """The tight account of all charges, right only for charges that were fixed in advance."""

    epsilon: float
    delta: Fraction
    charges: int

    def describe(self) -> str:
        """Return the total with what it is good for."""
        return (
            f"ε = {self.epsilon:.6g} at δ = {readable(self.delta)} for {self.charges:,} charges, "
            "if all of them were fixed in advance; the ledger's own rule holds in any case"
        )

    def __str__(self) -> str:
        return self.describe()


def spending_of(rule: Filter, sums: Sums) -> Spending:
    """Read the sums of a rule."""
    totals = [None if total is None else up(Fraction(total, RENYI_UNIT)) for total in sums.renyi]
    by_order = tuple(zip(rule.orders, totals, strict=True))
    return Spending(rule.budget, sums.charges, sums.epsilon, sums.delta, sums.rho, by_order)


def left_of(rule: Filter, sums: Sums) -> Left:
    """Subtract, and never go below nothing."""
    budget = rule.budget
    delta = _rest(sums.delta, budget.delta_of_events) if budget.delta else None
    epsilon, rho = _rest(sums.epsilon, budget.epsilon), _rest(sums.rho, budget.rho)
    return Left(budget, epsilon, delta, rho, _share(rule, sums))


def _rest(total: Fraction | None, limit: Fraction | None) -> Fraction | None:
    if limit is None:
        return None
    return Fraction(0) if total is None else max(Fraction(0), limit - total)


def _share(rule: Filter, sums: Sums) -> float:
    budget = rule.budget
    if budget.kind == "unlimited":
        return 1.0
    limits = [(sums.epsilon, budget.epsilon), (sums.rho, budget.rho)]
    parts = [1 - total / limit for total, limit in limits if total is not None and limit is not None]
    if isinstance(rule, MixedFilter):
        orders = zip(sums.renyi, rule.caps, strict=True)
        parts += [1 - Fraction(total, cap) for total, cap in orders if total is not None and cap > 0]
    return max(0.0, down(max(parts, default=Fraction(0))))
