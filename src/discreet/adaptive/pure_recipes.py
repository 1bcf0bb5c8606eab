"""Noise for pure privacy: laws that fall like a power, so that no ratio grows without bound when they are stretched."""

from __future__ import annotations

from fractions import Fraction

from discreet.adaptive.real_laws import PolynomialLaw, PowerLaw, StudentLaw
from discreet.adaptive.recipe import BITS, Recipe, best_shape, largest, positive_part, rounded_down
from discreet.balls import ball, precision
from discreet.errors import InvalidParameter
from discreet.exact import Number, positive, positive_integer
from discreet.privacy.events import PureDP

__all__ = ["polynomial", "polynomial_holds", "power", "student"]

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
