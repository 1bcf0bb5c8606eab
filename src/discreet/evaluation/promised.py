"""What a promise leaves for an attacker."""

from __future__ import annotations

from fractions import Fraction

from discreet.mechanisms.text import significant_up
from discreet.privacy import Relation, best_tpr
from discreet.privacy.events import Grouped
from discreet.release.bundle.claims import best_guess
from discreet.synth.promise import Promise

__all__ = ["ceiling", "guess_of", "promise_text"]


def promise_text(promise: Promise) -> str:
    """Write a promise in figures."""
    level = f"ε = {significant_up(Fraction(promise.epsilon))}"
    return level if promise.delta == 0 else f"{level}, δ = {significant_up(promise.delta)}"


def guess_of(promise: Promise) -> float:
    """Return how often anybody can be right whether one unit is in the data, who starts at one half."""
    return best_guess(promise.event, promise.relation)


def ceiling(promise: Promise, rate: float, *, swapped: bool) -> float:
    """Return the share of people that no attacker exceeds who raises false alarms at this rate.

    In a game where people who are not in the data are so because others are in their place (`swapped`), a promise
    about one person more or less counts twice.
    """
    event = Grouped(promise.event, 2) if swapped and promise.relation is Relation.ADD_REMOVE else promise.event
    return best_tpr(event, Fraction(rate), relation=promise.relation)
