"""How far noise on two numbers together moves what is computed from both: the law of c X + d Y, tail by tail.

The answer of a box, each noise in an interval of its own, is up to half as wide again. Here the chance of one noise is
listed and that of the other has a closed form, in floats whose error is far below the margin that is kept. Where there
are too many values to list, they are put into buckets, each as if all of it were at its far end, and one step is added:
symmetric unimodal noise only reaches further then, up to the steps of its grid.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.exact import up
from discreet.noise.laws import DiscreteLaplaceLaw, RoundedGaussianLaw
from discreet.query.planning.noises import NumberNoise

__all__ = ["reach_of_sum"]

Floats: TypeAlias = NDArray[np.float64]
NoiseLaw: TypeAlias = DiscreteLaplaceLaw | RoundedGaussianLaw
_MARGIN = 1e-9  # Of probability: what is not listed, and all errors of floats, are far below it.
_LISTED = 1 << 13
_ROOM = 1e-7
_FINE = 1 << 20  # To how many parts of itself a half width that is not whole is found.


def reach_of_sum(terms: Sequence[tuple[Fraction, NumberNoise]], confidence: Fraction) -> Fraction:
    """Return a half width that encloses a weighted sum of independent noises with at least this probability.

    It is the least one for one noise, and for two up to the margin; for more it is that of a box.
    """
    there = [(abs(weight), one) for weight, one in terms if weight]
    if len(there) == 2:
        (a, one), (b, other) = sorted(there, key=lambda term: _spread(term[1].law))
        slack = a * one.slack + b * other.slack
        return _of_two(a * one.unit, one.law, b * other.unit, other.law, confidence) + slack
    each = 1 - (1 - confidence) / max(1, len(there))
    return sum((weight * one.reach(each) for weight, one in there), Fraction(0))


def _spread(law: NoiseLaw) -> float:
    return float(law.scale) if isinstance(law, DiscreteLaplaceLaw) else math.sqrt(law.variance)


@lru_cache(4096)
def _of_two(a: Fraction, x: NoiseLaw, b: Fraction, y: NoiseLaw, confidence: Fraction) -> Fraction:
    """Search the least t with P[|a X + b Y| > t] <= 1 - confidence; whole if both weights are."""
    allowed = float(1 - confidence) - _MARGIN
    whole = a.denominator == b.denominator == 1
    grain = Fraction(1) if whole else max(a, b) / _FINE
    outside = _outside(up(a / grain), x, up(b / grain), y, room=0.0 if whole else _ROOM)
    high = 1
    while outside(high) > allowed:
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if outside(middle) <= allowed else (middle, high)
    return high * grain + (0 if _reach(x) < _LISTED else b)


def _outside(a: float, x: NoiseLaw, b: float, y: NoiseLaw, *, room: float) -> Callable[[int], float]:
    """Return a function that bounds P[|a X + b Y| > t]; `room` is more than floats are off by near whole numbers."""
    places, masses = _listed(x)
    upper_y = _survival(y)

    def outside(t: int) -> float:
        near, far = (t - a * places) / b, (t + a * places) / b
        return float(masses @ (upper_y(np.floor(near - room)) + upper_y(np.floor(far - room))))

    return outside


def _listed(law: NoiseLaw) -> tuple[Floats, Floats]:
    """List sizes of noise with their chances, both signs together: zero, then buckets by their far ends."""
    survival, reach = _survival(law), _reach(law)
    ends = np.arange(reach + 1.0) if reach < _LISTED else np.unique(np.rint(np.linspace(0, reach, _LISTED)))
    beyond = survival(ends)
    masses = np.concatenate(([1 - 2 * beyond[0]], 2 * (beyond[:-1] - beyond[1:])))
    return ends, masses


def _reach(law: NoiseLaw) -> int:
    """Return how far noise is listed; less than 1e-11 lies beyond."""
    return math.ceil(26 * _spread(law)) + 26 if isinstance(law, DiscreteLaplaceLaw) else math.ceil(7 * _spread(law)) + 2


def _survival(law: NoiseLaw) -> Callable[[Floats], Floats]:
    """Return P[X > k] for arrays of whole numbers."""
    if isinstance(law, DiscreteLaplaceLaw):
        rate = 1 / float(law.scale)
        whole = 1 + math.exp(-rate)

        def laplace(k: Floats) -> Floats:
            tail = np.exp(-rate * np.where(k >= 0, k + 1, -k)) / whole
            return np.where(k >= 0, tail, 1 - tail)

        return laplace
    from scipy.special import ndtr

    sigma = math.sqrt(law.variance)

    def gaussian(k: Floats) -> Any:
        return ndtr(-(k + 0.5) / sigma)

    return gaussian
