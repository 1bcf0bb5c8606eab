"""A pair of distributions that is as hard to tell apart as the output of an event can be easy.

(P, Q) dominates an event when no two neighbours have outputs with a larger hockey-stick divergence at any order.
Domination survives adaptive composition, so it is enough to compose the pairs [ZDW22]. Only the likelihood
ratio matters; a pair is a list of atoms, each with its loss log(P / Q).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import UnsupportedEvent

__all__ = ["DominatingPair", "Floats", "Ticks", "as_float", "few", "inverse"]

Floats: TypeAlias = NDArray[np.float64]
# Asks for the losses strictly between two ends at which the caller would like the atoms.
Ticks: TypeAlias = Callable[[float, float], Floats]

_SMALLEST, _LARGEST = 1e-100, 1e15
_FRACTIONS = np.arange(1, 33) / 33


def as_float(value: Fraction, name: str) -> float:
    """Return the nearest float, or refuse where doubles cannot carry the losses that follow from it."""
    return _in_range(value, name, _SMALLEST, _LARGEST) if value else 0.0


def inverse(value: Fraction, name: str) -> float:
    """Return 1 / value, or refuse where doubles cannot carry the losses that follow from it."""
    return 1 / _in_range(value, name, 1 / _LARGEST, 1 / _SMALLEST)


def _in_range(value: Fraction, name: str, low: float, high: float) -> float:
    try:
        nearest = float(value)
    except OverflowError:
        nearest = math.inf
    if not low <= nearest <= high:
        raise UnsupportedEvent(f"{name} is out of the range of numerical accounting: {low:g} to {high:g}")
    return nearest


def few(low: float, high: float) -> Floats:
    """Ask for 32 losses, enough for a first look."""
    return low + (high - low) * _FRACTIONS


@final
@dataclass(frozen=True, slots=True, eq=False)
class DominatingPair:
    """Atoms of a dominating pair, rounded: each mass up to `error`, each loss up to `slip` and 16 ulp of the largest.

    Where a continuous law was cut into cells, the mass of a cell sits on its two ends such that its mass under P
    and under Q is kept. That dominates the law: the law is a post-processing of the atoms. [DGKKM22]
    """

    loss: Floats  # log(P / Q), in nats
    p: Floats
    q: Floats
    top: float  # the largest loss the law can have; infinity if it is unbounded
    infinite: float = 0.0  # mass under P where Q has none
    vanishing: float = 0.0  # mass under Q where P has none
    lost: float = 0.0  # a bound on the mass, under P or under Q, that was cut off as too unlikely
    cut: bool = False  # whether the atoms are ends of cells, all ticks among them
    width: float = 0.0  # cells that do not end at ticks move a loss at random, like an interval of this length
    error: float = 1e-12  # relative, of each mass
    slip: float = 0.0  # absolute, of each loss
