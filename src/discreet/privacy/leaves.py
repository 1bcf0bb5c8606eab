"""One function applies counts: every accountant sees leaves with their multiplicities and nothing else."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from functools import singledispatch

from discreet.errors import InvalidParameter, UnsupportedEvent
from discreet.privacy.events import (
    GDP,
    ZCDP,
    ApproxDP,
    BoundedRange,
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Gaussian,
    Grouped,
    Laplace,
    Parallel,
    PoissonSampled,
    PureDP,
    RandomizedResponse,
    Repeated,
    SampledWithoutReplacement,
)
from discreet.privacy.relation import Relation

__all__ = ["check_relation", "grouped", "leaves"]


def leaves(event: Event, *, relation: Relation | None) -> Counter[Event]:
    """Count the events that are left when repetition, composition and groups are resolved.

    A leaf is a basic event, a sampled event or a `Parallel`. Its count is applied here and nowhere else.
    """
    found: Counter[Event] = Counter()
    _collect(event, 1, found, relation)
    for leaf in found:
        check_relation(leaf, relation)
    return found


def _collect(event: Event, times: int, found: Counter[Event], relation: Relation | None) -> None:
    match event:
        case Repeated():
            _collect(event.event, times * event.times, found, relation)
        case Composed():
            for part in event.events:
                _collect(part, times, found, relation)
        case Grouped():
            # What one member may not have under this relation, a group may not have in another form.
            leaves(event.event, relation=relation)
            _collect(grouped(event.event, event.size), times, found, relation)
        case Event():
            found[event] += times
        case _:
            raise InvalidParameter(f"expected an event of discreet.privacy, not {type(event).__name__}")


def check_relation(event: Event, relation: Relation | None) -> None:
    """Refuse an event whose theorem does not hold under `relation`, or that needs one and has none."""
    if relation is not None and not isinstance(relation, Relation):
        raise InvalidParameter("relation must be Relation.ADD_REMOVE or Relation.REPLACE_ONE")
    name = type(event).__name__
    if isinstance(event, (PoissonSampled, SampledWithoutReplacement, Parallel)) and relation is None:
        raise InvalidParameter(f"{name} means different things under different relations: say relation=…")
    if isinstance(event, PoissonSampled) and relation is not Relation.ADD_REMOVE:
        raise UnsupportedEvent(
            "Poisson sampling is proven under ADD_REMOVE; for REPLACE_ONE use a sample of fixed size"
        )
    if isinstance(event, SampledWithoutReplacement) and relation is not Relation.REPLACE_ONE:
        raise UnsupportedEvent("a sample of fixed size is proven under REPLACE_ONE; for ADD_REMOVE use PoissonSampled")
    if isinstance(event, RandomizedResponse) and relation is Relation.ADD_REMOVE:
        raise UnsupportedEvent("randomized response tells how many answered: it has no guarantee under ADD_REMOVE")
    if isinstance(event, (PoissonSampled, SampledWithoutReplacement)):
        for leaf in leaves(event.event, relation=relation):
            if isinstance(leaf, (PoissonSampled, SampledWithoutReplacement, Parallel)):
                raise UnsupportedEvent(f"no bound is proven for {name} of {type(leaf).__name__}")
    if isinstance(event, Parallel):
        for part in event.events:
            for leaf in leaves(part, relation=relation):
                _check_cell(leaf)


def _check_cell(leaf: Event) -> None:
    """Refuse what says nothing about a unit that enters or leaves a cell, which replace-one allows too."""
    if isinstance(leaf, (RandomizedResponse, SampledWithoutReplacement)):
        raise UnsupportedEvent(f"{type(leaf).__name__} tells how many units a cell has: it cannot be in Parallel")


@singledispatch
def grouped(event: Event, size: int) -> Event:
    """Return the event that `size` people see together who are each protected by `event`. [Vad17]"""
    raise UnsupportedEvent(f"no group bound is proven for {type(event).__name__}")


@grouped.register
def _(event: PureDP, size: int) -> Event:
    """Ratios multiply along a path of neighbours. [DMNS06]"""
    return PureDP(event.epsilon * size)


@grouped.register
def _(event: RandomizedResponse, size: int) -> Event:
    """Changing answers one by one multiplies ratios; the best pair is then no longer one answer."""
    return event if size == 1 else PureDP(event.epsilon * size)


@grouped.register
def _(event: BoundedRange, size: int) -> Event:
    """Ranges of losses add along a path of neighbours. [DR19]"""
    return BoundedRange(event.epsilon * size)


@grouped.register
def _(event: ZCDP, size: int) -> Event:
    """rho grows with the square. [BS16]"""
    return ZCDP(event.rho * size**2)


@grouped.register
def _(event: GDP, size: int) -> Event:
    """mu grows with the size. [DRS22]"""
    return GDP(mu_squared=event.mu_squared * size**2)


@grouped.register
def _(event: Gaussian, size: int) -> Event:
    """The sensitivity grows with the size. [DRS22]"""
    return Gaussian(variance=event.variance, squared_sensitivity=event.squared_sensitivity * size**2)


@grouped.register
def _(event: DiscreteGaussian, size: int) -> Event:
    return DiscreteGaussian(
        variance=event.variance,
        squared_sensitivity=event.squared_sensitivity * size**2,
        dimension=event.dimension,
    )


@grouped.register
def _(event: Laplace, size: int) -> Event:
    return Laplace(event.noise_multiplier / size)


@grouped.register
def _(event: DiscreteLaplace, size: int) -> Event:
    return DiscreteLaplace(event.scale, event.sensitivity * size)


@grouped.register
def _(event: ApproxDP, size: int) -> Event:
    """(k epsilon, delta (1 + e^epsilon + … + e^((k-1) epsilon))). [Vad17]"""
    if size == 1 or event.delta == 0:
        return ApproxDP(event.epsilon * size, event.delta)
    from discreet.balls import ball, ball_up, precision

    with precision(128):
        step = ball(event.epsilon)
        factor = (size * step).expm1() / step.expm1() if event.epsilon else ball(size)
        delta = ball_up(ball(event.delta) * factor)
    # A group bound above one says nothing; one is still true.
    return ApproxDP(event.epsilon * size, Fraction(min(delta, 1.0)))


@grouped.register
def _(event: Repeated, size: int) -> Event:
    return Repeated(grouped(event.event, size), event.times)


@grouped.register
def _(event: Composed, size: int) -> Event:
    """Part by part, unless one has a delta: it may stand for what goes wrong in the others, and grow as they do."""
    if size > 1 and len(event.events) > 1 and any(_has_delta(part) for part in event.events):
        raise UnsupportedEvent("no group bound is proven part by part for a composition with a delta of its own")
    return Composed(grouped(part, size) for part in event.events)


def _has_delta(event: Event) -> bool:
    match event:
        case ApproxDP():
            return event.delta > 0
        case Repeated() | Grouped():
            return _has_delta(event.event)
        case Composed():
            return any(map(_has_delta, event.events))
        case _:
            return False


@grouped.register
def _(event: Grouped, size: int) -> Event:
    return grouped(event.event, event.size * size)
