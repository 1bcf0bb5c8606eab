"""Noise that is correlated from step to step: a banded Toeplitz factor, and its inverse applied as numbers come."""

from __future__ import annotations

from collections import deque
from fractions import Fraction
from math import sqrt
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

__all__ = ["UNIT", "Unbanding", "growth", "whole_weights"]

Integers: TypeAlias = NDArray[np.int64]
UNIT = 1 << 10  # What the first weight is: weights are whole numbers of 1/1024.


def whole_weights(band: int) -> tuple[int, ...]:
    """Return the first `band` coefficients of (1 - x)^(-1/2), in units of 1/1024, the first being 1024.

    They are the best Toeplitz factor of running sums, cut to a band. [DMRST22, FHU23, CGMMRTX23] Rounding them changes
    the factor a little, and the privacy not at all: everything is computed from the rounded ones. None is rounded to 0.
    """
    weights, exact = [UNIT], Fraction(1)
    for k in range(1, band):
        exact = exact * (2 * k - 1) / (2 * k)
        weights.append(max(1, round(exact * UNIT)))
    return tuple(weights)


def growth(weights: tuple[int, ...], steps: int) -> float:
    """Return the deviation of the last of `steps` numbers after the inverse, for unit noise before it."""
    inverse = [1 / weights[0]]
    for t in range(1, steps):
        recent = zip(weights[1:], reversed(inverse[-len(weights) + 1 :] if len(weights) > 1 else []), strict=False)
        inverse.append(-sum(weight * value for weight, value in recent) / weights[0])
        if abs(inverse[-1]) < 1e-9 and t > len(weights):
            break
    return sqrt(sum(value**2 for value in inverse))


@final
class Unbanding:
    """Combine vectors with those of the steps before, and take the combination off noisy ones again.

    `combined` looks at private vectors and stays inside; `undone` is computed from what was released alone, so that its
    floats are post-processing.
    """

    def __init__(self, weights: tuple[int, ...]) -> None:
        self._weights = weights
        self._private: deque[Integers] = deque(maxlen=len(weights))
        self._public: deque[NDArray[np.float64]] = deque(maxlen=len(weights))

    def combined(self, vector: Integers) -> Integers:
        """Return the sum over j of weight_j times the vector of j steps ago, exactly; this one is j = 0."""
        self._private.appendleft(vector)
        total = np.zeros_like(vector)
        for weight, earlier in zip(self._weights, self._private, strict=False):
            total += weight * earlier
        return total

    def undone(self, noisy: Integers) -> NDArray[np.float64]:
        """Return the number of this step: (noisy - sum over j >= 1 of weight_j undone_(t-j)) / weight_0."""
        value = noisy.astype(np.float64)
        for weight, earlier in zip(self._weights[1:], self._public, strict=False):
            value -= weight * earlier
        value /= self._weights[0]
        self._public.appendleft(value)
        return value.copy()
