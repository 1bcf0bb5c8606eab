"""Dominating pairs of noise on the integers: discrete Laplace and discrete Gaussian."""

from __future__ import annotations

import math

import numpy as np

from discreet.errors import UnsupportedEvent
from discreet.privacy.events import DiscreteGaussian, DiscreteLaplace
from discreet.privacy.pld.normal import gaussian
from discreet.privacy.pld.pair import DominatingPair, Floats, Ticks, as_float, few, inverse

__all__ = ["discrete_gaussian", "discrete_laplace", "whole_shift"]

_MOST_ATOMS = 4_000_000  # of a discrete Gaussian; more would take hundreds of megabytes
_MOST_SHIFT = 2**52  # Integers and halves up to it, and a little beyond, are floats.


def discrete_laplace(event: DiscreteLaplace, ticks: Ticks) -> DominatingPair:
    """Shift one integer by the whole l1 sensitivity.

    Theorem     That is the worst case of a vector too. For log-concave noise the best tests are thresholds, so
                the trade-off of a shift s + t is the one of t after the one of s, with equality. A vector walks
                from one neighbour to the other coordinate by coordinate, which cannot be easier to tell. [DRS22]
    """
    shift = event.sensitivity
    if shift > _MOST_SHIFT:
        raise UnsupportedEvent("numerical accounting takes integer sensitivities up to 2^52: use a coarser grid")
    rate = inverse(event.scale, "scale")
    nodes, width = _nodes(rate, shift, ticks)
    mass = _geometric_masses(rate, nodes)
    return DominatingPair(
        loss=(shift - 2 * nodes) * rate,
        p=np.exp(-rate * nodes) * mass,
        q=np.exp(-rate * (shift - nodes)) * mass,
        top=shift * rate,
        width=width,
    )


def _nodes(rate: float, shift: int, ticks: Ticks) -> tuple[Floats, float]:
    """Return the outputs, from 0 to `shift`, that keep an atom of their own, and the longest cell between them."""
    wanted = ticks(-shift * rate, shift * rate)
    if shift <= 2 * len(wanted) + 64:
        return np.arange(shift + 1, dtype=np.float64), 0.0
    near = np.clip(np.rint((shift - wanted / rate) / 2), 0, shift)
    # The mirror images keep the pair its own mirror image.
    nodes = np.unique(np.concatenate(([0.0, shift], near, shift - near)))
    return nodes, 2 * rate * float(np.diff(nodes).max())


def _geometric_masses(rate: float, nodes: Floats) -> Floats:
    """Return P's mass of each node divided by exp(-rate * node), with the outputs in between split onto them.

    Between two nodes that are n apart lie n - 1 outputs with a geometric law of ratio r = exp(-rate). Splitting
    each such that its mass under P and Q is kept, and summing, gives both nodes the same multiple
    r (1 - r^(n-1)) / ((1 + r) (1 + r^n)) of their own r^node.
    """
    gap = np.diff(nodes)
    ratio = math.exp(-rate)
    between = -np.expm1(-rate * (gap - 1)) * ratio / ((1 + ratio) * (1 + np.exp(-rate * gap)))
    mass = np.full(len(nodes), math.tanh(rate / 2))
    mass[[0, -1]] = 1 / (1 + ratio)
    mass[1:] += between
    mass[:-1] += between
    return mass


def discrete_gaussian(event: DiscreteGaussian, ticks: Ticks, tail: float) -> DominatingPair:
    """Enumerate one integer, shifted by the sensitivity. Q is centred at 0, P at the shift.

    Outputs further than `reach` from both centres are lost: the law is sub-Gaussian with its sigma, so that
    P[|X| >= m] <= 2 exp(-m^2 / (2 sigma^2)). [CKS20]
    """
    shift = whole_shift(event)
    variance = as_float(event.variance, "variance")
    if ticks is few and variance > 2500 and shift**2 < 10**4 * variance:
        # For a first look, enumerate nothing: a wide discrete Gaussian is all but continuous.
        return gaussian(shift / math.sqrt(variance), ticks, tail)
    reach = math.ceil(math.sqrt(2 * variance * math.log(2 / min(tail, 1e-15)))) + 1
    outputs = _outputs(reach, shift)
    around = np.exp(-(np.arange(-reach, reach + 1, dtype=np.float64) ** 2) / (2 * variance))
    return DominatingPair(
        loss=(outputs - shift / 2) * (shift / variance),
        p=np.exp(-((outputs - shift) ** 2) / (2 * variance)) / around.sum(),
        q=np.exp(-(outputs**2) / (2 * variance)) / around.sum(),
        top=math.inf,
        lost=tail,
    )


def whole_shift(event: DiscreteGaussian) -> int:
    """Return the sensitivity in whole grid steps, or refuse."""
    square = event.squared_sensitivity
    root = math.isqrt(square.numerator) if square.denominator == 1 else 0
    if event.dimension > 1 or root**2 != square or root > _MOST_SHIFT:
        raise UnsupportedEvent(
            "a dominating pair of DiscreteGaussian is known in one dimension with an integer sensitivity: "
            "account for it by its rho"
        )
    return root


def _outputs(reach: int, shift: int) -> Floats:
    """Return the integers within `reach` of 0 or of `shift`."""
    if 2 * reach + min(shift, 2 * reach) > _MOST_ATOMS:
        raise UnsupportedEvent("this discrete Gaussian is too wide to enumerate: account for it by its rho")
    if shift <= 2 * reach:
        return np.arange(-reach, shift + reach + 1, dtype=np.float64)
    around = np.arange(-reach, reach + 1, dtype=np.float64)
    return np.concatenate((around, around + shift))
