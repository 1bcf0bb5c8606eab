"""How what one release may spend is divided among its tables.

A table that names an error gets the cheapest amount that reaches it; one that names a price or a share gets that. The
rest goes to the others so that the largest relative error is as small as it can be while nobody gets less than half of
an even part: one greedy table, such as a sum of few large values, must not ruin all others.

Theorem     Let table i of m err by k_i / √ρ_i, relative to its expected value, let the ρ_i add up to R, and let no ρ_i
            be below f = R / 2m. Then max_i k_i / √ρ_i is smallest for ρ_i = max(f, c k_i²), with the c for which these
            add up to R. All tables above the floor then err by the same r = 1 / √c, and the others by less.
Proof       Such a c exists and is one number, for the sum grows with c from m f = R / 2 without end. Whoever stays at
            or below r has ρ_i ≥ k_i² / r² = c k_i², and ρ_i ≥ f, so ρ_i ≥ max(f, c k_i²) for every i. The right sides
            add up to R, so every other division has a table below its right side: it is below the floor, or errs by
            more than r.
            With Laplace noise the error is k_i / ε_i, and the same words give ε_i = max(E / 2m, c k_i).
Corollary   Gaussian noise of no table has more than √2 times the standard deviation that an even division of the same
            total gives it, and Laplace noise no more than twice the scale. The deviation of discrete Laplace noise
            falls faster than its scale where that is near or below one, so it can be more than twice as large there.

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

__all__ = ["SplitPart", "amounts", "largest_amount", "weights"]

_DIGITS = 6  # An amount has so many significant digits, rounded down: it can be read, and the sum stays within.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SplitPart:
    """What decides the amount of one table: a fixed amount, a share of the total, or a weight among the rest."""

    fixed: Fraction = Fraction(0)
    share: Fraction = Fraction(0)
    weight: Fraction = Fraction(0)


def amounts(parts: Sequence[SplitPart], total: Fraction) -> tuple[Fraction, ...] | None:
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
    """Return parts that are as the constants, but none below half of an even part, and add up to one."""
    floor = Fraction(1, 2 * len(constants))
    held: set[int] = set()  # Who is at the floor. Holding one up takes from the others: at most m rounds.
    while True:
        rest = sum(value for index, value in enumerate(constants) if index not in held)
        left = 1 - len(held) * floor
        parts = [floor if index in held else left * value / rest for index, value in enumerate(constants)]
        below = {index for index, part in enumerate(parts) if part < floor}
        if not below:
            return tuple(parts)
        held |= below


def _short(amount: Fraction) -> Fraction:
    """Round down to a few significant digits."""
    if amount == 0:
        return amount
    step = Fraction(10) ** (exponent(amount) + 1 - _DIGITS)
    return amount // step * step


def largest_amount(*, gaussian: bool) -> Fraction:
    """Return the largest amount that one table may have."""
    return MOST_RHO if gaussian else MOST_EPSILON
