"""Prices in Gaussian privacy: what a budget is worth in mu^2, what a choice costs, what is left as epsilon."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from discreet.errors import InvalidParameter
from discreet.exact import Number, exact, positive
from discreet.privacy import epsilon as epsilon_of
from discreet.privacy import gdp_mu
from discreet.privacy.events import GDP, BoundedRange
from discreet.privacy.gaussian import largest_mu_squared

__all__ = ["choice_cost", "choice_epsilon", "epsilon_for", "mu_squared_for"]

_NARROWER = 1 - Fraction(1, 1 << 16)  # Steps by which a guessed epsilon is lowered until its price is proven to fit.
_SURE = 30.0  # Deviations: with so many the best candidate is chosen anyway, and floats still tell the odds.


def mu_squared_for(epsilon: Number, delta: Number) -> Fraction:
    """Return the largest mu^2 known to be (epsilon, delta)-private, rounded down. [BW18, DRS22]"""
    chance = exact(delta, name="delta")
    if chance == 0:
        raise InvalidParameter(
            "delta must be above 0: this method adds Gaussian noise, which has no guarantee at delta 0. "
            "Take a delta well below one over the number of people, such as 1e-9"
        )
    return largest_mu_squared(positive(epsilon, name="epsilon"), chance)


@lru_cache(4096)
def choice_cost(epsilon: Fraction) -> Fraction:
    """Return a mu^2 that covers one exponential mechanism of this epsilon, rounded up."""
    return Fraction(gdp_mu(BoundedRange(epsilon))) ** 2


@lru_cache(4096)
def choice_epsilon(mu_squared: Fraction) -> Fraction:
    """Return an epsilon of the exponential mechanism whose price is within `mu_squared`, close to the largest one."""
    # The price is mu = 2 z with odds Phi(z) / Phi(-z) = e^(epsilon / 2); a float guess is lowered until it fits.
    z = min(math.sqrt(mu_squared) / 2, _SURE)
    odds = math.erfc(-z / math.sqrt(2)) / math.erfc(z / math.sqrt(2))
    epsilon = Fraction(2 * math.log(odds)).limit_denominator(1 << 40)
    while choice_cost(epsilon) > mu_squared:
        epsilon *= _NARROWER
    return epsilon


def epsilon_for(mu_squared: Fraction, delta: Fraction) -> Fraction:
    """Return an epsilon whose budget at this delta is within `mu_squared`, close to the largest one."""
    epsilon = Fraction(epsilon_of(GDP(mu_squared=mu_squared), delta))
    while largest_mu_squared(epsilon, delta) > mu_squared:
        epsilon *= _NARROWER
    return epsilon
