"""The values that the speed of quantiles is measured on: log-normal incomes, as many as asked for."""

from __future__ import annotations

import math
import random
from typing import Any

__all__ = ["speed_list", "speed_values"]

MIDDLE, SPREAD, SEED = 10.6, 0.7, 3


def speed_values(size: int) -> Any:
    """Return a NumPy array of floats."""
    import numpy as np

    return np.random.default_rng(SEED).lognormal(MIDDLE, SPREAD, size)


def speed_list(size: int) -> list[float]:
    """Return a list of floats, where there is no NumPy."""
    draw = random.Random(SEED).gauss
    return [math.exp(draw(MIDDLE, SPREAD)) for _ in range(size)]
