"""The recipes as first published, in closed form and within the range in which they are proven.

They are here to compare with: `delta_recipes` has less noise for the same guarantee and no limit on epsilon.
"""

from __future__ import annotations

from fractions import Fraction

from discreet.adaptive.real_laws import GaussianLaw, LaplaceLaw
from discreet.adaptive.recipe import BITS, Recipe, positive_part
from discreet.balls import ball, precision
from discreet.errors import InvalidParameter
from discreet.exact import Number, positive, positive_integer
from discreet.mechanisms.fields import small_delta
from discreet.privacy.events import ApproxDP

__all__ = ["classical_gaussian", "classical_laplace"]


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
    return budget, small_delta(delta, population=None), positive_integer(dimension, name="dimension")
