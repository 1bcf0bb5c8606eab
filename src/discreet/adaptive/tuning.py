"""Choose how smooth a bound should be, from public facts: less beta means narrower noise and a higher bound.

Nothing here sees data. The height of the bound for each beta is guessed: as if values lay at even distances, or by
a function of the caller's, made from public or simulated data.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from discreet.adaptive.recipe import Recipe
from discreet.errors import InvalidParameter
from discreet.exact import Number
from discreet.mechanisms.fields import read_confidence

__all__ = ["best_recipe", "evenly_spaced"]

_COARSE = 24  # Betas tried first, over five powers of ten.
_LARGEST = 10.0
_SPAN = math.log(10) * 5 / _COARSE
_PATIENCE = 4
_GOLDEN = (math.sqrt(5) - 1) / 2
_CLOSE = 0.01  # Relative; closer to the best beta the noise hardly changes.


def evenly_spaced(beta: Fraction) -> float:
    """Return the smooth sensitivity of an order statistic of values at distance one: max (k + 1) e^(-beta k)."""
    best = max(0.0, 1 / float(beta) - 1)
    return max((k + 1) * math.exp(-float(beta) * k) for k in (math.floor(best), math.ceil(best)))


def best_recipe(
    family: Callable[[Fraction], Recipe],
    *,
    guess: Callable[[Fraction], float] = evenly_spaced,
    confidence: Number = Fraction(95, 100),
) -> Recipe:
    """Return the recipe of a family, by beta, whose noise is predicted to be narrowest.

    `family` makes a recipe from a beta, such as `lambda beta: polynomial(1, beta=beta)`; betas that it refuses are
    passed over. `guess` is the smooth bound expected for a beta, in any unit.
    """
    rest = float(1 - read_confidence(confidence))

    def width(place: float) -> float:
        recipe = _made(family, place)
        # A guess of the quantile will do: it decides about accuracy only.
        return math.inf if recipe is None else recipe.law.guess(rest) / float(recipe.alpha) * guess(recipe.beta)

    first = _first(width)
    found = _made(family, _golden(width, first - _SPAN, first + _SPAN))
    return family(_beta(first)) if found is None else found


def _first(width: Callable[[float], float]) -> float:
    """Go down from the largest beta until the noise has been growing for a while."""
    best, best_width, since = 0.0, math.inf, 0
    for step in range(_COARSE + 1):
        place = math.log(_LARGEST) - step * _SPAN
        here = width(place)
        if here < best_width:
            best, best_width, since = place, here, 0
        elif math.isfinite(best_width):
            since += 1
            if since == _PATIENCE:
                break
    if math.isinf(best_width):
        raise InvalidParameter("this family has no recipe for any beta between 0.0001 and 10: spend more")
    return best


def _beta(place: float) -> Fraction:
    """Return a beta of four digits at a place on the logarithmic scale."""
    return Fraction(f"{math.exp(place):.3e}")


def _made(family: Callable[[Fraction], Recipe], place: float) -> Recipe | None:
    try:
        return family(_beta(place))
    except InvalidParameter:
        return None


def _golden(width: Callable[[float], float], low: float, high: float) -> float:
    """Narrow the place of a lowest point by golden sections."""
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = width(left), width(right)
    while high - low > _CLOSE:
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = width(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = width(right)
    return left if at_left <= at_right else right
