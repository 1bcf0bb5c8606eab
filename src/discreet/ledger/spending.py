"""What was spent and what is left, as people ask for it."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, final

from discreet.errors import InvalidParameter, UnsupportedEvent
from discreet.exact import down, up
from discreet.formatting import printable, shortened, significant_up
from discreet.ledger.accounts import LIFETIME, Book
from discreet.ledger.budget import UNIT, Budget, EventPrice, Sums, canonical, readable
from discreet.ledger.charge_record import Entry
from discreet.ledger.filters import MixedFilter, PrivacyFilter, held
from discreet.ledger.prices import concentrated_price, plain_price
from discreet.privacy.events import Event
from discreet.privacy.guarantee import epsilon
from discreet.privacy.relation import Relation

__all__ = [
    "Entries",
    "Left",
    "Spending",
    "TightTotal",
    "delta_share",
    "left_after",
    "left_of",
    "money",
    "money_within",
    "more_of",
    "price_words",
    "shares_by_day",
    "spending_of",
]

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
        last: What the last charge cost, in words; None if there was none.

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
    last: str | None = None  # what the last charge cost, in words

    def describe(self) -> str:
        """Return what was spent on one line: "9.7 % (1 charge, ε = 1 at δ = 1e-6)"."""
        if not self.charges:
            return "nothing"
        last = "" if self.last is None else f", {'the last ' if self.charges > 1 else ''}{self.last}"
        count = f"{self.charges:,} charge{'s' if self.charges != 1 else ''}{last}"
        return count if self.budget.kind == "unlimited" else f"{_per_cent_up(self.share)} ({count})"

    def __str__(self) -> str:
        return self.describe()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return _measured(1 - self.share, f"spent: {self.describe()}")


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
        limit: The quota that holds fewer of them than the lifetime budget, if there is one.
        delta_share: The part that is left of the delta for charges with a delta of their own, if that is what limits
            how many more fit.

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
    limit: str = ""  # the quota by which there are no more of them
    delta_share: Fraction | None = None  # of the deltas of events, if these are what there are no more of them by

    def describe(self, like: str = "the last charge") -> str:
        """Return what is left on one line: "9 more like the last charge (90.3 % of ε = 4, δ = 1e-05)"."""
        return self._rest() if self.more is None else f"{self.count(like)} ({self._rest()})"

    def count(self, like: str) -> str:
        """Say how many more fit, and by which quota if it is one that decides."""
        by = f", by {self.limit}" if self.limit else "" if self.delta_share is None else ", limited by δ"
        if self.more is None or self.more == sys.maxsize:
            return f"as many like {like} as anybody asks for{by}"
        return f"{f'{self.more:,}' if self.more else 'no'} more like {like}{by}"

    def brief(self, like: str = "it") -> str:
        """Return the end of the one sentence: "9 more like it"."""
        if self.share == 0 and self.budget.kind != "unlimited":
            return "nothing"
        if self.more is None:
            return f"{'all' if self.share == 1 else self._per_cent()} of {self.budget.describe()}"
        rest = "" if self.more or self.budget.kind == "unlimited" else f"{self._per_cent()}{self._of_delta()}, and "
        return f"{rest}{self.count(like)}{self._way_out()}"

    def _way_out(self) -> str:
        if self.more or self.delta_share is None:
            return ""
        return f": {'a smaller delta= fits, or ' if self.delta_share else ''}list the keys of groups, or raise δ"

    def _of_delta(self) -> str:
        """Say of what there is enough and of what there is not, where a delta is what is used up."""
        if self.delta_share is None:
            return ""
        return f" of ε, {int(1000 * self.delta_share) / 10:g} % of the δ for charges with a δ of their own"

    def _rest(self) -> str:
        match self.budget.kind:
            case "unlimited":
                return "no lifetime limit"
            case "concentrated":
                return f"ρ = {readable(self.rho)} of {readable(self.budget.rho)}"
            case "pure":
                return f"ε = {readable(self.epsilon)} of {readable(self.budget.epsilon)}"
            case _:
                return f"{self._per_cent()} of {self.budget.describe()}"

    def _per_cent(self) -> str:
        return f"{int(1000 * self.share + _ROUNDING) / 10:g} %"

    def recorded(self) -> str:
        """Return what is left as bundles record it: these words are compared with the ledger, and never change."""
        tells = self.budget.kind == "approximate" and self.more is not None
        return f"{self._rest()}: {self.more:,} more like the last charge" if tells else self._rest()

    def describe_sums(self) -> str:
        """Return what is left as bundles said it that were written before they told a number of charges."""
        if self.budget.kind != "approximate":
            return self.recorded()
        by_sum = f"ε = {readable(self.epsilon)} of {readable(self.budget.epsilon)} by the sum"
        delta = f"δ = {readable(self.delta)} for events with a delta"
        return f"{by_sum}, {int(1000 * self.share) / 10} % by the best rule, {delta}"

    def __str__(self) -> str:
        return self.describe()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return _measured(self.share, f"left: {self.describe()}")


def _measured(share_left: float, told: str) -> str:
    """Write a sentence about a budget for notebooks, with what is left of it as a bar."""
    from discreet.pages import svg

    return f"<div>{svg.meter(share_left, told=told)}<br>{svg.words(told)}</div>"


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


def money(spent: Spending, left: Left, like: str = "it") -> str:
    """Return the one sentence about a budget, which every part of the library tells.

    "spent: 9.7 % (1 charge, ε = 1 at δ = 1e-6); left: 9 more like it". Spent is rounded up and left is rounded down;
    how many more is told by the rule that admits them.
    """
    return f"spent: {spent.describe()}; left: {left.brief(like)}"


def money_within(within: Iterable[tuple[str, Spending, Left]], called: Mapping[str, str]) -> str:
    """Say the same of each unit within the first, by the name that `called` has for it."""
    return "".join(f". For one {called.get(unit, unit)}: {money(spent, left)}" for unit, spent, left in within)


def price_words(event: Event, relation: Relation, budget: Budget, at: Fraction | None = None) -> str | None:
    """Say what an event costs: its own ε, or ρ, or its ε at a delta, by default that of the budget; None if unknown."""
    try:
        if budget.kind == "concentrated":
            return f"ρ = {significant_up(concentrated_price(event, relation).rho or 0)}"
        known = _known_price(event, relation)
        delta = budget.delta if at is None else at
        if known is not None or delta is None:
            return known
        level = _epsilon(event, relation, delta)
    except UnsupportedEvent:
        return None
    return f"ε = {significant_up(level)} at δ = {significant_up(delta)}" if math.isfinite(level) else None


def _known_price(event: Event, relation: Relation) -> str | None:
    price = plain_price(event, relation)
    if price.epsilon is None:
        return None
    delta = f", δ = {significant_up(price.delta)}" if price.delta else ""
    return f"ε = {significant_up(price.epsilon)}{delta}"


@lru_cache(maxsize=1024)
def _epsilon(event: Event, relation: Relation, delta: Fraction) -> float:
    return epsilon(event, delta, relation=relation)


@final
class Entries(tuple[Entry, ...]):
    """Entries of a ledger that show themselves as a table: when, what, for what, by whom and at which price."""

    _HEAD = ("number", "when (UTC)", "what", "price", "who", "for what")
    _told: tuple[Relation, Budget]

    @classmethod
    def of(cls, entries: Iterable[Entry], relation: Relation, budget: Budget) -> Entries:
        """Return entries, with what their prices are told by."""
        made = cls(entries)
        made._told = relation, budget
        return made

    def _rows(self) -> list[tuple[str, ...]]:
        return [self._row(entry) for entry in self]

    def _row(self, entry: Entry) -> tuple[str, ...]:
        event, said = entry.event, entry.content
        price = None if event is None else price_words(event, *self._told)
        for_what = shortened(" ".join(str(said.get("purpose") or said.get("reason") or "").split()), 60)
        cells = (str(entry.index), entry.moment, entry.kind, price or "", str(said.get("principal", "")), for_what)
        return tuple(map(printable, cells))

    def __repr__(self) -> str:
        rows = [self._HEAD, *self._rows()]
        widths = [max(len(row[place]) for row in rows) for place in range(len(self._HEAD))]
        return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)

    def _repr_html_(self) -> str:
        from discreet.pages import kit

        return kit.grid(self._rows(), self._HEAD)


def spending_of(rule: PrivacyFilter, sums: Sums, last: str | None = None) -> Spending:
    """Read the sums of a rule; `last` is what the last charge cost, in words."""
    divergences = sums.kept[len(sums.kept) - len(rule.shares.orders) :]
    totals = [None if total is None else up(Fraction(total, UNIT)) for total in divergences]
    by_order = tuple((order, total) for (order, _), total in zip(rule.shares.orders, totals, strict=True))
    used = up(1 - _part_left(rule, sums))
    return Spending(rule.budget, sums.charges, sums.epsilon, sums.delta, sums.rho, by_order, used, last)


def left_of(
    rule: PrivacyFilter, sums: Sums, more: int | None = None, limit: str = "", delta_share: Fraction | None = None
) -> Left:
    """Subtract, and never go below nothing; `more` charges like the last one fit, by a quota if it is named."""
    budget = rule.budget
    delta = _rest(sums.delta, rule.delta_of_events) if isinstance(rule, MixedFilter) else None
    epsilon, rho = _rest(sums.epsilon, budget.epsilon), _rest(sums.rho, budget.rho)
    return Left(budget, epsilon, delta, rho, max(0.0, down(_part_left(rule, sums))), more, limit, delta_share)


def more_of(rule: PrivacyFilter, sums: Sums, event: Event | None, relation: Relation) -> int | None:
    """Return how many more charges of an event a rule admits, by the price at which it would admit them now."""
    if event is None:
        return None
    try:
        return held(rule, sums, event, relation)
    except UnsupportedEvent:  # such as a quota that was set later, and takes no such event
        return 0


def delta_share(rule: PrivacyFilter, sums: Sums, event: Event | None, relation: Relation) -> Fraction | None:
    """Return which part of the deltas of events is left, if it is by them that no more charges of an event fit."""
    if event is None or not isinstance(rule, MixedFilter):
        return None
    try:
        price = rule.price(event, relation)
    except UnsupportedEvent:
        return None
    if rule.times(sums, price) >= rule.times(sums, replace(price, delta=Fraction(0))):
        return None
    whole = rule.delta_of_events
    return max(Fraction(0), 1 - sums.delta / whole) if whole else Fraction(0)


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
        rest = 1 - rule.shares.carried / (budget.epsilon or 1)  # Those sums began when this much was spent.
        parts += [rest * (1 - Fraction(total, cap)) for total, cap in kept if total is not None and cap > 0]
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
        if "sums" in entry.content:  # A copy was restored, or a pure account got its first delta.
            before, prices = Sums.from_text(entry.content["sums"]), []
        elif entry.kind == "charge":
            prices.append(EventPrice.unpacked(entry.content["prices"][LIFETIME]))
    if declared is None:
        raise InvalidParameter("these are not the entries of a data set")
    book = Book.read(dataset, canonical(declared))
    total = Sums.nothing(book.rule.shares.kept) if before is None else before
    for price in prices:
        total = total.plus(price)
    return left_of(book.rule, total, book.rule.times(total, prices[-1]) if prices else None)


def shares_by_day(entries: Iterable[Entry], principal: str | None = None) -> dict[str, float]:
    """Return which share of the lifetime budget was spent at the end of each day with a charge, rounded up.

    `entries` are all those of one data set, in order. With a `principal`, it is what their charges alone would have
    used: nothing follows from those of others.
    """
    rule: PrivacyFilter | None = None
    total: Sums | None = None
    found: dict[str, float] = {}
    for entry in entries:
        if "declared" in entry.content:
            rule = Book.read(entry.dataset, canonical(entry.content["declared"])).rule
        total, is_new = _next_sums(entry, rule, total, principal)
        if is_new and rule is not None and total is not None:
            found[entry.moment[:10]] = up(1 - _part_left(rule, total))
    return found


def _next_sums(
    entry: Entry, rule: PrivacyFilter | None, total: Sums | None, principal: str | None
) -> tuple[Sums | None, bool]:
    """Add what an entry charges to the sums before it, and tell whether it charges."""
    if rule is None:
        raise InvalidParameter("these are not the entries of a data set")
    kept = rule.shares.kept
    if "sums" in entry.content and principal is None:  # A copy was restored, or a pure account got its first delta.
        return Sums.from_text(entry.content["sums"]), entry.kind == "restored"
    if total is not None and len(total.kept) != kept:
        total = replace(total, kept=(None,) * kept)
    if entry.kind != "charge" or principal not in (None, entry.content.get("principal")):
        return total, False
    before = Sums.nothing(kept) if total is None else total
    return before.plus(EventPrice.unpacked(entry.content["prices"][LIFETIME])), True
