"""Computing with released values: free, since everybody could do it. NULL in gives NULL out, as in SQL."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, TypeAlias

from discreet.errors import Refused
from discreet.query.expressions import Literal
from discreet.query.operators import Operator
from discreet.query.question import Answer, Combine, End, KeyValue, Post

__all__ = ["apply", "check_post", "ends_of", "measures_in"]

Interval: TypeAlias = tuple[Fraction, Fraction]
_LARGEST_EXPONENT = 8


def measures_in(post: Post) -> Iterator[int]:
    """List the measures that a value is computed from; an end of an interval is a released number, not an estimate."""
    match post:
        case Answer():
            yield post.measure
        case Combine():
            for argument in post.arguments:
                yield from measures_in(argument)
        case End() | KeyValue() | Literal():
            return


def check_post(post: Post) -> None:
    """Refuse, while nothing is spent, what cannot be computed with released values."""
    if isinstance(post, Combine):
        if post.operator not in _RULES and post.operator not in _LOGIC and post.operator not in _WITH_NULL:
            raise Refused(f"{post.operator.value} of released values is not supported: compute it from the answer")
        for argument in post.arguments:
            check_post(argument)


def apply(operator: Operator, values: list[Any]) -> Any:
    """Apply an operator to values of one row."""
    if operator in _LOGIC:
        return _LOGIC[operator](values)
    if operator in _WITH_NULL:
        return _WITH_NULL[operator](values)
    if any(value is None for value in values):
        return None
    try:
        return _RULES[operator](*(_number(value) for value in values))
    except (ArithmeticError, ValueError, TypeError):
        return None  # Division by zero, the root of a negative number, a comparison of unlike things.


def _number(value: Any) -> Any:
    return Fraction(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else value


def _and(values: list[Any]) -> bool | None:
    if any(value is False for value in values):
        return False
    return None if any(value is None for value in values) else True


def _or(values: list[Any]) -> bool | None:
    if any(value is True for value in values):
        return True
    return None if any(value is None for value in values) else False


def _not(values: list[Any]) -> bool | None:
    return None if values[0] is None else not values[0]


_LOGIC: dict[Operator, Callable[[list[Any]], bool | None]] = {
    Operator.AND: _and,
    Operator.OR: _or,
    Operator.NOT: _not,
}


def _present(values: list[Any]) -> list[Any]:
    return [_number(value) for value in values if value is not None]


def _in(values: list[Any]) -> bool | None:
    first, *others = values
    if first is None:
        return None
    if _number(first) in _present(others):
        return True
    return None if len(_present(others)) < len(others) else False


_WITH_NULL: dict[Operator, Callable[[list[Any]], Any]] = {
    Operator.IS_NULL: lambda values: values[0] is None,
    Operator.COALESCE: lambda values: next((value for value in values if value is not None), None),
    Operator.LEAST: lambda values: min(_present(values), default=None),
    Operator.GREATEST: lambda values: max(_present(values), default=None),
    Operator.IN: _in,
}


def _round(value: Fraction, places: Fraction = Fraction(0)) -> Fraction:
    """Round half away from zero."""
    scaled = abs(value) * Fraction(10) ** int(places)
    return Fraction(math.floor(scaled + Fraction(1, 2))) / Fraction(10) ** int(places) * (1 if value >= 0 else -1)


def _power(value: Fraction, exponent: Fraction) -> Fraction:
    if exponent.denominator != 1 or not 0 <= exponent <= _LARGEST_EXPONENT:
        raise ValueError
    return Fraction(value ** int(exponent))


_RULES: dict[Operator, Callable[..., Any]] = {
    Operator.ADD: lambda a, b: a + b,
    Operator.SUBTRACT: lambda a, b: a - b,
    Operator.MULTIPLY: lambda a, b: a * b,
    Operator.DIVIDE: lambda a, b: a / b,
    Operator.FLOOR_DIVIDE: lambda a, b: Fraction(a // b),
    Operator.MODULO: lambda a, b: a % b,
    Operator.NEGATE: lambda a: -a,
    Operator.ABSOLUTE: abs,
    Operator.SIGN: lambda a: Fraction((a > 0) - (a < 0)),
    Operator.FLOOR: lambda a: Fraction(math.floor(a)),
    Operator.CEILING: lambda a: Fraction(math.ceil(a)),
    Operator.ROUND: _round,
    Operator.SQUARE_ROOT: lambda a: Fraction(math.sqrt(a)),
    Operator.LOGARITHM: lambda a: Fraction(math.log(a)),
    Operator.EXPONENTIAL: lambda a: Fraction(math.exp(a)),
    Operator.POWER: _power,
    Operator.EQUAL: lambda a, b: a == b,
    Operator.NOT_EQUAL: lambda a, b: a != b,
    Operator.LESS: lambda a, b: a < b,
    Operator.LESS_OR_EQUAL: lambda a, b: a <= b,
    Operator.GREATER: lambda a, b: a > b,
    Operator.GREATER_OR_EQUAL: lambda a, b: a >= b,
    Operator.TO_REAL: lambda a: a,
    Operator.TO_INTEGER: lambda a: Fraction(round(a)),
}


def ends_of(operator: Operator, parts: list[Interval]) -> Interval | None:
    """Enclose all values of an operator on intervals; None where it has no rule or no bound."""
    rule = _INTERVALS.get(operator)
    return None if rule is None else rule(*parts)


def _corners(rule: Callable[[Fraction, Fraction], Fraction]) -> Callable[[Interval, Interval], Interval | None]:
    def ends(a: Interval, b: Interval) -> Interval:
        values = [rule(x, y) for x in a for y in b]
        return min(values), max(values)

    return ends


def _quotient(a: Interval, b: Interval) -> Interval | None:
    if b[0] <= 0 <= b[1]:
        return None
    return _corners(lambda x, y: x / y)(a, b)


def _absolute(a: Interval) -> Interval:
    low = Fraction(0) if a[0] <= 0 <= a[1] else min(abs(a[0]), abs(a[1]))
    return low, max(abs(a[0]), abs(a[1]))


def _rising(rule: Callable[..., Fraction]) -> Callable[..., Interval]:
    return lambda a, *others: (rule(a[0], *(b[0] for b in others)), rule(a[1], *(b[1] for b in others)))


_INTERVALS: dict[Operator, Callable[..., Interval | None]] = {
    Operator.ADD: _rising(lambda a, b: a + b),
    Operator.SUBTRACT: lambda a, b: (a[0] - b[1], a[1] - b[0]),
    Operator.MULTIPLY: _corners(lambda x, y: x * y),
    Operator.DIVIDE: _quotient,
    Operator.NEGATE: lambda a: (-a[1], -a[0]),
    Operator.ABSOLUTE: _absolute,
    Operator.LEAST: lambda *parts: (min(a[0] for a in parts), min(a[1] for a in parts)),
    Operator.GREATEST: lambda *parts: (max(a[0] for a in parts), max(a[1] for a in parts)),
    Operator.FLOOR: _rising(lambda a: Fraction(math.floor(a))),
    Operator.CEILING: _rising(lambda a: Fraction(math.ceil(a))),
    Operator.ROUND: _rising(_round),
    Operator.TO_REAL: lambda a: a,
    Operator.TO_INTEGER: _rising(lambda a: Fraction(round(a))),
}
