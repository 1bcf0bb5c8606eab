"""A recipe for noise that follows a smooth bound: which law, how wide, how smooth, and what it really guarantees.

A recipe releases value + (S / alpha) Z for a beta-smooth bound S in its norm. Only functions that prove its
guarantee make one. All numbers in it are public, exact, and rounded to the private side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Literal, TypeAlias, final

from discreet.adaptive.real_laws import AdmissibleLaw, quantile_up
from discreet.balls import bounds, precision
from discreet.errors import InvalidParameter
from discreet.exact import Number
from discreet.mechanisms.fields import read_confidence
from discreet.privacy.events import Event

if TYPE_CHECKING:
    from flint import arb

__all__ = ["BITS", "Norm", "Recipe", "best_shape", "largest", "positive_part", "rounded_down"]

Norm: TypeAlias = Literal[1, 2]

BITS = 192  # Of working precision; a delta is a small difference of larger numbers.
_RARE = 0.05  # Shapes are compared by what their noise exceeds this rarely.
_DIGITS = 15  # Significant decimal digits of a number that is rounded down.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """Noise (S / alpha) Z, independently in each coordinate, for a beta-smooth bound S."""

    law: AdmissibleLaw
    alpha: Fraction
    beta: Fraction
    event: Event  # what a release spends
    dimension: int = 1
    norm: Norm = 1  # in which the smooth bound is meant

    @property
    def ratio(self) -> Fraction:
        """The scale of the noise over the smooth bound."""
        return 1 / self.alpha

    @property
    def standard_deviation(self) -> float:
        """The standard deviation of one coordinate over the smooth bound; infinity where there is none."""
        return self.law.standard_deviation / float(self.alpha)

    def half_width(self, confidence: Number = Fraction(95, 100)) -> float:
        """Return what the noise of one coordinate, over the smooth bound, exceeds this rarely."""
        return quantile_up(self.law, 1 - read_confidence(confidence)) / float(self.alpha)


def rounded_down(value: Fraction) -> Fraction:
    """Return the next decimal of fifteen digits below a positive number."""
    context = Context(prec=_DIGITS, rounding=ROUND_FLOOR)
    return Fraction(context.divide(Decimal(value.numerator), Decimal(value.denominator)))


def positive_part(enclosure: arb, *, advice: str) -> Fraction:
    """Round a computed number down, or refuse a recipe that has nothing left for it."""
    if not enclosure > 0:
        raise InvalidParameter(f"this budget is too small for this noise: {advice}")
    return rounded_down(bounds(enclosure)[0])


def largest(holds: Callable[[Fraction], bool], start: Fraction, *, advice: str) -> Fraction:
    """Return the largest positive number that holds, to nine digits or more, rounded down; less of it always holds.

    `start` is where to look first.
    """
    with precision(BITS):
        low, high = Fraction(0), rounded_down(start)
        while holds(high):
            low, high = high, 2 * high
        while low == 0:
            half = rounded_down(high / 2)
            if half * 2**64 < start:
                raise InvalidParameter(f"this budget is too small for this noise: {advice}")
            low, high = (half, high) if holds(half) else (low, half)
        while (high - low) * 2**32 > high:
            middle = (low + high) / 2
            low, high = (middle, high) if holds(middle) else (low, middle)
    return rounded_down(low)


def best_shape(make: Callable[[Fraction], Recipe], shapes: Iterable[Fraction]) -> Recipe:
    """Return the recipe whose noise is narrowest, by a guess of its half-width, among shapes that the budget allows."""
    made = [recipe for recipe in (_or_none(make, shape) for shape in shapes) if recipe is not None]
    if not made:
        raise InvalidParameter("no shape of this noise bears so large a beta: choose a smaller one")
    return min(made, key=lambda recipe: recipe.law.guess(_RARE) / float(recipe.alpha))


def _or_none(make: Callable[[Fraction], Recipe], shape: Fraction) -> Recipe | None:
    try:
        return make(shape)
    except InvalidParameter:
        return None
