"""One account for rounds that are chosen as they go: Gaussian privacy with an exact limit.

Guarantee   Whatever is chosen, the transcript of all rounds is as private as one Gaussian mechanism of mu^2 = `limit`.
Theorem     The sum of mu^2 may be divided as the answers say: see `discreet.privacy.gdp`. [ST22, KTH23]
            The exponential mechanism takes part with the mu of its trade-off function. [DR19, DRS22]
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import final

from discreet.errors import BudgetExceeded, InvalidParameter
from discreet.exact import Number, exact, positive
from discreet.privacy import gdp_mu
from discreet.privacy.events import GDP, BoundedRange
from discreet.privacy.gdp import largest_mu_squared

__all__ = ["RoundAccount", "choice_cost", "choice_epsilon", "mu_squared_for"]

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


@final
@dataclass(slots=True)
class RoundAccount:
    """What the rounds of one fit have spent, exactly. A round that would pass the limit is refused before it reads."""

    limit: Fraction  # mu^2 of the whole fit
    spent: Fraction = field(default=Fraction(0), init=False)

    @property
    def event(self) -> GDP:
        """What is charged for the whole fit, before it begins."""
        return GDP(mu_squared=self.limit)

    @property
    def left(self) -> Fraction:
        return self.limit - self.spent

    def charge(self, mu_squared: Fraction) -> None:
        """Take a positive mu^2 from what is left, or refuse."""
        cost = positive(mu_squared, name="mu_squared")
        if cost > self.left:
            raise BudgetExceeded(asked=f"mu^2 = {float(cost):.3g}", left=f"mu^2 = {float(self.left):.3g}")
        self.spent += cost
