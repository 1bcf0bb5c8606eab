"""Functions of numbers: arithmetic, rounding, roots and powers."""

from __future__ import annotations

import math
import operator as python
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from discreet.errors import InvalidParameter, Refused
from discreet.query.ast import Apply, Expression, Literal, Operator
from discreet.query.engines.sql_writer import Rule, WriteAs, Writer, real
from discreet.query.functions.constants import LARGEST, is_null
from discreet.query.functions.intervals import (
    EVERYTHING,
    Interval,
    as_double,
    bounds_of,
    nearest_double,
    number_facts,
    require_numbers,
    step_of,
)
from discreet.query.functions.record import Facts, SqlFunction, strict
from discreet.schema.columns import ExpressionFacts, Kind

__all__ = ["NUMBERS", "fitting", "literal_integer"]

_O = Operator

# --- facts: Kinds and bounds. ---
#
# Whole numbers are computed as such only while their bounds stay within 2^62, half of what 64 bits hold: nothing can
# overflow, whatever the data are. All others are doubles, which saturate at NULL.


def _computed(arguments: Sequence[Expression]) -> list[Interval]:
    """Return the bounds of arguments as doubles, which is what a real operator gets to see."""
    return [bounds_of(argument.facts).monotone(_double) for argument in arguments]


def _double(bound: Fraction) -> Fraction | None:
    number = as_double(bound)
    return None if number is None else Fraction(number)


def _nullable(arguments: Sequence[Expression]) -> bool:
    return any(argument.facts.nullable for argument in arguments)


_Map = Callable[..., Interval]


def _ring_facts(operator: Operator, arguments: Sequence[Expression], function: _Map) -> ExpressionFacts:
    """Sums and products: whole if everything is whole and stays small."""
    require_numbers(operator, arguments)
    nullable = _nullable(arguments)
    if all(argument.facts.kind is Kind.INTEGER for argument in arguments):
        exact = function(*(bounds_of(argument.facts) for argument in arguments))
        if exact.within(-LARGEST, LARGEST):
            return number_facts(Kind.INTEGER, exact, nullable=nullable)
    interval = function(*_computed(arguments))
    overflows = not interval.monotone(nearest_double).within(-_HUGE, _HUGE)
    step = step_of(operator, arguments, interval)
    return number_facts(Kind.REAL, interval, nullable=nullable or overflows, step=step)


_HUGE = Fraction(10) ** 400


def _divide_facts(arguments: Sequence[Expression]) -> ExpressionFacts:
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


def _floor_divide_facts(arguments: Sequence[Expression]) -> ExpressionFacts:
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


def _modulo_facts(arguments: Sequence[Expression]) -> ExpressionFacts:
    _require_whole(_O.MODULO, arguments)
    under = bounds_of(arguments[1].facts)
    size = under.absolute().high
    if size is None:
        return number_facts(Kind.INTEGER, EVERYTHING, nullable=True)
    low = Fraction(0) if under.low is not None and under.low >= 0 else 1 - max(size, Fraction(1))
    high = Fraction(0) if under.high is not None and under.high <= 0 else max(size, Fraction(1)) - 1
    return number_facts(Kind.INTEGER, Interval(low, high), nullable=True)


def _same_kind_facts(function: _Map) -> Facts:
    def rule(arguments: Sequence[Expression]) -> ExpressionFacts:
        require_numbers(_O.NEGATE, arguments)
        facts = arguments[0].facts
        interval = function(bounds_of(facts))
        # The least 64-bit number has no opposite, so that a whole number without bounds becomes a double.
        kind = facts.kind if interval.within(-LARGEST, LARGEST) else Kind.REAL
        return number_facts(kind, interval, nullable=facts.nullable, step=facts.step)

    return rule


def _sign_facts(arguments: Sequence[Expression]) -> ExpressionFacts:
    require_numbers(_O.SIGN, arguments)
    signs = bounds_of(arguments[0].facts).monotone(lambda bound: Fraction((bound > 0) - (bound < 0)))
    interval = Interval(
        Fraction(-1) if signs.low is None else signs.low, Fraction(1) if signs.high is None else signs.high
    )
    return number_facts(Kind.INTEGER, interval, nullable=_nullable(arguments))


