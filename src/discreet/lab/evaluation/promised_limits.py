"""What a promise leaves for an attacker."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from discreet.errors import InvalidParameter
from discreet.formatting import significant_up
from discreet.privacy import Relation, best_tpr
from discreet.privacy.events import Composed, Grouped
from discreet.release.bundle.claims import best_guess
from discreet.synth.promise import Promise

__all__ = ["ceiling", "columns_text", "guess_of", "promise_text", "together"]


def promise_text(promise: Promise) -> str:
    """Write a promise in figures."""
    level = f"ε = {significant_up(promise.epsilon)}"
    return level if promise.delta == 0 else f"{level}, δ = {significant_up(promise.delta)}"


def guess_of(promise: Promise) -> float:
    """Return how often anybody can be right whether one unit is in the data, who starts at one half."""
    return best_guess(promise.event, promise.relation)


def together(promise: Promise | None, spent: Promise) -> Promise | None:
    """Return what a synthetic table and a report about it promise together: whoever sees a report has both."""
    if promise is None:
        return None
    if (promise.relation, promise.unit) != (spent.relation, spent.unit):
        raise InvalidParameter(
            f"the synthetic table protects {promise.change} ({promise.relation.value}), and this report would protect "
            f"{spent.change} ({spent.relation.value}), so nothing holds for both: say the table's unit and relation"
        )
    return Promise.of(
        Composed([promise.event, spent.event]),
        method=promise.method,
        relation=promise.relation,
        delta=promise.delta + spent.delta,
        unit=promise.unit,
        rows_per_unit=max(promise.rows_per_unit, spent.rows_per_unit),
    )


def ceiling(promise: Promise, rate: float, *, swapped: bool) -> float:
    """Return the share of people that no attacker exceeds who raises false alarms at this rate.

    In a game where people who are not in the data are so because others are in their place (`swapped`), a promise
    about one person more or less counts twice.
    """
    event = Grouped(promise.event, 2) if swapped and promise.relation is Relation.ADD_REMOVE else promise.event
    return best_tpr(event, Fraction(rate), relation=promise.relation)


def columns_text(names: Sequence[str]) -> str:
    """Name the columns of a table of counts."""
    return " × ".join(names)
