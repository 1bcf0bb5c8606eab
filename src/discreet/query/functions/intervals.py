"""Interval arithmetic, and what is known of a number that is computed: its kind, bounds and step."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import NamedTuple

from discreet.errors import Refused
from discreet.query.ast import Expression, Literal, Operator
from discreet.query.functions.constants import a
from discreet.schema.columns import ExpressionFacts, Kind

__all__ = [
    "EVERYTHING",
    "Interval",
    "as_double",
    "bounds_of",
    "common_step",
    "greatest_of",
    "hull",
    "least_of",
    "nearest_double",
    "number_facts",
    "require_numbers",
    "step_of",
]

# --- intervals ---
# Interval arithmetic: between which bounds the value of an operator lies, from the bounds of its arguments.
#
# Bounds of whole numbers are exact. A bound of a real number stands for the double nearest to it, and a result for the
# double that the engine computes: the operations of IEEE 754 are rounded to nearest, and rounding is monotone, so that
# a result lies between the rounded results at the ends. Functions that are not rounded so (powers, logarithms) are
# given room on both sides. A bound of a real is kept as the shortest decimal of its double: one tenth stays one tenth.


_ROOM = Fraction(1, 1 << 40)  # Relative; far more than any library function is off by.


class Interval(NamedTuple):
    """All numbers from `low` to `high`; None where there is no bound."""

    low: Fraction | None
    high: Fraction | None

    def plus(self, other: Interval) -> Interval:
        return Interval(_plus(self.low, other.low), _plus(self.high, other.high))

    def minus(self, other: Interval) -> Interval:
        return self.plus(other.negated())

    def negated(self) -> Interval:
        return Interval(_opposite(self.high), _opposite(self.low))

    def times(self, other: Interval) -> Interval:
        if self == _ZERO or other == _ZERO:
            return _ZERO
        lows = [_end_product(a, b, -1) for a, b in self._signed_pairs(other)]
        highs = [_end_product(a, b, 1) for a, b in self._signed_pairs(other)]
        return Interval(_least(lows), _greatest(highs))

    def _signed_pairs(self, other: Interval) -> list[tuple[_IntervalEnd, _IntervalEnd]]:
        return [(a, b) for a in self._ends() for b in other._ends()]

    def _ends(self) -> tuple[_IntervalEnd, _IntervalEnd]:
        return _IntervalEnd(self.low, -1), _IntervalEnd(self.high, 1)

    def inverse(self) -> Interval:
        """Return where one over a number other than zero lies."""
        if self.low is not None and self.low > 0:
            return Interval(Fraction(0) if self.high is None else 1 / self.high, 1 / self.low)
        if self.high is not None and self.high < 0:
            return self.negated().inverse().negated()
        return EVERYTHING

    def absolute(self) -> Interval:
        if self.low is not None and self.low >= 0:
            return self
        if self.high is not None and self.high <= 0:
            return self.negated()
        largest = None if self.low is None or self.high is None else max(-self.low, self.high)
        return Interval(Fraction(0), largest)

    def power(self, exponent: int) -> Interval:
        """Raise to a whole power of at least one."""
        if exponent % 2 == 0:
            return self.absolute().monotone(lambda bound: bound**exponent)
        return self.monotone(lambda bound: bound**exponent)

    def monotone(self, function: Callable[[Fraction], Fraction | None]) -> Interval:
        """Map both ends by a function that never falls; None is no bound."""
        return Interval(*(None if end is None else function(end) for end in self))

    def within(self, low: Fraction, high: Fraction) -> bool:
        """Whether all of it lies between two numbers."""
        return self.low is not None and self.high is not None and low <= self.low and self.high <= high


class _IntervalEnd(NamedTuple):
    """An end of an interval; without a value it is the infinity of its sign."""

    value: Fraction | None
    sign: int

    @property
    def direction(self) -> int:
        return self.sign if self.value is None else (self.value > 0) - (self.value < 0)


def _end_product(one: _IntervalEnd, other: _IntervalEnd, side: int) -> Fraction | None:
    """Multiply two ends for a bound on one side; zero times infinity is zero, for zero times any number is."""
    if one.value is not None and other.value is not None:
        return one.value * other.value
    direction = one.direction * other.direction
    if direction == 0:
        return Fraction(0)
    return None if direction == side else _FAR * direction


# Stands for an infinity on the side where another product decides; farther out than any bound that is kept.
_FAR = Fraction(10) ** 4000
_ZERO = Interval(Fraction(0), Fraction(0))
EVERYTHING = Interval(None, None)


def _plus(one: Fraction | None, other: Fraction | None) -> Fraction | None:
    return None if one is None or other is None else one + other


def _opposite(bound: Fraction | None) -> Fraction | None:
    return None if bound is None else -bound


def _least(bounds: list[Fraction | None]) -> Fraction | None:
    known = [bound for bound in bounds if bound is not None]
    return min(known) if len(known) == len(bounds) else None


def _greatest(bounds: list[Fraction | None]) -> Fraction | None:
    known = [bound for bound in bounds if bound is not None]
    return max(known) if len(known) == len(bounds) else None


def hull(intervals: Iterable[Interval]) -> Interval:
    """Return the smallest interval around all of them."""
    parts = list(intervals)
    return Interval(_least([part.low for part in parts]), _greatest([part.high for part in parts]))


def least_of(*parts: Interval) -> Interval:
    """Return where the least lies of values of which each has an interval."""
    return Interval(_least([part.low for part in parts]), _least([part.high for part in parts]))


def greatest_of(*parts: Interval) -> Interval:
    """Return where the greatest lies of values of which each has an interval."""
    return Interval(_greatest([part.low for part in parts]), _greatest([part.high for part in parts]))


def as_double(value: Fraction) -> float | None:
    """Return the nearest double, None where it is infinite."""
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def nearest_double(value: Fraction) -> Fraction | None:
    """Return the shortest decimal of the nearest double."""
    number = as_double(value)
    return None if number is None else Fraction(repr(number))


def _loosened(interval: Interval) -> Interval:
    """Make room on both sides for a function that is not rounded to nearest."""
    low, high = interval
    return Interval(
        None if low is None else low - abs(low) * _ROOM,
        None if high is None else high + abs(high) * _ROOM,
    )


# --- numbers: What is known of a number that is computed. ---


_FINEST = 1 << 44  # More steps than this between the bounds are no grid that anybody declared.


def bounds_of(facts: ExpressionFacts) -> Interval:
    """Return the bounds of an expression, as an interval."""
    return Interval(facts.low, facts.high)


def number_facts(
    kind: Kind, interval: Interval, *, nullable: bool, step: Fraction | None = None, exactly: bool = True
) -> ExpressionFacts:
    """Return facts of a computed number; bounds of a real are those of the computed double."""
    if kind is Kind.REAL:
        interval = (interval if exactly else _loosened(interval)).monotone(nearest_double)
    return ExpressionFacts(kind=kind, low=interval.low, high=interval.high, step=step, nullable=nullable)


def require_numbers(operator: Operator, arguments: Sequence[Expression]) -> None:
    for argument in arguments:
        if not argument.facts.kind.is_number:
            raise Refused(
                f"{operator.value} needs numbers, and this is {a(argument.facts.kind)}",
                reason="every operator has one meaning for each kind of value",
                way_out="CAST it to INTEGER or DOUBLE, or count with CASE WHEN … THEN 1 ELSE 0 END",
            )


def step_of(operator: Operator, arguments: Sequence[Expression], interval: Interval) -> Fraction | None:
    steps = [_own_step(argument) for argument in arguments]
    if any(step is None for step in steps):
        return None
    known = [step for step in steps if step is not None]
    step = math.prod(known, start=Fraction(1)) if operator is Operator.MULTIPLY else _common(known)
    return _unless_too_fine(step, interval)


def _own_step(argument: Expression) -> Fraction | None:
    if isinstance(argument, Literal) and isinstance(argument.value, (int, Fraction)):
        return abs(Fraction(argument.value))  # All its multiples; zero is a multiple of anything.
    return Fraction(1) if argument.facts.kind is Kind.INTEGER else argument.facts.step


def _common(steps: Sequence[Fraction]) -> Fraction:
    """Return the coarsest step of which all are multiples."""
    under = math.lcm(*(step.denominator for step in steps))
    return Fraction(math.gcd(*(int(step * under) for step in steps)), under)


def _unless_too_fine(step: Fraction, interval: Interval) -> Fraction | None:
    if step == 0 or interval.low is None or interval.high is None:
        return None
    return step if (interval.high - interval.low) / step <= _FINEST else None


def common_step(arguments: Sequence[Expression], interval: Interval) -> Fraction | None:
    """Return the step on which all of them lie, if it is known."""
    return step_of(Operator.ADD, arguments, interval)