def _floor(bound: Fraction) -> Fraction:
    return Fraction(math.floor(bound))


def _whole_facts(function: Callable[[Fraction], int]) -> Facts:
    """A whole number near to a real one: never falling, and NULL where it does not fit."""

    def rule(arguments: Sequence[Expression]) -> ExpressionFacts:
        require_numbers(_O.FLOOR, arguments)
        interval = _computed(arguments)[0].monotone(lambda bound: Fraction(function(bound)))
        if not interval.within(-LARGEST, LARGEST):
            return number_facts(Kind.INTEGER, EVERYTHING, nullable=True)
        return number_facts(Kind.INTEGER, interval, nullable=_nullable(arguments))

    return rule


def _round_facts(arguments: Sequence[Expression]) -> ExpressionFacts:
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


def _square_root_facts(arguments: Sequence[Expression]) -> ExpressionFacts:
    require_numbers(_O.SQUARE_ROOT, arguments)
    low, high = _computed(arguments)[0]
    at_least_zero = Interval(max(low or Fraction(0), Fraction(0)), None if high is None else max(high, Fraction(0)))
    interval = at_least_zero.monotone(lambda bound: Fraction(math.sqrt(bound)))
    return number_facts(Kind.REAL, interval, nullable=True)


def _logarithm_facts(arguments: Sequence[Expression]) -> ExpressionFacts:
    require_numbers(_O.LOGARITHM, arguments)
    low, high = _computed(arguments)[0]
    # Room is relative, and a logarithm near zero has none: move both ends apart by a trifle instead.
    first = None if low is None or low <= 0 else Fraction(math.log(low)) - Fraction(1, 10**12)
    last = None if high is None or high <= 0 else Fraction(math.log(high)) + Fraction(1, 10**12)
    return number_facts(Kind.REAL, Interval(first, last), nullable=True, exactly=False)


def _exponential_facts(arguments: Sequence[Expression]) -> ExpressionFacts:
    require_numbers(_O.EXPONENTIAL, arguments)
    low, high = _computed(arguments)[0]
    first = Fraction(0) if low is None or low < -700 else Fraction(math.exp(min(low, Fraction(700))))
    last = None if high is None or high > 700 else Fraction(math.exp(max(high, Fraction(-700))))
    return number_facts(Kind.REAL, Interval(first, last), nullable=True, exactly=False)


def _power_facts(arguments: Sequence[Expression]) -> ExpressionFacts:
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


def _as_it_is(function: SqlFunction, arguments: tuple[Expression, ...]) -> Expression:
    """Leave out what rounds a whole number."""
    whole = arguments[0].facts.kind is Kind.INTEGER and not is_null(arguments[0])
    return arguments[0] if whole else strict(function, arguments)


# --- values: What they mean, in Python. ---


_INT64 = 1 << 63


def _divide(one: Any, other: Any) -> Any:
    if isinstance(one, float) or isinstance(other, float):
        return float(one) / float(other)
    return Fraction(one) / Fraction(other)


def _round(value: Any, decimals: int) -> Any:
    if isinstance(value, int):
        return value if decimals >= 0 else int(_round(Fraction(value), decimals))
    exact = Fraction(value)
    scaled = abs(exact) * Fraction(10) ** decimals
    rounded = math.floor(scaled + Fraction(1, 2)) * (1 if exact >= 0 else -1)
    result = Fraction(rounded) / Fraction(10) ** decimals
    return float(result) if isinstance(value, float) else result


def fitting(whole: int) -> int | None:
    """Return a whole number, or None if it does not fit 64 bits."""
    return whole if -_INT64 <= whole < _INT64 else None


def _floor_divide(one: Any, other: Any) -> Any:
    return math.floor(Fraction(one) / Fraction(other))


def _modulo(one: Any, other: Any) -> Any:
    return one - other * math.floor(Fraction(one) / Fraction(other))


def _sign(value: Any) -> Any:
    return (value > 0) - (value < 0)


def _power(value: Any, exponent: int) -> Any:
    return value**exponent


