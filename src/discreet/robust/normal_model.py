"""Expectations under the standard normal law, the model at which robust estimators are compared."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import lru_cache

import numpy as np

from discreet.robust.psi import Floats

__all__ = ["density", "mean", "quantile"]

_END = 12.0  # Beyond it the normal law has less than 1e-32.
_NODES = 24  # In each piece of length one at most.


def density(x: float) -> float:
    """Return the standard normal density."""
    return math.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def quantile(share: float) -> float:
    """Return the standard normal quantile."""
    from scipy.special import ndtri

    return float(ndtri(share))


def mean(function: Callable[[Floats], Floats], breaks: Iterable[float] = ()) -> float:
    """Integrate a function that is smooth between its breaks, to about twelve digits."""
    inner = [sign * at for at in breaks if 0 < at < _END for sign in (-1, 1)]
    ends = np.unique(np.array([*np.arange(-_END, _END + 1), *inner]))
    nodes, weights = _gauss()
    half = np.diff(ends) / 2
    points = (ends[:-1] + half)[:, None] + half[:, None] * nodes
    masses = half[:, None] * weights * np.exp(-points * points / 2) / math.sqrt(2 * math.pi)
    return float(np.sum(masses * function(points)))


@lru_cache(1)
def _gauss() -> tuple[Floats, Floats]:
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    return nodes, weights
