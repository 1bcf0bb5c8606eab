"""Tables that cost more than one release may spend: what each costs, and what would fit."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from discreet.errors import Refused
from discreet.mechanisms.text import significant_up
from discreet.privacy import epsilon
from discreet.privacy.relation import Relation
from discreet.query.planning import PricedQuery, joint_event
from discreet.query.planning.targets import errors_of, relative_errors_of
from discreet.release.places import told_at
from discreet.release.plan import Allowance, ReleasePlan
from discreet.release.pricing.fitting import fits, largest
from discreet.release.pricing.quotes import Quote

__all__ = ["too_dear"]


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
