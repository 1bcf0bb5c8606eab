"""From counted leaves to terms: one kind of step, done so many times, that knows its dominating pair."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias, final

from discreet.privacy.events import (
    GDP,
    ApproxDP,
    BoundedRange,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Gaussian,
    Laplace,
    PoissonSampled,
    PureDP,
    RandomizedResponse,
    SampledWithoutReplacement,
)
from discreet.privacy.leaves import check_relation
from discreet.privacy.leaves import leaves as leaves_of
from discreet.privacy.pld.basic import dominating_pair, laplace_pairs, require_pair
from discreet.privacy.pld.inner import composed
from discreet.privacy.pld.normal import gaussian
from discreet.privacy.pld.pair import DominatingPair, Ticks, as_float
from discreet.privacy.pld.sampling import Rate, fixed_size, fixed_size_ticks, poisson, poisson_reversed, poisson_ticks
from discreet.privacy.relation import Relation

__all__ = [
    "BasicTerm",
    "NormalTerm",
    "SampledTerm",
    "Term",
    "has_lower_bound",
    "lattice",
    "pairs_of",
    "tells_all",
    "terms",
]


@final
@dataclass(frozen=True, slots=True)
class BasicTerm:
    """A leaf with a pair of its own, which is its own mirror image."""

    event: Event
    count: int

    def pairs(self, ticks: Ticks, tail: float) -> tuple[DominatingPair, ...]:
        """Return the pair, cut at `ticks`."""
        return (dominating_pair(self.event, ticks, tail),)


@final
@dataclass(frozen=True, slots=True)
class NormalTerm:
    """All Gaussian leaves together: their squared mu add. [DRS22]"""

    mu: float
    count: int = 1

    def pairs(self, ticks: Ticks, tail: float) -> tuple[DominatingPair, ...]:
        """Return the pair, cut at `ticks`."""
        return (gaussian(self.mu, ticks, tail),)


@final
@dataclass(frozen=True, slots=True)
class SampledTerm:
    """A composition that runs on a secret sample."""

    inner: tuple[BasicTerm | NormalTerm, ...]
    rate: Rate
    count: int
    fixed: bool  # a sample of fixed size under replace-one, else Poisson under add-remove

    def pairs(self, ticks: Ticks, tail: float) -> tuple[DominatingPair, ...]:
        """Return the pair, cut at `ticks`; for Poisson sampling with the unit present first, then absent."""
        if self.fixed:
            return (fixed_size(self._whole(fixed_size_ticks(ticks, self.rate), tail), self.rate),)
        present = poisson(self._whole(poisson_ticks(ticks, self.rate), tail), self.rate)
        return present, poisson_reversed(present, self.rate)

    def _whole(self, ticks: Ticks, tail: float) -> DominatingPair:
        if len(self.inner) == 1 and self.inner[0].count == 1:
            return self.inner[0].pairs(ticks, tail)[0]
        steps = sum(term.count for term in self.inner)
        return composed(lambda cut: [(t.pairs(cut, tail / steps)[0], t.count) for t in self.inner])


Term: TypeAlias = BasicTerm | NormalTerm | SampledTerm


def pairs_of(terms: Sequence[Term], ticks: Ticks, tail: float) -> list[tuple[DominatingPair, ...]]:
    """Return the pairs of each term; those of Laplace noise, of which there may be hundreds, at one go."""
    laplace = {
        at: term.event
        for at, term in enumerate(terms)
        if isinstance(term, BasicTerm) and isinstance(term.event, Laplace)
    }
    found = dict(zip(laplace, laplace_pairs([*laplace.values()], ticks), strict=True)) if laplace else {}
    return [(found[at],) if at in found else term.pairs(ticks, tail) for at, term in enumerate(terms)]


def terms(leaves: Counter[Event], relation: Relation | None) -> tuple[Term, ...]:
    """Group the leaves into terms; a sample that takes everybody is no sample."""
    for leaf in leaves:
        check_relation(leaf, relation)
    plain: Counter[Event] = Counter()
    sampled: list[Term] = []
    for leaf, count in leaves.items():
        if not isinstance(leaf, (PoissonSampled, SampledWithoutReplacement)):
            plain[leaf] += count
        elif leaf.probability == 1:
            for inner, times in leaves_of(leaf.event, relation=relation).items():
                plain[inner] += count * times
        else:
            sampled.append(_sampled(leaf, count, relation))
    return (*_plain(plain), *sampled)


def _sampled(leaf: PoissonSampled | SampledWithoutReplacement, count: int, relation: Relation | None) -> SampledTerm:
    inner = _plain(leaves_of(leaf.event, relation=relation))
    if any(tells_all(term) for term in inner):
        inner = (BasicTerm(ApproxDP(0, 1), 1),)
    rate = Rate(as_float(leaf.probability, "probability"), as_float(1 - leaf.probability, "1 - probability"))
    return SampledTerm(inner, rate, count, fixed=isinstance(leaf, SampledWithoutReplacement))


def _plain(leaves: Counter[Event]) -> tuple[BasicTerm | NormalTerm, ...]:
    squares = [
        as_float(leaf.mu_squared * count, "the squared mu")
        for leaf, count in leaves.items()
        if isinstance(leaf, (Gaussian, GDP))
    ]
    others = {leaf: count for leaf, count in leaves.items() if not isinstance(leaf, (Gaussian, GDP))}
    for leaf in others:
        require_pair(leaf)
    basic = [BasicTerm(leaf, count) for leaf, count in others.items()]
    return (*basic, NormalTerm(math.sqrt(math.fsum(squares)))) if squares else tuple(basic)


def tells_all(term: Term) -> bool:
    """Whether the term may reveal everything, always."""
    return isinstance(term, BasicTerm) and isinstance(term.event, ApproxDP) and term.event.delta == 1


def has_lower_bound(term: Term) -> bool:
    """Whether the loss distribution is close to the true one from below, too.

    A sample of fixed size tells losses above 0 from those below. Where a composition is put on a grid before it is
    sampled, some losses cross 0, and no bound is known for what that does.
    """
    return not (isinstance(term, SampledTerm) and term.fixed and sum(part.count for part in term.inner) > 1)


def lattice(term: Term) -> Fraction | None:
    """Return a number of which all losses of the term are multiples; None if there is none, 0 if all are 0."""
    match term:
        case BasicTerm(event=PureDP() | ApproxDP() | BoundedRange() | RandomizedResponse() as event):
            return event.epsilon
        case BasicTerm(event=DiscreteLaplace() as event):
            return 1 / event.scale
        case BasicTerm(event=DiscreteGaussian() as event):
            # The loss of the output k is shift (2 k - shift) / (2 variance).
            return Fraction(math.isqrt(math.floor(event.squared_sensitivity))) / (2 * event.variance)
        case _:
            return None
