"""Trade-off curves: false positives against false negatives of any test of membership. [DRS22]"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import singledispatch
from typing import TYPE_CHECKING

from discreet.balls import ball, bounds
from discreet.errors import UnsupportedEvent
from discreet.exact import Number, probability, up
from discreet.privacy import gaussian
from discreet.privacy.basic_account import point
from discreet.privacy.curves import ClosedFormCurve, PrivacyCurve, deltas
from discreet.privacy.enclosures import enclose, float_down, float_up
from discreet.privacy.event_tree import Choice, Spent, spent
from discreet.privacy.events import (
    GDP,
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
from discreet.privacy.guarantee import curve
from discreet.privacy.relation import Relation, read_relation_if_any

if TYPE_CHECKING:
    from flint import arb

__all__ = ["best_tpr", "gdp_mu", "mu_squared", "tradeoff"]

_GOLDEN = 0.6180339887498949
_PASSES, _CELLS = 3, 20


def tradeoff(event: Event, fpr: Number, *, relation: Relation | str | None = None) -> float:
    """Return a lower bound on the false negative rate of any test whose false positive rate is `fpr`.

    Theorem     A test that tells two neighbours apart has fnr >= max(1 - delta - e^epsilon fpr,
                e^-epsilon (1 - delta - fpr), 0) for every (epsilon, delta) that holds. [WZ10, KOV15]

    Args:
        event: What was spent.
        fpr: The false positive rate, from 0 to 1.
        relation: The neighbouring relation, where the meaning of the event depends on it.

    Returns:
        The false negative rate that every test has at least.

    Raises:
        UnsupportedEvent: If no bound is proven for this event.

    Examples:
        >>> round(dp.privacy.tradeoff(dp.privacy.PureDP(1), 0.01), 4)
        0.9728
    """
    relation = read_relation_if_any(relation)
    rate = probability(fpr, name="fpr")
    known = curve(event, relation)
    normal = _only_gaussian(event, relation)
    if normal is not None:
        return max(0.0, float_down(gaussian.tradeoff(normal, rate)))
    return 0.0 if rate == 1 else _best_point(known, rate)


def best_tpr(event: Event, fpr: Number, *, relation: Relation | str | None = None) -> float:
    """Return an upper bound on the true positive rate of any attacker whose false positive rate is `fpr`.

    Args:
        event: What was spent.
        fpr: The false positive rate, from 0 to 1.
        relation: The neighbouring relation, where the meaning of the event depends on it.

    Returns:
        The true positive rate that no attacker exceeds.

    Raises:
        InvalidParameter: If `fpr` is no probability.
        UnsupportedEvent: If no bound is proven for this event.

    Examples:
        >>> round(dp.privacy.best_tpr(dp.privacy.PureDP(1), 0.01), 4)
        0.0272
    """
    relation = read_relation_if_any(relation)
    return up(1 - Fraction(tradeoff(event, fpr, relation=relation)))


def _only_gaussian(event: Event, relation: Relation | None) -> Fraction | None:
    try:
        total = spent(event, relation)
    except UnsupportedEvent:
        return None
    events = total.events
    match [*events.items()]:
        case [(GDP() as whole, 1)] if not total.choices:
            return whole.mu_squared
        case _:
            return None


def _best_point(known: PrivacyCurve, rate: Fraction) -> float:
    """Maximise over epsilon; it is a concave function of e^epsilon, and every point of it is a valid bound."""
    low, high = -_reach(known, (1 - rate) / 1000), _reach(known, rate / 1000)
    if not isinstance(known, ClosedFormCurve):
        return max(0.0, _by_passes(known, rate, low, high))

    def at(x: float) -> float:
        return _fnr(Fraction(x), known.delta(abs(Fraction(x))), rate)

    points = [at(x) for x in (low, 0.0, high)] + _edge_points(known, rate)
    return max(0.0, *points, _golden(at, low, high, 48))


def _by_passes(known: PrivacyCurve, rate: Fraction, low: float, high: float) -> float:
    """Evaluate many points at a time, which a composition does as fast as one, each time around the best so far."""
    best = 0.0
    for _ in range(_PASSES):
        xs = [low + (high - low) * i / _CELLS for i in range(_CELLS + 1)]
        points = sorted({Fraction(x) for x in (*xs, min(max(0.0, low), high))}, key=abs)
        found = deltas(known, [abs(x) for x in points])
        value, top = max((_fnr(x, delta, rate), float(x)) for x, delta in zip(points, found, strict=True))
        width = (high - low) / _CELLS
        best, low, high = max(best, value), max(low, top - width), min(high, top + width)
    return best


def _edge_points(known: PrivacyCurve, rate: Fraction) -> list[float]:
    """Evaluate where the profile of a closed form has its corner, exactly."""
    if not isinstance(known, ClosedFormCurve) or known.edge is None:
        return []
    corner = known.edge.high
    return [_fnr(x, known.delta(corner), rate) for x in (corner, -corner)]


def _fnr(x: Fraction, delta: float, rate: Fraction) -> float:
    """Return the bound of (|x|, delta): for x >= 0 the first of the two in `tradeoff`, for x < 0 the second."""
    room = 1 - Fraction(delta)
    if x >= 0:
        return float_down(enclose(lambda: ball(room) - ball(x).exp() * ball(rate)))
    return float_down(enclose(lambda: ball(x).exp() * ball(room - rate)))


def _reach(known: PrivacyCurve, delta: Fraction) -> float:
    """Return an epsilon beyond which little can be won; 0 if no delta gives a finite one."""
    for target in (delta, Fraction(1, 10**12), Fraction(1, 1000), Fraction(1, 10), Fraction(1, 2)):
        level = known.upper(target)
        if math.isfinite(level):
            return min(level, 700.0)
    return 0.0


def _golden(at: Callable[[float], float], low: float, high: float, steps: int) -> float:
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = at(left), at(right)
    best = max(at_left, at_right)
    for _ in range(steps):
        if at_left >= at_right:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = at(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = at(right)
        best = max(best, at_left, at_right)
    return best


def gdp_mu(event: Event, *, relation: Relation | str | None = None) -> float:
    """Return a mu such that the event is mu-Gaussian DP, rounded up; infinity if none is proven.

    For one event it is the smallest such mu; for a composition the squares add up, also when each part is chosen after
    the answers before, see `discreet.privacy.gaussian`. [DRS22]

    Args:
        event: What was spent.
        relation: The neighbouring relation, where the meaning of the event depends on it.

    Returns:
        The parameter mu of Gaussian differential privacy, or infinity.

    Examples:
        >>> dp.privacy.gdp_mu(dp.privacy.Gaussian(4))
        0.25
    """
    relation = read_relation_if_any(relation)
    try:
        total = spent(event, relation)
    except UnsupportedEvent:
        curve(event, relation)  # Whatever has no curve either is refused there.
        return math.inf
    return max(0.0, float_up(enclose(lambda: mu_squared(total).sqrt())))


def mu_squared(total: Spent) -> arb:
    """Enclose the sum of mu^2 of everything spent; among cells, the largest ones. Infinite if one part has no mu."""
    summed = ball(0)
    for event, count in total.sure:
        summed += count * _mu(event) ** 2
    for choice in total.choices:
        summed += choice.times * _worst_cells(choice)
    return summed


def _worst_cells(choice: Choice) -> arb:
    cells = [mu_squared(cell) for cell in choice.cells]
    if not all(cell.is_finite() for cell in cells):
        return sum(cells, ball(0))
    # Compared exactly: two cells may be one float and still not be equal.
    ends = sorted((bounds(cell)[1] for cell in cells), reverse=True)
    return sum((ball(end) for end in ends[: choice.touched]), ball(0))


def _quantile(chance: arb) -> arb:
    """Enclose the point that a normal variable exceeds with this chance, below one half."""
    from flint import arb

    return arb(2).sqrt() * (2 * chance).erfcinv()


@singledispatch
def _mu(event: Event) -> arb:
    """Enclose the smallest mu of one event.

    A Gaussian trade-off curve is convex and joins the corners (0, 1) and (1, 0); so it lies below a polygon if it
    does so at its vertices (fpr, fnr), which means mu >= z(fpr) + z(fnr), z the upper quantile.
    """
    from flint import arb

    return arb.pos_inf()


@_mu.register(GDP)
def _(event: GDP) -> arb:
    return ball(event.mu_squared).sqrt()


@_mu.register(PureDP)
def _(event: PureDP) -> arb:
    """One vertex, at fpr = fnr = 1 / (1 + e^epsilon)."""
    return 2 * _quantile(1 / (1 + ball(event.epsilon).exp()))


@_mu.register(RandomizedResponse)
def _(event: RandomizedResponse) -> arb:
    """Two vertices, mirror images: fpr = q and fnr = (k - 1) q."""
    q = 1 / (ball(event.epsilon).exp() + event.categories - 1)
    return _quantile(q) + _quantile((event.categories - 1) * q)


@_mu.register(Laplace)
def _(event: Laplace) -> arb:
    """Between two straight ends fpr * fnr = e^-E / 4; z(e^x) is concave in x, so the middle is the worst."""
    return 2 * _quantile((-ball(1 / event.noise_multiplier) / 2).exp() / 2)


@_mu.register(DiscreteLaplace)
def _(event: DiscreteLaplace) -> arb:
    """The vertices have fpr = r^(D+1-i) / (1 + r), fnr = r^i / (1 + r), i = 1 … D; the middle is the worst."""
    step = ball(-1 / event.scale)
    middle = (event.sensitivity + 1) // 2
    ends = (middle, event.sensitivity + 1 - middle)
    return sum((_quantile((i * step).exp() / (1 + step.exp())) for i in ends), ball(0))


@_mu.register(BoundedRange)
def _(event: BoundedRange) -> arb:
    """Its trade-off (1 - x) / (1 + x (e^E - 1)) is that of logistic noise shifted by E; the middle is the worst."""
    return 2 * _quantile(1 / (1 + (ball(event.epsilon) / 2).exp()))


@_mu.register(RandomlyStopped)
def _(event: RandomlyStopped) -> arb:
    """It has that of its epsilon, where every run is purely private; nothing is proven for others."""
    from flint import arb

    pure = point(event)
    return arb.pos_inf() if pure is None else _mu(PureDP(pure.epsilon))


@_mu.register(PoissonSampled)
@_mu.register(SampledWithoutReplacement)
def _(event: PoissonSampled | SampledWithoutReplacement) -> arb:
    """A sample of a purely private event has the mu of its amplified epsilon, any other that of the event itself.

    Whoever is told who is in the sample sees the event itself, or nothing of the unit. With Gaussian noise no smaller
    mu holds, whatever the chance: rare outcomes are as telling. [DRS22]
    """
    relation = Relation.ADD_REMOVE if isinstance(event, PoissonSampled) else Relation.REPLACE_ONE
    amplified = point(event)
    if amplified is not None and amplified.at == 0:
        return _mu(PureDP(amplified.epsilon))
    return mu_squared(spent(event.event, relation)).sqrt()
