"""Tables that cost more than one release may spend: what each costs, and what would fit."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from discreet.errors import Refused
from discreet.mechanisms.text import significant_up
from discreet.privacy import epsilon
from discreet.privacy.relation import Relation
from discreet.query.planning import Priced, joint_event
from discreet.release.places import told_at
from discreet.release.plan import Allowance, ReleasePlan, Wish
from discreet.release.pricing.quotes import Quote

__all__ = ["too_dear"]


def too_dear(plan: ReleasePlan, named: Sequence[tuple[Quote, Priced]]) -> Refused:
    """Return the refusal of a plan whose tables that name an error or a price take everything, or more."""
    costs = "; ".join(f"{quote.table.name}{_for(quote.table.wish)} takes {priced.cost}" for quote, priced in named)
    return Refused(
        told_at(
            plan, ("release",), "tables that name an error or a price take all that one release may spend, or more"
        ),
        reason=f"{costs or 'shares take everything'}. Together that is {_together(plan.allowance, named)}, and one "
        f"release may spend {_allowed(plan.allowance)}",
        way_out=_way_out(plan, named),
    )


def _for(wish: Wish) -> str:
    if wish.error is not None:
        return f" (± {significant_up(wish.error)})"
    if wish.relative_error is not None:
        return f" (± {significant_up(100 * wish.relative_error)} %)"
    return ""


def _amount(named: Sequence[tuple[Quote, Priced]]) -> Fraction:
    return sum((quote.amount_of(priced) for quote, priced in named), Fraction(0))


def _needed(allowance: Allowance, named: Sequence[tuple[Quote, Priced]]) -> Fraction:
    """Return how much of the allowance they need: epsilon by the tight accountant, or the sum."""
    if allowance.rho is not None or allowance.delta is None or not named:
        return _amount(named)
    event = joint_event(priced.event for _, priced in named)
    return Fraction(epsilon(event, allowance.delta, relation=Relation.ADD_REMOVE))


def _together(allowance: Allowance, named: Sequence[tuple[Quote, Priced]]) -> str:
    return _written(allowance, _needed(allowance, named))


def _allowed(allowance: Allowance) -> str:
    return _written(allowance, allowance.rho or allowance.epsilon or Fraction(0))


def _written(allowance: Allowance, amount: Fraction) -> str:
    if allowance.rho is not None:
        return f"ρ = {significant_up(amount)}"
    at = "" if allowance.delta is None else f" at δ = {significant_up(allowance.delta)}"
    return f"ε = {significant_up(amount)}{at}"


def _way_out(plan: ReleasePlan, named: Sequence[tuple[Quote, Priced]]) -> str:
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
