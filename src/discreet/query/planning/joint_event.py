"""One event for several plans that are paid together, in a form that does not depend on their order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from fractions import Fraction

from discreet.errors import InvalidParameter
from discreet.privacy.events import GDP, Composed, Event, Gaussian, Repeated
from discreet.privacy.leaves import leaves
from discreet.privacy.relation import Relation

__all__ = ["joint_event"]


def joint_event(events: Iterable[Event]) -> Event:
    """Put events together: one Gaussian for all Gaussian noise, equal events counted, everything else in a fixed order.

    Theorem     Gaussian noise on several vectors is Gaussian noise on one: the squares of mu add up. [DRS22]
    """
    found: Counter[Event] = Counter()
    for event in events:
        found += leaves(event, relation=Relation.ADD_REMOVE)
    if not found:
        raise InvalidParameter("there is nothing to pay for: name at least one plan")
    normal = sum((_mu_squared(event) * count for event, count in found.items()), Fraction(0))
    others = sorted((_times(event, count) for event, count in found.items() if not _is_normal(event)), key=_written)
    parts = [*([Gaussian(variance=1, squared_sensitivity=normal)] if normal else []), *others]
    return parts[0] if len(parts) == 1 else Composed(parts)


def _is_normal(event: Event) -> bool:
    return isinstance(event, Gaussian | GDP)


def _mu_squared(event: Event) -> Fraction:
    return event.mu_squared if isinstance(event, Gaussian | GDP) else Fraction(0)


def _times(event: Event, count: int) -> Event:
    return event if count == 1 else Repeated(event, count)


def _written(event: Event) -> str:
    return event.to_json()
