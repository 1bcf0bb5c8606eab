"""What is to be verified: one number, claimed for all pairs of neighbours."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import TypeAlias, final

from discreet.errors import InvalidParameter
from discreet.exact import Number, exact, nonnegative, probability
from discreet.privacy.events import ApproxDP, Event
from discreet.privacy.relation import Relation

__all__ = ["Claim", "Claimed", "DivergenceMeasure", "claims", "renyi_claims"]

Claimed: TypeAlias = Event | Number | Callable[[Fraction], Number]

_USUAL = tuple(Fraction(n, 4) for n in (0, 1, 2, 4, 8, 16, 32))  # epsilons, where none follows from the claim
_LARGEST = 700  # epsilon; beyond it e^epsilon is no longer a float and no promise either


class DivergenceMeasure(Enum):
    """How far apart two laws are."""

    EPSILON = "epsilon"  # the max divergence
    DELTA = "delta"  # the hockey-stick divergence at one epsilon
    RENYI = "Renyi divergence"  # at one order


@final
@dataclass(frozen=True, slots=True)
class Claim:
    """A divergence of no pair of neighbours exceeds `value`."""

    measure: DivergenceMeasure
    at: Fraction  # the epsilon of a delta, the order of a Renyi divergence; else 0
    value: Fraction

    def __str__(self) -> str:
        place = {DivergenceMeasure.DELTA: " at epsilon ", DivergenceMeasure.RENYI: " of order "}.get(self.measure)
        return self.measure.value if place is None else f"{self.measure.value}{place}{float(self.at):g}"


def claims(
    claimed: Claimed,
    *,
    relation: Relation,
    epsilons: Iterable[Number] | None,
    deltas: Iterable[Number] | None,
) -> list[Claim]:
    """Spell out an event, a pure epsilon or a function delta(epsilon) as single claims."""
    asked = None if epsilons is None else [_epsilon(value) for value in epsilons]
    if isinstance(claimed, Event):
        found = _of_event(claimed, relation, asked, deltas)
    elif deltas is not None:
        raise InvalidParameter("deltas ask an event for its epsilon: name an event, or say epsilons instead")
    elif callable(claimed):
        points = _USUAL if asked is None else asked
        found = [Claim(DivergenceMeasure.DELTA, at, probability(claimed(at), name="claim")) for at in points]
    else:
        found = [Claim(DivergenceMeasure.EPSILON, Fraction(0), _epsilon(claimed))]
    if not found:
        raise InvalidParameter("nothing is claimed here: name epsilons, deltas or another claim")
    return found


def _of_event(
    event: Event, relation: Relation, asked: list[Fraction] | None, deltas: Iterable[Number] | None
) -> list[Claim]:
    from discreet.privacy import delta, epsilon

    pure = epsilon(event, 0, relation=relation)
    found = [] if math.isinf(pure) else [Claim(DivergenceMeasure.EPSILON, Fraction(0), _epsilon(Fraction(pure)))]
    points = asked
    if points is None and deltas is None:
        points = _epsilons_of(event, pure)
    for at in points or ():
        found.append(Claim(DivergenceMeasure.DELTA, at, Fraction(delta(event, at, relation=relation))))
    for chance in deltas or ():
        value = probability(chance, name="delta")
        least = epsilon(event, value, relation=relation)
        if not math.isinf(least):
            found.append(Claim(DivergenceMeasure.DELTA, _epsilon(Fraction(least)), value))
    return found


def _epsilons_of(event: Event, pure: float) -> list[Fraction]:
    """Choose where to look at the profile: below a pure epsilon, at the epsilon named, or as usual."""
    if not math.isinf(pure):
        return [Fraction(pure) * part for part in (Fraction(0), Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))]
    return [event.epsilon] if isinstance(event, ApproxDP) else list(_USUAL)


def renyi_claims(
    claimed: Event | Callable[[Fraction], Number], *, orders: Iterable[Number], relation: Relation
) -> list[Claim]:
    """Spell out an event, or a function of the order, as one claim per order."""
    asked = [_order(value) for value in orders]
    if not asked:
        raise InvalidParameter("orders must name at least one order above 1")
    if not isinstance(claimed, Event):
        return [Claim(DivergenceMeasure.RENYI, at, nonnegative(claimed(at), name="claim")) for at in asked]
    from discreet.privacy import renyi

    values = [(at, renyi(claimed, at, relation=relation)) for at in asked]
    found = [Claim(DivergenceMeasure.RENYI, at, Fraction(value)) for at, value in values if not math.isinf(value)]
    if not found:
        raise InvalidParameter("this event claims no finite Renyi divergence at these orders")
    return found


def _epsilon(value: Number) -> Fraction:
    number = nonnegative(value, name="epsilon")
    if number > _LARGEST:
        raise InvalidParameter(f"an epsilon above {_LARGEST} claims nothing")
    return number


def _order(value: Number) -> Fraction:
    number = exact(value, name="order")
    if number <= 1:
        raise InvalidParameter("an order must be above 1")
    return number
