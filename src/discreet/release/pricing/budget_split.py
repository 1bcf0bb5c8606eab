"""Divide what one release may spend: from wishes to parts, and to the largest total that fits."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import final

from discreet.errors import InvalidParameter, Refused
from discreet.exact import up
from discreet.formatting import exponent, significant_up
from discreet.privacy import delta, epsilon
from discreet.privacy.event_tree import leaves
from discreet.privacy.events import ApproxDP, Event, Repeated
from discreet.privacy.relation import Relation
from discreet.query.plan.draft import MOST_EPSILON, MOST_RHO
from discreet.query.plan.planner import PricedQuery, errors_of, joint_event, relative_errors_of
from discreet.release.plan import Allowance, ReleasePlan, located, place_of, told_at
from discreet.release.pricing.quotes import Quote

__all__ = ["SplitPart", "amounts", "divide", "fits", "largest", "largest_amount", "near_rho", "too_dear", "weights"]

# --- splitting: How what one release may spend is divided among its tables. ---
#
# A table that names an error gets the cheapest amount that reaches it; one that names a price or a share gets that. The
# rest goes to the others so that the largest relative error is as small as it can be while nobody gets less than half
# of
# an even part: one greedy table, such as a sum of few large values, must not ruin all others.
#
# Theorem     Let table i of m err by k_i / √ρ_i, relative to its expected value, let the ρ_i add up to R, and let no
# ρ_i
#             be below f = R / 2m. Then max_i k_i / √ρ_i is smallest for ρ_i = max(f, c k_i²), with the c for which
#             these
#             add up to R. All tables above the floor then err by the same r = 1 / √c, and the others by less.
# Proof       Such a c exists and is one number, for the sum grows with c from m f = R / 2 without end. Whoever stays at
#             or below r has ρ_i ≥ k_i² / r² = c k_i², and ρ_i ≥ f, so ρ_i ≥ max(f, c k_i²) for every i. The right sides
#             add up to R, so every other division has a table below its right side: it is below the floor, or errs by
#             more than r.
#             With Laplace noise the error is k_i / ε_i, and the same words give ε_i = max(E / 2m, c k_i).
# Corollary   Gaussian noise of no table has more than √2 times the standard deviation that an even division of the same
#             total gives it, and Laplace noise no more than twice the scale. The deviation of discrete Laplace noise
#             falls faster than its scale where that is near or below one, so it can be more than twice as large there.
#
# With Gaussian noise the whole release is one Gaussian whose ρ is the sum, so the largest R that fits (ε, δ) is the
# same
# for all divisions; where a table also chooses quantiles, or names an epsilon, R is found for the division at hand, by
# bisection on exact numbers with the tight accountant.


_DIGITS = 6  # An amount has so many significant digits, rounded down: it can be read, and the sum stays within.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SplitPart:
    """What decides the amount of one table: a fixed amount, a share of the total, or a weight among the rest."""

    fixed: Fraction = Fraction(0)
    share: Fraction = Fraction(0)
    weight: Fraction = Fraction(0)


def amounts(parts: Sequence[SplitPart], total: Fraction) -> tuple[Fraction, ...] | None:
    """Divide a total; None if it does not hold what is fixed and shared, and something for whoever has a weight."""
    fixed, shared = sum(part.fixed for part in parts), total * sum(part.share for part in parts)
    weight, rest = sum(part.weight for part in parts), total - fixed - shared
    if rest < 0 or (weight and rest == 0):
        return None
    return tuple(
        part.fixed + _short(part.share * total) + (_short(part.weight * rest / weight) if part.weight else 0)
        for part in parts
    )


def weights(constants: Sequence[Fraction]) -> tuple[Fraction, ...]:
    """Return parts that are as the constants, but none below half of an even part, and add up to one."""
    floor = Fraction(1, 2 * len(constants))
    held: set[int] = set()  # Who is at the floor. Holding one up takes from the others: at most m rounds.
    while True:
        rest = sum(value for index, value in enumerate(constants) if index not in held)
        left = 1 - len(held) * floor
        parts = [floor if index in held else left * value / rest for index, value in enumerate(constants)]
        below = {index for index, part in enumerate(parts) if part < floor}
        if not below:
            return tuple(parts)
        held |= below


def _short(amount: Fraction) -> Fraction:
    """Round down to a few significant digits."""
    if amount == 0:
        return amount
    step = Fraction(10) ** (exponent(amount) + 1 - _DIGITS)
    return amount // step * step


def largest_amount(*, gaussian: bool) -> Fraction:
    """Return the largest amount that one table may have."""
    return MOST_RHO if gaussian else MOST_EPSILON


_STEPS = 20  # Of a bisection: a total is found to a millionth of itself, as amounts are written.
_ROUGHLY = 6  # The same, where only the size of it matters.
_LITTLE = Fraction(999_999, 1_000_000)
_ALL = Fraction(1)


def divide(plan: ReleasePlan, quotes: Sequence[Quote]) -> tuple[PricedQuery, ...]:
    """Price all tables of a plan within what one release may spend, or refuse and say what would fit."""
    division = _BudgetDivision(plan, tuple(quotes), *_wishes(plan, quotes))
    division.check_shares()
    if plan.allowance.split == "accuracy" and division.free:
        division = division.weighted()
    return division.priced_or_refused()


@final
@dataclass(frozen=True, slots=True)
class _BudgetDivision:
    """Tables with an epsilon of their own are apart; the others have a part of what is split."""

    plan: ReleasePlan
    quotes: tuple[Quote, ...]
    parts: Mapping[int, SplitPart]
    apart: Mapping[int, PricedQuery]

    @property
    def free(self) -> list[int]:
        """The tables that take what the split gives them."""
        return [index for index, part in self.parts.items() if part.weight]

    @property
    def least(self) -> Fraction:
        """The total that holds everything but the free tables."""
        shared = sum(part.share for part in self.parts.values())
        fixed = sum((part.fixed for part in self.parts.values()), Fraction(0))
        return fixed / (1 - shared) if shared < 1 else Fraction(0)

    @property
    def grows(self) -> bool:
        """Whether a larger total would be of use to anybody."""
        return any(part.share or part.weight for part in self.parts.values())

    def check_shares(self) -> None:
        """Shares leave something for whoever has none."""
        shared = sum(part.share for part in self.parts.values())
        others = [self.quotes[index] for index, part in self.parts.items() if not part.share]
        if shared > 1 or (shared == 1 and (others or self.apart)):
            raise self._at(
                max(self.parts, key=lambda index: self.parts[index].share),
                InvalidParameter(
                    f"all shares together are {shared}, and they are parts of what one release may spend: "
                    + ("they leave nothing for the other tables; " if shared == 1 else "")
                    + "make them smaller"
                ),
            )

    def weighted(self) -> _BudgetDivision:
        """Give free tables the weights that make the worst relative error smallest."""
        each = self.amounts_at(self.total(_ROUGHLY) or self._refuse())
        constants = {index: self.quotes[index].constant(each[index]) for index in self.free}
        for index, constant in constants.items():
            if constant is None:
                raise self._at(index, _nothing_expected(self.quotes[index], each[index]))
        found = dict(zip(constants, weights([value for value in constants.values() if value]), strict=True))
        parts = {index: replace(part, weight=found.get(index, part.weight)) for index, part in self.parts.items()}
        return replace(self, parts=parts)

    def priced_or_refused(self) -> tuple[PricedQuery, ...]:
        return self.priced_at(self.total() or self._refuse())

    def total(self, steps: int = _STEPS) -> Fraction | None:
        """Return the largest total that fits; None if what is fixed does not."""
        allowance = self.plan.allowance
        exact = allowance.rho if allowance.rho is not None else allowance.epsilon if allowance.delta is None else None
        if exact is not None:
            return exact if self._divided(exact) is not None else None
        if not self.grows:
            return self.least or _ALL if self._fits(self.least) and self._prints(self.least) else None
        rest = largest(lambda rest: self._fits(self.least + rest), near_rho(allowance), steps=steps)
        if rest is None or steps < _STEPS:
            return None if rest is None else self.least + rest
        return self._surely(rest)

    def amounts_at(self, total: Fraction) -> dict[int, Fraction]:
        divided = self._divided(total)
        assert divided is not None
        return divided

    def priced_at(self, total: Fraction) -> tuple[PricedQuery, ...]:
        """Price every table at a total."""
        each = self.amounts_at(total)
        return tuple(
            self.apart[index] if index in self.apart else self._priced(index, each[index])
            for index in range(len(self.quotes))
        )

    def _priced(self, index: int, amount: Fraction) -> PricedQuery:
        try:
            return self.quotes[index].at(amount)
        except InvalidParameter as error:
            told = InvalidParameter(f"what is left for {self.quotes[index].table.name!r} is not enough: {error}")
            raise located(self.plan, ("release",), told) from None

    def _divided(self, total: Fraction) -> dict[int, Fraction] | None:
        found = amounts(list(self.parts.values()), total)
        if found is None:
            return None
        return {
            index: min(amount, largest_amount(gaussian=self.quotes[index].gaussian))
            for index, amount in zip(self.parts, found, strict=True)
        }

    def _event(self, total: Fraction) -> Event:
        return joint_event(priced.event for priced in self.priced_at(total))

    def _fits(self, total: Fraction) -> bool:
        return self._divided(total) is not None and fits(self._event(total), self.plan.allowance)

    def _surely(self, rest: Fraction) -> Fraction:
        """Take a little off until the epsilon that will be printed is within the allowance too."""
        while not self._prints(self.least + rest):
            rest *= _LITTLE
        return self.least + rest

    def _prints(self, total: Fraction) -> bool:
        allowance = self.plan.allowance
        assert allowance.epsilon is not None
        assert allowance.delta is not None
        told = epsilon(self._event(total), allowance.delta, relation=Relation.ADD_REMOVE)
        return told <= up(allowance.epsilon)

    def _refuse(self) -> Fraction:
        fixed = {index: self.quotes[index].at(part.fixed) for index, part in self.parts.items() if part.fixed}
        named = {index: (self.quotes[index], priced) for index, priced in (fixed | dict(self.apart)).items()}
        raise too_dear(self.plan, [named[index] for index in sorted(named)])

    def _at(self, index: int, error: InvalidParameter | Refused) -> InvalidParameter | Refused:
        table = self.quotes[index].table
        return located(self.plan, place_of(self.plan, table.name, "share", "expected"), error)


def _wishes(plan: ReleasePlan, quotes: Sequence[Quote]) -> tuple[dict[int, SplitPart], dict[int, PricedQuery]]:
    """Read what each table wishes: a part of what is split, or an epsilon of its own."""
    parts: dict[int, SplitPart] = {}
    apart: dict[int, PricedQuery] = {}
    for index, quote in enumerate(quotes):
        place = place_of(plan, quote.table.name, "error", "relative_error", "epsilon", "rho", "share")
        try:
            wish = _wish(plan.allowance, quote)
        except (InvalidParameter, Refused) as error:
            raise located(plan, place, error) from None
        if isinstance(wish, SplitPart):
            parts[index] = wish
        else:
            apart[index] = wish
    return parts, apart


def _wish(allowance: Allowance, quote: Quote) -> SplitPart | PricedQuery:
    wish = quote.table.wish
    if wish.error is not None or wish.relative_error is not None:
        reached = quote.reaching(wish.error or wish.relative_error or _ALL, relative=wish.error is None)
        return SplitPart(fixed=quote.amount_of(reached))
    if wish.share is not None:
        quote.at(wish.share)  # What cannot be answered at all is refused here, where its place is known.
        return SplitPart(share=wish.share)
    if wish.rho is not None:
        return _own_rho(allowance, quote, wish.rho)
    if wish.epsilon is not None:
        return _own_epsilon(allowance, quote, wish.epsilon)
    quote.at(_ALL)
    return SplitPart(weight=_ALL)


def _own_rho(allowance: Allowance, quote: Quote, rho: Fraction) -> SplitPart:
    if allowance.rho is None and allowance.delta is None:
        raise InvalidParameter(
            "this release is pure, so tables spend epsilon: say epsilon here, or give [release] a delta"
        )
    return SplitPart(fixed=quote.amount_of(quote.at(rho)))


def _own_epsilon(allowance: Allowance, quote: Quote, epsilon: Fraction) -> SplitPart | PricedQuery:
    if allowance.rho is not None:
        raise InvalidParameter("this release spends rho: say rho here too, rather than epsilon")
    if allowance.delta is None:
        return SplitPart(fixed=quote.amount_of(quote.at(epsilon)))
    return quote.for_epsilon(epsilon)


def _nothing_expected(quote: Quote, amount: Fraction) -> InvalidParameter:
    columns = ", ".join(errors_of(quote.at(amount).draft))
    name = quote.table.name
    if not columns:
        return InvalidParameter(
            f"no column of {name!r} has a ± that follows from public facts alone, so it cannot be weighed against "
            "other tables: give it a share of what the release spends, such as share = 0.05, or a price, such as "
            f"{'rho' if quote.gaussian else 'epsilon'} = 0.01"
        )
    return InvalidParameter(
        f"how much {name!r} needs follows from what you expect of it, and nothing is declared: say expected = "
        f'{{ "*" = rows of a typical group }}, or the expected value of a column ({columns}); or give it an error, a '
        'share or a price; or write split = "even" in [release]'
    )


# --- fitting ---
# Whether an event fits into what one release may spend, and the largest number for which something does.


_FURTHEST = 20  # How many halvings below the start something is looked for.
_MOST = Fraction(2) ** 16  # No total is above: a thousand tables of the largest rho.


def fits(event: Event, allowance: Allowance) -> bool:
    """Whether an event is within (epsilon, delta), by the tight accountant.

    What shows a group that nobody listed fails with a chance of its own; taken off first, the rest is mostly one
    Gaussian, whose delta has a closed form. Chances add up to no less than the chance of any.
    """
    assert allowance.epsilon is not None
    assert allowance.delta is not None
    parts = leaves(event, relation=Relation.ADD_REMOVE)
    shown = {part: part.delta for part in parts if isinstance(part, ApproxDP) and part.epsilon == 0}
    left = allowance.delta - sum(parts[part] * chance for part, chance in shown.items())
    rest = [Repeated(part, count) for part, count in parts.items() if part not in shown]
    if left <= 0 or not rest:
        return left >= 0
    return delta(joint_event(rest), allowance.epsilon, relation=Relation.ADD_REMOVE) <= left


def near_rho(allowance: Allowance) -> Fraction:
    """Return a power of two near the rho of Gaussian noise within (epsilon, delta)."""
    assert allowance.epsilon is not None
    assert allowance.delta is not None
    near = float(allowance.epsilon) ** 2 / (4 * math.log(1 / float(allowance.delta)) + 2 * float(allowance.epsilon))
    return Fraction(2) ** math.floor(math.log2(near))


def largest(holds: Callable[[Fraction], bool], start: Fraction, *, steps: int) -> Fraction | None:
    """Return about the largest number that holds, from below; what holds for one holds for smaller ones."""
    low, high = start, 2 * start
    while holds(high) and high < _MOST:
        low, high = high, 2 * high
    while not holds(low):
        low, high = low / 2, low
        if low < start / 2**_FURTHEST:
            return None
    for _ in range(steps):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


# --- too_dear: Tables that cost more than one release may spend: what each costs, and what would fit. ---


def too_dear(plan: ReleasePlan, named: Sequence[tuple[Quote, PricedQuery]]) -> Refused:
    """Return the refusal of a plan whose tables that name an error or a price take everything, or more."""
    factor = _factor(plan.allowance, named)
    costs = "; ".join(_cost(quote, priced, factor) for quote, priced in named)
    return Refused(
        told_at(
            plan, ("release",), "tables that name an error or a price take all that one release may spend, or more"
        ),
        reason=f"{costs or 'shares take everything'}. Together that is {_together(plan.allowance, named)}, and one "
        f"release may spend {_allowed(plan.allowance)}",
        way_out=_way_out(plan, named),
    )


def _cost(quote: Quote, priced: PricedQuery, factor: Fraction | None) -> str:
    """Say what a table takes, and which error it would have if all of them took what fits."""
    wish, takes = quote.table.wish, f"{quote.table.name} takes {priced.cost}"
    relative = wish.error is None
    wanted = wish.relative_error if relative else wish.error
    if wanted is None or factor is None:
        return takes
    smaller = quote.at(quote.amount_of(priced) * factor).draft
    fitting = max((relative_errors_of(smaller) if relative else errors_of(smaller)).values())
    return f"{takes} for {_error(wanted, relative)}, and {_error(fitting, relative)} would fit"


def _error(error: Fraction, relative: bool) -> str:
    return f"± {significant_up(100 * error, 3)} %" if relative else f"± {significant_up(error, 3)}"


def _factor(allowance: Allowance, named: Sequence[tuple[Quote, PricedQuery]]) -> Fraction | None:
    """Return by which factor amounts would have to shrink to fit, with nothing left for others."""
    exact = allowance.rho if allowance.rho is not None else allowance.epsilon
    if allowance.rho is not None or allowance.delta is None:
        return None if exact is None or not named else min(Fraction(1), exact / _amount(named))

    def holds(factor: Fraction) -> bool:
        return factor <= 1 and fits(
            joint_event(_scaled(quote, priced, factor).event for quote, priced in named), allowance
        )

    return largest(holds, Fraction(1, 2), steps=12) if named else None


def _scaled(quote: Quote, priced: PricedQuery, factor: Fraction) -> PricedQuery:
    return priced if quote.amount_of(priced) == 0 else quote.at(quote.amount_of(priced) * factor)


def _amount(named: Sequence[tuple[Quote, PricedQuery]]) -> Fraction:
    return sum((quote.amount_of(priced) for quote, priced in named), Fraction(0))


def _needed(allowance: Allowance, named: Sequence[tuple[Quote, PricedQuery]]) -> Fraction:
    """Return how much of the allowance they need: epsilon by the tight accountant, or the sum."""
    if allowance.rho is not None or allowance.delta is None or not named:
        return _amount(named)
    event = joint_event(priced.event for _, priced in named)
    return Fraction(epsilon(event, allowance.delta, relation=Relation.ADD_REMOVE))


def _together(allowance: Allowance, named: Sequence[tuple[Quote, PricedQuery]]) -> str:
    return _written(allowance, _needed(allowance, named))


def _allowed(allowance: Allowance) -> str:
    return _written(allowance, allowance.rho or allowance.epsilon or Fraction(0))


def _written(allowance: Allowance, amount: Fraction) -> str:
    if allowance.rho is not None:
        return f"ρ = {significant_up(amount)}"
    at = "" if allowance.delta is None else f" at δ = {significant_up(allowance.delta)}"
    return f"ε = {significant_up(amount)}{at}"


def _way_out(plan: ReleasePlan, named: Sequence[tuple[Quote, PricedQuery]]) -> str:
    """Say which budget would hold it, or which errors would fit."""
    allowance, needed = plan.allowance, _needed(plan.allowance, named)
    word, allowed = ("rho", allowance.rho) if allowance.rho is not None else ("epsilon", allowance.epsilon)
    assert allowed is not None
    others = len(plan.tables) - len(named)
    rest = f", more for the other {others}" if others else ""
    larger = f"raise {word} in [release] to {significant_up(needed, 3)}{rest}"
    if needed <= allowed:
        return f"{larger}; or ask for less of the tables that name a price"
    # Errors are as 1/ε, and as 1/√ρ; in (ε, δ) the rho is about as ε², so errors are as 1/ε there too.
    ratio = float(needed / allowed)
    factor = ratio**0.5 if allowance.rho is not None else ratio
    return f"{larger}; or let errors be {factor:.2g} times as large; or leave a table out"
