"""Privacy curves: epsilon at a delta and delta at an epsilon, with proven directions; groups; many epsilons at once."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import singledispatch
from typing import TYPE_CHECKING, Protocol, final

from discreet.balls import ball
from discreet.errors import UnsupportedEvent
from discreet.exact import down, up
from discreet.privacy import group
from discreet.privacy.enclosures import crossing, enclose, float_up
from discreet.privacy.event_tree import grouped
from discreet.privacy.events import ApproxDP, Composed, Event, Grouped, Repeated

if TYPE_CHECKING:
    from flint import arb

    from discreet.privacy.pld.loss_profile import LossProfile

__all__ = [
    "Best",
    "ClosedFormCurve",
    "Edge",
    "Group",
    "Numerical",
    "PrivacyCurve",
    "Split",
    "Substituted",
    "Worst",
    "common_group",
    "deltas",
    "without_rule",
]

# --- curves: Privacy curves: epsilon at a delta and delta at an epsilon, each with a proven direction. ---
#
# A curve answers three questions: `upper(delta)` is an epsilon that surely holds, `lower(delta)` one that some
# mechanism with this event surely exceeds or meets, `delta(epsilon)` a delta that surely holds.


_SMALLEST, _LARGEST = Fraction(1, 10**280), Fraction(10**15)  # deltas and epsilons for which floats will do
_ROUNDS, _CLOSE = 40, 1e-6  # of looking for the epsilon of a group
_HALVINGS = 3


class PrivacyCurve(Protocol):
    """What is known about the privacy of an event."""

    def upper(self, delta: Fraction) -> float:
        """Return an epsilon that holds at `delta`, rounded up; infinity if none is known."""

    def lower(self, delta: Fraction) -> float:
        """Return an epsilon that is not too large for the worst case, rounded down; 0 if nothing is known."""

    def delta(self, epsilon: Fraction) -> float:
        """Return a delta that holds at `epsilon`, rounded up."""


@final
@dataclass(frozen=True, slots=True)
class Edge:
    """The profile falls until an epsilon between `low` and `high`, and stays at `delta` from there on."""

    low: Fraction
    high: Fraction
    delta: Fraction = Fraction(0)


@final
@dataclass(frozen=True, slots=True)
class ClosedFormCurve:
    """A profile in closed form. Without an edge it falls to zero and never reaches it."""

    profile: Callable[[Fraction], arb]
    guess: Callable[[Fraction], float]
    edge: Edge | None = None

    def upper(self, delta: Fraction) -> float:
        return self._bounds(delta)[1]

    def lower(self, delta: Fraction) -> float:
        return self._bounds(delta)[0]

    def _bounds(self, delta: Fraction) -> tuple[float, float]:
        edge = self.edge
        if edge is not None and delta == edge.delta:
            return down(edge.low), up(edge.high)
        if delta <= (0 if edge is None else edge.delta):
            return math.inf, math.inf
        lower, upper = crossing(self.profile, delta, self.guess(delta))
        return lower, upper if edge is None else min(upper, up(edge.high))

    def delta(self, epsilon: Fraction) -> float:
        if self.edge is not None and epsilon >= self.edge.high:
            return up(self.edge.delta)
        return min(1.0, max(0.0, float_up(self.profile(epsilon))))


@final
@dataclass(frozen=True, slots=True)
class Numerical:
    """A loss distribution composed on a grid of floats, and what to ask where that gives no answer."""

    profile: LossProfile
    otherwise: PrivacyCurve

    def upper(self, delta: Fraction) -> float:
        found = _or_infinity(lambda: self.profile.epsilon_upper(delta)) if delta >= _SMALLEST else math.inf
        return found if found < math.inf else self.otherwise.upper(delta)

    def lower(self, delta: Fraction) -> float:
        found = _or_infinity(lambda: self.profile.epsilon_lower(delta)) if delta >= _SMALLEST else math.inf
        return found if found < math.inf else 0.0

    def delta(self, epsilon: Fraction) -> float:
        found = _or_infinity(lambda: self.profile.delta_upper(epsilon)) if epsilon <= _LARGEST else math.inf
        return found if found < 1 else self.otherwise.delta(epsilon)


def _or_infinity(compute: Callable[[], float]) -> float:
    """Return infinity where the numerical account says that it does not reach that far."""
    try:
        return compute()
    except UnsupportedEvent:
        return math.inf


@final
@dataclass(frozen=True, slots=True)
class Best:
    """Several curves of one event: all hold, so the best of them does."""

    curves: Sequence[PrivacyCurve]

    def upper(self, delta: Fraction) -> float:
        return min(curve.upper(delta) for curve in self.curves)

    def lower(self, delta: Fraction) -> float:
        return max(curve.lower(delta) for curve in self.curves)

    def delta(self, epsilon: Fraction) -> float:
        return min(curve.delta(epsilon) for curve in self.curves)


@final
@dataclass(frozen=True, slots=True)
class Split:
    """A curve that holds for every mechanism with an event, and the curve of one such mechanism."""

    above: PrivacyCurve
    below: PrivacyCurve

    def upper(self, delta: Fraction) -> float:
        return self.above.upper(delta)

    def lower(self, delta: Fraction) -> float:
        return self.below.lower(delta)

    def delta(self, epsilon: Fraction) -> float:
        return self.above.delta(epsilon)


@final
@dataclass(frozen=True, slots=True)
class Worst:
    """Several cases, one of which is true: the worst of them holds."""

    cases: Sequence[PrivacyCurve]

    def upper(self, delta: Fraction) -> float:
        return max(case.upper(delta) for case in self.cases)

    def lower(self, delta: Fraction) -> float:
        return max(case.lower(delta) for case in self.cases)

    def delta(self, epsilon: Fraction) -> float:
        return max(case.delta(epsilon) for case in self.cases)


@final
@dataclass(frozen=True, slots=True)
class Group:
    """What `size` people see together: delta(k e) <= delta(e) (1 + e^e + … + e^((k-1) e)). [Vad17]"""

    curve: PrivacyCurve
    size: int

    def upper(self, delta: Fraction) -> float:
        if delta == 0:
            return _times(self.curve.upper(delta), self.size)
        level = self.curve.upper(delta / self.size)
        # The delta of a member falls with epsilon and what multiplies it grows: there may be but a short way between.
        for _ in range(_ROUNDS):
            factor = self._factor(level)
            if not math.isfinite(factor):
                break
            needed = self.curve.upper(delta / Fraction(factor))
            if needed <= level:
                return _times(level, self.size)
            level = needed * (1 + _CLOSE)
        start = _times(self.curve.upper(delta / self.size), self.size)
        return crossing(lambda level: ball(Fraction(self.delta(level))), delta, start, tolerance=1e-6)[1]

    def lower(self, delta: Fraction) -> float:
        """A group is at least as exposed as each of its members."""
        return self.curve.lower(delta)

    def delta(self, epsilon: Fraction) -> float:
        return min(self.together(share, self.curve.delta(share)) for share in self.shares(epsilon))

    def shares(self, epsilon: Fraction) -> list[Fraction]:
        """Return epsilons of a member that will do: what holds at a smaller epsilon holds at this one."""
        return [epsilon / self.size / 2**halvings for halvings in range(_HALVINGS)]

    def _factor(self, level: float) -> float:
        if not math.isfinite(level):
            return math.inf
        return float_up(enclose(lambda: group.factor(Fraction(level), self.size)))

    def together(self, epsilon: Fraction, delta: float) -> float:
        """Return the delta at `size` times epsilon, given the one of a member at epsilon."""
        single = Fraction(delta)
        return min(1.0, float_up(enclose(lambda: ball(single) * group.factor(epsilon, self.size)))) if single else 0.0


def _times(level: float, size: int) -> float:
    return up(size * Fraction(level)) if math.isfinite(level) else math.inf


# --- substituted ---
# Compositions with groups of which only a privacy curve is known, such as groups of people who may be sampled.
#
# No pair of distributions is known that is the worst for them, but each has an epsilon for every delta. An event may be
# replaced by any guarantee that it has: what is composed instead is then no more private than the event.


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


# --- along: A privacy curve at many epsilons: what was composed for one of them serves for the ones near it. ---


@singledispatch
def deltas(known: PrivacyCurve, epsilons: Sequence[Fraction]) -> list[float]:
    """Return `known.delta` of each epsilon, or another bound about as good; fastest if they are in order."""
    return [known.delta(epsilon) for epsilon in epsilons]


@deltas.register
def _(known: Numerical, epsilons: Sequence[Fraction]) -> list[float]:
    try:
        found = known.profile.deltas_upper(epsilons)
    except UnsupportedEvent:
        return deltas(known.otherwise, epsilons)
    return [delta if delta < 1 else known.otherwise.delta(at) for delta, at in zip(found, epsilons, strict=True)]


@deltas.register
def _(known: Best, epsilons: Sequence[Fraction]) -> list[float]:
    return [min(each) for each in zip(*(deltas(curve, epsilons) for curve in known.curves), strict=True)]


@deltas.register
def _(known: Worst, epsilons: Sequence[Fraction]) -> list[float]:
    return [max(each) for each in zip(*(deltas(case, epsilons) for case in known.cases), strict=True)]


@deltas.register
def _(known: Substituted, epsilons: Sequence[Fraction]) -> list[float]:
    choices = [deltas(choice, epsilons) for choice in known.choices()]
    return [min(each) for each in zip([1.0] * len(epsilons), *choices, strict=True)]


@deltas.register
def _(known: Group, epsilons: Sequence[Fraction]) -> list[float]:
    found = []
    for shares in zip(*map(known.shares, epsilons), strict=True):
        found.append([known.together(*each) for each in zip(shares, deltas(known.curve, shares), strict=True)])
    return [min(each) for each in zip(*found, strict=True)]


@deltas.register
def _(known: Split, epsilons: Sequence[Fraction]) -> list[float]:
    return deltas(known.above, epsilons)
