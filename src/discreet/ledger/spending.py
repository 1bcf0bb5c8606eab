"""What was spent and what is left, as people ask for it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

from discreet.errors import InvalidParameter
from discreet.exact import down, up
from discreet.ledger.accounts import LIFETIME, Book
from discreet.ledger.budget import UNIT, Budget, EventPrice, Sums, canonical, readable
from discreet.ledger.charge_record import Entry
from discreet.ledger.filters import MixedFilter, PrivacyFilter

__all__ = ["Left", "Spending", "TightTotal", "left_after", "left_of", "spending_of"]

_ROUNDING = 1e-9  # Of a tenth of a per cent: nine tenths left is 90 %, whatever the float is.


@final
@dataclass(frozen=True, slots=True)
class Spending:
    """Exact sums of what was spent. None means that something without a bound of this kind is among it.

    Args:
        budget: The whole budget.
        charges: How many charges there were.
        epsilon: The exact sum of epsilons; None if something without an epsilon is among them.
        delta: The exact sum of deltas.
        rho: The exact sum of rhos; None if something without one is among them.
        renyi: Pairs of a Renyi order and the sum of divergences, rounded up, for each order that is kept.
        share: The part of the budget that is spent by the best rule, rounded up.

    Examples:
        >>> account = dp.ledger.Account("visits", "row", dp.Relation.ADD_REMOVE, dp.Budget(epsilon=1))
        >>> dp.ledger.Ledger.open("memory", account).spent().charges
        0
    """

    budget: Budget
    charges: int
    epsilon: Fraction | None
    delta: Fraction
    rho: Fraction | None
    renyi: tuple[tuple[Fraction, float | None], ...]  # (order, sum rounded up) for each order that is kept
    share: float = 0.0  # of the budget, by the rule under which least is used, rounded up

    def describe(self) -> str:
        """Return what was spent on one line."""
        count = f"{self.charges:,} charge{'s' if self.charges != 1 else ''}"
        match self.budget.kind:
            case "concentrated":
                return f"{count}: Σρ = {readable(self.rho)} of {self.budget.describe()}"
            case "pure":
                return f"{count}: Σε = {readable(self.epsilon)} of {self.budget.describe()}"
            case "approximate":
                return f"{count}: {_per_cent_up(self.share)} of {self.budget.describe()}"
            case _:
                return f"{count}, without a lifetime limit"

    def __str__(self) -> str:
        return self.describe()

    __repr__ = __str__


@final
@dataclass(frozen=True, slots=True)
class Left:
    """What still fits: by the sum of epsilons, and the share that is left by the best rule, rounded down.

    Args:
        budget: The whole budget.
        epsilon: What is left by the sum of epsilons; None if the budget has none.
        delta: What is left by the sum of deltas.
        rho: What is left by the sum of rhos.
        share: The part of the budget that is left by the best rule, rounded down.
        more: How many charges like the last one still fit, if there was one.

    Examples:
        >>> account = dp.ledger.Account("visits", "row", dp.Relation.ADD_REMOVE, dp.Budget(epsilon=1))
        >>> dp.ledger.Ledger.open("memory", account).left().share
        1.0
    """

    budget: Budget
    epsilon: Fraction | None
    delta: Fraction | None
    rho: Fraction | None
    share: float  # of the budget, by the rule under which most is left
    more: int | None = None  # charges like the last one, if there was one

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
                more = "" if self.more is None else f": {self.more:,} more like the last charge"
                return f"{int(1000 * self.share + _ROUNDING) / 10:g} % of {self.budget.describe()}{more}"

    def describe_sums(self) -> str:
        """Return what is left as bundles said it that were written before `describe` told a number of charges."""
        if self.budget.kind != "approximate":
            return self.describe()
        by_sum = f"ε = {readable(self.epsilon)} of {readable(self.budget.epsilon)} by the sum"
        delta = f"δ = {readable(self.delta)} for events with a delta"
        return f"{by_sum}, {int(1000 * self.share) / 10} % by the best rule, {delta}"

    def __str__(self) -> str:
        return self.describe()

    __repr__ = __str__


@final
@dataclass(frozen=True, slots=True)
class TightTotal:
    """The tight account of all charges, right only for charges that were fixed in advance.

    Args:
        epsilon: The epsilon of all charges at `delta`, rounded up.
        delta: The delta that was asked for.
        charges: How many charges there were.

    Examples:
        >>> account = dp.ledger.Account("visits", "row", dp.Relation.ADD_REMOVE, dp.Budget(epsilon=1))
        >>> ledger = dp.ledger.Ledger.open("memory", account)
        >>> charge = ledger.charge(dp.privacy.PureDP(0.5), relation=dp.Relation.ADD_REMOVE, purpose="count")
        >>> ledger.total(0).epsilon
        0.5
    """

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

    __repr__ = __str__


def spending_of(rule: PrivacyFilter, sums: Sums) -> Spending:
    """Read the sums of a rule."""
    divergences = sums.kept[len(sums.kept) - len(rule.shares.orders) :]
    totals = [None if total is None else up(Fraction(total, UNIT)) for total in divergences]
    by_order = tuple((order, total) for (order, _), total in zip(rule.shares.orders, totals, strict=True))
    used = up(1 - _part_left(rule, sums))
    return Spending(rule.budget, sums.charges, sums.epsilon, sums.delta, sums.rho, by_order, used)


def left_of(rule: PrivacyFilter, sums: Sums, last: EventPrice | None = None) -> Left:
    """Subtract, and never go below nothing; `last` is the price of the last charge."""
    budget = rule.budget
    delta = _rest(sums.delta, rule.delta_of_events) if isinstance(rule, MixedFilter) else None
    epsilon, rho = _rest(sums.epsilon, budget.epsilon), _rest(sums.rho, budget.rho)
    more = None if last is None else rule.times(sums, last)
    return Left(budget, epsilon, delta, rho, max(0.0, down(_part_left(rule, sums))), more)


def _rest(total: Fraction | None, limit: Fraction | None) -> Fraction | None:
    if limit is None:
        return None
    return Fraction(0) if total is None else max(Fraction(0), limit - total)


def _part_left(rule: PrivacyFilter, sums: Sums) -> Fraction:
    """Return which part of the budget is left by the rule under which most is; nothing once the deltas are too many."""
    budget = rule.budget
    if budget.kind == "unlimited":
        return Fraction(1)
    limits = [(sums.epsilon, budget.epsilon), (sums.rho, budget.rho)]
    parts = [1 - total / limit for total, limit in limits if total is not None and limit is not None]
    if isinstance(rule, MixedFilter):
        if sums.delta > rule.delta_of_events:
            return Fraction(0)
        kept = zip(sums.kept, rule.caps, strict=True)
        parts += [1 - Fraction(total, cap) for total, cap in kept if total is not None and cap > 0]
    return max(Fraction(0), max(parts, default=Fraction(0)))


def _per_cent_up(share: float) -> str:
    """Write a share in per cent, rounded up to a tenth."""
    return f"{-(-Fraction(repr(share)) * 1000 // 1) / 10:g} %"


# --- as_of: What was left right after a charge: told by the entries up to it, and the same whenever it is asked. ---


def left_after(entries: Iterable[Entry], charge: int) -> Left:
    """Return what was left of the lifetime budget after a charge; `entries` are all those of its data set, in order.

    Args:
        entries: All entries of one data set, in order.
        charge: The index of a charge among them.

    Returns:
        What was left of the lifetime budget, rounded down.

    Raises:
        InvalidParameter: If these are not the entries of a data set.

    Examples:
        >>> account = dp.ledger.Account("visits", "row", dp.Relation.ADD_REMOVE, dp.Budget(epsilon=1))
        >>> ledger = dp.ledger.Ledger.open("memory", account)
        >>> charge = ledger.charge(dp.privacy.PureDP(0.5), relation=dp.Relation.ADD_REMOVE, purpose="count")
        >>> dp.ledger.left_after(ledger.history(), charge.index).epsilon
        Fraction(1, 2)
    """
    declared: Any = None
    prices: list[EventPrice] = []
    dataset, before = "", None
    for entry in entries:
        if entry.index > charge:
            break
        dataset, declared = entry.dataset, entry.content.get("declared", declared)
        if entry.kind == "restored":
            before, prices = Sums.from_text(entry.content["sums"]), []
        elif entry.kind == "charge":
            prices.append(EventPrice.unpacked(entry.content["prices"][LIFETIME]))
    if declared is None:
        raise InvalidParameter("these are not the entries of a data set")
    book = Book.read(dataset, canonical(declared))
    total = Sums.nothing(book.rule.shares.kept) if before is None else before
    for price in prices:
        total = total.plus(price)
    return left_of(book.rule, total, prices[-1] if prices else None)
