"""Noise as textbooks write it, on floating-point numbers, for the lab to break; and noise on a grid, which does not.

`laplace` and `gaussian` are what most numerical libraries do. They protect nobody: see `floating_point_attack`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from discreet import noise

__all__ = ["gaussian", "grid_laplace", "laplace", "log"]

_STEPS = 1024  # Of the public grid, to one unit.


def laplace(value: float, size: int) -> NDArray[np.float64]:
    """Add Laplace noise of scale 1 by inversion: the logarithm of a uniform double, with a random sign."""
    sizes = log(_uniform(size))
    return value + np.where(noise.bernoulli("1/2", size), sizes, -sizes)


def gaussian(value: float, size: int) -> NDArray[np.float64]:
    """Add normal noise of deviation 1 by the transform of Box and Muller."""
    return value + np.sqrt(-2 * log(_uniform(size))) * np.cos(2 * math.pi * _uniform(size))


def grid_laplace(value: float, size: int) -> NDArray[np.float64]:
    """Add what this library adds: exact noise of scale 1 on a public grid, to a value that was put on it before."""
    return (round(value * _STEPS) + noise.discrete_laplace(_STEPS, size)) / _STEPS


def log(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Take logarithms by the function of the C library, one by one: vectorised ones may differ in the last bit."""
    return np.array([math.log(value) for value in values.tolist()])


def _uniform(size: int) -> NDArray[np.float64]:
    """Draw multiples of 2^-52 above 0 and up to 1."""
    return (noise.uniform(2**52, size).astype(np.float64) + 1) * 2.0**-52
