"""Trees of events: counts are applied in one place, and what a tree surely spends is written in one canonical form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import singledispatch
from typing import final

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
    RandomlyStopped,
    Repeated,
    SampledWithoutReplacement,
)
from discreet.privacy.relation import Relation

__all__ = [
    "Choice",
    "Spent",
    "canonical",
    "check_relation",
    "example",
    "grouped",
    "has_sample",
    "is_sampled",
    "leaves",
    "runs_of",
    "spent",
]

# --- leaves: One function applies counts: every accountant sees leaves with their multiplicities and nothing else. ---


def leaves(event: Event, *, relation: Relation | None) -> Counter[Event]:
    """Count the events that are left when repetition, composition and groups are resolved.

    A leaf is a basic event, a sampled event or a `Parallel`. Its count is applied here and nowhere else.
    """
    found: Counter[Event] = Counter()
    _collect(event, 1, found, relation)
    for leaf in found:
        check_relation(leaf, relation)
    return found


def runs_of(event: RandomlyStopped) -> list[Counter[Event]]:
    """Count the leaves of each of the events that a run may spend; `leaves` has checked their relation."""
    found = []
    for part in event.events:
        found.append(Counter[Event]())
        _collect(part, 1, found[-1], None)
    return found


def is_sampled(event: Event) -> bool:
    """Tell whether the moments of a leaf are sums with one term for each whole number up to the order."""
    if isinstance(event, RandomlyStopped):
        return any(is_sampled(leaf) for run in runs_of(event) for leaf in run)
    return isinstance(event, (PoissonSampled, SampledWithoutReplacement))


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
            if isinstance(leaf, (PoissonSampled, SampledWithoutReplacement, Parallel, RandomlyStopped)):
                raise UnsupportedEvent(f"no bound is proven for {name} of {type(leaf).__name__}")
    if isinstance(event, (Parallel, RandomlyStopped)):
        for part in event.events:
            for leaf in leaves(part, relation=relation):
                if isinstance(event, Parallel):
                    _check_cell(leaf, relation)
                elif isinstance(leaf, (Parallel, RandomlyStopped)):
                    raise UnsupportedEvent(f"no bound is proven for {name} of {type(leaf).__name__}")


def _check_cell(leaf: Event, relation: Relation | None) -> None:
    """Refuse what says nothing about a unit that enters or leaves a cell, which replace-one allows too."""
    if isinstance(leaf, RandomlyStopped) and relation is not Relation.ADD_REMOVE:
        raise UnsupportedEvent("RandomlyStopped can be in Parallel under ADD_REMOVE only: see what a run spends whole")
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
def _(event: RandomlyStopped, size: int) -> Event:
    """Its bounds hold for any two data sets, given what one run spends on them. [PS22]"""
    return RandomlyStopped((grouped(part, size) for part in event.events), event.shape, event.stopping)


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
        case Composed() | RandomlyStopped():
            return any(map(_has_delta, event.events))
        case _:
            return False


@grouped.register
def _(event: Grouped, size: int) -> Event:
    return grouped(event.event, event.size * size)


# --- spent: What a composition surely spends, and what it spends in one of several cells that a unit may be in. ---
#
# `leaves` has applied the counts; here `Parallel` is resolved. Under add-remove one unit touches one cell, under
# replace-one it may touch two. Which ones is not known, and an analyst may choose the next partition after seeing
# an answer. So cells are told apart only when one surely dominates another; otherwise they stay a `Choice`, for
# which each accountant takes the worst in a way that holds for adaptive choices too.


@final
@dataclass(frozen=True, slots=True)
class Choice:
    """`times` times, the unit is in up to `touched` of the cells, nobody knows which."""

    cells: tuple[Spent, ...]
    touched: int
    times: int


@final
@dataclass(frozen=True, slots=True)
class Spent:
    """Events with their counts, and choices."""

    sure: frozenset[tuple[Event, int]]
    choices: tuple[Choice, ...] = ()

    @property
    def events(self) -> Counter[Event]:
        """The sure events with their counts."""
        return Counter(dict(self.sure))


def has_sample(total: Spent) -> bool:
    """Tell whether anything of this runs on a sample: orders of its divergences have a limit."""
    return any(is_sampled(event) for event, _ in total.sure) or any(
        has_sample(cell) for choice in total.choices for cell in choice.cells
    )


def spent(event: Event, relation: Relation | None) -> Spent:
    """Resolve an event into sure leaves in a canonical form and choices among cells."""
    sure: Counter[Event] = Counter()
    choices: list[Choice] = []
    for leaf, count in leaves(event, relation=relation).items():
        if isinstance(leaf, Parallel):
            _add_cells(leaf, relation, count, sure, choices)
        else:
            sure[leaf] += count
    return Spent(frozenset(canonical(sure).items()), tuple(choices))


def _add_cells(
    parallel: Parallel, relation: Relation | None, count: int, sure: Counter[Event], choices: list[Choice]
) -> None:
    touched = 2 if relation is Relation.REPLACE_ONE else 1
    cells = _undominated(_some_of_each(parallel, relation, touched), touched)
    if len(cells) > touched:
        choices.append(Choice(tuple(cells), touched, count))
        return
    for cell in cells:
        for leaf, times in cell.sure:
            sure[leaf] += times * count
        choices.extend(Choice(inner.cells, inner.touched, inner.times * count) for inner in cell.choices)


def _some_of_each(parallel: Parallel, relation: Relation | None, most: int) -> list[Spent]:
    """Resolve the different cells, each no more often than a unit can touch it."""
    copies = Counter(parallel.events)
    return [cell for part, times in copies.items() for cell in [spent(part, relation)] * min(times, most)]


def _undominated(cells: Iterable[Spent], touched: int) -> list[Spent]:
    """Drop every cell that at least `touched` others dominate: a worst case never needs it."""
    families: dict[Hashable, list[tuple[Fraction, Spent]]] = {}
    for cell in cells:
        family, size = _rank(cell)
        families.setdefault(family, []).append((size, cell))
    kept: list[Spent] = []
    for members in families.values():
        members.sort(key=lambda member: member[0], reverse=True)
        kept.extend(cell for _, cell in members[:touched])
    return kept


def _rank(cell: Spent) -> tuple[Hashable, Fraction]:
    """Return a family within which a larger number dominates; a family of its own where no order is proven."""
    if cell.choices or len(cell.sure) != 1:
        return cell, Fraction(0)
    ((leaf, count),) = cell.sure
    match leaf:
        case GDP():
            return "GDP", leaf.mu_squared * count
        case ZCDP():
            return "ZCDP", leaf.rho * count
        case PureDP() | BoundedRange():
            return (type(leaf), count), leaf.epsilon
        case RandomizedResponse():
            return (type(leaf), leaf.categories, count), leaf.epsilon
        case Laplace():
            return (type(leaf), count), 1 / leaf.noise_multiplier
        case DiscreteLaplace():
            return (type(leaf), leaf.scale, count), Fraction(leaf.sensitivity)
        case DiscreteGaussian():
            return (type(leaf), leaf.variance, leaf.dimension, count), leaf.squared_sensitivity
        case _:
            return cell, Fraction(0)


def canonical(events: Counter[Event]) -> Counter[Event]:
    """Merge what is the same: all Gaussians are one GDP, all zCDP one ZCDP; free events are dropped."""
    merged: Counter[Event] = Counter()
    mu_squared = rho = Fraction(0)
    for event, count in _unsampled(events).items():
        match _plain(event):
            case Gaussian() | GDP() as normal:
                mu_squared += count * normal.mu_squared
            case ZCDP() as concentrated:
                rho += count * concentrated.rho
            case PureDP(epsilon=0) | BoundedRange(epsilon=0) | RandomizedResponse(epsilon=0):
                pass
            case plain:
                merged[plain] += count
    merged += Counter({GDP(mu_squared=mu_squared): 1} if mu_squared else {})
    merged += Counter({ZCDP(rho): 1} if rho else {})
    return merged


def _unsampled(events: Counter[Event]) -> Counter[Event]:
    """Replace a sample of everybody by what runs on it."""
    found: Counter[Event] = Counter()
    for event, count in events.items():
        if isinstance(event, (PoissonSampled, SampledWithoutReplacement)) and event.probability == 1:
            relation = Relation.ADD_REMOVE if isinstance(event, PoissonSampled) else Relation.REPLACE_ONE
            for leaf, times in leaves(event.event, relation=relation).items():
                found[leaf] += times * count
        else:
            found[event] += count
    return found


def _plain(event: Event) -> Event:
    """Return the simplest event with the same worst pair."""
    match event:
        case RandomizedResponse(categories=2):
            return PureDP(event.epsilon)
        case DiscreteLaplace(sensitivity=1):
            return PureDP(1 / event.scale)  # One step apart, only two losses are left: plus and minus 1 / scale.
        case ApproxDP(delta=0):
            return PureDP(event.epsilon)
        case _:
            return event


def example(event: Event) -> Event:
    """Return an event of which one worst pair is known and that some mechanism with the given event has.

    Losses of plus and minus epsilon / 2 have the range epsilon. Other events are their own example.
    """
    match event:
        case BoundedRange():
            return PureDP(event.epsilon / 2)
        case PoissonSampled():
            return PoissonSampled(example(event.event), event.probability)
        case SampledWithoutReplacement():
            return SampledWithoutReplacement(example(event.event), event.sample_size, event.population)
        case Repeated():
            return Repeated(example(event.event), event.times)
        case Composed():
            return Composed(example(part) for part in event.events)
        case _:
            return event
