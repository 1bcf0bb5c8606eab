"""Compositions with groups of which only a privacy curve is known, such as groups of people who may be sampled.

No pair of distributions is known that is the worst for them, but each has an epsilon for every delta. An event may be
replaced by any guarantee that it has: what is composed instead is then no more private than the event.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import final

from discreet.errors import UnsupportedEvent
from discreet.privacy.curves import PrivacyCurve
from discreet.privacy.events import ApproxDP, Composed, Event, Grouped, Repeated
from discreet.privacy.leaves import grouped

__all__ = ["Substituted", "common_group", "without_rule"]

_SHARES = (Fraction(1, 3), Fraction(1, 100))  # of delta, for all groups together
_DELTAS = tuple(Fraction(1, 10**power) for power in (4, 8, 12))  # for all groups together


@final
@dataclass(frozen=True, slots=True)
class Substituted:
    """The curve of a composition in which each group without a rule becomes an `ApproxDP` that it satisfies."""

    event: Event
    groups: Mapping[Grouped, PrivacyCurve]
    account: Callable[[Event], PrivacyCurve]
    _kept: dict[Fraction, PrivacyCurve | None] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Refuse at once what would be refused later."""
        self.account(_replaced(self.event, dict.fromkeys(self.groups, ApproxDP(0, 0))))

    def upper(self, delta: Fraction) -> float:
        curves = [self._with(delta * share) for share in (_SHARES if delta else (Fraction(0),))]
        return min((known.upper(delta) for known in curves if known is not None), default=math.inf)

    def lower(self, delta: Fraction) -> float:
        """A group is at least as exposed as each of its members."""
        return self.account(_replaced(self.event, {group: group.event for group in self.groups})).lower(delta)

    def delta(self, epsilon: Fraction) -> float:
        return min((known.delta(epsilon) for known in self.choices()), default=1.0)

    def choices(self) -> list[PrivacyCurve]:
        """Return the curves that go with several deltas to spare; all of them hold."""
        curves = [self._with(spare) for spare in _DELTAS]
        return [known for known in curves if known is not None]

    def _with(self, spare: Fraction) -> PrivacyCurve | None:
        if spare not in self._kept:
            event = self._substitute(spare)
            self._kept[spare] = None if event is None else self.account(event)
        return self._kept[spare]

    def _substitute(self, spare: Fraction) -> Event | None:
        """Give each use of a group an equal part of the delta to spare; None if that buys no finite epsilon."""
        each = spare / without_rule(self.event).total()
        levels = {group: known.upper(each) for group, known in self.groups.items()}
        if not all(map(math.isfinite, levels.values())):
            return None
        return _replaced(self.event, {group: ApproxDP(Fraction(level), each) for group, level in levels.items()})


def without_rule(event: Event) -> Counter[Grouped]:
    """Count the groups in a composition for which `leaves` has no rule."""
    match event:
        case Repeated():
            return Counter({group: count * event.times for group, count in without_rule(event.event).items()})
        case Composed():
            return sum(map(without_rule, event.events), Counter())
        case Grouped():
            return Counter({event: 1}) if _has_no_rule(event) else Counter()
        case _:
            return Counter()


def _has_no_rule(event: Grouped) -> bool:
    try:
        grouped(event.event, event.size)
    except UnsupportedEvent:
        return True
    return False


def _replaced(event: Event, others: Mapping[Grouped, Event]) -> Event:
    match event:
        case Repeated():
            return Repeated(_replaced(event.event, others), event.times)
        case Composed():
            return Composed(_replaced(part, others) for part in event.events)
        case Grouped() if event in others:
            return others[event]
        case _:
            return event


def common_group(event: Event) -> Grouped | None:
    """Return the composition as one group, if all its parts are groups of one size; else None."""
    sizes, inside = _opened(event)
    return Grouped(inside, sizes.pop()) if len(sizes) == 1 and 0 not in sizes else None


def _opened(event: Event) -> tuple[set[int], Event]:
    """Return the sizes of the groups in a composition, 0 for what is in none, and the composition without them."""
    match event:
        case Repeated():
            sizes, inside = _opened(event.event)
            return sizes, Repeated(inside, event.times)
        case Composed():
            parts = [_opened(part) for part in event.events]
            return set().union(*(sizes for sizes, _ in parts)), Composed(inside for _, inside in parts)
        case Grouped():
            return {event.size}, event.event
        case _:
            return {0}, event
