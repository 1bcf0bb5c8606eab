"""The distributions that the samplers follow, as rigorous enclosures of their probabilities.

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
from discreet.formatting import record

if TYPE_CHECKING:
    from flint import arb

__all__ = [
    "DiscreteGaussianLaw",
    "DiscreteLaplaceLaw",
    "GeometricLaw",
    "Law",
    "RoundedGaussianLaw",
    "RoundedLaplaceLaw",
    "above",
    "total",
    "weight",
]

_LARGEST = Fraction(10**300)  # Of a parameter or its inverse; so it fits a float.


class Law(ABC):
    """A distribution over the integers, symmetric about zero unless it says otherwise.

    Probabilities are enclosed in balls of exact arithmetic (`flint.arb`), whose error is known.

    Examples:
        >>> from fractions import Fraction
        >>> law = dp.noise.RoundedGaussianLaw(Fraction(1))
        >>> isinstance(law, dp.noise.Law), round(float(law.pmf(0)), 4)
        (True, 0.3829)
    """

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
    """P[X = k] = (1 - a) / (1 + a) * a^|k| with a = exp(-1 / scale). [GRS12]

    Args:
        scale: The scale of the noise, in grid steps, as a Fraction.

    Examples:
        >>> from fractions import Fraction
        >>> law = dp.noise.DiscreteLaplaceLaw(Fraction(2))
        >>> law.half_width(0.95), round(law.standard_deviation, 3)
        (6, 2.799)
    """

    scale: Fraction

    __repr__ = record

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
    """P[X = k] = (1 - a) a^k for k >= 0, with a = exp(-1 / scale); not symmetric.

    Args:
        scale: The scale of the noise, in grid steps, as a Fraction.

    Examples:
        >>> from fractions import Fraction
        >>> round(dp.noise.GeometricLaw(Fraction(2)).standard_deviation, 3)
        1.979
    """

    scale: Fraction

    __repr__ = record

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
    """The rounding to the nearest integer of continuous Laplace noise.

    Args:
        scale: The scale before rounding, in grid steps, as a Fraction.

    Examples:
        >>> from fractions import Fraction
        >>> dp.noise.RoundedLaplaceLaw(Fraction(2)).half_width(0.95)
        6
    """

    scale: Fraction

    __repr__ = record

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
    """The rounding to the nearest integer of continuous Gaussian noise.

    Args:
        variance: The variance before rounding, in squared grid steps, as a Fraction.

    Examples:
        >>> from fractions import Fraction
        >>> dp.noise.RoundedGaussianLaw(Fraction(100)).half_width(0.95)
        20
    """

    variance: Fraction

    __repr__ = record

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
    """P[X = k] proportional to exp(-k^2 / (2 variance)). [CKS20]

    Args:
        variance: The parameter sigma^2, in squared grid steps, as a Fraction; the variance of the law is a little less.

    Examples:
        >>> from fractions import Fraction
        >>> dp.noise.DiscreteGaussianLaw(Fraction(4)).half_width(0.95)
        4
    """

    variance: Fraction

    __repr__ = record

    def __post_init__(self) -> None:
        object.__setattr__(self, "variance", _sized(self.variance, "variance"))

    def pmf(self, k: int) -> arb:
        return weight(self.variance, k) / total(self.variance)

    def survival(self, k: int) -> arb:
        if k < 0:
            return 1 - self.survival(-k - 1)
        return above(self.variance, k) / total(self.variance)

    @property
    def standard_deviation(self) -> float:
        sigma2 = float(self.variance)
        if sigma2 > 4:
            return math.sqrt(sigma2)
        terms = [math.exp(-k * k / (2 * sigma2)) for k in range(40)]
        return math.sqrt(2 * sum(k * k * w for k, w in enumerate(terms)) / (2 * sum(terms) - 1))


# --- sums: Sums of Gaussian weights exp(-k^2 / (2 variance)) over whole numbers, as balls at the working precision. ---


_LONGEST = 4096  # Terms; a longer sum is enclosed by integrals.
_BULK = 10  # Sigmas within which corrected integrals are as good as the working precision.


def weight(variance: Fraction, k: int) -> arb:
    """Enclose exp(-k^2 / (2 variance))."""
    return ball(-(Fraction(k) ** 2) / (2 * variance)).exp()


def total(variance: Fraction) -> arb:
    """Enclose the sum of all weights, by the Poisson summation formula when sigma is large."""
    if variance < 4:
        return 1 + 2 * above(variance, 0)
    from flint import arb

    pi, square = arb.pi(), ball(variance)
    first = (-2 * pi**2 * square).exp()
    # 1 + 2 (q + q^4 + q^9 + …) lies between 1 + 2 q and 1 + 2 q / (1 - q).
    dual = (1 + 2 * first).union(1 + 2 * first / (1 - first))
    return (2 * pi * square).sqrt() * dual


def above(variance: Fraction, k: int) -> arb:
    """Enclose the sum of the weights of k + 1, k + 2, … for k >= 0."""
    from flint import ctx

    # Beyond `last` the weights fall below the working precision relative to the first one, as 2 log 2 < 3/2.
    last = math.isqrt((k + 1) ** 2 + math.ceil(Fraction(3, 2) * ctx.prec * variance)) + 2
    if 8 * variance >= ctx.prec and k**2 <= _BULK**2 * variance:
        return _corrected_integral(variance, k)
    if last - k > _LONGEST:
        return _corrected_integral(variance, k).intersection(_integral(variance, k))
    return _series(variance, k, last)


def _series(variance: Fraction, k: int, last: int) -> arb:
    """Enclose the sum term by term, up to `last` and what may lie beyond."""
    return sum((weight(variance, j) for j in range(last, k, -1)), _geometric_rest(variance, last))


def _geometric_rest(variance: Fraction, last: int) -> arb:
    """Enclose what lies above `last`: from there on neighbours fall by at least w(last + 2) / w(last + 1)."""
    bound = weight(variance, last + 1) / (1 - ball(-Fraction(2 * last + 3, 2) / variance).exp())
    return ball(0).union(bound)


def _area(variance: Fraction, x: Fraction) -> arb:
    """Enclose the integral of the weight from x to infinity."""
    from flint import arb

    root = ball(variance).sqrt()
    return normal_cdf(-ball(x) / root) * root * (2 * arb.pi()).sqrt()


def _integral(variance: Fraction, k: int) -> arb:
    """Enclose the sum by integrals. Beyond sigma that is tight relative to the sum, however small it is."""
    if Fraction(k) ** 2 < variance:
        return _area(variance, Fraction(k + 1)).union(_area(variance, Fraction(k)))
    # A convex function: the midpoint rule gives too little, the trapezoid rule too much.
    least = _area(variance, Fraction(k + 1)) + weight(variance, k + 1) / 2
    return least.union(_area(variance, k + Fraction(1, 2)))


def _corrected_integral(variance: Fraction, k: int) -> arb:
    """Enclose the sum by the Euler-Maclaurin formula about the midpoint a = k + 1/2.

    The sum is the integral from a, minus B_2i(1/2) / (2i)! times the derivative of order 2i - 1 at a for
    i = 1, …, m, up to the integral of the derivative w of order 2m times at most 2 zeta(2m) / (2 pi)^2m. By
    the inequality of Cauchy and Schwarz and the norm of Hermite polynomials that integral is at most
    sigma^(1 - 2m) sqrt(2 pi (2m)! P[N(0, 1) > a / sigma]).
    """
    from flint import arb, ctx, fmpq

    orders = ctx.prec // 4 + 2
    middle, root = k + Fraction(1, 2), ball(variance).sqrt()
    enclosed, derivatives = _area(variance, middle), _derivatives(variance, middle, 2 * orders)
    for i in range(1, orders + 1):
        at_half = (fmpq(2) / 4**i - 1) * fmpq.bernoulli(2 * i)
        enclosed -= at_half / math.factorial(2 * i) * derivatives[2 * i - 1]
    spread = (2 * arb.pi() * math.factorial(2 * orders) * normal_cdf(-ball(middle) / root)).sqrt()
    doubt = 4 * root * spread / (2 * arb.pi() * root) ** (2 * orders)
    return enclosed + (-doubt).union(doubt)


def _derivatives(variance: Fraction, x: Fraction, count: int) -> list[arb]:
    """Enclose w, w', w'', … at x: from x w + variance w' = 0, differentiated n times."""
    place, inverse = ball(x), 1 / ball(variance)
    found = [ball(-(x**2) / (2 * variance)).exp()]
    found.append(-place * inverse * found[0])
    for n in range(1, count):
        found.append(-inverse * (place * found[n] + n * found[n - 1]))
    return found
