"""Interval arithmetic, and the kinds and bounds of operators on numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

from discreet.errors import Refused
from discreet.query.ast import Expression, Literal, Operator
from discreet.query.column_types import ExpressionFacts, Kind
from discreet.query.parse.evaluation import LARGEST, a

__all__ = [
    "EVERYTHING",
    "NUMBER_RULES",
    "Interval",
    "as_double",
    "bounds_of",
    "common_step",
    "extreme_facts",
    "hull",
    "loosened",
    "nearest_double",
    "number_facts",
    "require_numbers",
]

# --- intervals ---
# Interval arithmetic: between which bounds the value of an operator lies, from the bounds of its arguments.
#
# Bounds of whole numbers are exact. A bound of a real number stands for the double nearest to it, and a result for the
# double that the engine computes: the operations of IEEE 754 are rounded to nearest, and rounding is monotone, so that
# a result lies between the rounded results at the ends. Functions that are not rounded so (powers, logarithms) are
# given
# room on both sides. A bound of a real is kept as the shortest decimal of its double: one tenth stays one tenth.


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

    def _signed_pairs(self, other: Interval) -> list[tuple[_End, _End]]:
        return [(a, b) for a in self._ends() for b in other._ends()]

    def _ends(self) -> tuple[_End, _End]:
        return _End(self.low, -1), _End(self.high, 1)

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


class _End(NamedTuple):
    """An end of an interval; without a value it is the infinity of its sign."""

    value: Fraction | None
    sign: int

    @property
    def direction(self) -> int:
        return self.sign if self.value is None else (self.value > 0) - (self.value < 0)


def _end_product(one: _End, other: _End, side: int) -> Fraction | None:
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


def loosened(interval: Interval) -> Interval:
    """Make room on both sides for a function that is not rounded to nearest."""
    low, high = interval
    return Interval(
        None if low is None else low - abs(low) * _ROOM,
        None if high is None else high + abs(high) * _ROOM,
    )


# --- arithmetic: Kinds and bounds of operators on numbers. ---
#
# Whole numbers are computed as such only while their bounds stay within 2^62, half of what 64 bits hold: nothing can
# overflow, whatever the data are. All others are doubles, which saturate at NULL.


_O = Operator
_FINEST = 1 << 44  # More steps than this between the bounds are no grid that anybody declared.


def bounds_of(facts: ExpressionFacts) -> Interval:
    """Return the bounds of an expression, as an interval."""
    return Interval(facts.low, facts.high)


def number_facts(
    kind: Kind, interval: Interval, *, nullable: bool, step: Fraction | None = None, exactly: bool = True
) -> ExpressionFacts:
    """Return facts of a computed number; bounds of a real are those of the computed double."""
    if kind is Kind.REAL:
        interval = (interval if exactly else loosened(interval)).monotone(nearest_double)
    return ExpressionFacts(kind=kind, low=interval.low, high=interval.high, step=step, nullable=nullable)


def require_numbers(operator: Operator, arguments: Sequence[Expression]) -> None:
    for argument in arguments:
        if not argument.facts.kind.is_number:
            raise Refused(
                f"{operator.value} needs numbers, and this is {a(argument.facts.kind)}",
                reason="every operator has one meaning for each kind of value",
                way_out="CAST it to INTEGER or DOUBLE, or count with CASE WHEN … THEN 1 ELSE 0 END",
            )


def _computed(arguments: Sequence[Expression]) -> list[Interval]:
    """Return the bounds of arguments as doubles, which is what a real operator gets to see."""
    return [bounds_of(argument.facts).monotone(_double) for argument in arguments]


def _double(bound: Fraction) -> Fraction | None:
    number = as_double(bound)
    return None if number is None else Fraction(number)


def _nullable(arguments: Sequence[Expression]) -> bool:
    return any(argument.facts.nullable for argument in arguments)


_Map = Callable[..., Interval]


def _ring(operator: Operator, arguments: Sequence[Expression], function: _Map) -> ExpressionFacts:
    """Sums and products: whole if everything is whole and stays small."""
    require_numbers(operator, arguments)
    nullable = _nullable(arguments)
    if all(argument.facts.kind is Kind.INTEGER for argument in arguments):
        exact = function(*(bounds_of(argument.facts) for argument in arguments))
        if exact.within(-LARGEST, LARGEST):
            return number_facts(Kind.INTEGER, exact, nullable=nullable)
    interval = function(*_computed(arguments))
    overflows = not interval.monotone(nearest_double).within(-_HUGE, _HUGE)
    step = _step(operator, arguments, interval)
    return number_facts(Kind.REAL, interval, nullable=nullable or overflows, step=step)


_HUGE = Fraction(10) ** 400


def _step(operator: Operator, arguments: Sequence[Expression], interval: Interval) -> Fraction | None:
    steps = [_own_step(argument) for argument in arguments]
    if any(step is None for step in steps):
        return None
    known = [step for step in steps if step is not None]
    step = math.prod(known, start=Fraction(1)) if operator is _O.MULTIPLY else _common(known)
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
    return _step(_O.ADD, arguments, interval)


def _divide(arguments: Sequence[Expression]) -> ExpressionFacts:
    require_numbers(_O.DIVIDE, arguments)
    over, under = _computed(arguments)
    # A quotient is NULL where the divisor is zero or the result too large; with bounds it is neither.
    inverse = under.inverse()
    facts = number_facts(Kind.REAL, over.times(inverse), nullable=_nullable(arguments))
    return facts if facts.is_bounded and inverse != EVERYTHING else replace(facts, nullable=True)


def _require_whole(operator: Operator, arguments: Sequence[Expression]) -> None:
    if any(argument.facts.kind is not Kind.INTEGER for argument in arguments):
        raise Refused(
            f"{operator.value} needs whole numbers",
            reason="the remainder of a real number depends on how it was rounded",
            way_out="declare the column with whole=True if it holds whole numbers, CAST both sides to INTEGER, or "
            "write FLOOR(x / y)",
        )
    over, under = (bounds_of(argument.facts) for argument in arguments)
    positive = under.low is not None and under.low >= 0
    if not positive and not over.within(-LARGEST, LARGEST):
        raise Refused(
            f"{operator.value} of a number without bounds needs a divisor that is never negative",
            reason="the least 64-bit number divided by -1 does not fit 64 bits, and would fail for one row only",
            way_out="declare bounds of the column with dp.between",
        )


def _floor_divide(arguments: Sequence[Expression]) -> ExpressionFacts:
    _require_whole(_O.FLOOR_DIVIDE, arguments)
    over, under = (bounds_of(argument.facts) for argument in arguments)
    interval = over.times(under.inverse()).monotone(_floor)
    return number_facts(Kind.INTEGER, _or_sized(interval, over), nullable=True)


def _or_sized(interval: Interval, over: Interval) -> Interval:
    """Division by a whole number other than zero makes nothing larger."""
    if interval.low is not None and interval.high is not None:
        return interval
    size = over.absolute().high
    return EVERYTHING if size is None else Interval(-size, size)


def _modulo(arguments: Sequence[Expression]) -> ExpressionFacts:
    _require_whole(_O.MODULO, arguments)
    under = bounds_of(arguments[1].facts)
    size = under.absolute().high
    if size is None:
        return number_facts(Kind.INTEGER, EVERYTHING, nullable=True)
    low = Fraction(0) if under.low is not None and under.low >= 0 else 1 - max(size, Fraction(1))
    high = Fraction(0) if under.high is not None and under.high <= 0 else max(size, Fraction(1)) - 1
    return number_facts(Kind.INTEGER, Interval(low, high), nullable=True)


def _same_kind(function: _Map) -> Callable[[Sequence[Expression]], ExpressionFacts]:
    def rule(arguments: Sequence[Expression]) -> ExpressionFacts:
        require_numbers(_O.NEGATE, arguments)
        facts = arguments[0].facts
        interval = function(bounds_of(facts))
        # The least 64-bit number has no opposite, so that a whole number without bounds becomes a double.
        kind = facts.kind if interval.within(-LARGEST, LARGEST) else Kind.REAL
        return number_facts(kind, interval, nullable=facts.nullable, step=facts.step)

    return rule


def _sign(arguments: Sequence[Expression]) -> ExpressionFacts:
    require_numbers(_O.SIGN, arguments)
    signs = bounds_of(arguments[0].facts).monotone(lambda bound: Fraction((bound > 0) - (bound < 0)))
    interval = Interval(
        Fraction(-1) if signs.low is None else signs.low, Fraction(1) if signs.high is None else signs.high
    )
    return number_facts(Kind.INTEGER, interval, nullable=_nullable(arguments))


def _floor(bound: Fraction) -> Fraction:
    return Fraction(math.floor(bound))


def _whole(function: Callable[[Fraction], int]) -> Callable[[Sequence[Expression]], ExpressionFacts]:
    """A whole number near to a real one: never falling, and NULL where it does not fit."""

    def rule(arguments: Sequence[Expression]) -> ExpressionFacts:
        require_numbers(_O.FLOOR, arguments)
        interval = _computed(arguments)[0].monotone(lambda bound: Fraction(function(bound)))
        if not interval.within(-LARGEST, LARGEST):
            return number_facts(Kind.INTEGER, EVERYTHING, nullable=True)
        return number_facts(Kind.INTEGER, interval, nullable=_nullable(arguments))

    return rule


def _round(arguments: Sequence[Expression]) -> ExpressionFacts:
    require_numbers(_O.ROUND, arguments[:1])
    decimals = _whole_literal(arguments[1], "the number of decimals", -15, 15)
    facts = arguments[0].facts
    unit = Fraction(10) ** -decimals

    def nearest(bound: Fraction) -> Fraction:
        size = math.floor(abs(bound) / unit + Fraction(1, 2)) * unit
        return size if bound >= 0 else -size

    interval = bounds_of(facts).monotone(nearest)
    whole = facts.kind is Kind.INTEGER and interval.within(-LARGEST, LARGEST)
    return number_facts(Kind.INTEGER if whole else Kind.REAL, interval, nullable=facts.nullable, exactly=False)


def _whole_literal(argument: Expression, name: str, low: int, high: int) -> int:
    value = argument.value if isinstance(argument, Literal) and argument.facts.kind is Kind.INTEGER else None
    if isinstance(value, int) and low <= value <= high:
        return value
    raise Refused(
        f"{name} must be a constant whole number from {low} to {high}",
        reason="an operator that looks at data in two places may fail for one row only",
        way_out="write the number itself",
    )


def _square_root(arguments: Sequence[Expression]) -> ExpressionFacts:
    require_numbers(_O.SQUARE_ROOT, arguments)
    low, high = _computed(arguments)[0]
    at_least_zero = Interval(max(low or Fraction(0), Fraction(0)), None if high is None else max(high, Fraction(0)))
    interval = at_least_zero.monotone(lambda bound: Fraction(math.sqrt(bound)))
    return number_facts(Kind.REAL, interval, nullable=True)


def _logarithm(arguments: Sequence[Expression]) -> ExpressionFacts:
    require_numbers(_O.LOGARITHM, arguments)
    low, high = _computed(arguments)[0]
    # Room is relative, and a logarithm near zero has none: move both ends apart by a trifle instead.
    first = None if low is None or low <= 0 else Fraction(math.log(low)) - Fraction(1, 10**12)
    last = None if high is None or high <= 0 else Fraction(math.log(high)) + Fraction(1, 10**12)
    return number_facts(Kind.REAL, Interval(first, last), nullable=True, exactly=False)


def _exponential(arguments: Sequence[Expression]) -> ExpressionFacts:
    require_numbers(_O.EXPONENTIAL, arguments)
    low, high = _computed(arguments)[0]
    first = Fraction(0) if low is None or low < -700 else Fraction(math.exp(min(low, Fraction(700))))
    last = None if high is None or high > 700 else Fraction(math.exp(max(high, Fraction(-700))))
    return number_facts(Kind.REAL, Interval(first, last), nullable=True, exactly=False)


def _power(arguments: Sequence[Expression]) -> ExpressionFacts:
    require_numbers(_O.POWER, arguments[:1])
    exponent = _whole_literal(arguments[1], "an exponent", 0, 8)
    facts = arguments[0].facts
    if exponent == 0:
        return number_facts(facts.kind, Interval(Fraction(1), Fraction(1)), nullable=facts.nullable)
    exact = bounds_of(facts).power(exponent)
    if facts.kind is Kind.INTEGER and exact.within(-LARGEST, LARGEST):
        return number_facts(Kind.INTEGER, exact, nullable=facts.nullable)
    interval = _computed(arguments[:1])[0].power(exponent)
    return number_facts(Kind.REAL, interval, nullable=True, exactly=False)


def extreme_facts(operator: Operator, arguments: Sequence[Expression]) -> ExpressionFacts:
    """Return the facts of LEAST and GREATEST, which leave NULL out; the arguments are of one kind already."""
    parts = [bounds_of(argument.facts) for argument in arguments]
    certain = [part for part, argument in zip(parts, arguments, strict=True) if not argument.facts.nullable]
    low, high = hull(parts)
    if operator is _O.LEAST:
        highs = [part.high for part in certain if part.high is not None]
        high = min([*highs, *([] if high is None else [high])], default=None)
        high = high if low is None or high is None else max(low, high)
    else:
        lows = [part.low for part in certain if part.low is not None]
        low = max([*lows, *([] if low is None else [low])], default=None)
    interval = Interval(low, high)
    step = common_step(arguments, interval) if arguments[0].facts.kind is Kind.REAL else None
    kind = arguments[0].facts.kind
    return ExpressionFacts(kind=kind, low=low, high=high, step=step, nullable=not certain)


NUMBER_RULES: Mapping[Operator, Callable[[Sequence[Expression]], ExpressionFacts]] = {
    _O.ADD: lambda arguments: _ring(_O.ADD, arguments, Interval.plus),
    _O.SUBTRACT: lambda arguments: _ring(_O.SUBTRACT, arguments, Interval.minus),
    _O.MULTIPLY: lambda arguments: _ring(_O.MULTIPLY, arguments, Interval.times),
    _O.DIVIDE: _divide,
    _O.FLOOR_DIVIDE: _floor_divide,
    _O.MODULO: _modulo,
    _O.NEGATE: _same_kind(Interval.negated),
    _O.ABSOLUTE: _same_kind(Interval.absolute),
    _O.SIGN: _sign,
    _O.FLOOR: _whole(math.floor),
    _O.CEILING: _whole(math.ceil),
    _O.ROUND: _round,
    _O.SQUARE_ROOT: _square_root,
    _O.LOGARITHM: _logarithm,
    _O.EXPONENTIAL: _exponential,
    _O.POWER: _power,
}
