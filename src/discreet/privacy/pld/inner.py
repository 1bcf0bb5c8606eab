"""A composition that is sampled as a whole: its pairs become one pair first."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from discreet.errors import UnsupportedEvent
from discreet.privacy.pld.grid import GridLoss, binned, multiples, on_grid
from discreet.privacy.pld.pair import DominatingPair, Floats, Ticks, few

__all__ = ["composed"]

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
