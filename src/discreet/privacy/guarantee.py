"""The guarantee of an event: epsilon at a delta, delta at an epsilon, Renyi divergences; proven upper bounds."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from itertools import combinations

from discreet.balls import ball
from discreet.errors import UnsupportedEvent
from discreet.exact import Number, nonnegative, up
from discreet.privacy import closed_forms
from discreet.privacy.basic_account import basic
from discreet.privacy.compose import LONGEST, Homogeneous
from discreet.privacy.convert import read_delta, read_order
from discreet.privacy.curves import (
    Best,
    Group,
    Numerical,
    PrivacyCurve,
    Split,
    Substituted,
    Worst,
    common_group,
    without_rule,
)
from discreet.privacy.enclosures import enclose, float_up
from discreet.privacy.event_tree import Choice, Spent, example, spent
from discreet.privacy.events import ApproxDP, Composed, Event, Grouped, PureDP, Repeated
from discreet.privacy.pld.loss_profile import profile
from discreet.privacy.relation import Relation, read_relation_if_any
from discreet.privacy.renyi_bounds import LARGEST_ORDER, log_moment_of, renyi_curve

__all__ = ["curve", "delta", "epsilon", "epsilon_bounds", "renyi"]

_MOST_CASES = 64
_LARGEST = 10**9  # A sum of epsilons above this protects nobody, and is not worth a fine grid.


def epsilon(event: Event, delta: Number, *, relation: Relation | str | None = None) -> float:
    """Return an epsilon such that the event is (epsilon, delta)-private: the best bound known, rounded up.

    Infinity if there is none, for instance for Gaussian noise at delta 0. `relation` must be said where the
    meaning of the event depends on it.

    Args:
        event: What was spent.
        delta: The delta at which epsilon is wanted, at least 0 and below 1.
        relation: The neighbouring relation, where the meaning of the event depends on it.

    Returns:
        The epsilon, or infinity.

    Raises:
        InvalidParameter: If delta is out of range.
        UnsupportedEvent: If no bound is proven for this event under this relation.

    Examples:
        >>> round(dp.privacy.epsilon(dp.privacy.Gaussian(4), 1e-5), 3)
        0.926
        >>> dp.privacy.epsilon(dp.privacy.Gaussian(4), 0)
        inf
    """
    relation = read_relation_if_any(relation)
    return curve(event, relation).upper(read_delta(delta))


def epsilon_bounds(event: Event, delta: Number, *, relation: Relation | str | None = None) -> tuple[float, float]:
    """Return (lower, upper): the worst mechanism with this event has its epsilon between them.

    The lower one is 0 where nothing better is known: for zCDP, of which only divergences are given, for
    discrete Gaussian noise in many dimensions, for cells of a partition combined with other events, and for
    samples of fixed size on which several events run that are not all Gaussian.

    Args:
        event: What was spent.
        delta: The delta at which epsilon is wanted, at least 0 and below 1.
        relation: The neighbouring relation, where the meaning of the event depends on it.

    Returns:
        The lower and the upper bound.

    Raises:
        UnsupportedEvent: If no bound is proven for this event under this relation.

    Examples:
        >>> lower, upper = dp.privacy.epsilon_bounds(dp.privacy.Gaussian(4), 1e-5)
        >>> 0.92 < lower <= upper < 0.93
        True
    """
    relation = read_relation_if_any(relation)
    target, known = read_delta(delta), curve(event, relation)
    upper = known.upper(target)
    return min(known.lower(target), upper), upper


def delta(event: Event, epsilon: Number, *, relation: Relation | str | None = None) -> float:
    """Return a delta such that the event is (epsilon, delta)-private: the best bound known, rounded up.

    Args:
        event: What was spent.
        epsilon: The epsilon at which delta is wanted, at least 0.
        relation: The neighbouring relation, where the meaning of the event depends on it.

    Returns:
        The delta, from 0 to 1.

    Raises:
        UnsupportedEvent: If no bound is proven for this event.

    Examples:
        >>> dp.privacy.delta(dp.privacy.PureDP(1), 1)
        0.0
    """
    relation = read_relation_if_any(relation)
    return curve(event, relation).delta(nonnegative(epsilon, name="epsilon"))


def renyi(event: Event, order: Number, *, relation: Relation | str | None = None) -> float:
    """Return a bound on the Renyi divergence of an order above 1, in nats, rounded up.

    Infinity for an event with delta > 0, whose divergences have no bound.

    Args:
        event: What was spent.
        order: The order of the divergence, above 1.
        relation: The neighbouring relation, where the meaning of the event depends on it.

    Returns:
        The bound, in nats, or infinity.

    Raises:
        UnsupportedEvent: If no bound is proven for this event under this relation.

    Examples:
        >>> dp.privacy.renyi(dp.privacy.Gaussian(2), 8)
        1.0
    """
    relation = read_relation_if_any(relation)
    a = read_order(order)
    try:
        total = spent(event, relation)
    except UnsupportedEvent:
        if not without_rule(event):
            raise
        return _with_groups(event, a, relation)
    return max(0.0, float_up(enclose(lambda: log_moment_of(total, a) / ball(a - 1))))


def _with_groups(event: Event, order: Fraction, relation: Relation | None) -> float:
    """Divergences of one order add up over the parts of a composition. [Mir17]"""
    match event:
        case Grouped() if without_rule(event):
            return _grouped_renyi(event, order, relation)
        case Repeated():
            return _sum_up((renyi(event.event, order, relation=relation), event.times))
        case Composed():
            return _sum_up(*((renyi(part, order, relation=relation), 1) for part in event.events))
        case _:
            return renyi(event, order, relation=relation)


def _sum_up(*parts: tuple[float, int]) -> float:
    if not all(math.isfinite(value) for value, _ in parts):
        return math.inf
    return up(sum((Fraction(value) * times for value, times in parts), Fraction(0)))


def _grouped_renyi(event: Grouped, order: Fraction, relation: Relation | None) -> float:
    """A group of 2^c has 3^c times the divergence of 2^c times the order, for orders of at least 2. [Mir17]"""
    doublings = (event.size - 1).bit_length()
    needed = max(order, Fraction(2)) * 2**doublings
    if needed > LARGEST_ORDER:
        raise UnsupportedEvent("no Renyi bound is known for a group this large at this order")
    single = renyi(event.event, needed, relation=relation)
    return up(Fraction(single) * 3**doublings) if math.isfinite(single) else math.inf


def curve(event: Event, relation: Relation | None) -> PrivacyCurve:
    """Return the best known privacy curve of an event."""
    try:
        total = spent(event, relation)
    except UnsupportedEvent:
        groups = without_rule(event)
        if not groups:
            raise
        return _grouped(event, groups, relation)
    return _known(total, relation)


def _grouped(event: Event, groups: Iterable[Grouped], relation: Relation | None) -> PrivacyCurve:
    """Bound groups of which there is no rule by what is known of one member."""
    if isinstance(event, Grouped):
        return Group(curve(event.event, relation), event.size)
    known = {group: curve(group, relation) for group in groups}
    parts = Substituted(event, known, lambda other: curve(other, relation))
    whole = common_group(event)
    return parts if whole is None else Best([curve(whole, relation), parts])


def _known(total: Spent, relation: Relation | None) -> PrivacyCurve:
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


def _fixed(total: Spent, relation: Relation | None) -> PrivacyCurve:
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


def _composed(total: Spent, relation: Relation | None) -> PrivacyCurve:

    simple, divergences = basic(total), renyi_curve(total)
    known: list[PrivacyCurve] = [simple] if simple is not None else []
    if simple is not None and simple.epsilon > _LARGEST:
        return Best([*known, divergences])
    try:
        return Best([*known, Numerical(profile(total.events, relation), divergences)])
    except UnsupportedEvent:
        return Best([*known, divergences])


def _closed(events: Counter[Event]) -> PrivacyCurve | None:
    if not events:
        events = Counter({PureDP(0): 1})
    if any(isinstance(event, ApproxDP) and event.delta == 1 for event in events):
        events = Counter({ApproxDP(0, 1): 1})  # Whatever else happens, all is revealed.
    if len(events) > 1:
        return None
    ((event, count),) = events.items()
    if count == 1 and closed_forms.has_profile(event):
        return closed_forms.curve(event)
    if isinstance(event, (PureDP, ApproxDP)) and count <= LONGEST:
        part_delta = event.delta if isinstance(event, ApproxDP) else Fraction(0)
        return Homogeneous(event.epsilon, part_delta, count).curve()
    return None
