"""Recipes for (epsilon, delta) and zero-concentrated privacy: the exact delta of shifted and stretched noise."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import count
from typing import TYPE_CHECKING

from discreet.adaptive.noise_recipes import BITS, Recipe, best_shape, largest, positive_part
from discreet.adaptive.smooth_noise_laws import GaussianLaw, LaplaceLaw, LaplaceLogNormalLaw
from discreet.balls import ball, normal_cdf, precision
from discreet.errors import InvalidParameter
from discreet.exact import Number, positive, positive_integer
from discreet.mechanisms.parameters import small_delta
from discreet.privacy.events import ZCDP, ApproxDP

if TYPE_CHECKING:
    from flint import arb

__all__ = [
    "classical_gaussian",
    "classical_laplace",
    "gaussian",
    "gaussian_delta",
    "laplace",
    "laplace_delta",
    "laplace_dilation_delta",
    "laplace_log_normal",
    "narrower_laplace_delta",
]

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
    Theorem     In one dimension the delta of `laplace_delta`. In more, shifting is pure, so what it spends
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
        >>> recipe = dp.adaptive.laplace(1, 1e-6, beta=0.01)
        >>> recipe.event
        ApproxDP(epsilon=1, delta=1e-06)
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
    Theorem     The delta of `gaussian_delta`, of shifting and stretching at once, in any dimension.

    Args:
        epsilon: What a release spends.
        delta: The delta that goes with it.
        alpha: How far the value may be shifted; say this or `beta`.
        beta: How fast the smooth bound may grow from one neighbour to the next: by e^beta.
        dimension: How many numbers get noise.

    Returns:
        The recipe, with the largest of the other one.

    Examples:
        >>> recipe = dp.adaptive.gaussian(1, 1e-6, beta=0.01)
        >>> recipe.event
        ApproxDP(epsilon=1, delta=1e-06)
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

    Args:
        rho: What a release spends, of zero-concentrated privacy.
        beta: How fast the smooth bound may grow from one neighbour to the next: by e^beta.
        sigma: The standard deviation of the logarithm of the scale; the best of many if not said.

    Returns:
        The recipe, for one number.

    Raises:
        InvalidParameter: If stretching by e^beta alone spends all of rho.

    Examples:
        >>> dp.adaptive.laplace_log_normal(0.5, beta=0.1).event
        ZCDP(rho=0.5)
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


# --- classical_recipes ---
# The recipes as first published, in closed form and within the range in which they are proven.
#
# They are here to compare with: `laplace` and `gaussian` need less noise for the same guarantee, at every epsilon.


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
