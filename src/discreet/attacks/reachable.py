"""Which doubles Laplace noise by inversion can reach from an input, exactly. [Mir12]"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from discreet.attacks.textbook import log

__all__ = ["laplace_reaches"]

_GRID = 2.0**53  # Uniform doubles are multiples of its inverse; some libraries use fewer of them, none more.
_MOST = 64  # Candidates on either side.


def laplace_reaches(outputs: NDArray[np.float64], value: float, scale: float) -> NDArray[np.bool_]:
    """Tell for each output whether value ± scale log(m / 2^53) is that double for a whole number m up to 2^53.

    The noise must be about output - value, so m is about 2^53 exp(-|noise| / scale); all m are tried whose noise is
    within the rounding of output and noise. Where there are too many of them the output counts as reached.
    """
    size = np.abs(outputs - value)
    middle = np.clip(np.rint(_GRID * np.exp(-size / scale)), 1, _GRID)
    rounding = np.spacing(np.maximum(np.maximum(np.abs(outputs), abs(value)), size))
    # m changes by m / scale for each unit of noise; logarithm, product, sum and difference round once each, and the
    # exponential by a unit or two of m.
    width = np.ceil(3 * middle * rounding / scale + 3)
    reached = width > _MOST  # With so many candidates nothing is left out: no claim is made.
    for step in _outwards(int(width[~reached].max(initial=0))):
        left = ~reached & (abs(step) <= width)
        tried = middle[left] + step
        inside = (tried >= 1) & (tried <= _GRID)
        z = scale * log(np.where(inside, tried, _GRID) / _GRID)
        reached[left] = inside & ((value + z == outputs[left]) | (value - z == outputs[left]))
    return reached


def _outwards(width: int) -> list[int]:
    return sorted(range(-width, width + 1), key=abs)
