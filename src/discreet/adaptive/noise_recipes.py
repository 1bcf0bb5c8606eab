"""Recipes for noise scaled to smooth sensitivity: what a recipe is, those for pure DP, and how they are tuned."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Literal, TypeAlias, final

from discreet.adaptive.smooth_noise_laws import (
    AdmissibleLaw,
    PolynomialLaw,
    PowerLaw,
    StudentLaw,
    quantile_up,
)
from discreet.balls import ball, bounds, precision
from discreet.errors import InvalidParameter
from discreet.exact import Number, positive, positive_integer
from discreet.formatting import record
from discreet.mechanisms.parameters import read_confidence
from discreet.privacy.events import Event, PureDP

if TYPE_CHECKING:
    from flint import arb

__all__ = [
    "BITS",
    "Norm",
    "Recipe",
    "best_recipe",
    "best_shape",
    "evenly_spaced",
    "largest",
    "polynomial",
    "polynomial_holds",
    "positive_part",
    "power",
    "rounded_down",
    "student",
]

# --- recipe ---
# A recipe for noise that follows a smooth bound: which law, how wide, how smooth, and what it really guarantees.
#
# A recipe releases value + (S / alpha) Z for a beta-smooth bound S in its norm. Only functions that prove its
# guarantee make one. All numbers in it are public, exact, and rounded to the private side.


Norm: TypeAlias = Literal[1, 2]

BITS = 192  # Of working precision; a delta is a small difference of larger numbers.
_RARE = 0.05  # Shapes are compared by what their noise exceeds this rarely.
_DIGITS = 15  # Significant decimal digits of a number that is rounded down.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """Noise (S / alpha) Z, independently in each coordinate, for a beta-smooth bound S."""

    law: AdmissibleLaw
    alpha: Fraction
    beta: Fraction
    event: Event  # what a release spends
    dimension: int = 1
    norm: Norm = 1  # in which the smooth bound is meant

    __repr__ = record

    @property
    def ratio(self) -> Fraction:
        """The scale of the noise over the smooth bound."""
        return 1 / self.alpha

    @property
    def standard_deviation(self) -> float:
        """The standard deviation of one coordinate over the smooth bound; infinity where there is none."""
        return self.law.standard_deviation / float(self.alpha)

    def half_width(self, confidence: Number = Fraction(95, 100)) -> float:
        """Return what the noise of one coordinate, over the smooth bound, exceeds this rarely."""
        return quantile_up(self.law, 1 - read_confidence(confidence)) / float(self.alpha)


def rounded_down(value: Fraction) -> Fraction:
    """Return the next decimal of fifteen digits below a positive number."""
    context = Context(prec=_DIGITS, rounding=ROUND_FLOOR)
    return Fraction(context.divide(Decimal(value.numerator), Decimal(value.denominator)))


def positive_part(enclosure: arb, *, advice: str) -> Fraction:
    """Round a computed number down, or refuse a recipe that has nothing left for it."""
    if not enclosure > 0:
        raise InvalidParameter(f"this budget is too small for this noise: {advice}")
    return rounded_down(bounds(enclosure)[0])


def largest(holds: Callable[[Fraction], bool], start: Fraction, *, advice: str) -> Fraction:
    """Return the largest positive number that holds, to nine digits or more, rounded down; less of it always holds.

    `start` is where to look first.
    """
    with precision(BITS):
        low, high = Fraction(0), rounded_down(start)
        while holds(high):
            low, high = high, 2 * high
        while low == 0:
            half = rounded_down(high / 2)
            if half * 2**64 < start:
                raise InvalidParameter(f"this budget is too small for this noise: {advice}")
            low, high = (half, high) if holds(half) else (low, half)
        while (high - low) * 2**32 > high:
            middle = (low + high) / 2
            low, high = (middle, high) if holds(middle) else (low, middle)
    return rounded_down(low)


def best_shape(make: Callable[[Fraction], Recipe], shapes: Iterable[Fraction]) -> Recipe:
    """Return the recipe whose noise is narrowest, by a guess of its half-width, among shapes that the budget allows."""
    made = [recipe for recipe in (_or_none(make, shape) for shape in shapes) if recipe is not None]
    if not made:
        raise InvalidParameter("no shape of this noise is proven for so large a beta: choose a smaller beta")
    return min(made, key=lambda recipe: recipe.law.guess(_RARE) / float(recipe.alpha))


def _or_none(make: Callable[[Fraction], Recipe], shape: Fraction) -> Recipe | None:
    try:
        return make(shape)
    except InvalidParameter:
        return None


# --- pure_recipes ---
# Noise for pure privacy: laws that fall like a power, so that no ratio grows without bound when they are stretched.


_GAMMAS = tuple(map(Fraction, ("1.25", "1.5", "1.75", "2", "2.5", "3", "3.5", "4", "5", "6", "8", "10")))
_DEGREES = tuple(map(Fraction, (1, 2, 3, 4, 5, 6, 8, 10, 15, 20)))
_PARTS = tuple(Fraction(n, 16) for n in range(1, 17))  # Of the steepest tail.


def polynomial(
    epsilon: Number,
    *,
    beta: Number,
    alpha: Number | None = None,
    exponent: Number | None = None,
    dimension: int = 1,
) -> Recipe:
    """Noise with density proportional to (1 + |z|)^-a, in the l1 norm: the best pure noise here.

    Say `alpha` to get the largest exponent for it, `exponent` to get the largest alpha for it, or neither for the
    least noise: in one dimension that of the steepest tail that beta allows.

    Guarantee   epsilon, pure.
    Theorem     In each coordinate the loss is a logarithm of piecewise linear ratios, so largest at one of the two
                values or at infinity; over p coordinates shifts add up in a concave way. So the loss is exactly the
                largest of p a log(1 + alpha / p), p beta + p a log(1 + (alpha / p) e^-beta), and
                p (a - 1) beta + a k (log(1 + alpha / k) - beta) for k = 0, …, p. See [HT25] for p = 1.

    Args:
        epsilon: What a release spends.
        beta: How fast the smooth bound may grow from one neighbour to the next: by e^beta.
        alpha: How far the value may be shifted; say this, `exponent`, or neither.
        exponent: The exponent a of the density.
        dimension: How many numbers get noise.

    Returns:
        The recipe.

    Examples:
        >>> dp.adaptive.polynomial(1, beta=0.1).event
        PureDP(epsilon=1)
    """
    budget, smooth = positive(epsilon, name="epsilon"), positive(beta, name="beta")
    p = positive_integer(dimension, name="dimension")
    if alpha is not None and exponent is not None:
        raise InvalidParameter("say alpha or exponent, or neither")
    if alpha is not None:
        shift = positive(alpha, name="alpha")
        a = _largest_exponent(budget, smooth, shift, p)
    elif exponent is not None:
        a = positive(exponent, name="exponent")
        shift = _largest_shift(budget, smooth, a, p)
    else:
        steepest = budget / (p * smooth)
        exponents = [1 + rounded_down(steepest * part) for part in (_PARTS if p > 1 else _PARTS[-1:])]
        return best_shape(lambda shape: polynomial(budget, beta=smooth, exponent=shape, dimension=p), exponents)
    return Recipe(law=PolynomialLaw(a), alpha=shift, beta=smooth, event=PureDP(budget), dimension=p)


def polynomial_holds(epsilon: Fraction, *, exponent: Fraction, alpha: Fraction, beta: Fraction, dimension: int) -> bool:
    """Tell whether polynomial noise has pure epsilon, by the three terms of its loss; at the working precision."""
    a, b, p = ball(exponent), ball(beta), dimension
    left = epsilon - p * (exponent - 1) * beta  # Exact: the steepest tail leaves nothing.
    if left < 0:
        return False
    near = p * a * ball(alpha / p).log1p() <= ball(epsilon)
    wide = p * a * (ball(alpha / p) * (-b).exp()).log1p() <= ball(epsilon - p * beta)
    tails = (a * k * (ball(alpha / k).log1p() - b) <= ball(left) for k in range(1, p + 1))
    return bool(near and wide and all(tails))


def _largest_shift(epsilon: Fraction, beta: Fraction, exponent: Fraction, p: int) -> Fraction:
    """Return the largest alpha for an exponent."""

    def holds(alpha: Fraction) -> bool:
        return polynomial_holds(epsilon, exponent=exponent, alpha=alpha, beta=beta, dimension=p)

    return largest(holds, epsilon / exponent, advice="choose a smaller beta or exponent")


def _largest_exponent(epsilon: Fraction, beta: Fraction, alpha: Fraction, p: int) -> Fraction:
    """Return the largest exponent for an alpha."""

    def holds(extra: Fraction) -> bool:
        return polynomial_holds(epsilon, exponent=1 + extra, alpha=alpha, beta=beta, dimension=p)

    return 1 + largest(holds, epsilon / (p * beta), advice="choose a smaller beta or alpha")


def power(epsilon: Number, *, beta: Number, gamma: Number | None = None, dimension: int = 1) -> Recipe:
    """Noise with density proportional to 1 / (1 + |z|^gamma), in the l1 norm; without gamma, the best of a dozen.

    Guarantee   epsilon, pure.
    Theorem     The logarithm of the density has slope (gamma - 1)^((gamma - 1) / gamma) at most; stretching a
                coordinate by e^beta moves it by at most max(1, gamma - 1) beta. The two add up. [NRS07]

    Args:
        epsilon: What a release spends.
        beta: How fast the smooth bound may grow from one neighbour to the next: by e^beta.
        gamma: The exponent of the density, above 1; the best of a dozen if not said.
        dimension: How many numbers get noise.

    Returns:
        The recipe.

    Raises:
        InvalidParameter: If stretching by e^beta alone spends all of epsilon.

    Examples:
        >>> dp.adaptive.power(1, beta=0.1, gamma=2).event
        PureDP(epsilon=1)
    """
    if gamma is None:
        return best_shape(lambda shape: power(epsilon, beta=beta, gamma=shape, dimension=dimension), _GAMMAS)
    budget, smooth = positive(epsilon, name="epsilon"), positive(beta, name="beta")
    law, p = PowerLaw(positive(gamma, name="gamma")), positive_integer(dimension, name="dimension")
    left = budget - p * max(Fraction(1), law.gamma - 1) * smooth
    with precision(BITS):
        steepest = ball(law.gamma - 1) ** ball((law.gamma - 1) / law.gamma)
        alpha = positive_part(ball(left) / steepest, advice="choose a smaller beta or gamma")
    return Recipe(law=law, alpha=alpha, beta=smooth, event=PureDP(budget), dimension=p)


def student(epsilon: Number, *, beta: Number, degrees: Number | None = None, dimension: int = 1) -> Recipe:
    """Noise of Student's law, in the l1 norm; without degrees of freedom d, the best of ten.

    Guarantee   epsilon, pure.
    Theorem     The logarithm of the density has slope (d + 1) / (2 sqrt(d)) at most; stretching a coordinate by
                e^beta moves it by at most max(1, d) beta. The two add up. [BS19]

    Args:
        epsilon: What a release spends.
        beta: How fast the smooth bound may grow from one neighbour to the next: by e^beta.
        degrees: The degrees of freedom; the best of ten if not said.
        dimension: How many numbers get noise.

    Returns:
        The recipe.

    Examples:
        >>> dp.adaptive.student(1, beta=0.1).event
        PureDP(epsilon=1)
    """
    if degrees is None:
        return best_shape(lambda shape: student(epsilon, beta=beta, degrees=shape, dimension=dimension), _DEGREES)
    budget, smooth = positive(epsilon, name="epsilon"), positive(beta, name="beta")
    law, p = StudentLaw(positive(degrees, name="degrees")), positive_integer(dimension, name="dimension")
    left = budget - p * max(Fraction(1), law.degrees) * smooth
    with precision(BITS):
        flattest = 2 * ball(law.degrees).sqrt() / ball(law.degrees + 1)
        alpha = positive_part(ball(left) * flattest, advice="choose a smaller beta or fewer degrees")
    return Recipe(law=law, alpha=alpha, beta=smooth, event=PureDP(budget), dimension=p)


# --- tuning ---
# Choose how smooth a bound should be, from public facts: less beta means narrower noise and a higher bound.
#
# Nothing here sees data. The height of the bound for each beta is guessed: as if values lay at even distances, or by
# a function of the caller's, made from public or simulated data.


_COARSE = 24  # Betas tried first, over five powers of ten.
_LARGEST = 10.0
_SPAN = math.log(10) * 5 / _COARSE
_PATIENCE = 4
_GOLDEN = (math.sqrt(5) - 1) / 2
_CLOSE = 0.01  # Relative; closer to the best beta the noise hardly changes.


def evenly_spaced(beta: Fraction) -> float:
    """Return the smooth sensitivity of an order statistic of values at distance one: max (k + 1) e^(-beta k)."""
    best = max(0.0, 1 / float(beta) - 1)
    return max((k + 1) * math.exp(-float(beta) * k) for k in (math.floor(best), math.ceil(best)))


def best_recipe(
    family: Callable[[Fraction], Recipe],
    *,
    guess: Callable[[Fraction], float] = evenly_spaced,
    confidence: Number = Fraction(95, 100),
) -> Recipe:
    """Return the recipe of a family, by beta, whose noise is predicted to be narrowest.

    `family` makes a recipe from a beta, such as `lambda beta: polynomial(1, beta=beta)`; betas that it refuses are
    passed over. `guess` is the smooth bound expected for a beta, in any unit.

    Args:
        family: Makes a recipe from a beta.
        guess: The smooth bound that is expected for a beta; that of an order statistic of evenly spaced values if not
            said. Public: a guess from the data at hand would make the choice of beta private.
        confidence: Noise is compared by what it exceeds with one minus this probability.

    Returns:
        The recipe, with a beta between 0.0001 and 10.

    Raises:
        InvalidParameter: If the family has a recipe for none of these betas.

    Examples:
        >>> recipe = dp.adaptive.best_recipe(lambda beta: dp.adaptive.polynomial(1, beta=beta))
        >>> recipe.event
        PureDP(epsilon=1)
        >>> 0.05 < recipe.beta < 0.5
        True
    """
    rest = float(1 - read_confidence(confidence))

    def width(place: float) -> float:
        recipe = _made(family, place)
        # A guess of the quantile will do: it decides about accuracy only.
        return math.inf if recipe is None else recipe.law.guess(rest) / float(recipe.alpha) * guess(recipe.beta)

    first = _first(width)
    found = _made(family, _golden(width, first - _SPAN, first + _SPAN))
    return family(_beta(first)) if found is None else found


def _first(width: Callable[[float], float]) -> float:
    """Go down from the largest beta until the noise has been growing for a while."""
    best, best_width, since = 0.0, math.inf, 0
    for step in range(_COARSE + 1):
        place = math.log(_LARGEST) - step * _SPAN
        here = width(place)
        if here < best_width:
            best, best_width, since = place, here, 0
        elif math.isfinite(best_width):
            since += 1
            if since == _PATIENCE:
                break
    if math.isinf(best_width):
        raise InvalidParameter("no beta between 0.0001 and 10 suits this family of noise at this budget: spend more")
    return best


def _beta(place: float) -> Fraction:
    """Return a beta of four digits at a place on the logarithmic scale."""
    return Fraction(f"{math.exp(place):.3e}")


def _made(family: Callable[[Fraction], Recipe], place: float) -> Recipe | None:
    try:
        return family(_beta(place))
    except InvalidParameter:
        return None


def _golden(width: Callable[[float], float], low: float, high: float) -> float:
    """Narrow the place of a lowest point by golden sections."""
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = width(left), width(right)
    while high - low > _CLOSE:
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = width(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = width(right)
    return left if at_left <= at_right else right
