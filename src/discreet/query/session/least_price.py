"""The least that a question costs. Below it an answer tells nothing, and only its failure could tell anything.

A failure after the charge is one constant error, but that it came is a bit, and which rows it depends on is limited by
what one row can cost (`planning/row_work.py`), not excluded. So a question may not be almost free: at the least price
a count has noise of 100,000 rows and more, and a budget of epsilon = 1 holds 100,000 such questions, no more.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from discreet.errors import Refused
from discreet.query.planning.spend import Spend

__all__ = ["LEAST_EPSILON", "check_price"]

LEAST_EPSILON = Fraction(1, 10**5)


def check_price(spends: Iterable[Spend]) -> None:
    """Refuse what costs less than the least price altogether; rho is compared by what a pure epsilon amounts to."""
    said = list(spends)
    epsilon = sum((spend.epsilon or Fraction(0) for spend in said), Fraction(0))
    rho = sum((spend.rho or Fraction(0) for spend in said), Fraction(0))
    if epsilon < LEAST_EPSILON and rho < LEAST_EPSILON**2 / 2:  # epsilon-DP is epsilon^2 / 2 of rho. [BS16]
        raise Refused(
            f"a question costs at least ε = {float(LEAST_EPSILON):g} (or ρ = {float(LEAST_EPSILON**2 / 2):g})",
            reason="for less, noise hides any answer, and only whether it fails could tell anything",
            way_out="spend more, or put several questions together under one price with session.together",
        )
