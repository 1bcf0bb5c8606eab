"""What secret sampling does to a dominating pair. Sampling a dominating pair dominates the sampled event. [ZDW22]"""

from __future__ import annotations

import math

import numpy as np

from discreet.privacy.pld.pair import Floats, Pair, Ticks

__all__ = ["fixed_size", "fixed_size_ticks", "poisson", "poisson_reversed", "poisson_ticks"]

_SLACK = 1e-13  # Rounding in a sum of masses that is about one.


def _amplified(loss: Floats, rate: float) -> Floats:
    """Return log(1 - rate + rate e^loss), accurate near 0 and far from it."""
    small = np.log1p(rate * np.expm1(np.minimum(loss, 1.0)))
    return np.where(loss < 1, small, loss + np.log(rate + (1 - rate) * np.exp(-np.maximum(loss, 1.0))))


def _original(loss: Floats, rate: float) -> Floats:
    """Return the loss that `_amplified` takes to `loss`, which must lie above log(1 - rate)."""
    small = np.log1p(np.maximum(np.expm1(np.minimum(loss, 1.0)) / rate, -1 + 1e-16))
    large = np.maximum(loss, 1.0)
    return np.where(loss < 1, small, large + np.log1p(-(1 - rate) * np.exp(-large)) - math.log(rate))


def poisson(pair: Pair, rate: float) -> Pair:
    """Return (rate P + (1 - rate) Q, Q): what a unit's presence does when it joins with probability `rate`.

    Its absence is the reverse pair; under add-remove a composition is bounded by the worse of the two. [ZDW22]
    """
    # Where P has no mass the mixture still has (1 - rate) Q, at the smallest loss there is.
    extra = [pair.vanishing] if pair.vanishing else []
    loss = np.append(_amplified(pair.loss, rate), [math.log1p(-rate)] * len(extra))
    q = np.append(pair.q, extra)
    return Pair(
        loss=loss,
        p=rate * np.append(pair.p, [0.0] * len(extra)) + (1 - rate) * q,
        q=q,
        top=_amplified_top(pair.top, rate),
        infinite=rate * pair.infinite,
        lost=pair.lost,
        width=pair.width,
        drift=pair.drift,
        error=pair.error,
        slip=_slip(pair, rate),
    )


def _slip(pair: Pair, rate: float) -> float:
    """Bound what rounding of the original losses does to the amplified ones, whose slope is 1 - (1 - rate) e^-loss'."""
    slope = -math.expm1(math.log1p(-rate) - float(_amplified(pair.loss.max(keepdims=True), rate)[0]))
    return (pair.slip + 2.0**-50 * float(np.abs(pair.loss).max())) * slope


def poisson_reversed(pair: Pair, rate: float) -> Pair:
    """Return (Q, P) of a pair that `poisson` returned. Its loss is at most -log(1 - rate)."""
    return Pair(
        loss=-pair.loss,
        p=pair.q,
        q=pair.p,
        top=float(-pair.loss.min()) if math.isfinite(pair.top) else -math.log1p(-rate),
        vanishing=pair.infinite,
        lost=pair.lost,
        width=pair.width,
        drift=pair.drift,
        error=pair.error,
        slip=pair.slip,
    )


def _amplified_top(top: float, rate: float) -> float:
    return float(_amplified(np.array([top]), rate)[0]) if math.isfinite(top) else math.inf


def poisson_ticks(ticks: Ticks, rate: float) -> Ticks:
    """Ask for atoms whose loss after `poisson` is a tick."""

    def inner(low: float, high: float) -> Floats:
        bottom, top = _amplified(np.array([low, high]), rate)
        wanted = ticks(float(bottom), float(top))
        return _original(wanted[wanted > math.log1p(-rate)], rate)

    return inner


def fixed_size(pair: Pair, rate: float) -> Pair:
    """Return the pair of a sample of fixed size, `rate` of the population, for a pair that is its own mirror image.

    Theorem     delta'(log(1 + rate (e^eps - 1))) <= rate delta(eps) for eps >= 0 [BBG18]. Atoms of positive loss as
                in `poisson` have that profile. The relation is symmetric, so each such atom has its mirror image,
                with its mass under Q, and the rest of the mass has loss 0. The rest is not negative: with
                a = P[loss > 0] and b = P[loss < 0] = Q[loss > 0] <= a it is 1 - rate a - (2 - rate) b, which is
                at least 1 - rate - (1 - rate) 2 b >= 0 since a + b <= 1.
    """
    positive = pair.loss > 0
    loss = _amplified(pair.loss[positive], rate)
    q = pair.q[positive]
    p = rate * pair.p[positive] + (1 - rate) * q
    rest = max(0.0, 1 - rate * pair.infinite - float(p.sum()) - float(q.sum())) + _SLACK
    return Pair(
        loss=np.concatenate((loss, [0.0], -loss)),
        p=np.concatenate((p, [rest], q)),
        q=np.concatenate((q, [rest], p)),
        top=_amplified_top(pair.top, rate),
        infinite=rate * pair.infinite,
        vanishing=rate * pair.infinite,
        lost=pair.lost,
        width=pair.width,
        drift=pair.drift,
        error=pair.error,
        slip=_slip(pair, rate),
    )


def fixed_size_ticks(ticks: Ticks, rate: float) -> Ticks:
    """Ask for atoms whose loss after `fixed_size` is a tick, mirrored at 0."""

    def inner(low: float, high: float) -> Floats:
        top = float(_amplified(np.array([max(-low, high)]), rate)[0])
        positive = _original(ticks(0.0, top), rate)
        both = np.concatenate((-positive[::-1], [0.0], positive))
        return both[(both > low) & (both < high)]

    return inner
