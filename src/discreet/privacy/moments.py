"""Renyi divergences of basic events: one small formula each, composition written once.

The divergence of order a > 1 is log E_Q[(dP/dQ)^a] / (a - 1), in nats. Everything here computes the log moment
(a - 1) D_a, because log moments add under composition and sums of moments appear under sampling. [Mir17]
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from functools import singledispatch
from typing import TYPE_CHECKING

from discreet.balls import ball
from discreet.errors import UnsupportedEvent
from discreet.privacy import sampled_moments
from discreet.privacy.events import (
    GDP,
    ZCDP,
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
from discreet.privacy.leaves import leaves
from discreet.privacy.relation import Relation

if TYPE_CHECKING:
    from flint import arb

__all__ = ["log_moment", "total"]


def total(events: Counter[Event], order: Fraction) -> arb:
    """Enclose the log moment of all events together. The count is applied here and nowhere else. [Mir17]"""
    summed = ball(0)
    for event, count in events.items():
        summed += count * log_moment(event, order)
    return summed


@singledispatch
def log_moment(event: Event, order: Fraction) -> arb:
    """Enclose an upper bound on (order - 1) times the Renyi divergence, at the working precision."""
    raise UnsupportedEvent(f"no Renyi bound is proven for {type(event).__name__}")


@log_moment.register(PureDP)
def _(event: PureDP, order: Fraction) -> arb:
    """Binary randomized response is the worst pure pair: E^a + E^(1-a) over 1 + E, E = e^epsilon. [BS16]"""
    return _response(event.epsilon, 2, order)


@log_moment.register(RandomizedResponse)
def _(event: RandomizedResponse, order: Fraction) -> arb:
    return _response(event.epsilon, event.categories, order)


def _response(epsilon: Fraction, categories: int, order: Fraction) -> arb:
    """With q = 1 / (E + k - 1), the two answers that differ give q E^a and q E^(1-a), the k - 2 others q each.

    q (E^a + E^(1-a) + k - 2) - 1 = q (E^a - 1) (1 - E^(1-a)), which loses no digits when epsilon is small.
    """
    level, a = ball(epsilon), ball(order)
    if order * epsilon > 10**6:  # Leave the exponents in range: the log of q E^a (1 + E^(1-2a) + (k-2) E^-a).
        share = (level * (1 - 2 * a)).exp() + (categories - 2) * (-level * a).exp()
        return (a - 1) * level + share.log1p() - ((categories - 1) * (-level).exp()).log1p()
    excess = (level * a).expm1() * -(level * (1 - a)).expm1() / (level.exp() + categories - 1)
    return excess.log1p()


@log_moment.register(ApproxDP)
def _(event: ApproxDP, order: Fraction) -> arb:
    """An outcome that only one side has makes every divergence infinite, unless delta is 0."""
    from flint import arb

    return _response(event.epsilon, 2, order) if event.delta == 0 else arb.pos_inf()


@log_moment.register(Laplace)
def _(event: Laplace, order: Fraction) -> arb:
    """a / (2a - 1) e^((a-1) E) + (a-1) / (2a - 1) e^(-a E), E = 1 / noise_multiplier. [Mir17]"""
    level, a = ball(1 / event.noise_multiplier), ball(order)
    rising = (a - 1) * level
    # The larger term is taken out, so that the rest is a number between 0 and 1.
    return rising + (a / (2 * a - 1) + (a - 1) / (2 * a - 1) * (-(2 * a - 1) * level).exp()).log()


@log_moment.register(DiscreteLaplace)
def _(event: DiscreteLaplace, order: Fraction) -> arb:
    """Sum p^a q^(1-a) over the two tails and, as one geometric series, over the D - 1 points between.

    With r = exp(-1 / scale) and shift D: the lower tail gives r^(-(a-1) D) / (1 + r), the upper r^(a D) / (1 + r),
    and 0 < k < D gives (1-r) / (1+r) r^(-(a-1) D) x^k with x = r^(2a-1), which sums to (x - x^D) / (1 - x).
    Both orders of the pair are equal by symmetry.
    """
    shift, a = event.sensitivity, ball(order)
    step = ball(-1 / event.scale)
    x_step = (2 * a - 1) * step
    between = step.expm1() * (x_step.exp() - (shift * x_step).exp()) / x_step.expm1()
    # Everything over r^(-(a-1) D), the largest weight.
    share = (1 + between + (shift * x_step).exp()) / (1 + step.exp())
    return -(a - 1) * shift * step + share.log()


@log_moment.register(BoundedRange)
def _(event: BoundedRange, order: Fraction) -> arb:
    """Maximise over the pairs of two losses t and t - E; it is below a (a-1) E^2 / 8. [DR19, DDR20]

    Losses lie in [t - E, t] for some t, and y^a is convex, so two-point losses are the worst. With u = e^t the
    moment is u^(a-1) (A - B u) / (e^E - 1), where A = e^E - e^((1-a) E) and B = 1 - e^((1-a) E). It is largest
    at u = (a-1) A / (a B), where it is u^(a-1) A / (a (e^E - 1)).
    """
    if event.epsilon == 0:
        return ball(0)
    level, a = ball(event.epsilon), ball(order)
    # A / e^E = 1 - e^(-a E) and (e^E - 1) / e^E = 1 - e^-E keep the exponents small.
    first, second = -(-a * level).expm1(), -((1 - a) * level).expm1()
    peak = level + ((a - 1) * first / (a * second)).log()
    return (a - 1) * peak + (first / (a * -(-level).expm1())).log()


@log_moment.register(ZCDP)
@log_moment.register(DiscreteGaussian)
def _(event: ZCDP | DiscreteGaussian, order: Fraction) -> arb:
    """D_a <= a rho. [BS16, CKS20]"""
    return ball((order - 1) * order * event.rho)


@log_moment.register(Gaussian)
@log_moment.register(GDP)
def _(event: Gaussian | GDP, order: Fraction) -> arb:
    """D_a = a mu^2 / 2. [Mir17]"""
    return ball((order - 1) * order * event.mu_squared / 2)


@log_moment.register(PoissonSampled)
def _(event: PoissonSampled, order: Fraction) -> arb:
    inner = leaves(event.event, relation=Relation.ADD_REMOVE)
    bound = sampled_moments.poisson_symmetric if _is_symmetric(inner) else sampled_moments.poisson_general
    return bound(event.probability, order, lambda at: total(inner, at))


@log_moment.register(SampledWithoutReplacement)
def _(event: SampledWithoutReplacement, order: Fraction) -> arb:
    inner = leaves(event.event, relation=Relation.REPLACE_ONE)
    pairs = 1 if _has_one_worst_pair(inner) else 2
    return sampled_moments.fixed_size(event.probability, order, lambda at: total(inner, at), pairs)


_ONE_PAIR = (PureDP, RandomizedResponse, Laplace, DiscreteLaplace, Gaussian, GDP)


def _is_symmetric(events: Counter[Event]) -> bool:
    """Tell whether every pair of neighbours is exchanged by a reflection of the outcomes."""
    return all(isinstance(event, (*_ONE_PAIR, DiscreteGaussian)) for event in events)


def _has_one_worst_pair(events: Counter[Event]) -> bool:
    """Tell whether one pair is the worst at every epsilon, and its moments are the ones used here."""
    return all(
        isinstance(event, _ONE_PAIR) or (isinstance(event, DiscreteGaussian) and event.dimension == 1)
        for event in events
    )
