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

from discreet.balls import ball
from discreet.errors import UnsupportedEvent
from discreet.exact import up
from discreet.privacy import gdp
from discreet.privacy.events import (
    GDP,
    ApproxDP,
    BoundedRange,
    DiscreteLaplace,
    Event,
    Gaussian,
    Laplace,
    PureDP,
    RandomizedResponse,
)
from discreet.privacy.rigorous import enclose

if TYPE_CHECKING:
    from flint import arb

__all__ = ["epsilon_ceiling", "has_profile", "profile"]


@singledispatch
def profile(event: Event, epsilon: Fraction) -> arb:
    """Enclose delta(epsilon) of one event, for epsilon >= 0."""
    raise UnsupportedEvent(f"{type(event).__name__} has no privacy profile in closed form")


def has_profile(event: Event) -> bool:
    """Tell whether `profile` knows the event."""
    return profile.dispatch(type(event)) is not profile.dispatch(object)


def epsilon_ceiling(event: Event, delta: Fraction) -> float:
    """Return an epsilon at which the profile has surely fallen to `delta`; infinity if there is none."""
    match event:
        case Gaussian() | GDP():
            return gdp.epsilon_ceiling(event.mu_squared, delta) if delta else math.inf
        case PureDP() | RandomizedResponse() | BoundedRange():
            return up(event.epsilon)
        case ApproxDP():
            return up(event.epsilon) if delta >= event.delta else math.inf
        case Laplace():
            return up(1 / event.noise_multiplier)
        case DiscreteLaplace():
            return up(event.sensitivity / event.scale)
        case _:
            raise UnsupportedEvent(f"{type(event).__name__} has no privacy profile in closed form")


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
    return _below(event.epsilon, epsilon, lambda gap: (gap / 2).expm1() ** 2 / -(-ball(event.epsilon)).expm1())


@profile.register(Gaussian)
@profile.register(GDP)
def _(event: Gaussian | GDP, epsilon: Fraction) -> arb:
    return gdp.profile(event.mu_squared, epsilon)
