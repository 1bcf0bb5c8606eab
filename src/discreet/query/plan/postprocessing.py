"""Computing with released values: free, since everybody could do it. NULL in gives NULL out, as in SQL."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

from discreet.errors import InvalidParameter
from discreet.query.ast import Choose, Combine, End, KeyValue, Literal, Operator, Post, Query, ReleasedMeasure
from discreet.query.parse.evaluation import compute

__all__ = ["Interval", "apply", "check_posts", "ends_of", "hull", "measures_in", "parts_of"]

Interval: TypeAlias = tuple[Fraction, Fraction]
_LONGEST_TEXT = 10_000  # characters
_MOST_BITS = 2048  # of an exact number; a longer one is rounded to a double, and is NULL beyond them


def parts_of(post: Post) -> tuple[Post, ...]:
    """Return what a value is computed from."""
    match post:
        case Combine():
            return post.arguments
        case Choose():
            return (*(part for branch in post.branches for part in branch), post.otherwise)
        case ReleasedMeasure() | End() | KeyValue() | Literal():
            return ()


def measures_in(post: Post) -> Iterator[int]:
    """List the measures that a value is computed from; an end of an interval is a released number, not an estimate."""
    if isinstance(post, ReleasedMeasure):
        yield post.measure
    for part in parts_of(post):
        yield from measures_in(part)


def check_posts(question: Query) -> None:
    """Refuse, while nothing is spent, what names a measure or a key that is not there."""
    posts = [output.value for output in question.outputs] + [order.value for order in question.order]
    for post in (*posts, *(() if question.having is None else (question.having,))):
        _check(post, question)


def _check(post: Post, question: Query) -> None:
    match post:
        case ReleasedMeasure() | End() if not 0 <= post.measure < len(question.measures):
            raise InvalidParameter("an output names a measure that is not asked for")
        case KeyValue() if not 0 <= post.key < len(question.keys):
            raise InvalidParameter("an output names a key that is not grouped by")
        case _:
            for part in parts_of(post):
                _check(part, question)


def apply(operator: Operator, values: Sequence[Any]) -> Any:
    """Apply an operator to values of one row, exactly where that is possible."""
    try:
        found = compute(operator, _replaceable(values) if operator is Operator.REPLACE else values)
    except TypeError:
        return None  # Unlike things, such as a text and a number.
    return _shortened(Fraction(found) if isinstance(found, float) else found)


def _shortened(value: Any) -> Any:
    """Cut what has grown long: whether an answer can be computed at all must not depend on what was released."""
    if isinstance(value, str):
        return value[:_LONGEST_TEXT]
    if isinstance(value, (int, Fraction)) and _is_long(value):
        try:
            return Fraction(float(value))
        except OverflowError:
            return None
    return value


def _is_long(number: int | Fraction) -> bool:
    return max(number.numerator.bit_length(), number.denominator.bit_length()) > _MOST_BITS


def _replaceable(values: Sequence[Any]) -> Sequence[Any]:
    """Cut a text beforehand: every character of it may become as long as what it is replaced by."""
    text, old, new = values
    return values if text is None or new is None else (text[: 100 * _LONGEST_TEXT // max(1, len(new))], old, new)


def ends_of(operator: Operator, parts: Sequence[Interval]) -> Interval | None:
    """Enclose all values of an operator on intervals; None where it has no rule or no bound."""
    rule = _INTERVALS.get(operator)
    try:
        found = None if rule is None else rule(*parts)
    except (ArithmeticError, TypeError):
        return None  # An end is too large.
    return None if found is None or any(map(_is_long, found)) else found


def hull(parts: Sequence[Interval]) -> Interval:
    """Return the least interval around some others."""
    return min(low for low, _ in parts), max(high for _, high in parts)


def _corners(rule: Callable[[Fraction, Fraction], Fraction]) -> Callable[[Interval, Interval], Interval]:
    def ends(a: Interval, b: Interval) -> Interval:
        values = [rule(x, y) for x in a for y in b]
        return min(values), max(values)

    return ends


def _quotient(a: Interval, b: Interval) -> Interval | None:
    return None if b[0] <= 0 <= b[1] else _corners(lambda x, y: x / y)(a, b)


def _absolute(a: Interval) -> Interval:
    low = Fraction(0) if a[0] <= 0 <= a[1] else min(abs(a[0]), abs(a[1]))
    return low, max(abs(a[0]), abs(a[1]))


def _rounded(a: Interval, places: Interval = (Fraction(0), Fraction(0))) -> Interval:
    decimals = int(places[0])
    return tuple(Fraction(apply(Operator.ROUND, [end, decimals])) for end in a)  # type: ignore[return-value]


def _root(a: Interval) -> Interval | None:
    """Enclose roots; floats are off by less than the part that is added."""
    if a[0] < 0:
        return None
    room = Fraction(1, 1 << 50)
    return Fraction(math.sqrt(a[0])) * (1 - room), Fraction(math.sqrt(a[1])) * (1 + room)


_INTERVALS: dict[Operator, Callable[..., Interval | None]] = {
    Operator.ADD: lambda a, b: (a[0] + b[0], a[1] + b[1]),
    Operator.SUBTRACT: lambda a, b: (a[0] - b[1], a[1] - b[0]),
    Operator.MULTIPLY: _corners(lambda x, y: x * y),
    Operator.DIVIDE: _quotient,
    Operator.NEGATE: lambda a: (-a[1], -a[0]),
    Operator.ABSOLUTE: _absolute,
    Operator.COALESCE: lambda *parts: hull(parts),
    Operator.LEAST: lambda *parts: (min(a[0] for a in parts), min(a[1] for a in parts)),
    Operator.GREATEST: lambda *parts: (max(a[0] for a in parts), max(a[1] for a in parts)),
    Operator.FLOOR: lambda a: (Fraction(math.floor(a[0])), Fraction(math.floor(a[1]))),
    Operator.CEILING: lambda a: (Fraction(math.ceil(a[0])), Fraction(math.ceil(a[1]))),
    Operator.ROUND: _rounded,
    Operator.SQUARE_ROOT: _root,
    Operator.TO_REAL: lambda a: a,
    Operator.TO_INTEGER: lambda a: (Fraction(round(a[0])), Fraction(round(a[1]))),
}
