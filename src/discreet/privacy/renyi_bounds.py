"""Renyi divergences of basic and of sampled events, and the privacy curve that follows from them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, reduce, singledispatch
from typing import TYPE_CHECKING, TypeAlias, final

from discreet.balls import ball, bounds
from discreet.errors import InvalidParameter, UnsupportedEvent
from discreet.exact import up
from discreet.privacy.basic_account import point, reveal
from discreet.privacy.convert import chance_up, epsilon_at, least, log_delta_at
from discreet.privacy.enclosures import enclose, float_up
from discreet.privacy.event_tree import Choice, Spent, has_sample, is_sampled, leaves, runs_of
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
    RandomlyStopped,
    SampledWithoutReplacement,
)
from discreet.privacy.relation import Relation

if TYPE_CHECKING:
    from flint import arb

__all__ = [
    "LARGEST_ORDER",
    "RenyiCurve",
    "fixed_size",
    "log_moment",
    "log_moment_of",
    "poisson_general",
    "poisson_symmetric",
    "renyi_curve",
    "total",
]

# --- moments: Renyi divergences of basic events: one small formula each, composition written once. ---
#
# The divergence of order a > 1 is log E_Q[(dP/dQ)^a] / (a - 1), in nats. Everything here computes the log moment
# (a - 1) D_a, because log moments add under composition and sums of moments appear under sampling. [Mir17]


def total(events: Counter[Event], order: Fraction) -> arb:
    """Enclose the log moment of all events together. The count is applied here and nowhere else. [Mir17]"""
    summed = ball(0)
    for event, count in events.items():
        summed += count * log_moment(event, order)
    return summed


_moments_total = total  # For functions in which the name is a local variable.


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
    bound = poisson_symmetric if _is_symmetric(inner) else poisson_general
    return bound(event.probability, order, lambda at: total(inner, at))


@log_moment.register(SampledWithoutReplacement)
def _(event: SampledWithoutReplacement, order: Fraction) -> arb:
    inner = leaves(event.event, relation=Relation.REPLACE_ONE)
    pairs = 1 if _has_one_worst_pair(inner) else 2
    return fixed_size(event.probability, order, lambda at: total(inner, at), pairs)


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


# --- sampled_moments ---
# Log moments of an event that runs on a secret sample, from the log moments of the event itself.
#
# `inner(k)` encloses (k - 1) D_k of the event without sampling, and `q` is the chance of one unit to be sampled.


LogMoments: TypeAlias = "Callable[[Fraction], arb]"

LARGEST_ORDER = 4096  # The sums below have one term for each whole number up to the order.


def poisson_symmetric(q: Fraction, order: Fraction, inner: LogMoments) -> arb:
    """Enclose the log moment under add-remove when a reflection exchanges each pair of neighbours.

    Theorem     With y = dP/dQ for P with the unit and Q without, removing the unit has the moment
                E_Q[(1 - q + q y)^a], a binomial sum of the moments of y at whole a. Adding it has a smaller
                one, because the reflection exchanges P and Q. [MTZ19]
    """
    whole = inner(order)
    if q == 1:
        return whole
    sampled = _between_whole_orders(order, lambda a: _binomial_excess(q, a, inner).log1p())
    return _smaller(sampled, whole)  # At whole orders it is smaller anyway; between them it need not be.


def poisson_general(q: Fraction, order: Fraction, inner: LogMoments) -> arb:
    """Enclose the log moment under add-remove for any event: the larger one of removing and adding the unit.

    Theorem     Adding has the moment E_Q[w^(1-a)], w = 1 + q (y - 1) >= 1 - q. The Taylor series of w^(1-a) at
                one with the remainder of second order gives
                w^(1-a) <= 1 - (a-1)(w-1) + a (a-1) / 2 (w-1)^2 (1-q)^(-a-1), and E_Q[(y-1)^2] = e^(D_2) - 1.
                Sampling never makes a divergence larger, so the inner one is a bound too.
    """
    whole = inner(order)
    if q == 1:
        return whole
    removing = poisson_symmetric(q, order, inner)
    spread = ball(q) ** 2 * ball(order * (order - 1) / 2) * inner(Fraction(2)).expm1()
    adding = (spread * (-ball(order + 1) * ball(1 - q).log()).exp()).log1p()
    return _larger(removing, _smaller(adding, whole))


def fixed_size(q: Fraction, order: Fraction, inner: LogMoments, pairs: int) -> arb:
    """Enclose the log moment under replace-one of a sample of fixed size without replacement.

    Theorem     If one pair (P, Q) is the worst at every epsilon, the sampled event has the profile
                q delta(epsilon) at log(1 + q (e^epsilon - 1)) for epsilon >= 0 [BBG18], in both directions. A
                moment is an integral of profiles [SV16], so with w = 1 + q (y - 1), y = dP/dQ, it is at most
                1 + E_Q[(w^a - 1 - a (w-1)) + (w^(1-a) - 1 + (a-1)(w-1)); w > 1]. The first bracket is
                nonnegative everywhere, so its mean is at most the binomial sum less one; the second is at most
                a (a-1) / 2 (w-1)^2 where w > 1, so its mean is at most a (a-1) / 2 q^2 (e^(D_2) - 1).
                If there is no such pair, the profile is at most the sum of two such terms, for the exchanged
                unit in the sample against another unit and against its replacement: `pairs` = 2.
                Sampling never makes a divergence larger, so the inner one is a bound too.
    """
    whole = inner(order)
    if q == 1:
        return whole

    def at_whole_order(a: int) -> arb:
        spread = ball(q) ** 2 * (a * (a - 1) // 2) * inner(Fraction(2)).expm1()
        return (pairs * (_binomial_excess(q, a, inner) + spread)).log1p()

    return _smaller(_between_whole_orders(order, at_whole_order), whole)


def _binomial_excess(q: Fraction, order: int, inner: LogMoments) -> arb:
    """Enclose E[(1 - q + q y)^a] - 1 = sum over k >= 2 of C(a, k) (1-q)^(a-k) q^k (E[y^k] - 1). [MTZ19]

    The terms k = 0 and k = 1 vanish, since E[y] = 1; so no digits are lost however close the sum is to zero.
    """
    odds = ball(q / (1 - q))
    weight, excess = ball(1 - q) ** order, ball(0)
    for k in range(1, order + 1):
        weight = weight * odds * (order - k + 1) / k
        if k > 1:
            excess += weight * inner(Fraction(k)).expm1()
    return excess


def _between_whole_orders(order: Fraction, at_whole_order: Callable[[int], arb]) -> arb:
    """Interpolate: a log moment is a convex function of the order, and zero at one. [MTZ19]"""
    if order > LARGEST_ORDER:
        raise InvalidParameter(f"order must be at most {LARGEST_ORDER} for a sampled event")
    low, high = math.floor(order), math.ceil(order)
    lower = at_whole_order(low) if low > 1 else ball(0)
    if low == high:
        return lower
    share = ball(order - low)
    return (1 - share) * lower + share * at_whole_order(high)


def _larger(first: arb, second: arb) -> arb:
    """Return a ball around the larger of two; one that is not finite is the larger."""
    return first.max(second) if first.is_finite() and second.is_finite() else first + second


def _smaller(first: arb, second: arb) -> arb:
    """Return a ball around the smaller of two; one that is not finite says nothing."""
    if not first.is_finite():
        return second
    return first.min(second) if second.is_finite() else first


# --- randomly_stopped: The best of a secret number of runs, from the log moments of one run. ---


@log_moment.register(RandomlyStopped)
def _(event: RandomlyStopped, order: Fraction) -> arb:
    """Let M be the log moment of a run. With K runs, any b >= 1 gives the bound of the theorem. [PS22]

    Theorem     M(a) + (a - 1) (1 + shape) (M(b) + log(1 / stopping)) / b + log E[K].
                Where a run is purely private, the best one has 2 + shape times its epsilon.
    """
    second = _second_order(event)
    again = (_worst_run(event, second) - ball(event.stopping).log()) / ball(second)
    bound = _worst_run(event, order) + ball((order - 1) * (1 + event.shape)) * again + _mean_runs(event).log()
    pure = point(event)
    return bound if pure is None else _smaller(bound, _response(pure.epsilon, 2, order))


def _worst_run(event: RandomlyStopped, order: Fraction) -> arb:
    """Enclose the largest log moment of what a run may spend; that of order one is zero."""
    moments = [total(run, order) if order > 1 else ball(0) for run in runs_of(event)]
    return reduce(_larger, moments)


def _mean_runs(event: RandomlyStopped) -> arb:
    """Enclose the mean of the number of runs: shape (1 - g) / (g (1 - g^shape)) with g = stopping. [PS22]"""
    g, shape = ball(event.stopping), ball(event.shape)
    odds = (1 - g) / g
    return -odds / g.log() if event.shape == 0 else shape * odds / -(shape * g.log()).expm1()


@lru_cache(maxsize=256)
def _second_order(event: RandomlyStopped) -> Fraction:
    """Return a good b for the theorem: any is right, so floats may look for it."""
    highest = _LARGEST_ORDER if any(is_sampled(leaf) for run in runs_of(event) for leaf in run) else 1 << 24

    def bound(order: Fraction) -> float:
        return float_up(enclose(lambda: (_worst_run(event, order) - ball(event.stopping).log()) / ball(order)))

    best, order = (bound(Fraction(1)), Fraction(1)), Fraction(2)
    while order <= highest:
        found = bound(order)
        if found >= best[0]:  # It falls, and then it grows.
            break
        best, order = (found, order), Fraction(math.ceil(order * Fraction(5, 4)))
    return best[1]


# --- renyi_curve: A privacy curve from Renyi divergences: any order gives a bound, so take the best one found. ---


_LARGEST_ORDER = 512  # For sampled events, whose moments are sums of that many terms.


def log_moment_of(total: Spent, order: Fraction) -> arb:
    """Enclose the log moment of everything spent; among cells, the largest ones at this order."""
    summed = _moments_total(total.events, order)
    for choice in total.choices:
        summed += choice.times * _worst_cells(choice, order)
    return summed


def _worst_cells(choice: Choice, order: Fraction) -> arb:
    cells = [log_moment_of(cell, order) for cell in choice.cells]
    if not all(cell.is_finite() for cell in cells):
        return sum(cells, ball(0))
    # The sum of the largest upper ends is above the sum of the largest.
    # Compared exactly: two cells may be one float and still not be equal.
    ends = sorted((bounds(cell)[1] for cell in cells), reverse=True)
    return sum((ball(end) for end in ends[: choice.touched]), ball(0))


@final
@dataclass(frozen=True, slots=True)
class RenyiCurve:
    """Divergences of one order add, and convert to epsilon or delta at the end. [Mir17, CKS20]

    An (epsilon, delta) reveals all with chance delta and is purely private otherwise [KOV15]; so the deltas are
    taken off first, in `revealed`, and `rest` is accounted by its divergences.
    """

    rest: Spent
    revealed: Counter[Fraction]

    def upper(self, delta: Fraction) -> float:
        left = self._left_of(delta)
        if left <= 0:
            return math.inf
        return least(lambda order: self._epsilon(order, left)) if self._distance() > left else 0.0

    def lower(self, delta: Fraction) -> float:
        return 0.0

    def delta(self, epsilon: Fraction) -> float:
        by_order = chance_up(least(lambda order: self._log_delta(order, epsilon)))
        rest = min(Fraction(by_order), self._distance())
        return up(reveal(self.revealed + Counter({rest: 1})))

    def _epsilon(self, order: Fraction, delta: Fraction) -> float:
        return math.inf if self._is_too_high(order) else epsilon_at(order, lambda: self._moment(order), delta)

    def _log_delta(self, order: Fraction, epsilon: Fraction) -> float:
        return math.inf if self._is_too_high(order) else log_delta_at(order, lambda: self._moment(order), epsilon)

    def _distance(self) -> Fraction:
        """Bound the total variation distance, delta at epsilon 0: E|y - 1| / 2 <= sqrt(E(y - 1)^2) / 2, y = dP/dQ."""
        order = Fraction(2)  # E(y - 1)^2 is the moment of order two, less one.
        found = float_up(enclose(lambda: self._moment(order).expm1().sqrt() / 2))
        return Fraction(min(found, 1.0))

    def _moment(self, order: Fraction) -> arb:
        return log_moment_of(self.rest, order)

    def _left_of(self, delta: Fraction) -> Fraction:
        """Return the delta that is left for the rest: 1 - (1 - delta) / prod (1 - delta_i), or a little less."""
        revealed = reveal(self.revealed)
        return (delta - revealed) / (1 - revealed) if revealed < 1 else Fraction(0)

    def _is_too_high(self, order: Fraction) -> bool:
        return order > _LARGEST_ORDER and has_sample(self.rest)


def renyi_curve(total: Spent) -> RenyiCurve:
    """Take the chances to reveal all off, and account the rest by its divergences."""
    rest, revealed = Counter[Event](), Counter[Fraction]()
    for event, count in total.sure:
        pair = point(event)
        if pair is not None and pair.at > 0:
            rest[PureDP(pair.epsilon)] += count
            revealed[pair.at] += count
        else:
            rest[event] += count
    return RenyiCurve(Spent(frozenset(rest.items()), total.choices), revealed)
