"""Admissible noise distributions of smooth sensitivity: close to themselves when shifted or dilated a little.

All are symmetric and fall away from zero. The values are balls at the working precision.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache
from typing import TYPE_CHECKING, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from discreet.balls import ball, precision
from discreet.errors import InvalidParameter
from discreet.exact import positive
from discreet.formatting import record
from discreet.mechanisms.parameters import settle

if TYPE_CHECKING:
    from flint import arb

__all__ = [
    "AdmissibleLaw",
    "GaussianLaw",
    "LaplaceLaw",
    "LaplaceLogNormalLaw",
    "PolynomialLaw",
    "PowerLaw",
    "StudentLaw",
    "TailedLaw",
    "quantile_up",
]

_BITS = 128
_TINY = 1e-300
_NARROW = 32  # Bits of relative accuracy; a ball with fewer stands for an interval.


class AdmissibleLaw(ABC):
    """A law on the real numbers, symmetric about zero and falling away from it (a `noise.ideal.RealLaw`)."""

    __slots__ = ()

    @abstractmethod
    def survival(self, z: arb) -> arb:
        """Enclose P[|Z| > z] for z >= 0."""

    @abstractmethod
    def guess(self, v: float) -> float:
        """Approximate the z with P[|Z| > z] = v."""

    @property
    @abstractmethod
    def standard_deviation(self) -> float:
        """The standard deviation, to double precision, for display; infinity where there is none."""


class TailedLaw(AdmissibleLaw):
    """A law whose density falls like a power, so that stretching it changes no ratio without bound."""

    __slots__ = ()

    @property
    @abstractmethod
    def tail_index(self) -> Fraction:
        """The least k for which log density(y) >= log density(z) - k log(y / z) whenever y >= z > 0."""

    @abstractmethod
    def log_shape(self, z: arb) -> arb:
        """Enclose the logarithm of the density at z >= 0, up to a constant."""

    @abstractmethod
    def slope(self, z: arb) -> arb:
        """Enclose minus the derivative of `log_shape` at z >= 0."""


def quantile_up(law: AdmissibleLaw, chance: Fraction) -> float:
    """Return a float z with P[|Z| > z] <= chance, next to the smallest."""
    z = law.guess(float(chance))
    while not _survives_at_most(law, z, chance):
        z = math.nextafter(z * (1 + 2.0**-40), math.inf)
    return z


def _survives_at_most(law: AdmissibleLaw, z: float, chance: Fraction) -> bool:
    with precision(_BITS):
        return bool(law.survival(ball(Fraction(z))) <= ball(chance))


def _power(z: arb, exponent: Fraction) -> arb:
    """Enclose z^exponent for z >= 0 and a positive exponent; a wide ball by its ends, since powers rise."""
    if z.is_zero():
        return ball(0)
    power = ball(exponent)
    if z.rel_accuracy_bits() >= _NARROW:
        return z**power
    low = z.lower()
    return (low**power if low > 0 else ball(0)).union(z.upper() ** power)


def _beta_odds(a: float, b: float, v: float) -> float:
    """Approximate (1 - t) / t for the v-quantile t of a beta variable, from the end that is nearer."""
    from scipy.special import betaincinv

    if v > 0.5:
        rest = float(betaincinv(b, a, 1 - v))
        return max(rest / (1 - rest), _TINY)
    t = max(float(betaincinv(a, b, v)), _TINY)
    return (1 - t) / t


def _read_above_one(value: Fraction, name: str) -> Fraction:
    number = positive(value, name=name)
    if number <= 1:
        raise InvalidParameter(f"{name} must be above 1")
    return number


@final
@dataclass(frozen=True, slots=True)
class PolynomialLaw(TailedLaw):
    """Density ((a - 1) / 2) (1 + |z|)^-a."""

    exponent: Fraction  # a

    __repr__ = record

    def __post_init__(self) -> None:
        settle(self, exponent=_read_above_one(self.exponent, "exponent"))

    def survival(self, z: arb) -> arb:
        return (1 + z) ** ball(1 - self.exponent)

    def guess(self, v: float) -> float:
        return math.expm1(min(-math.log(v) / float(self.exponent - 1), 700.0))

    @property
    def standard_deviation(self) -> float:
        a = float(self.exponent)
        return math.sqrt(2 / ((a - 2) * (a - 3))) if a > 3 else math.inf

    @property
    def tail_index(self) -> Fraction:
        return self.exponent  # (1 + y) / (1 + z) <= y / z

    def log_shape(self, z: arb) -> arb:
        return -ball(self.exponent) * z.log1p()

    def slope(self, z: arb) -> arb:
        return ball(self.exponent) / (1 + z)


@final
@dataclass(frozen=True, slots=True)
class PowerLaw(TailedLaw):
    """Density proportional to 1 / (1 + |z|^gamma). [NRS07]"""

    gamma: Fraction

    def __post_init__(self) -> None:
        settle(self, gamma=_read_above_one(self.gamma, "gamma"))

    def survival(self, z: arb) -> arb:
        # With t = 1 / (1 + x^gamma) the density of |Z| becomes that of a beta variable.
        inside = 1 / (1 + _power(z, self.gamma))
        return inside.beta_lower(ball(1 - 1 / self.gamma), ball(1 / self.gamma), 1)

    def guess(self, v: float) -> float:
        gamma = float(self.gamma)
        return math.exp(min(math.log(_beta_odds(1 - 1 / gamma, 1 / gamma, v)) / gamma, 700.0))

    @property
    def standard_deviation(self) -> float:
        gamma = float(self.gamma)
        return math.sqrt(math.sin(math.pi / gamma) / math.sin(3 * math.pi / gamma)) if gamma > 3 else math.inf

    @property
    def tail_index(self) -> Fraction:
        return self.gamma  # (1 + y^g) / (1 + z^g) <= (y / z)^g

    def log_shape(self, z: arb) -> arb:
        return -_power(z, self.gamma).log1p()

    def slope(self, z: arb) -> arb:
        if z > 0:  # Each factor once, for a closer ball.
            return ball(self.gamma) / (z + 1 / _power(z, self.gamma - 1))
        return ball(self.gamma) * _power(z, self.gamma - 1) / (1 + _power(z, self.gamma))


@final
@dataclass(frozen=True, slots=True)
class StudentLaw(TailedLaw):
    """Student's t: density proportional to (1 + z^2 / d)^(-(d + 1) / 2)."""

    degrees: Fraction  # d

    def __post_init__(self) -> None:
        settle(self, degrees=positive(self.degrees, name="degrees"))

    def survival(self, z: arb) -> arb:
        inside = 1 / (1 + z * z / ball(self.degrees))
        return inside.beta_lower(ball(self.degrees / 2), ball(Fraction(1, 2)), 1)

    def guess(self, v: float) -> float:
        d = float(self.degrees)
        return math.sqrt(d) * math.sqrt(_beta_odds(d / 2, 0.5, v))

    @property
    def standard_deviation(self) -> float:
        d = float(self.degrees)
        return math.sqrt(d / (d - 2)) if d > 2 else math.inf

    @property
    def tail_index(self) -> Fraction:
        return self.degrees + 1  # (1 + y^2 / d) / (1 + z^2 / d) <= (y / z)^2

    def log_shape(self, z: arb) -> arb:
        return -ball((self.degrees + 1) / 2) * (z * z / ball(self.degrees)).log1p()

    def slope(self, z: arb) -> arb:
        if z > 0:  # Each factor once, for a closer ball.
            return ball(self.degrees + 1) / (z + ball(self.degrees) / z)
        return ball(self.degrees + 1) * z / (ball(self.degrees) + z * z)


