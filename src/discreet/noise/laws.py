"""The laws that the samplers follow, as rigorous enclosures of their probabilities.

The values are balls at the working precision: use them inside `with precision(bits)`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, final

from discreet.balls import ball, normal_cdf, precision
from discreet.errors import InvalidParameter
from discreet.exact import Number, exact, positive
from discreet.noise import sums

if TYPE_CHECKING:
    from flint import arb

__all__ = [
    "DiscreteGaussianLaw",
    "DiscreteLaplaceLaw",
    "GeometricLaw",
    "Law",
    "RoundedGaussianLaw",
    "RoundedLaplaceLaw",
]

_LARGEST = Fraction(10**300)  # Of a parameter or its inverse; so it fits a float.


class Law(ABC):
    """A distribution over the integers, symmetric about zero unless it says otherwise."""

    __slots__ = ()

    @abstractmethod
    def survival(self, k: int) -> arb:
        """Enclose P[X > k] for k >= -1, accurately in the tail."""

    @abstractmethod
    def pmf(self, k: int) -> arb:
        """Enclose P[X = k]."""

    @property
    @abstractmethod
    def standard_deviation(self) -> float:
        """The standard deviation, to double precision, for display."""

    def cdf(self, k: int) -> arb:
        """Enclose P[X <= k]."""
        return self.survival(-k - 1) if k < 0 else 1 - self.survival(k)

    def half_width(self, confidence: Number) -> int:
        """Return the smallest t with P[|X| <= t] >= confidence."""
        level = exact(confidence, name="confidence")
        if not 0 <= level < 1:
            raise InvalidParameter("confidence must be at least 0 and below 1")
        return _first(self._outside, 1 - level)

    def _outside(self, t: int) -> arb:
        return 2 * self.survival(t)


def _first(outside: Any, allowed: Fraction) -> int:
    """Return the smallest t >= 0 with outside(t) <= allowed, for a falling function of balls."""
    high = 1
    while not _at_most(outside, high, allowed):
        high *= 2
    low = -1  # outside(low) > allowed, with -1 standing for "nothing is inside".
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _at_most(outside, middle, allowed) else (middle, high)
    return high


def _at_most(outside: Any, t: int, allowed: Fraction) -> bool:
    for bits in (64, 128, 512):
        with precision(bits):
            value = outside(t)
            if value <= ball(allowed):
                return True
            if value > ball(allowed):
                return False
    return False  # Too close to call: a wider interval is still right.


def _sized(value: Number, name: str) -> Fraction:
    number = positive(value, name=name)
    if not 1 / _LARGEST <= number <= _LARGEST:
        raise InvalidParameter(f"{name} must lie between 1e-300 and 1e300")
    return number


def _power(k: int, scale: Fraction) -> arb:
    """Enclose exp(-k / scale)."""
    return ball(-Fraction(k) / scale).exp()


@final
@dataclass(frozen=True, slots=True)
class DiscreteLaplaceLaw(Law):
    """P[X = k] = (1 - a) / (1 + a) * a^|k| with a = exp(-1 / scale). [GRS12]"""

    scale: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", _sized(self.scale, "scale"))

    def survival(self, k: int) -> arb:
        if k < 0:
            return 1 - self.survival(-k - 1)
        return _power(k + 1, self.scale) / (1 + _power(1, self.scale))

    def pmf(self, k: int) -> arb:
        half = ball(Fraction(1, 2) / self.scale)
        return (half.sinh() / half.cosh()) * _power(abs(k), self.scale)

    @property
    def standard_deviation(self) -> float:
        scale = float(self.scale)
        return 1 / (math.sqrt(2) * math.sinh(0.5 / scale)) if scale > 1e-3 else 0.0


@final
@dataclass(frozen=True, slots=True)
class GeometricLaw(Law):
    """P[X = k] = (1 - a) a^k for k >= 0, with a = exp(-1 / scale); not symmetric."""

    scale: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", _sized(self.scale, "scale"))

    def survival(self, k: int) -> arb:
        return _power(max(k + 1, 0), self.scale)

    def cdf(self, k: int) -> arb:
        return 1 - self.survival(k)

    def pmf(self, k: int) -> arb:
        return -ball(-1 / self.scale).expm1() * _power(k, self.scale) if k >= 0 else ball(0)

    def _outside(self, t: int) -> arb:
        return self.survival(t)

    @property
    def standard_deviation(self) -> float:
        scale = float(self.scale)
        return 0.5 / math.sinh(0.5 / scale) if scale > 1e-3 else 0.0


@final
@dataclass(frozen=True, slots=True)
class RoundedLaplaceLaw(Law):
    """The rounding to the nearest integer of continuous Laplace noise."""

    scale: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", _sized(self.scale, "scale"))

    def survival(self, k: int) -> arb:
        if k < 0:
            return 1 - self.survival(-k - 1)
        return ball(-(k + Fraction(1, 2)) / self.scale).exp() / 2

    def pmf(self, k: int) -> arb:
        half = ball(Fraction(1, 2) / self.scale)
        return -(-half).expm1() if k == 0 else _power(abs(k), self.scale) * half.sinh()

    @property
    def standard_deviation(self) -> float:
        scale = float(self.scale)
        if scale < 1e-3:
            return 0.0
        mass = math.exp(-0.5 / scale)  # P[X != 0]; then |X| - 1 is geometric.
        ratio = math.exp(-1 / scale)
        return math.sqrt(mass * (1 + ratio)) / -math.expm1(-1 / scale)


@final
@dataclass(frozen=True, slots=True)
class RoundedGaussianLaw(Law):
    """The rounding to the nearest integer of continuous Gaussian noise."""

    variance: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "variance", _sized(self.variance, "variance"))

    def survival(self, k: int) -> arb:
        return normal_cdf(-ball(k + Fraction(1, 2)) / ball(self.variance).sqrt())

    def pmf(self, k: int) -> arb:
        # Survivals of the far side keep their relative accuracy; the centre has none to lose.
        return self.survival(abs(k) - 1) - self.survival(abs(k))

    @property
    def standard_deviation(self) -> float:
        sigma2 = float(self.variance)
        if sigma2 > 4:
            return math.sqrt(sigma2 + 1 / 12)
        root = math.sqrt(2 * sigma2)
        terms = ((2 * k + 1) * math.erfc((k + 0.5) / root) for k in range(int(30 * root) + 2))
        return math.sqrt(sum(terms))


@final
@dataclass(frozen=True, slots=True)
class DiscreteGaussianLaw(Law):
    """P[X = k] proportional to exp(-k^2 / (2 variance)). [CKS20]"""

    variance: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "variance", _sized(self.variance, "variance"))

    def pmf(self, k: int) -> arb:
        return sums.weight(self.variance, k) / sums.total(self.variance)

    def survival(self, k: int) -> arb:
        if k < 0:
            return 1 - self.survival(-k - 1)
        return sums.above(self.variance, k) / sums.total(self.variance)

    @property
    def standard_deviation(self) -> float:
        sigma2 = float(self.variance)
        if sigma2 > 4:
            return math.sqrt(sigma2)
        terms = [math.exp(-k * k / (2 * sigma2)) for k in range(40)]
        return math.sqrt(2 * sum(k * k * w for k, w in enumerate(terms)) / (2 * sum(terms) - 1))
