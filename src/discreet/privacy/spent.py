"""What a composition surely spends, and what it spends in one of several cells that a unit may be in.

`leaves` has applied the counts; here `Parallel` is resolved. Under add-remove one unit touches one cell, under
replace-one it may touch two. Which ones is not known, and an analyst may choose the next partition after seeing
an answer. So cells are told apart only when one surely dominates another; otherwise they stay a `Choice`, for
which each accountant takes the worst in a way that holds for adaptive choices too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import final

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
    Laplace,
    Parallel,
    PoissonSampled,
    PureDP,
    RandomizedResponse,
    Repeated,
    SampledWithoutReplacement,
)
from discreet.privacy.leaves import leaves
from discreet.privacy.relation import Relation

__all__ = ["Choice", "Spent", "canonical", "example", "spent"]


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
