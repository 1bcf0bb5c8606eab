"""What an event costs, in one short line."""

from __future__ import annotations

import math
from fractions import Fraction

from discreet.mechanisms.text import significant_up
from discreet.privacy.events import (
    GDP,
    ZCDP,
    ApproxDP,
    BoundedRange,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Gaussian,
    PureDP,
    RandomizedResponse,
    event_name,
)
from discreet.privacy.leaves import leaves
from discreet.privacy.relation import Relation

__all__ = ["cost_text", "pure_epsilon", "zcdp_rho"]


def pure_epsilon(event: Event) -> Fraction | None:
    """Return the exact pure epsilon of a basic event, None where it has none."""
    match event:
        case PureDP() | BoundedRange() | RandomizedResponse():
            return event.epsilon
        case DiscreteLaplace():
            return event.sensitivity / event.scale
        case _:
            return None


def zcdp_rho(event: Event) -> Fraction | None:
    """Return the exact rho of a basic event of Gaussian kind, None for the others."""
    match event:
        case ZCDP() | DiscreteGaussian():
            return event.rho
        case Gaussian() | GDP():
            return event.mu_squared / 2
        case _:
            return None


def cost_text(event: Event, *, relation: Relation, delta: Fraction | None) -> str:
    """Write the cost: pure epsilon exactly, otherwise at the given delta, otherwise as rho."""
    counted = leaves(event, relation=relation)
    epsilons = [(pure_epsilon(leaf), times) for leaf, times in counted.items()]
    if all(epsilon is not None for epsilon, _ in epsilons):
        return f"ε = {significant_up(_total(epsilons))}"
    if delta is None and isinstance(event, ApproxDP):
        delta = event.delta  # It has no other.
    if isinstance(event, ApproxDP) and delta == event.delta:
        return f"ε = {significant_up(event.epsilon)}, δ = {significant_up(delta)}"  # Not through a float, rounded up.
    if delta is not None:
        from discreet.privacy import epsilon as epsilon_at

        bound = epsilon_at(event, delta, relation=relation)
        written = "∞" if math.isinf(bound) else significant_up(Fraction(bound))
        return f"ε = {written}, δ = {significant_up(delta)}"
    rhos = [(zcdp_rho(leaf), times) for leaf, times in counted.items() if pure_epsilon(leaf) is None]
    if any(rho is None for rho, _ in rhos):
        return event_name(event)
    parts = [f"ρ = {significant_up(_total(rhos))}"]
    if any(epsilon is not None for epsilon, _ in epsilons):
        parts.append(f"ε = {significant_up(_total(epsilons))}")
    return " and ".join(parts)


def _total(counted: list[tuple[Fraction | None, int]]) -> Fraction:
    return sum((value * times for value, times in counted if value is not None), Fraction(0))