@final
@dataclass(frozen=True, slots=True)
class LaplaceLaw(AdmissibleLaw):
    """Density exp(-|z|) / 2."""

    def survival(self, z: arb) -> arb:
        return (-z).exp()

    def guess(self, v: float) -> float:
        return -math.log(v)

    @property
    def standard_deviation(self) -> float:
        return math.sqrt(2)


@final
@dataclass(frozen=True, slots=True)
class GaussianLaw(AdmissibleLaw):
    """The standard normal law."""

    def survival(self, z: arb) -> arb:
        from flint import arb

        return (z / arb(2).sqrt()).erfc()

    def guess(self, v: float) -> float:
        from scipy.special import ndtri

        return -float(ndtri(v / 2))

    @property
    def standard_deviation(self) -> float:
        return 1.0


# --- log_normal ---
# Laplace noise of log-normal scale: light enough for zero-concentrated privacy, and it bears being stretched.


_LARGEST = 4  # A shift costs e^(3 sigma^2 / 2) times as much as for sigma = 0.


class _QuadratureRule(NamedTuple):
    """A sum over nodes that is the mean of exp(-z exp(-sigma Y)) up to an error in a ball, for every z >= 0."""

    nodes: list[tuple[arb, arb]]  # exp(-sigma y), and the weight of y
    error: arb


@lru_cache(maxsize=64)
def _rule(sigma: Fraction, bits: int) -> _QuadratureRule:
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
    return _QuadratureRule(nodes, (-error).union(error))


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
