"""Privacy profiles in closed form: delta(epsilon) of one basic event, enclosed in a ball.

The profile of a pair of output distributions P, Q is the hockey-stick divergence
delta(epsilon) = sum over outcomes of max(0, P - e^epsilon Q), and that of an event is the largest one over all
pairs of neighbours. Each formula is the largest one exactly, so it gives lower bounds too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import singledispatch
from typing import TYPE_CHECKING

from discreet.balls import ball, bounds, precision
from discreet.errors import UnsupportedEvent
from discreet.exact import up
from discreet.privacy import gaussian
from discreet.privacy.curves import ClosedFormCurve, Edge
from discreet.privacy.enclosures import enclose
from discreet.privacy.event_tree import canonical, leaves
from discreet.privacy.events import (
    GDP,
    ApproxDP,
    BoundedRange,
    DiscreteLaplace,
    Event,
    Gaussian,
    Laplace,
    PoissonSampled,
    PureDP,
    RandomizedResponse,
    SampledWithoutReplacement,
)
from discreet.privacy.relation import Relation

if TYPE_CHECKING:
    from flint import arb

__all__ = ["curve", "has_profile", "profile"]


@singledispatch
def profile(event: Event, epsilon: Fraction) -> arb:
    """Enclose delta(epsilon) of one event, for epsilon >= 0."""
    raise UnsupportedEvent(f"{type(event).__name__} has no privacy profile in closed form")


def has_profile(event: Event) -> bool:
    """Tell whether `profile` knows the event."""
    if isinstance(event, (PoissonSampled, SampledWithoutReplacement)):
        return _inside(event) is not None
    return profile.dispatch(type(event)) is not profile.dispatch(object)


def curve(event: Event) -> ClosedFormCurve:
    """Return the privacy curve of an event that has a profile."""
    return ClosedFormCurve(lambda level: profile(event, level), lambda target: _guess(event, target), _edge(event))


def _guess(event: Event, delta: Fraction) -> float:
    """Return an epsilon at which the profile has about fallen to `delta` > 0."""
    match event:
        case Gaussian() | GDP():
            return gaussian.epsilon_ceiling(event.mu_squared, delta)
        case PoissonSampled() | SampledWithoutReplacement():
            inner = _inside(event)
            return 0.0 if inner is None or delta >= event.probability else _guess(inner, delta / event.probability)
        case _:
            edge = _edge(event)
            return math.inf if edge is None else up(edge.high)


def _edge(event: Event) -> Edge | None:
    """Return where the profile stops falling; None if it never does."""
    match event:
        case PureDP() | RandomizedResponse() | BoundedRange():
            return Edge(event.epsilon, event.epsilon)
        case ApproxDP():
            return Edge(event.epsilon, event.epsilon, event.delta)
        case Laplace():
            return Edge(1 / event.noise_multiplier, 1 / event.noise_multiplier)
        case DiscreteLaplace():
            return Edge(event.sensitivity / event.scale, event.sensitivity / event.scale)
        case PoissonSampled() | SampledWithoutReplacement():
            return _sampled_edge(event)
        case _:
            return None


def _below(largest: Fraction, epsilon: Fraction, formula: Callable[[arb], arb]) -> arb:
    """Enclose a formula of epsilon - largest; a loss never exceeds `largest`, so beyond it delta is zero."""
    return enclose(lambda: formula(ball(epsilon - largest))) if epsilon < largest else ball(0)


@profile.register(PureDP)
def _(event: PureDP, epsilon: Fraction) -> arb:
    """Binary randomized response is the worst pair: delta = (e^E - e^epsilon) / (1 + e^E). [KOV15]"""
    return _below(event.epsilon, epsilon, lambda gap: -gap.expm1() / (1 + (-ball(event.epsilon)).exp()))


@profile.register(ApproxDP)
def _(event: ApproxDP, epsilon: Fraction) -> arb:
    """With probability delta all is revealed, else it is the worst pure pair. [KOV15]"""
    rest = profile(PureDP(event.epsilon), epsilon)
    return enclose(lambda: ball(event.delta) + ball(1 - event.delta) * rest)


@profile.register(Laplace)
def _(event: Laplace, epsilon: Fraction) -> arb:
    """delta = 1 - exp((epsilon - E) / 2) with E = 1 / noise_multiplier, below E. [BBG18]"""
    return _below(1 / event.noise_multiplier, epsilon, lambda gap: -(gap / 2).expm1())


@profile.register(DiscreteLaplace)
def _(event: DiscreteLaplace, epsilon: Fraction) -> arb:
    """Sum the geometric tails: delta = 1 - (r^(K+1) + e^epsilon r^(D-K)) / (1 + r), r = exp(-1 / scale).

    Shifted by D, the loss at k is (D - 2k) / scale for 0 <= k <= D and constant outside. It exceeds epsilon up
    to K, the last whole number below (D - epsilon scale) / 2, and P[X <= K] = 1 - r^(K+1) / (1 + r) under the
    first centre, r^(D-K) / (1 + r) under the second.
    """
    shift, scale = event.sensitivity, event.scale
    last = math.ceil((shift - epsilon * scale) / 2) - 1
    if last < 0:
        return ball(0)

    def formula() -> arb:
        ratio = ball(-1 / scale).exp()
        near, far = ball(-(last + 1) / scale).exp(), ball(epsilon - (shift - last) / scale).exp()
        return 1 - (near + far) / (1 + ratio)

    return enclose(formula)


@profile.register(RandomizedResponse)
def _(event: RandomizedResponse, epsilon: Fraction) -> arb:
    """Only the true answer has a loss above epsilon: delta = p - e^epsilon q. [KBR16]"""
    others = event.categories - 1
    return _below(event.epsilon, epsilon, lambda gap: -gap.expm1() / (1 + others * (-ball(event.epsilon)).exp()))


@profile.register(BoundedRange)
def _(event: BoundedRange, epsilon: Fraction) -> arb:
    """delta = (e^(E/2) - e^(epsilon/2))^2 / (e^E - 1), below E.

    Theorem     The losses of one pair lie in [t - E, t] for some t. [DR19] Given t, the hockey-stick is the
                mean of a convex function of dP/dQ, whose mean is one, so two-point losses are the worst:
                t with probability p = (e^E - e^t) / (e^E - 1), and t - E. Then delta = p (1 - e^(epsilon - t)),
                which is largest at e^t = sqrt(e^(E + epsilon)). [DDR20]
    """

    def formula(gap: arb) -> arb:
        root = (gap / 2).expm1()
        return root * root / -(-ball(event.epsilon)).expm1()

    return _below(event.epsilon, epsilon, formula)


@profile.register(Gaussian)
@profile.register(GDP)
def _(event: Gaussian | GDP, epsilon: Fraction) -> arb:
    return gaussian.profile(event.mu_squared, epsilon)


@profile.register(PoissonSampled)
@profile.register(SampledWithoutReplacement)
def _(event: PoissonSampled | SampledWithoutReplacement, epsilon: Fraction) -> arb:
    """A sample taken with chance q has delta'(log(1 + q (e^x - 1))) = q delta(x). [BBG18]

    That is the order of removing the unit. Adding it gives (1 - c (1-q)) delta(log(c q / (1 - c (1-q)))) with
    c = e^epsilon, which is less: the factor is at most q, and the level is above x.
    """
    inner = _inside(event)
    if inner is None:
        raise UnsupportedEvent(f"this {type(event).__name__} has no privacy profile in closed form")
    q = event.probability
    with precision(256):
        level = (ball(epsilon).expm1() / ball(q)).log1p()
    # The level is irrational and not below epsilon; the profile falls, so its values at two ends enclose it.
    low, high = bounds(level) if level.is_finite() else (epsilon, None)
    first, last = profile(inner, max(low, epsilon)), ball(0) if high is None else profile(inner, high)
    return enclose(lambda: ball(q) * first.union(last))


def _inside(event: PoissonSampled | SampledWithoutReplacement) -> Event | None:
    """Return the one event that runs on the sample, if it is one and has a profile."""
    relation = Relation.ADD_REMOVE if isinstance(event, PoissonSampled) else Relation.REPLACE_ONE
    events = canonical(leaves(event.event, relation=relation))
    match [*events.items()]:
        case [(inner, 1)] if has_profile(inner):
            return inner
        case _:
            return None


def _sampled_edge(event: PoissonSampled | SampledWithoutReplacement) -> Edge | None:
    inner = _inside(event)
    edge = None if inner is None else _edge(inner)
    if edge is None:
        return None
    low, high = _amplified(edge.low, event.probability), _amplified(edge.high, event.probability)
    if not (low.is_finite() and high.is_finite()):
        return Edge(Fraction(0), edge.high, event.probability * edge.delta)
    return Edge(bounds(low)[0], bounds(high)[1], event.probability * edge.delta)


def _amplified(epsilon: Fraction, q: Fraction) -> arb:
    return enclose(lambda: (ball(q) * ball(epsilon).expm1()).log1p())
