"""Basic composition: an epsilon and a delta for each event, added up exactly. [DKMMN06]"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, final

from discreet.balls import ball
from discreet.exact import down, up
from discreet.privacy.enclosures import enclose, float_up
from discreet.privacy.event_tree import Choice, Spent, leaves, runs_of
from discreet.privacy.events import (
    ApproxDP,
    BoundedRange,
    DiscreteLaplace,
    Event,
    Laplace,
    PoissonSampled,
    PureDP,
    RandomizedResponse,
    RandomlyStopped,
    SampledWithoutReplacement,
)
from discreet.privacy.relation import Relation
from discreet.privacy.subsample import amplified

if TYPE_CHECKING:
    from flint import arb

__all__ = ["BasicCurve", "basic", "point", "reveal"]


@final
@dataclass(frozen=True, slots=True)
class BasicCurve:
    """A curve of one point: (epsilon, delta) holds."""

    epsilon: Fraction
    at: Fraction  # delta
    reached: bool = False  # at delta 0 no smaller epsilon holds

    def upper(self, delta: Fraction) -> float:
        return up(self.epsilon) if delta >= self.at else math.inf

    def lower(self, delta: Fraction) -> float:
        return down(self.epsilon) if self.reached and delta == 0 else 0.0

    def delta(self, epsilon: Fraction) -> float:
        return up(self.at) if epsilon >= self.epsilon else 1.0


def basic(total: Spent) -> BasicCurve | None:
    """Add up the epsilons and deltas; None if some event has none."""
    points = [_all(total.events), *(_worst_cells(choice) for choice in total.choices)]
    return _added([(each, 1) for each in points])


def _all(events: Counter[Event]) -> BasicCurve | None:
    return _added([(point(event), count) for event, count in events.items()])


def _added(points: list[tuple[BasicCurve | None, int]]) -> BasicCurve | None:
    epsilon, deltas, reached = Fraction(0), Counter[Fraction](), True
    for each, count in points:
        if each is None:
            return None
        epsilon += each.epsilon * count
        deltas[each.at] += count
        reached = reached and each.reached
    return BasicCurve(epsilon, reveal(deltas), reached)


def _worst_cells(choice: Choice) -> BasicCurve | None:
    cells = [basic(cell) for cell in choice.cells]
    known = [cell for cell in cells if cell is not None]
    if len(known) < len(cells):
        return None
    epsilon = sum(sorted((cell.epsilon for cell in known), reverse=True)[: choice.touched], Fraction(0))
    deltas = sorted((cell.at for cell in known), reverse=True)[: choice.touched]
    return _added([(BasicCurve(epsilon, reveal(Counter(deltas))), choice.times)])


def point(event: Event) -> BasicCurve | None:
    """Return an epsilon and a delta of one event; None if it has no such pair by itself."""
    match event:
        case PureDP() | RandomizedResponse() | BoundedRange():
            return BasicCurve(event.epsilon, Fraction(0), True)
        case ApproxDP():
            return BasicCurve(event.epsilon, event.delta)
        case Laplace():
            return BasicCurve(1 / event.noise_multiplier, Fraction(0), True)
        case DiscreteLaplace():
            return BasicCurve(event.sensitivity / event.scale, Fraction(0), True)
        case PoissonSampled():
            return _sampled(event.event, Relation.ADD_REMOVE, event.probability)
        case SampledWithoutReplacement():
            return _sampled(event.event, Relation.REPLACE_ONE, event.probability)
        case RandomlyStopped():
            return _stopped(event)
        case _:
            return None


def _sampled(event: Event, relation: Relation, chance: Fraction) -> BasicCurve | None:
    whole = _all(leaves(event, relation=relation))
    if whole is None:
        return None
    level = amplified(whole.epsilon, chance)
    # Beyond the floats the exact epsilon without amplification is still right.
    return BasicCurve(Fraction(level) if math.isfinite(level) else whole.epsilon, whole.at * chance)


def _stopped(event: RandomlyStopped) -> BasicCurve | None:
    """Return (2 + shape) times the epsilon of a run; None unless all runs are purely private. [PS22]"""
    runs = [_all(run) for run in runs_of(event)]
    known = [run.epsilon for run in runs if run is not None and run.at == 0]
    return BasicCurve((2 + event.shape) * max(known), Fraction(0)) if len(known) == len(runs) else None


def reveal(deltas: Counter[Fraction]) -> Fraction:
    """Return a bound on 1 - prod (1 - delta)^count, the chance that some part reveals all. [KOV15]"""
    simple = sum((delta * count for delta, count in deltas.items()), Fraction(0))
    if simple == 0 or max(deltas) == 1 or sum(deltas.values()) == 1:
        return min(simple, Fraction(1))

    def none() -> arb:
        return -sum((count * ball(-delta).log1p() for delta, count in deltas.items()), ball(0)).expm1()

    return min(simple, Fraction(1), Fraction(min(1.0, float_up(enclose(none)))))
