"""What secret sampling does to a dominating pair. Sampling a dominating pair dominates the sampled event. [ZDW22]"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from discreet.privacy.pld.pair import DominatingPair, Floats, Ticks

__all__ = ["Rate", "fixed_size", "fixed_size_ticks", "poisson", "poisson_reversed", "poisson_ticks"]

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