# --- ends: Where released values lie. ---


_NO_PLACES = Interval(Fraction(0), Fraction(0))


def _quotient_ends(over: Interval, under: Interval) -> Interval | None:
    inverse = under.inverse()
    return None if inverse == EVERYTHING else over.times(inverse)


def _round_ends(part: Interval, places: Interval = _NO_PLACES) -> Interval:
    decimals = int(places.low or 0)
    return part.monotone(lambda end: Fraction(_round(end, decimals)))


def _root_ends(part: Interval) -> Interval | None:
    """Enclose roots; floats are off by less than the part that is added."""
    if part.low is None or part.high is None or part.low < 0:
        return None
    room = Fraction(1, 1 << 50)
    return Interval(Fraction(math.sqrt(part.low)) * (1 - room), Fraction(math.sqrt(part.high)) * (1 + room))


# --- SQL ---
# Arithmetic in SQL. Reals are doubles; a result that is no finite number is NULL. Whole numbers are exact.


_FAR_FROM_INFINITE = 10**300  # Within it no sum, difference or product of the bounds has overflowed on its way.
_LARGEST_EXPONENT = 709.782712893384  # The exponential of a larger double is infinite.
_MOST_DECIMALS = 18


def _finite(value: str, facts: ExpressionFacts, writer: Writer) -> str:
    """Turn infinities and NaN into NULL, where the bounds do not tell that there are none."""
    if facts.low is not None and facts.high is not None and max(-facts.low, facts.high) < _FAR_FROM_INFINITE:
        return value
    return writer.let(value, lambda v: f"(CASE WHEN isfinite({v}) THEN {v} END)")


def literal_integer(expression: Expression) -> int:
    """Return a literal whole number of the tree."""
    if not isinstance(expression, Literal) or not isinstance(expression.value, int):
        raise InvalidParameter("an operator needs a literal whole number here")
    return int(expression.value)


def _write_whole(value: str) -> str:
    return f"TRY({value})"


def _write_numbers(node: Apply, writer: Writer, write_as: WriteAs) -> list[str]:
    return [write_as(argument, node.facts.kind, writer) for argument in node.arguments]


def _settled(value: str, node: Apply, writer: Writer) -> str:
    return _write_whole(value) if node.facts.kind is Kind.INTEGER else _finite(value, node.facts, writer)


def _write_infix(sign: str) -> Rule:
    def rule(node: Apply, writer: Writer, write_as: WriteAs) -> str:
        left, right = _write_numbers(node, writer, write_as)
        return _settled(f"({left} {sign} {right})", node, writer)

    return rule


def _write_divide(node: Apply, writer: Writer, write_as: WriteAs) -> str:
    over, under = (write_as(argument, Kind.REAL, writer) for argument in node.arguments)
    quotient = f"({over} / {under})"
    if isinstance(node.arguments[1], Literal) and node.arguments[1].value:
        return _finite(quotient, node.facts, writer)
    # Whatever the bounds of the quotient are, they say nothing of a division by zero: it is infinite, and then NULL.
    return writer.let(quotient, lambda v: f"(CASE WHEN isfinite({v}) THEN {v} END)")


def _write_of_two(body: Callable[[str, str], str]) -> Rule:
    def rule(node: Apply, writer: Writer, write_as: WriteAs) -> str:
        left, right = (write_as(argument, Kind.INTEGER, writer) for argument in node.arguments)
        return _write_whole(writer.let(left, lambda x: writer.let(right, lambda y: body(x, y))))

    return rule


def _uneven(x: str, y: str) -> str:
    """Whether rounding towards zero, as the engine does, is one above rounding down."""
    return f"{x} % {y} <> 0 AND ({x} % {y} < 0) <> ({y} < 0)"


def _floor_divide_sql(x: str, y: str) -> str:
    return f"(CASE WHEN {y} = 0 THEN NULL WHEN {_uneven(x, y)} THEN {x} // {y} - 1 ELSE {x} // {y} END)"


def _modulo_sql(x: str, y: str) -> str:
    return f"(CASE WHEN {y} = 0 THEN NULL WHEN {_uneven(x, y)} THEN {x} % {y} + {y} ELSE {x} % {y} END)"


