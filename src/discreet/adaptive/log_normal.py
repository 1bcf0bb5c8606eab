"""Laplace noise of log-normal scale: light enough for zero-concentrated privacy, and it bears being stretched."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, final

import numpy as np
from numpy.typing import NDArray

from discreet.adaptive.real_laws import AdmissibleLaw
from discreet.balls import ball
from discreet.exact import positive
from discreet.mechanisms.fields import settle

if TYPE_CHECKING:
    from flint import acb, arb

__all__ = ["LaplaceLogNormalLaw"]


@cache
def _normal_nodes() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    nodes, weights = np.polynomial.hermite_e.hermegauss(96)
    return nodes, weights / weights.sum()


@final
@dataclass(frozen=True, slots=True)
class LaplaceLogNormalLaw(AdmissibleLaw):
    """X exp(sigma Y), with X of the Laplace law and Y standard normal. [BS19]"""

    sigma: Fraction

    def __post_init__(self) -> None:
        settle(self, sigma=positive(self.sigma, name="sigma"))

    def survival(self, z: arb) -> arb:
        """Enclose E exp(-z exp(-sigma Y)): an integral up to where both tails are below the precision."""
        from flint import acb, arb, ctx

        if z.is_zero():
            return ball(1)
        end = arb(2 * (ctx.prec + 32)).sqrt().upper()  # P[|Y| > end] < exp(-end^2 / 2)
        middle = acb.integral(lambda y, _: self._integrand(acb(z), y), acb(-end), acb(end))
        rest = (-end * end / 2).exp().upper()
        return middle.real + ball(0).union(rest)

    def _integrand(self, z: acb, y: acb) -> acb:
        from flint import arb

        exponent = -y * y / 2 - z * (-ball(self.sigma) * y).exp()
        return exponent.exp() / (2 * arb.pi()).sqrt()

    def guess(self, v: float) -> float:
        """Bisect the mean of exp(-z e^(-sigma Y)) over the nodes of a Gauss-Hermite rule."""
        nodes, shares = _normal_nodes()
        rates = np.exp(-float(self.sigma) * nodes)
        low, high = -700.0, 700.0  # log z
        while high - low > 1e-12:
            middle = (low + high) / 2
            with np.errstate(under="ignore", over="ignore"):
                reached = float(shares @ np.exp(-math.exp(middle) * rates)) <= v
            low, high = (low, middle) if reached else (middle, high)
        return math.exp(high)

    @property
    def standard_deviation(self) -> float:
        return math.sqrt(2) * math.exp(float(self.sigma) ** 2)
