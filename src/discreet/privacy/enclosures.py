"""Numbers that are proven: enclose until the ball is small, and bracket where a falling function passes a level."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING

from discreet.balls import ball, precision

if TYPE_CHECKING:
    from flint import arb

__all__ = ["crossing", "enclose", "float_down", "float_up", "log_of"]

_MOST_BITS = 8192
_ACCURACY = 60  # Bits; enough for a double and the rounding after it.
_STEPS = 400
_TOLERANCE = 2.0**-46


def enclose(compute: Callable[[], arb], *, accuracy: int = _ACCURACY) -> arb:
    """Return a ball around what `compute` means, as small as asked for if that is possible.

    The ball is right at any precision; a number too small for a double needs no relative accuracy.
    """
    from flint import arb

    negligible = arb(2) ** -1100
    bits = 128
    while True:
        with precision(bits):
            value = compute()
        good = value.rel_accuracy_bits() >= accuracy or (value.is_finite() and value.abs_upper() < negligible)
        if good or bits >= _MOST_BITS:
            return value
        bits *= 4


def float_up(enclosure: arb) -> float:
    """Return the smallest float not below a ball; infinity if the ball is not finite."""
    from flint import arb

    if not enclosure.is_finite():
        return math.inf
    end = enclosure.upper()
    nearest = float(end)
    return nearest if arb(nearest) >= end else math.nextafter(nearest, math.inf)


def float_down(enclosure: arb) -> float:
    """Return the largest float not above a ball; minus infinity if the ball is not finite."""
    return -float_up(-enclosure)


def log_of(value: Fraction) -> float:
    """Return the natural logarithm of a positive number of any size, to about double precision."""
    return math.log(value.numerator) - math.log(value.denominator)


def crossing(
    height: Callable[[Fraction], arb], target: Fraction, high: float, *, tolerance: float = _TOLERANCE
) -> tuple[float, float]:
    """Bracket the point where a falling function on [0, infinity) passes `target` > 0.

    Returns (lower, upper): at `upper` the function is proven to be at most `target` (infinity if no such point
    was found), and at `lower` it is proven to be above, unless `lower` is 0. `high` is where to look first.
    """
    with precision(128):
        level = ball(target)
    value = height(Fraction(0))
    if value <= level:
        return 0.0, 0.0
    upper, at_upper = _first_below(height, level, high)
    if upper == math.inf:
        return 0.0, math.inf
    ends = _Ends(0.0, upper, _log_ratio(value, level), _log_ratio(at_upper, level))
    return _narrow(height, level, ends, tolerance)


def _first_below(height: Callable[[Fraction], arb], level: arb, high: float) -> tuple[float, arb]:
    for _ in range(8):
        if not math.isfinite(high):
            break
        value = height(Fraction(high))
        if value <= level:
            return high, value
        high = 2 * high + math.ulp(0)
    return math.inf, level


def _log_ratio(value: arb, level: arb) -> float:
    """Return a guide for the secant, never part of a proof: log(value / level)."""
    middle = value.mid()
    return float((middle / level).log()) if middle > 0 else -math.inf


class _Ends:
    """The two ends of a bracket and the heights there, with the weights of the Illinois rule."""

    __slots__ = ("above", "below", "high", "low", "moved")

    def __init__(self, low: float, high: float, above: float, below: float) -> None:
        self.low, self.high, self.above, self.below = low, high, above, below
        self.moved = 0

    def probe(self, step: int) -> float:
        """Return the next point: the secant, or the middle every third step and where the secant is useless."""
        middle = self.low + (self.high - self.low) / 2
        if step % 3 == 2 or not (math.isfinite(self.above) and math.isfinite(self.below)):
            return middle
        drop = self.above - self.below
        point = self.low + (self.high - self.low) * (self.above / drop) if drop > 0 else middle
        return point if self.low < point < self.high else middle

    def lower_end(self, point: float, above: float) -> None:
        self.low, self.above = point, above
        if self.moved == -1:
            self.below /= 2
        self.moved = -1

    def upper_end(self, point: float, below: float) -> None:
        self.high, self.below = point, below
        if self.moved == 1:
            self.above /= 2
        self.moved = 1


def _narrow(height: Callable[[Fraction], arb], level: arb, ends: _Ends, tolerance: float) -> tuple[float, float]:
    proven = 0.0
    for step in range(_STEPS):
        if ends.high - ends.low <= tolerance * ends.high:
            break
        point = ends.probe(step)
        if not ends.low < point < ends.high:
            break
        value = height(Fraction(point))
        if value <= level:
            ends.upper_end(point, _log_ratio(value, level))
        else:
            ends.lower_end(point, _log_ratio(value, level))
            proven = point if value > level else proven
    return _step_back(height, level, proven, ends.high, tolerance), ends.high


def _step_back(height: Callable[[Fraction], arb], level: arb, proven: float, high: float, tolerance: float) -> float:
    """Return a point close below `high` that is proven to be above the level, where the last ones were not."""
    gap = tolerance * high
    while high - gap > proven:
        if height(Fraction(high - gap)) > level:
            return high - gap
        gap *= 8
    return proven
