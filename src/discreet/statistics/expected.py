"""A public guess of what the data look like. It decides how they are asked, and is never checked against them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.exact import Number, exact, positive
from discreet.mechanisms.grid import Grid

__all__ = ["Expected", "Floats"]

Floats: TypeAlias = NDArray[np.float64]

_LEAST = 2  # Values of a public sample.


@final
@dataclass(frozen=True, slots=True, repr=False)
class Expected:
    """A law of one column, from what is publicly known: last year's table, a textbook, a simulation.

    A good guess makes answers more accurate. A bad one makes them less accurate and changes nothing else: what is
    guaranteed, and what it costs, never depends on it. It must not be made from the data themselves.

    Args:
        name: What the law is called in texts.
        quantiles: The quantile function, from an array of shares to an array of values.

    Examples:
        >>> incomes = dp.Expected.lognormal(30_000, 2)
        >>> guess = dp.Expected.like([20, 30, 30, 40])  # a public sample
    """

    name: str
    quantiles: Callable[[Floats], Floats]  # of shares between 0 and 1, both excluded

    @classmethod
    def normal(cls, mean: Number, sd: Number) -> Expected:
        """Values around a mean, symmetric, with few far away."""
        centre, spread = float(exact(mean, name="mean")), float(positive(sd, name="sd"))
        return cls(f"normal({centre:g}, {spread:g})", lambda shares: centre + spread * _normal(shares))

    @classmethod
    def lognormal(cls, median: Number, factor: Number) -> Expected:
        """Positive values around a median, two thirds of them within a factor: incomes, amounts, waiting times."""
        centre, times = float(positive(median, name="median")), float(exact(factor, name="factor"))
        if times <= 1:
            raise InvalidParameter("factor must be above 1: two thirds lie between median / factor and median * factor")
        name = f"lognormal({centre:g}, {times:g})"
        return cls(name, lambda shares: centre * np.exp(np.log(times) * _normal(shares)))

    @classmethod
    def uniform(cls, low: Number, high: Number) -> Expected:
        """Values spread evenly: what is assumed between the bounds if nothing else is said."""
        first, last = float(exact(low, name="low")), float(exact(high, name="high"))
        if not first < last:
            raise InvalidParameter("low must be below high")
        return cls(f"uniform({first:g}, {last:g})", lambda shares: first + (last - first) * shares)

    @classmethod
    def like(cls, values: Any) -> Expected:
        """Values like those of a public or simulated sample."""
        sample = np.sort(np.asarray(values, dtype=np.float64).ravel())
        if sample.size < _LEAST or not np.isfinite(sample).all():
            raise InvalidParameter("a public sample must have at least two values, all of them finite numbers")
        return cls(f"like {sample.size} public values", lambda shares: np.quantile(sample, shares))

    def column(self, size: int, grid: Grid) -> Floats:
        """Return so many values that follow the law as evenly as possible, in order, within the bounds."""
        values = self.quantiles((np.arange(size) + 0.5) / size)
        return np.clip(values, float(grid.low), float(grid.high))

    def __repr__(self) -> str:
        return self.name


def _normal(shares: Floats) -> Floats:
    from scipy.special import ndtri

    found: Floats = ndtri(shares)
    return found