def _write_prefix(name: str) -> Rule:
    def rule(node: Apply, writer: Writer, write_as: WriteAs) -> str:
        (value,) = _write_numbers(node, writer, write_as)
        return _write_whole(f"{name}({value})") if node.facts.kind is Kind.INTEGER else f"{name}({value})"

    return rule


def _write_sign(node: Apply, writer: Writer, write_as: WriteAs) -> str:
    (argument,) = node.arguments
    sign = f"sign({write_as(argument, argument.facts.kind, writer)})"
    return f"CAST({sign} AS {'BIGINT' if node.facts.kind is Kind.INTEGER else 'DOUBLE'})"


def _write_to_whole(name: str) -> Rule:
    def rule(node: Apply, writer: Writer, write_as: WriteAs) -> str:
        (argument,) = node.arguments
        value = write_as(argument, argument.facts.kind, writer)
        if argument.facts.kind is Kind.INTEGER:
            return write_as(argument, node.facts.kind, writer)
        return f"TRY_CAST({name}({value}) AS BIGINT)" if node.facts.kind is Kind.INTEGER else f"{name}({value})"

    return rule


def _write_round(node: Apply, writer: Writer, write_as: WriteAs) -> str:
    argument = node.arguments[0]
    wanted = literal_integer(node.arguments[1]) if len(node.arguments) > 1 else 0
    decimals = max(-_MOST_DECIMALS, min(_MOST_DECIMALS, wanted))
    value = write_as(argument, argument.facts.kind, writer)
    if argument.facts.kind is Kind.INTEGER:
        rounded = value if decimals >= 0 else _write_whole(_round_whole_sql(value, 10**-decimals, writer))
        return rounded if node.facts.kind is Kind.INTEGER else f"CAST({rounded} AS DOUBLE)"
    rounded = _finite(_round_real_sql(value, decimals, writer), node.facts, writer)
    return rounded if node.facts.kind is Kind.REAL else f"TRY_CAST({rounded} AS BIGINT)"


def _round_whole_sql(value: str, power: int, writer: Writer) -> str:
    half = power // 2

    def body(x: str) -> str:
        return (
            f"(CASE WHEN {x} < 0 THEN ({x} - {half}) // {power} * {power} ELSE ({x} + {half}) // {power} * {power} END)"
        )

    return writer.let(value, body)


def _round_real_sql(value: str, decimals: int, writer: Writer) -> str:
    if decimals == 0:
        return f"round({value})"
    power = real(10.0 ** abs(decimals))
    there, back = ("*", "/") if decimals > 0 else ("/", "*")

    def body(x: str) -> str:
        return f"(CASE WHEN isfinite({x} {there} {power}) THEN round({x} {there} {power}) {back} {power} ELSE {x} END)"

    return writer.let(value, body)


def _write_where(condition: str, name: str) -> Rule:
    def rule(node: Apply, writer: Writer, write_as: WriteAs) -> str:
        (argument,) = node.arguments
        value = write_as(argument, Kind.REAL, writer)
        return writer.let(value, lambda x: f"(CASE WHEN {x} {condition} THEN {name}({x}) END)")

    return rule


def _write_power(node: Apply, writer: Writer, write_as: WriteAs) -> str:
    exponent = literal_integer(node.arguments[1])
    value = write_as(node.arguments[0], node.facts.kind, writer)
    one = "CAST(1 AS BIGINT)" if node.facts.kind is Kind.INTEGER else "1e0"

    def body(x: str) -> str:
        return f"({' * '.join([x] * exponent)})" if exponent else f"(CASE WHEN {x} IS NOT NULL THEN {one} END)"

    return _settled(writer.let(value, body), node, writer)


# --- records ---


