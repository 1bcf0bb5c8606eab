"""The dominating pair of Gaussian noise, integrated cell by cell to full relative accuracy."""

from __future__ import annotations

import math

import numpy as np

from discreet.errors import UnsupportedEvent
from discreet.privacy.pld.pair import DominatingPair, Floats, Ticks

__all__ = ["gaussian"]

_LARGEST_MU = 1000.0
_CHUNK = 8192  # cells at a time, for the sake of caches and memory

# Gauss-Legendre with six points on [0, 1]. Its relative error on a cell of length w is below 1e-14 where
# w (|y| + mu + 4) <= 1: the twelfth derivative of the integrand is at most about (|y| + mu + 2.2)^12 times the
# integrand, and the constant of the rule is 2e-16.
_POINTS, _WEIGHTS = (array[:, None] for array in np.polynomial.legendre.leggauss(6))
_POINTS, _WEIGHTS = (_POINTS + 1) / 2, _WEIGHTS / 2


def gaussian(mu: float, ticks: Ticks, tail: float) -> DominatingPair:
    """Return N(mu, 1) against N(0, 1): the loss of y + mu is mu (y + mu / 2). [DRS22]

    Each side of loss 0 is integrated under the law that is larger there; the other one is exp(-|loss|) times it.
    A mass of at most exp(-reach^2 / 2) lies further than `reach` from a centre.
    """
    if mu > _LARGEST_MU:
        raise UnsupportedEvent("noise this small has no useful loss distribution: account for it by its mu")
    reach = math.sqrt(2 * math.log(1 / tail))
    low, high = mu * max(0.0, mu / 2 - reach), mu * (mu / 2 + reach)
    size = math.ceil((high - low) / mu * (reach + mu + 4)) + 1
    plain = np.linspace(low, high, size)
    above = _merge(plain, ticks(low, high))
    below = _merge(plain, -ticks(-high, -low)[::-1])
    p, q = _masses(above, mu), _masses(below, mu)
    return DominatingPair(
        loss=np.concatenate((-below[::-1], above)),
        p=np.concatenate(((q * np.exp(-below))[::-1], p)),
        q=np.concatenate((q[::-1], p * np.exp(-above))),
        top=math.inf,
        lost=tail,
        cut=True,
    )


def _merge(plain: Floats, wanted: Floats) -> Floats:
    nodes = np.sort(np.concatenate((plain, wanted)), kind="stable")
    return nodes[np.concatenate(([True], np.diff(nodes) > 0))]


def _masses(loss: Floats, mu: float) -> Floats:
    """Return the mass under the larger law at each of the increasing, nonnegative losses."""
    y = loss / mu - mu / 2
    mass = np.zeros_like(y)
    for start in range(0, len(y) - 1, _CHUNK):
        cells = y[start : start + _CHUNK + 1]
        lower, upper = _split(cells[:-1], np.diff(cells), mu)
        mass[start : start + len(lower)] += lower
        mass[start + 1 : start + len(upper) + 1] += upper
    return mass


def _split(start: Floats, length: Floats, mu: float) -> tuple[Floats, Floats]:
    """Return what each cell puts on its lower and on its upper end.

    An output at the fraction t of a cell of w nats puts (1 - e^(-wt)) / (1 - e^(-w)) of itself on the upper end.
    """
    density = np.exp(-((start + length * _POINTS) ** 2) / 2) * (_WEIGHTS * length / math.sqrt(2 * math.pi))
    width = np.maximum(mu * length, 1e-300)
    share = np.expm1(-width * _POINTS) / np.expm1(-width)
    return (density * (1 - share)).sum(axis=0), (density * share).sum(axis=0)
