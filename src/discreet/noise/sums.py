"""Sums of Gaussian weights exp(-k^2 / (2 variance)) over whole numbers, as balls at the working precision."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from discreet.balls import ball, normal_cdf

if TYPE_CHECKING:
    from flint import arb

__all__ = ["above", "total", "weight"]

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