NUMBERS = (
    SqlFunction(
        operator=_O.ADD,
        facts=lambda arguments: _ring_facts(_O.ADD, arguments, Interval.plus),
        reals=2,
        value=python.add,
        duckdb=_write_infix("+"),
        ends=Interval.plus,
    ),
    SqlFunction(
        operator=_O.SUBTRACT,
        facts=lambda arguments: _ring_facts(_O.SUBTRACT, arguments, Interval.minus),
        reals=2,
        value=python.sub,
        duckdb=_write_infix("-"),
        ends=Interval.minus,
    ),
    SqlFunction(
        operator=_O.MULTIPLY,
        spelled=("Mul: this expression",),
        facts=lambda arguments: _ring_facts(_O.MULTIPLY, arguments, Interval.times),
        reals=2,
        value=python.mul,
        duckdb=_write_infix("*"),
        ends=Interval.times,
    ),
    SqlFunction(
        operator=_O.DIVIDE,
        spelled=("Div: this expression typed? safe?",),
        facts=_divide_facts,
        reals=2,
        value=_divide,
        duckdb=_write_divide,
        kind=Kind.REAL,
        ends=_quotient_ends,
    ),
    SqlFunction(
        operator=_O.FLOOR_DIVIDE,
        spelled=("IntDiv: this expression",),
        facts=_floor_divide_facts,
        value=_floor_divide,
        duckdb=_write_of_two(_floor_divide_sql),
        kind=Kind.INTEGER,
    ),
    SqlFunction(
        operator=_O.MODULO,
        spelled=("Mod: this expression",),
        facts=_modulo_facts,
        value=_modulo,
        duckdb=_write_of_two(_modulo_sql),
    ),
    SqlFunction(
        operator=_O.NEGATE,
        spelled=("Neg: this",),
        facts=_same_kind_facts(Interval.negated),
        reals=1,
        value=python.neg,
        duckdb=_write_prefix("-"),
        ends=Interval.negated,
    ),
    SqlFunction(
        operator=_O.ABSOLUTE,
        spelled=("Abs: this",),
        facts=_same_kind_facts(Interval.absolute),
        reals=1,
        value=abs,
        duckdb=_write_prefix("abs"),
        ends=Interval.absolute,
    ),
    SqlFunction(
        operator=_O.SIGN,
        spelled=("Sign: this",),
        facts=_sign_facts,
        value=_sign,
        duckdb=_write_sign,
        kind=Kind.INTEGER,
    ),
    SqlFunction(
        operator=_O.FLOOR,
        spelled=("Floor: this",),
        facts=_whole_facts(math.floor),
        build=_as_it_is,
        value=lambda value: fitting(math.floor(value)),
        duckdb=_write_to_whole("floor"),
        kind=Kind.INTEGER,
        ends=lambda part: part.monotone(_floor),
    ),
    SqlFunction(
        operator=_O.CEILING,
        spelled=("Ceil: this",),
        facts=_whole_facts(math.ceil),
        build=_as_it_is,
        value=lambda value: fitting(math.ceil(value)),
        duckdb=_write_to_whole("ceil"),
        kind=Kind.INTEGER,
        ends=lambda part: part.monotone(lambda end: Fraction(math.ceil(end))),
    ),
    SqlFunction(
        operator=_O.ROUND,
        facts=_round_facts,
        reals=1,
        value=_round,
        duckdb=_write_round,
        ends=_round_ends,
    ),
    SqlFunction(
        operator=_O.SQUARE_ROOT,
        spelled=("Sqrt: this",),
        facts=_square_root_facts,
        reals=1,
        value=math.sqrt,
        duckdb=_write_where(">= 0", "sqrt"),
        kind=Kind.REAL,
        ends=_root_ends,
    ),
    SqlFunction(
        operator=_O.LOGARITHM,
        spelled=("Ln: this",),
        facts=_logarithm_facts,
        reals=1,
        value=math.log,
        duckdb=_write_where("> 0", "ln"),
        kind=Kind.REAL,
    ),
    SqlFunction(
        operator=_O.EXPONENTIAL,
        spelled=("Exp: this",),
        facts=_exponential_facts,
        reals=1,
        value=math.exp,
        duckdb=_write_where(f"<= {real(_LARGEST_EXPONENT)}", "exp"),
        kind=Kind.REAL,
    ),
    SqlFunction(
        operator=_O.POWER,
        facts=_power_facts,
        reals=1,
        value=_power,
        duckdb=_write_power,
    ),
)
