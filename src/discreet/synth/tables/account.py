"""One account for rounds that are chosen as they go: Gaussian privacy with an exact limit.

Guarantee   Whatever is chosen, the transcript of all rounds is as private as one Gaussian mechanism of mu^2 = `limit`.
Theorem     Each round is given what was released before it. Let it be mu_t-Gaussian private, where mu_t may depend on
            that past, and let the sum of all mu_t^2 never pass the limit. Fix two neighbours and watch a Brownian
            motion on the time from 0 to `limit`, without drift for one of them and with drift 1 for the other. An
            increment over the time mu_t^2 is N(0, mu_t^2) or N(mu_t^2, mu_t^2), as hard to tell apart as
            N(0, 1) and N(mu_t, 1), so the answer of round t can be made from it by a rule that depends on the past and
            the two neighbours, but not on which of them is true [DRS22]. Rounds use increments after one another
            and the time suffices, so the transcript is post-processing of the whole path, and all that a path tells
            about its drift is where it ends: N(0, limit) or N(limit, limit). [ST22, KTH23]
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
from discreet.privacy import gaussian_sigma, gdp_mu
from discreet.privacy.events import GDP, BoundedRange

__all__ = ["Account", "choice_cost", "choice_epsilon", "mu_squared_for"]

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
    return 1 / Fraction(gaussian_sigma(positive(epsilon, name="epsilon"), chance)) ** 2


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
class Account:
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
