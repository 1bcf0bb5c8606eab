"""Dominating pairs of sampled and of composed events: from counted leaves to terms that know their pair."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypeAlias, final

import numpy as np

from discreet.errors import UnsupportedEvent
from discreet.privacy.event_tree import check_relation
from discreet.privacy.event_tree import leaves as leaves_of
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
from discreet.privacy.pld.losses import GridLoss, binned, multiples, on_grid
from discreet.privacy.pld.pairs import (
    DominatingPair,
    Floats,
    Ticks,
    as_float,
    dominating_pair,
    few,
    gaussian,
    laplace_pairs,
    require_pair,
)
from discreet.privacy.relation import Relation

__all__ = [
    "BasicTerm",
    "NormalTerm",
    "Rate",
    "SampledTerm",
    "Term",
    "composed",
    "fixed_size",
    "fixed_size_ticks",
    "has_lower_bound",
    "lattice",
    "pairs_of",
    "poisson",
    "poisson_reversed",
    "poisson_ticks",
    "tells_all",
    "terms",
]

# --- sampling ---
# What secret sampling does to a dominating pair. Sampling a dominating pair dominates the sampled event. [ZDW22]


_FEW_DIGITS = 1e-300


@final
@dataclass(frozen=True, slots=True)
class Rate:
    """The chance to be drawn, and the chance not to be, each to full relative accuracy."""

    drawn: float
    left: float

    @property
    def bottom(self) -> float:
        """The smallest loss of a sampled pair."""
        return math.log1p(-self.drawn) if self.drawn < 0.5 else math.log(self.left)

    def amplified(self, loss: Floats) -> Floats:
        """Return log(left + drawn e^loss), accurate near 0 and far from it."""
        large, small = np.maximum(loss, 1.0), np.minimum(loss, 1.0)
        near = np.log1p(self.drawn * np.expm1(small))
        if self.drawn > 0.5:
            near = np.where(small < -1, np.log(self.left + self.drawn * np.exp(np.minimum(small, -1.0))), near)
        return np.where(loss < 1, near, large + np.log(self.drawn + self.left * np.exp(-large)))

    def original(self, loss: Floats) -> Floats:
        """Return about the loss that `amplified` takes to `loss`, which must lie above the bottom."""
        large, small = np.maximum(loss, 1.0), np.minimum(loss, 1.0)
        near = np.log1p(np.maximum(np.expm1(small) / self.drawn, -1 + 1e-16))
        return np.where(loss < 1, near, large + np.log1p(-self.left * np.exp(-large)) - math.log(self.drawn))

    def top(self, top: float) -> float:
        """Return the largest loss of a sampled pair."""
        return float(self.amplified(np.array([top]))[0]) if math.isfinite(top) else math.inf

    def told(self, mass: float) -> float:
        """Return the chance to be drawn and then to see what has this mass: never 0 if neither is."""
        product = self.drawn * mass
        # Up to a factor 1 + pair.error, which is allowed for elsewhere, except where floats have few digits left.
        return math.nextafter(product, 1.0) if mass and product < _FEW_DIGITS else product

    def slip(self, pair: DominatingPair) -> float:
        """Bound what rounding of the losses does to the amplified ones, whose slope is 1 - left e^-amplified."""
        slope = -math.expm1(self.bottom - float(self.amplified(pair.loss.max(keepdims=True))[0]))
        return (pair.slip + 2.0**-49 * float(np.abs(pair.loss).max())) * slope


def poisson(pair: DominatingPair, rate: Rate) -> DominatingPair:
    """Return (drawn P + left Q, Q): what a unit's presence does when it joins with the chance `drawn`.

    Its absence is the reverse pair; under add-remove a composition is bounded by the worse of the two. [ZDW22]
    """
    # Where P has no mass the mixture still has left Q, at the smallest loss there is.
    extra = [pair.vanishing] if pair.vanishing else []
    q = np.append(pair.q, extra)
    return replace(
        pair,
        loss=np.append(rate.amplified(pair.loss), [rate.bottom] * len(extra)),
        p=rate.drawn * np.append(pair.p, [0.0] * len(extra)) + rate.left * q,
        q=q,
        top=rate.top(pair.top),
        infinite=rate.told(pair.infinite),
        vanishing=0.0,
        slip=rate.slip(pair),
    )


def poisson_reversed(pair: DominatingPair, rate: Rate) -> DominatingPair:
    """Return (Q, P) of a pair that `poisson` returned."""
    return replace(
        pair,
        loss=-pair.loss,
        p=pair.q,
        q=pair.p,
        top=float(-pair.loss.min()) if math.isfinite(pair.top) else -rate.bottom,
        infinite=0.0,
        vanishing=pair.infinite,
    )


def poisson_ticks(ticks: Ticks, rate: Rate) -> Ticks:
    """Ask for atoms whose loss after `poisson` is a tick."""

    def inner(low: float, high: float) -> Floats:
        bottom, top = rate.amplified(np.array([low, high]))
        wanted = ticks(float(bottom), float(top))
        return rate.original(wanted[wanted > rate.bottom])

    return inner


def fixed_size(pair: DominatingPair, rate: Rate) -> DominatingPair:
    """Return the pair of a sample of fixed size out of a population, for a pair that is its own mirror image.

    Theorem     delta'(log(1 + g (e^eps - 1))) <= g delta(eps) for eps >= 0, g being the chance to be drawn [BBG18].
                Atoms of positive loss as in `poisson` have that profile. The relation is symmetric, so each such atom
                has its mirror image, with its mass under Q, and the rest of the mass has loss 0. The rest is not
                negative: with a = P[loss > 0] and b = P[loss < 0] = Q[loss > 0] <= a it is 1 - g a - (2 - g) b, which
                is at least 1 - g - (1 - g) 2 b >= 0 since a + b <= 1.
    """
    positive = pair.loss > 0
    loss = rate.amplified(pair.loss[positive])
    q = pair.q[positive]
    p = rate.drawn * pair.p[positive] + rate.left * q
    # The rest is off by the errors of all other masses. More mass at loss 0 is safe; less than all of it is there.
    rest = max(0.0, 1 - rate.drawn * pair.infinite - float(p.sum()) - float(q.sum())) + 3 * pair.error
    return replace(
        pair,
        loss=np.concatenate((loss, [0.0], -loss)),
        p=np.concatenate((p, [rest], q)),
        q=np.concatenate((q, [rest], p)),
        top=rate.top(pair.top),
        infinite=rate.told(pair.infinite),
        vanishing=rate.told(pair.infinite),
        error=10 * pair.error,
        slip=rate.slip(pair),
    )


def fixed_size_ticks(ticks: Ticks, rate: Rate) -> Ticks:
    """Ask for atoms whose loss after `fixed_size` is a tick, mirrored at 0."""

    def inner(low: float, high: float) -> Floats:
        top = float(rate.amplified(np.array([max(-low, high)]))[0])
        positive = rate.original(ticks(0.0, top))
        both = np.concatenate((-positive[::-1], [0.0], positive))
        return both[(both > low) & (both < high)]

    return inner


# --- inner: A composition that is sampled as a whole: its pairs become one pair first. ---


_POINTS = 16384  # A convolution of that many takes some ten milliseconds.
_MOST_STEPS = 4096


def composed(build: Callable[[Ticks], Sequence[tuple[DominatingPair, int]]]) -> DominatingPair:
    """Compose pairs that are their own mirror images, each so many times; `build` cuts them at given ticks.

    The masses are convolved directly, term by term, since sums of nonnegative products keep their relative accuracy.
    The sum moves like an interval whose square is the sum of the squares. Sampling, which follows, has a slope of at
    most 1, so that moves stay as narrow [McD89].
    """
    first = build(few)
    if sum(count for _, count in first) > _MOST_STEPS:
        raise UnsupportedEvent(f"numerical accounting takes at most {_MOST_STEPS} steps in one sample")
    span = sum(count * float(np.ptp(pair.loss)) for pair, count in first)
    step = max(span, 1e-90) / _POINTS
    parts = [(on_grid(pair, step), pair, count) for pair, count in build(multiples(step))]
    mass = np.ones(1)
    for loss, _, count in parts:
        mass = np.convolve(mass, _power(_symmetric(loss), count))
    infinite = -math.expm1(sum(count * math.log1p(-min(pair.infinite, 1 - 1e-16)) for _, pair, count in parts))
    reach = (len(mass) - 1) // 2
    squares = sum(count * loss.width**2 for loss, _, count in parts)
    return DominatingPair(
        loss=np.arange(-reach, reach + 1, dtype=np.float64) * step,
        p=mass,
        q=mass[::-1],
        top=sum(count * loss.top for loss, _, count in parts),
        infinite=infinite,
        vanishing=infinite,
        lost=sum(count * (loss.infinite - loss.infinite_surely + loss.lost) for loss, _, count in parts),
        width=math.sqrt(squares),
        # A squaring doubles relative errors and adds the rounding of a sum of that many products.
        error=sum(count * (loss.error + len(mass) * 2.0**-52) for loss, _, count in parts),
        slip=sum(count * loss.slip for loss, _, count in parts),
    )


def _symmetric(loss: GridLoss) -> Floats:
    """Return the masses at -reach … reach steps."""
    reach = int(np.abs(loss.index).max())
    return binned(loss.index + reach, loss.mass, 2 * reach + 1)


def _power(mass: Floats, count: int) -> Floats:
    """Convolve `count` copies, by repeated squaring."""
    result = np.ones(1)
    while count:
        if count & 1:
            result = np.convolve(result, mass)
        count >>= 1
        if count:
            mass = np.convolve(mass, mass)
    return result


# --- terms: From counted leaves to terms: one kind of step, done so many times, that knows its dominating pair. ---


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
