"""Laplace noise of log-normal scale: light enough for zero-concentrated privacy, and it bears being stretched."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache
from typing import TYPE_CHECKING, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from discreet.adaptive.real_laws import AdmissibleLaw
from discreet.balls import ball
from discreet.errors import InvalidParameter
from discreet.exact import positive
from discreet.mechanisms.fields import settle

if TYPE_CHECKING:
    from flint import arb

__all__ = ["LaplaceLogNormalLaw"]

_LARGEST = 4  # A shift costs e^(3 sigma^2 / 2) times as much as for sigma = 0.


class _Rule(NamedTuple):
    """A sum over nodes that is the mean of exp(-z exp(-sigma Y)) up to an error in a ball, for every z >= 0."""

    nodes: list[tuple[arb, arb]]  # exp(-sigma y), and the weight of y
    error: arb


@lru_cache(maxsize=64)
def _rule(sigma: Fraction, bits: int) -> _Rule:
    """Make a trapezoidal rule; `bits` is the working precision, part of the question.

    The integrand is analytic. In the strip |Im y| <= a with a <= pi / (2 sigma) the function is at most 1 in size and
    the normal density at most e^(a^2 / 2) times its real value. So the rule of step h is off by no more than
    2 e^(a^2 / 2) / (e^(2 pi a / h) - 1) [TW14], and cutting it at y by no more than P[|Y| > y] <= e^(-y^2 / 2).
    """
    from flint import arb

    digits = (bits + 32) * math.log(2)
    height = Fraction(math.floor(63.99 * min(math.pi / (2 * float(sigma)), math.sqrt(2 * digits))), 64)
    step = Fraction(math.floor(1024 * 2 * math.pi * float(height) / (digits + float(height) ** 2 / 2 + 1)), 1024)
    last = math.ceil(math.sqrt(2 * digits) / step)
    ys = [ball(j * step) for j in range(-last, last + 1)]
    factor = ball(step) / (2 * arb.pi()).sqrt()
    nodes = [((-ball(sigma) * y).exp(), factor * (-y * y / 2).exp()) for y in ys]
    rough = 2 * ball(height**2 / 2).exp() / (2 * arb.pi() * ball(height / step)).expm1()
    error = (rough + ball(-((last * step) ** 2) / 2).exp()).upper()
    return _Rule(nodes, (-error).union(error))


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
        sigma = positive(self.sigma, name="sigma")
        if sigma > _LARGEST:
            raise InvalidParameter(f"sigma must be at most {_LARGEST}: noise of a larger one is of no use")
        settle(self, sigma=sigma)

    def survival(self, z: arb) -> arb:
        """Enclose E exp(-z exp(-sigma Y))."""
        from flint import ctx

        if z.is_zero():
            return ball(1)
        rule = _rule(self.sigma, ctx.prec)
        total = sum(((-z * rate).exp() * weight for rate, weight in rule.nodes), ball(0))
        return total + rule.error

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
