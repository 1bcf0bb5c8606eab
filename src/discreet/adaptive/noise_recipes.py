"""Recipes for noise scaled to smooth sensitivity: pure DP, (epsilon, delta), zCDP, and how they are tuned."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from itertools import count
from typing import TYPE_CHECKING, Literal, TypeAlias, final

from discreet.adaptive.smooth_noise_laws import (
    AdmissibleLaw,
    GaussianLaw,
    LaplaceLaw,
    LaplaceLogNormalLaw,
    PolynomialLaw,
    PowerLaw,
    StudentLaw,
    quantile_up,
)
from discreet.balls import ball, bounds, normal_cdf, precision
from discreet.errors import InvalidParameter
from discreet.exact import Number, positive, positive_integer
from discreet.mechanisms.parameters import read_confidence, small_delta
from discreet.privacy.events import ZCDP, ApproxDP, Event, PureDP

if TYPE_CHECKING:
    from flint import arb

__all__ = [
    "BITS",
    "Norm",
    "Recipe",
    "best_recipe",
    "best_shape",
    "classical_gaussian",
    "classical_laplace",
    "evenly_spaced",
    "gaussian",
    "gaussian_delta",
    "laplace",
    "laplace_delta",
    "laplace_dilation_delta",
    "laplace_log_normal",
    "largest",
    "narrower_laplace_delta",
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
        PureDP(epsilon=Fraction(1, 1))
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
        >>> dp.adaptive.student(1, beta=0.1).dimension
        1
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


# --- classical_recipes ---
# The recipes as first published, in closed form and within the range in which they are proven.
#
# They are here to compare with: `delta_recipes` has less noise for the same guarantee and no limit on epsilon.


def classical_laplace(epsilon: Number, delta: Number, *, dimension: int = 1) -> Recipe:
    """Laplace noise 2 S / epsilon in the l1 norm, with beta = epsilon / (4 (p + log(2 / delta))).

    Guarantee   (epsilon, delta) for epsilon and delta below 1.
    Theorem     Shifting is epsilon / 2 private with no delta, stretching (epsilon / 2, delta / 2) private: the gamma
                law of order p exceeds 2 (p + log(2 / delta)) with probability delta / 2 at most. [NRS07]
    """
    budget, chance, p = _read(epsilon, delta, dimension)
    with precision(BITS):
        beta = ball(budget) / (4 * (p + (2 / ball(chance)).log()))
        smooth = positive_part(beta, advice="choose a larger epsilon")
    return Recipe(law=LaplaceLaw(), alpha=budget / 2, beta=smooth, event=ApproxDP(budget, chance), dimension=p)


def classical_gaussian(epsilon: Number, delta: Number, *, dimension: int = 1) -> Recipe:
    """Gaussian noise 5 sqrt(2 log(2 / d)) S / epsilon in the l2 norm, with beta = epsilon / (4 p + 6 log(2 / d)).

    Guarantee   (epsilon, delta) for epsilon and delta below 1, with d = 2 delta / (1 + e^(epsilon / 2)).
    Theorem     Shifting and stretching are (epsilon / 2, d / 2) private each, and one after the other (epsilon,
                (1 + e^(epsilon / 2)) d / 2) private. [NRS07] A chi-square of p degrees of freedom exceeds
                2 p + 3 log(2 / d) with probability d / 2 at most. [LM00]
    """
    budget, chance, p = _read(epsilon, delta, dimension)
    with precision(BITS):
        inner = 2 * ball(chance) / (1 + ball(budget / 2).exp())
        far = (2 / inner).log()
        shift = positive_part(ball(budget / 5) / (2 * far).sqrt(), advice="choose a larger epsilon")
        smooth = positive_part(ball(budget) / (4 * p + 6 * far), advice="choose a larger epsilon")
    event = ApproxDP(budget, chance)
    return Recipe(law=GaussianLaw(), alpha=shift, beta=smooth, event=event, dimension=p, norm=2)


def _read(epsilon: Number, delta: Number, dimension: int) -> tuple[Fraction, Fraction, int]:
    budget = positive(epsilon, name="epsilon")
    if budget >= 1:
        raise InvalidParameter(
            "this recipe is proven for epsilon below 1 only; `laplace` and `gaussian` hold for every epsilon"
        )
    return budget, small_delta(delta, public_rows=None), positive_integer(dimension, name="dimension")


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


# --- approximate_recipes ---
# Recipes for (epsilon, delta) and zero-concentrated privacy: the exact delta of shifted and stretched noise.


# --- delta_recipes ---
# Noise for (epsilon, delta) and for zero-concentrated privacy, as narrow as its exact guarantee allows.


_SIGMAS = tuple(Fraction(n, 64) for n in range(1, 80))


def laplace(
    epsilon: Number,
    delta: Number,
    *,
    alpha: Number | None = None,
    beta: Number | None = None,
    dimension: int = 1,
) -> Recipe:
    """Laplace noise in the l1 norm: say alpha to get the largest beta for it, or beta to get the largest alpha.

    Guarantee   (epsilon, delta), exactly in one dimension.
    Theorem     In one dimension the delta of `dilation.laplace_delta`. In more, shifting is pure, so what it spends
                is left out of the epsilon at which the delta of stretching is taken. [NRS07]

    Args:
        epsilon: What a release spends.
        delta: The delta that goes with it.
        alpha: How far the value may be shifted; say this or `beta`.
        beta: How fast the smooth bound may grow from one neighbour to the next: by e^beta.
        dimension: How many numbers get noise.

    Returns:
        The recipe, with the largest of the other one.

    Examples:
        >>> dp.adaptive.laplace(1, 1e-6, beta=0.01).dimension
        1
    """
    budget, chance = positive(epsilon, name="epsilon"), small_delta(delta, public_rows=None)
    p = positive_integer(dimension, name="dimension")

    def holds(shift: Fraction, smooth: Fraction) -> bool:
        return _laplace_holds(budget, chance, shift, smooth, p)

    shift, smooth = _completed(holds, alpha, beta, budget)
    return Recipe(law=LaplaceLaw(), alpha=shift, beta=smooth, event=ApproxDP(budget, chance), dimension=p)


def _laplace_holds(epsilon: Fraction, delta: Fraction, alpha: Fraction, beta: Fraction, p: int) -> bool:
    if p > 1:
        if alpha >= epsilon:
            return False
        return bool(laplace_dilation_delta(epsilon=epsilon - alpha, beta=beta, dimension=p) <= ball(delta))
    try:
        return bool(laplace_delta(epsilon=epsilon, alpha=alpha, beta=beta) <= ball(delta))
    except InvalidParameter:
        return False  # Beyond what is proven.


def gaussian(
    epsilon: Number,
    delta: Number,
    *,
    alpha: Number | None = None,
    beta: Number | None = None,
    dimension: int = 1,
) -> Recipe:
    """Gaussian noise in the l2 norm: say alpha to get the largest beta for it, or beta to get the largest alpha.

    Guarantee   (epsilon, delta), exactly.
    Theorem     The delta of `dilation.gaussian_delta`, of shifting and stretching at once, in any dimension.

    Args:
        epsilon: What a release spends.
        delta: The delta that goes with it.
        alpha: How far the value may be shifted; say this or `beta`.
        beta: How fast the smooth bound may grow from one neighbour to the next: by e^beta.
        dimension: How many numbers get noise.

    Returns:
        The recipe, with the largest of the other one.

    Examples:
        >>> dp.adaptive.gaussian(1, 1e-6, beta=0.01).dimension
        1
    """
    budget, chance = positive(epsilon, name="epsilon"), small_delta(delta, public_rows=None)
    p = positive_integer(dimension, name="dimension")

    def holds(shift: Fraction, smooth: Fraction) -> bool:
        if shift**2 > 2 * budget:
            return False  # Beyond what is proven.
        return bool(gaussian_delta(epsilon=budget, alpha=shift, beta=smooth, dimension=p) <= ball(chance))

    shift, smooth = _completed(holds, alpha, beta, budget)
    return Recipe(law=GaussianLaw(), alpha=shift, beta=smooth, event=ApproxDP(budget, chance), dimension=p, norm=2)


def _completed(
    holds: Callable[[Fraction, Fraction], bool], alpha: Number | None, beta: Number | None, start: Fraction
) -> tuple[Fraction, Fraction]:
    """Return alpha and beta, the one that is not given as large as possible."""
    if alpha is not None and beta is None:
        shift = positive(alpha, name="alpha")
        return shift, largest(lambda value: holds(shift, value), start / 16, advice="choose a smaller alpha")
    if beta is not None and alpha is None:
        smooth = positive(beta, name="beta")
        return largest(lambda value: holds(value, smooth), start / 4, advice="choose a smaller beta"), smooth
    raise InvalidParameter("say either alpha or beta; the other one follows")


def laplace_log_normal(rho: Number, *, beta: Number, sigma: Number | None = None) -> Recipe:
    """Laplace noise of log-normal scale, in one dimension; without sigma, the best of many.

    Guarantee   rho of zero-concentrated privacy.
    Theorem     rho = e^2 / 2 with e = beta / sigma + alpha exp(3 sigma^2 / 2). Stretching by e^lam shifts the hidden
                normal number by lam / sigma. The slope of the logarithm of the density is largest at zero, where it
                is E exp(-2 sigma Y) / E exp(-sigma Y), so shifting is pure with epsilon alpha exp(3 sigma^2 / 2).
                The roots of rho of two such steps add up. [BS19, BS16]
    """
    if sigma is None:
        return best_shape(lambda shape: laplace_log_normal(rho, beta=beta, sigma=shape), _SIGMAS)
    budget, smooth = positive(rho, name="rho"), positive(beta, name="beta")
    law = LaplaceLogNormalLaw(positive(sigma, name="sigma"))
    with precision(BITS):
        left = ball(2 * budget).sqrt() - ball(smooth / law.sigma)
        steepest = ball(Fraction(3, 2) * law.sigma**2).exp()
        alpha = positive_part(left / steepest, advice="choose a smaller beta or a larger sigma")
    return Recipe(law=law, alpha=alpha, beta=smooth, event=ZCDP(budget))


# --- dilation: The exact delta of noise that one unit may shift and stretch, for Laplace and Gaussian noise. ---
#
# In the scale of the noise of one data set, P is the law of Z and a neighbour's, Q, is that of D + e^lam Z, with
# |lam| <= beta and |D| <= alpha min(1, e^lam). The delta at epsilon is the largest hockey-stick divergence
# max over A of P(A) - e^epsilon Q(A) over all such pairs. Two facts make it a matter of one or two numbers.
#
# Shifts.     Both densities are symmetric and fall away from their centres, so their overlap, the integral of
#             min(p, e^epsilon q), is an integral over levels of the overlap of two centred balls, which shrinks as one
#             moves away. The farthest shift is the worst.
# Narrower.   For lam < 0 the farthest shift makes Q the law of e^lam (alpha + Z). The best A is what lies outside of
#             an interval (a ball) that holds zero, if the loss at zero is at most epsilon. Such an A loses mass when
#             Q is drawn in towards zero, so the divergence grows with |lam|: the narrowest Q is the worst.


_SMALLEST_PIECE = Fraction(1, 1024)  # Of beta.
_MOST_TERMS = 10_000  # About as many terms are added up as the rate says.


def laplace_delta(*, epsilon: Fraction, alpha: Fraction, beta: Fraction) -> arb:
    """Enclose the delta of S Z / alpha with Laplace Z and beta-smooth S, in one dimension.

    Theorem     (1 - e^-beta) (e^-u + e^-v) / 2 with u, v = (epsilon + beta -+ alpha) / (e^beta - 1), if alpha and
                beta + alpha e^-beta are at most epsilon. With a wider Q the loss is at most lam + alpha e^-lam,
                which is convex in lam, so below epsilon: nothing is added there.
    """
    b = ball(beta)
    if alpha > epsilon or not b + ball(alpha) * (-b).exp() <= ball(epsilon):
        raise InvalidParameter("alpha and beta must leave the loss at zero below epsilon: choose smaller ones")
    return narrower_laplace_delta(epsilon=epsilon, alpha=alpha, beta=beta)


def narrower_laplace_delta(*, epsilon: Fraction, alpha: Fraction, beta: Fraction) -> arb:
    """Enclose the divergence at lam = -beta alone, a lower bound on the delta for any alpha <= epsilon + beta."""
    b = ball(beta)
    near, far = (ball(epsilon + beta + side * alpha) / b.expm1() for side in (-1, 1))
    return -(-b).expm1() * ((-near).exp() + (-far).exp()) / 2


def laplace_dilation_delta(*, epsilon: Fraction, beta: Fraction, dimension: int) -> arb:
    """Enclose the delta of stretching `dimension` independent Laplace numbers by e^beta at most, with no shift.

    Theorem     The loss depends on R = |Z|_1 alone, which has the gamma law of order p: narrower by lam it is
                R (e^lam - 1) - p lam, wider p lam - R (1 - e^-lam). What is beyond (or below) the radius where it
                reaches epsilon has the less mass in Q the more Q is drawn in (or out), so beta is the worst.
    """
    p, b, e = ball(dimension), ball(beta), ball(epsilon)
    radius = (e + p * b) / b.expm1()
    narrower = radius.gamma_upper(p, 1) - e.exp() * (radius * b.exp()).gamma_upper(p, 1)
    if p * b <= e:
        return narrower
    radius = (p * b - e) / -(-b).expm1()
    wider = radius.gamma_lower(p, 1) - e.exp() * (radius * (-b).exp()).gamma_lower(p, 1)
    return narrower.max(wider)


def gaussian_delta(*, epsilon: Fraction, alpha: Fraction, beta: Fraction, dimension: int = 1) -> arb:
    """Enclose the delta of S Z / alpha with standard normal Z and S beta-smooth in the l2 norm.

    Theorem     At lam = -beta the best A is what lies outside of a ball. For a wider Q and lam from l to m, the
                density of Q is at least e^(-p (m - l)) times that at l, since it falls away from the same centre:
                so the divergence is at most that at l for epsilon - p (m - l). Pieces are cut in two until none
                is above what lam = -beta gives.
    """
    if alpha**2 > 2 * epsilon:
        raise InvalidParameter("alpha must be at most sqrt(2 epsilon): choose a smaller alpha")
    worst = _narrower(epsilon, alpha, beta, dimension)
    wider = _wider(epsilon, alpha, (Fraction(0), beta), dimension, worst, _SMALLEST_PIECE * beta)
    return worst if wider <= worst else worst.union(worst.max(wider))


def _narrower(epsilon: Fraction, alpha: Fraction, beta: Fraction, p: int) -> arb:
    """Enclose the divergence at lam = -beta: the loss is epsilon where (e^2b - 1) |z - c|^2 is what it is below."""
    a, b = ball(alpha), ball(beta)
    stretch = (2 * b).expm1()
    centre = a * b.exp() / stretch
    radius = (a**2 + stretch * ball(2 * p * beta + 2 * epsilon)).sqrt() / stretch
    mine = _outside(p, centre, radius)
    other = _outside(p, a / stretch, radius * b.exp())
    return mine - ball(epsilon).exp() * other


def _wider(
    epsilon: Fraction, alpha: Fraction, piece: tuple[Fraction, Fraction], p: int, limit: arb, smallest: Fraction
) -> arb:
    """Bound the divergence for all lam in a piece of [0, beta]; no closer than `limit`."""
    low, high = piece
    bound = _at_wider(epsilon - p * (high - low), alpha, low, p)
    if bound <= limit or high - low <= smallest:
        return bound
    middle = (low + high) / 2
    halves = ((low, middle), (middle, high))
    first, second = (_wider(epsilon, alpha, half, p, limit, smallest) for half in halves)
    return first.max(second)


def _at_wider(epsilon: Fraction, alpha: Fraction, lam: Fraction, p: int) -> arb:
    """Enclose the divergence at lam >= 0 and D = alpha: the best A is a ball, or a half space at lam = 0."""
    a, e = ball(alpha), ball(epsilon)
    if lam == 0:
        return _normal_above(e / a - a / 2) - e.exp() * _normal_above(e / a + a / 2)
    shrink = ball(-2 * lam).exp()
    gap = -ball(-2 * lam).expm1()
    squared = a**2 * shrink + 2 * gap * ball(p * lam - epsilon)
    if squared <= 0:
        return ball(0)
    radius = squared.max(ball(0)).sqrt() / gap
    mine = 1 - _outside(p, a * shrink / gap, radius)
    root = ball(-lam).exp()
    other = 1 - _outside(p, a * root / gap, radius * root)
    return (mine - e.exp() * other).max(ball(0))


def _normal_above(z: arb) -> arb:
    return normal_cdf(-z)


def _outside(p: int, centre: arb, radius: arb) -> arb:
    """Enclose P[|Z - centre| > radius] for a standard normal vector and a point at that distance from zero."""
    if p == 1:
        return _normal_above(radius - centre) + _normal_above(radius + centre)
    return _noncentral(p, centre**2 / 2, radius**2 / 2)


def _noncentral(p: int, rate: arb, y: arb) -> arb:
    """Enclose P[chi^2 > 2 y] with p degrees of freedom and noncentrality 2 rate: a Poisson mixture of gamma tails.

    Gamma tails of orders that differ by one differ by y^a e^-y / Gamma(a + 1); weights beyond the mean fall faster
    than a geometric series.
    """
    from flint import arb, ctx

    if not rate < _MOST_TERMS:
        raise InvalidParameter("beta is too small next to alpha for noise in several dimensions: choose a larger beta")
    order = ball(Fraction(p, 2))
    weight = (-rate).exp()
    tail = y.gamma_upper(order, 1)
    gain = (order * y.log() - y - (order + 1).lgamma()).exp()
    total, least = ball(0), arb(2) ** -ctx.prec
    for j in count():
        total += weight * tail
        tail, gain = tail + gain, gain * y / (order + j + 1)
        weight = weight * rate / (j + 1)
        ratio = rate / (j + 2)
        if ratio < 1 and weight / (1 - ratio) < least:
            break
    return total + ball(0).union(weight / (1 - ratio))
