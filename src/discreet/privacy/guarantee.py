"""What an event means: epsilon at a delta, delta at an epsilon, Renyi divergences; all proven upper bounds."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import combinations

from discreet.balls import ball
from discreet.errors import UnsupportedEvent
from discreet.exact import Number, nonnegative, up
from discreet.privacy import closed
from discreet.privacy.basic import basic
from discreet.privacy.convert import read_delta, read_order
from discreet.privacy.curves import Best, Curve, Group, Numerical, Split, Worst
from discreet.privacy.events import ApproxDP, Event, Grouped, PureDP
from discreet.privacy.homogeneous import LONGEST, Homogeneous
from discreet.privacy.relation import Relation
from discreet.privacy.renyi_curve import log_moment, renyi_curve
from discreet.privacy.rigorous import enclose, float_up
from discreet.privacy.spent import Choice, Spent, example, spent

__all__ = ["curve", "delta", "epsilon", "epsilon_bounds", "renyi"]

_MOST_CASES = 64
_LARGEST = 10**9  # A sum of epsilons above this protects nobody, and is not worth a fine grid.


def epsilon(event: Event, delta: Number, *, relation: Relation | None = None) -> float:
    """Return an epsilon such that the event is (epsilon, delta)-private: the best bound known, rounded up.

    Infinity if there is none, for instance for Gaussian noise at delta 0. `relation` must be said where the
    meaning of the event depends on it.
    """
    return curve(event, relation).upper(read_delta(delta))


def epsilon_bounds(event: Event, delta: Number, *, relation: Relation | None = None) -> tuple[float, float]:
    """Return (lower, upper): the worst mechanism with this event has its epsilon between them.

    The lower one is 0 where nothing better is known: for zCDP, of which only divergences are given, for
    discrete Gaussian noise in many dimensions, for cells of a partition combined with other events, and for
    samples of fixed size on which several events run that are not all Gaussian.
    """
    target, known = read_delta(delta), curve(event, relation)
    upper = known.upper(target)
    return min(known.lower(target), upper), upper


def delta(event: Event, epsilon: Number, *, relation: Relation | None = None) -> float:
    """Return a delta such that the event is (epsilon, delta)-private: the best bound known, rounded up."""
    return curve(event, relation).delta(nonnegative(epsilon, name="epsilon"))


def renyi(event: Event, order: Number, *, relation: Relation | None = None) -> float:
    """Return a bound on the Renyi divergence of an order above 1, in nats, rounded up.

    Infinity for an event with delta > 0, whose divergences have no bound.
    """
    a = read_order(order)
    try:
        total = spent(event, relation)
    except UnsupportedEvent:
        if not isinstance(event, Grouped):
            raise
        return _grouped_renyi(event, a, relation)
    return max(0.0, float_up(enclose(lambda: log_moment(total, a) / ball(a - 1))))


def _grouped_renyi(event: Grouped, order: Fraction, relation: Relation | None) -> float:
    """A group of 2^c has 3^c times the divergence of 2^c times the order, for orders of at least 2. [Mir17]"""
    doublings = (event.size - 1).bit_length()
    single = renyi(event.event, max(order, Fraction(2)) * 2**doublings, relation=relation)
    return up(Fraction(single) * 3**doublings) if math.isfinite(single) else math.inf


def curve(event: Event, relation: Relation | None) -> Curve:
    """Return the best known privacy curve of an event."""
    try:
        total = spent(event, relation)
    except UnsupportedEvent:
        # No rule for the group of this event: bound the group by what is known of one member.
        if not isinstance(event, Grouped):
            raise
        return Group(curve(event.event, relation), event.size)
    return _known(total, relation)


def _known(total: Spent, relation: Relation | None) -> Curve:
    if not total.choices:
        return _fixed(total, relation)
    alone = total.choices[0] if not total.sure and len(total.choices) == 1 else None
    if alone is not None and alone.times == 1 and _is_listable(alone):
        return Worst([_fixed(case, relation) for case in _cases(alone)])
    simple = basic(total)
    # With other events around, which cell is the worst may depend on their answers; these two do not care.
    return Best([renyi_curve(total), *([simple] if simple is not None else [])])


def _is_listable(choice: Choice) -> bool:
    fixed = not any(cell.choices for cell in choice.cells)
    return fixed and math.comb(len(choice.cells), choice.touched) <= _MOST_CASES


def _cases(choice: Choice) -> list[Spent]:
    """List what a unit may touch."""
    cases = []
    for cells in combinations(choice.cells, choice.touched):
        events: Counter[Event] = sum((cell.events for cell in cells), Counter())
        cases.append(Spent(frozenset(events.items())))
    return cases


def _fixed(total: Spent, relation: Relation | None) -> Curve:
    """Choose the account: a closed form if there is one, else a loss distribution, else Renyi divergences."""
    exact = _closed(total.events)
    if exact is not None:
        return exact
    examples: Counter[Event] = Counter()
    for event, count in total.sure:
        examples[example(event)] += count
    if examples == total.events:
        return _composed(total, relation)
    # The worst pair of a bounded range depends on the level, so many of them are better than many worst pairs.
    above = Best([_composed(total, relation), renyi_curve(total)])
    return Split(above, _fixed(Spent(frozenset(examples.items())), relation))


def _composed(total: Spent, relation: Relation | None) -> Curve:
    from discreet.privacy import pld  # It brings FFTs along, which a closed form does not need.

    simple, divergences = basic(total), renyi_curve(total)
    known: list[Curve] = [simple] if simple is not None else []
    if simple is not None and simple.epsilon > _LARGEST:
        return Best([*known, divergences])
    try:
        return Best([*known, Numerical(pld.profile(total.events, relation), divergences)])
    except UnsupportedEvent:
        return Best([*known, divergences])


def _closed(events: Counter[Event]) -> Curve | None:
    if not events:
        events = Counter({PureDP(0): 1})
    if any(isinstance(event, ApproxDP) and event.delta == 1 for event in events):
        events = Counter({ApproxDP(0, 1): 1})  # Whatever else happens, all is revealed.
    if len(events) > 1:
        return None
    ((event, count),) = events.items()
    if count == 1 and closed.has_profile(event):
        return closed.curve(event)
    if isinstance(event, (PureDP, ApproxDP)) and count <= LONGEST:
        part_delta = event.delta if isinstance(event, ApproxDP) else Fraction(0)
        return Homogeneous(event.epsilon, part_delta, count).curve()
    return None
