"""Noise for (epsilon, delta) and for zero-concentrated privacy, as narrow as its exact guarantee allows."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from discreet.adaptive.dilation import gaussian_delta, laplace_delta, laplace_dilation_delta
from discreet.adaptive.log_normal import LaplaceLogNormalLaw
from discreet.adaptive.real_laws import GaussianLaw, LaplaceLaw
from discreet.adaptive.recipe import BITS, Recipe, best_shape, largest, positive_part
from discreet.balls import ball, precision
from discreet.errors import InvalidParameter
from discreet.exact import Number, positive, positive_integer
from discreet.mechanisms.fields import small_delta
from discreet.privacy.events import ZCDP, ApproxDP

__all__ = ["gaussian", "laplace", "laplace_log_normal"]

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
    """
    budget, chance = positive(epsilon, name="epsilon"), small_delta(delta, population=None)
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
    """
    budget, chance = positive(epsilon, name="epsilon"), small_delta(delta, population=None)
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
