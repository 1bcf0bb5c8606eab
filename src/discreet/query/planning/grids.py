"""The grid on which the argument of a measure is counted: from its facts alone."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor

from discreet.errors import Refused
from discreet.mechanisms.grid import Grid
from discreet.query.facts import ExpressionFacts, Kind

__all__ = ["grid_of", "reach_of"]

_FINE = 1 << 40  # Steps from bound to bound of what is added up, at least: even 10^9 rows round far below noise.
_PICKED = 10**6  # Steps of what is picked, at least: a pick's error grows with the logarithm of their number.
_LARGEST = 1 << 50  # Of an index, up or down; a grid takes four times as many.
_WIDEST = 1 << 40  # Steps from bound to bound of whole numbers.
_FEW = 64  # Steps; with so few, half a step beside the middle would be noise that can be spared.


def grid_of(facts: ExpressionFacts, *, centred: bool, called: str, picked: bool = False) -> Grid:
    """Return the grid of a bounded expression; bounds that are no multiples of the step are moved outwards.

    With an odd number of steps no grid point is in the middle. Where it is centred and steps are few, half steps are
    counted, which halves the reach of a truth value. Reals that are `picked` from have a coarser default.
    """
    low, high = _bounds(facts, called)
    step = _step(facts, low, high, _PICKED if picked else _FINE)
    first, last = _ends(low, high, step)
    if centred and (first + last) % 2 and last - first <= _FEW:
        step, first, last = step / 2, 2 * first, 2 * last
    return Grid(low=first * step, high=last * step, step=step, default=first * step)


def _bounds(facts: ExpressionFacts, called: str) -> tuple[Fraction, Fraction]:
    if facts.kind is Kind.BOOLEAN:
        return Fraction(0), Fraction(1)
    if facts.kind is Kind.TEXT:
        raise Refused(f"{called} of text is not defined: ask it of numbers")
    if facts.low is None or facts.high is None:
        raise Refused(
            f"{called} needs bounds, or one person could change it by any amount: declare the column with "
            "dp.between(low, high), or clamp it with LEAST and GREATEST"
        )
    return facts.low, facts.high


def _ends(low: Fraction, high: Fraction, step: Fraction) -> tuple[int, int]:
    first, last = floor(low / step), ceil(high / step)
    if first < last:
        return first, last
    # A constant: from zero to it, so that what one row adds is not overrated.
    first, last = min(first, 0), max(last, 0)
    return first, max(last, first + 1)


def _step(facts: ExpressionFacts, low: Fraction, high: Fraction, fine: int) -> Fraction:
    width = high - low
    if facts.step is not None:
        step = facts.step
    elif facts.kind is Kind.TIMESTAMP:
        step = Fraction(next((size for size in (10**6, 1000) if size * _PICKED <= width), 1))
    elif facts.kind is Kind.REAL:
        step = _power_below(width / fine) if width else Fraction(1, _PICKED)
    else:
        step = 10 * _power_below(width / _WIDEST) if width > _WIDEST else Fraction(1)
    while max(abs(low), abs(high)) > _LARGEST * step:
        step *= 10
    return step


def _power_below(size: Fraction) -> Fraction:
    """Return the largest power of ten that is not above a positive number."""
    guess = Fraction(10) ** (len(str(size.numerator)) - len(str(size.denominator)))
    return guess if guess <= size else guess / 10


def reach_of(grid: Grid, centre: int) -> int:
    """Return how far a value is from the centre at most, in steps."""
    return max(grid.last - centre, centre - grid.first)
