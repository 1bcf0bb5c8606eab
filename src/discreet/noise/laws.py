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

_LONGEST_SUM = 4096  # Terms; a longer sum is enclosed by integrals.


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
        return _first(lambda t: self._outside(t), 1 - level)

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


def _power(k: int, scale: Fraction) -> arb:
    """Enclose exp(-k / scale)."""
    return ball(-Fraction(k) / scale).exp()


@final
@dataclass(frozen=True, slots=True)
class DiscreteLaplaceLaw(Law):
    """P[X = k] = (1 - a) / (1 + a) * a^|k| with a = exp(-1 / scale). [GRS12]"""

    scale: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", positive(self.scale, name="scale"))

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
        object.__setattr__(self, "scale", positive(self.scale, name="scale"))

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
        object.__setattr__(self, "scale", positive(self.scale, name="scale"))

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
        return math.sqrt(mass * (1 + ratio)) / (1 - ratio)


@final
@dataclass(frozen=True, slots=True)
class RoundedGaussianLaw(Law):
    """The rounding to the nearest integer of continuous Gaussian noise."""

    variance: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "variance", positive(self.variance, name="variance"))

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
        object.__setattr__(self, "variance", positive(self.variance, name="variance"))

    def weight(self, k: int | Fraction) -> arb:
        """Enclose exp(-k^2 / (2 variance))."""
        return ball(-(Fraction(k) ** 2) / (2 * self.variance)).exp()

    def pmf(self, k: int) -> arb:
        return self.weight(k) / self._total()

    def survival(self, k: int) -> arb:
        if k < 0:
            return 1 - self.survival(-k - 1)
        return self._sum_above(k) / self._total()

    def _total(self) -> arb:
        """Enclose the sum of all weights, by the Poisson summation formula when sigma is large."""
        if self.variance < 4:
            return 1 + 2 * self._sum_above(0)
        from flint import arb

        pi, variance = arb.pi(), ball(self.variance)
        first = (-2 * pi**2 * variance).exp()
        # 1 + 2 (q + q^4 + q^9 + …) lies between 1 + 2 q and 1 + 2 q / (1 - q).
        dual = (1 + 2 * first).union(1 + 2 * first / (1 - first))
        return (2 * pi * variance).sqrt() * dual

    def _sum_above(self, k: int) -> arb:
        """Enclose the sum of the weights of k + 1, k + 2, …"""
        from flint import ctx

        sigma = math.sqrt(self.variance) + 1
        # Beyond `last` the terms fall below the working precision relative to the first one.
        last = k + 2 + int(2 * ctx.prec * min(sigma, float(self.variance) / (k + 1) + 1))
        if last - k > _LONGEST_SUM:
            return self._integral_above(k)
        total = ball(0)
        for j in range(last, k, -1):
            total += self.weight(j)
        return total + self._geometric_rest(last)

    def _geometric_rest(self, last: int) -> arb:
        """Enclose what lies above `last`: ratios of neighbours are at most w(last + 1) / w(last)."""
        first = self.weight(last + 1)
        bound = first / (1 - ball(-Fraction(2 * last + 3, 2) / self.variance).exp())
        return ball(0).union(bound)

    def _integral_above(self, k: int) -> arb:
        """Enclose the sum by integrals; tight where the weights are convex, that is beyond sigma."""
        root = ball(self.variance).sqrt()
        from flint import arb

        def area(x: Fraction) -> arb:
            return normal_cdf(-ball(x) / root) * root * (2 * arb.pi()).sqrt()

        if Fraction(k) ** 2 >= self.variance:
            # A convex function: the midpoint rule gives too little, the trapezoid rule too much.
            return (area(Fraction(k + 1)) + self.weight(k + 1) / 2).union(area(k + Fraction(1, 2)))
        return area(Fraction(k + 1)).union(area(Fraction(k)))

    @property
    def standard_deviation(self) -> float:
        sigma2 = float(self.variance)
        if sigma2 > 4:
            return math.sqrt(sigma2)
        terms = [math.exp(-k * k / (2 * sigma2)) for k in range(40)]
        return math.sqrt(2 * sum(k * k * w for k, w in enumerate(terms)) / (2 * sum(terms) - 1))
