"""How what one release may spend is divided among its tables.

A table that names an error gets the cheapest amount that reaches it; one that names a price or a share gets that. The
rest goes to the others so that the largest relative error is as small as it can be.

Theorem     Let table i err by k_i / √ρ_i, relative to its expected value, and let the ρ_i add up to R. Then
            max_i k_i / √ρ_i is smallest for ρ_i = R k_i² / Σ_j k_j², where all are equal to r = √(Σ_j k_j² / R).
Proof       Whoever stays at or below r has ρ_i ≥ k_i² / r² for every i. The right sides add up to R, so every other
            division has a table below its right side, which errs by more than r.
            With Laplace noise the error is k_i / ε_i, and the same words give ε_i = E k_i / Σ_j k_j.

With Gaussian noise the whole release is one Gaussian whose ρ is the sum, so the largest R that fits (ε, δ) is the same
for all divisions; where a table also chooses quantiles, or names an epsilon, R is found for the division at hand, by
bisection on exact numbers with the tight accountant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from discreet.mechanisms.text import exponent
from discreet.query.planning.spend import MOST_EPSILON, MOST_RHO

__all__ = ["Part", "amounts", "largest_amount", "weights"]

_DIGITS = 6  # An amount has so many significant digits, rounded down: it can be read, and the sum stays within.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What decides the amount of one table: a fixed amount, a share of the total, or a weight among the rest."""

    fixed: Fraction = Fraction(0)
    share: Fraction = Fraction(0)
    weight: Fraction = Fraction(0)


def amounts(parts: Sequence[Part], total: Fraction) -> tuple[Fraction, ...] | None:
    """Divide a total; None if it does not hold what is fixed and shared, and something for whoever has a weight."""
    fixed, shared = sum(part.fixed for part in parts), total * sum(part.share for part in parts)
    weight, rest = sum(part.weight for part in parts), total - fixed - shared
    if rest < 0 or (weight and rest == 0):
        return None
    return tuple(
        part.fixed + _short(part.share * total) + (_short(part.weight * rest / weight) if part.weight else 0)
        for part in parts
    )


def weights(constants: Sequence[Fraction]) -> tuple[Fraction, ...]:
    """Return parts that are as the constants and add up to one."""
    total = sum(constants)
    return tuple(constant / total for constant in constants)


def _short(amount: Fraction) -> Fraction:
    """Round down to a few significant digits."""
    if amount == 0:
        return amount
    step = Fraction(10) ** (exponent(amount) + 1 - _DIGITS)
    return amount // step * step


def largest_amount(*, gaussian: bool) -> Fraction:
    """Return the largest amount that one table may have."""
    return MOST_RHO if gaussian else MOST_EPSILON
