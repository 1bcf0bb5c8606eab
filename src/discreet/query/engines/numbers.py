"""Arithmetic in SQL. Reals are doubles; a result that is no finite number is NULL. Whole numbers are exact."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from discreet.errors import InvalidParameter
from discreet.query.engines.writing import Rule, WriteAs, Writer, real
from discreet.query.expressions import Apply, Expression, Literal
from discreet.query.facts import ExpressionFacts, Kind
from discreet.query.operators import Operator

__all__ = ["NUMBERS", "finite", "literal_integer"]

_HUGE = 10**300  # Within it no sum, difference or product of the bounds has overflowed on its way.
_LARGEST_EXPONENT = 709.782712893384  # The exponential of a larger double is infinite.
_MOST_DECIMALS = 18


def finite(value: str, facts: ExpressionFacts, writer: Writer) -> str:
    """Turn infinities and NaN into NULL, where the bounds do not tell that there are none."""
    if facts.low is not None and facts.high is not None and max(-facts.low, facts.high) < _HUGE:
        return value
    return writer.let(value, lambda v: f"(CASE WHEN isfinite({v}) THEN {v} END)")


def literal_integer(expression: Expression) -> int:
    """Return a literal whole number of the tree."""
    if not isinstance(expression, Literal) or not isinstance(expression.value, int):
        raise InvalidParameter("an operator needs a literal whole number here")
    return int(expression.value)


def _whole(value: str) -> str:
    return f"TRY({value})"


def _numbers(node: Apply, writer: Writer, write_as: WriteAs) -> list[str]:
    return [write_as(argument, node.facts.kind, writer) for argument in node.arguments]


def _settled(value: str, node: Apply, writer: Writer) -> str:
    return _whole(value) if node.facts.kind is Kind.INTEGER else finite(value, node.facts, writer)


def _infix(sign: str) -> Rule:
    def rule(node: Apply, writer: Writer, write_as: WriteAs) -> str:
        left, right = _numbers(node, writer, write_as)
        return _settled(f"({left} {sign} {right})", node, writer)

    return rule


def _divide(node: Apply, writer: Writer, write_as: WriteAs) -> str:
    over, under = (write_as(argument, Kind.REAL, writer) for argument in node.arguments)
    quotient = f"({over} / {under})"
    if isinstance(node.arguments[1], Literal) and node.arguments[1].value:
        return finite(quotient, node.facts, writer)
    # Whatever the bounds of the quotient are, they say nothing of a division by zero: it is infinite, and then NULL.
    return writer.let(quotient, lambda v: f"(CASE WHEN isfinite({v}) THEN {v} END)")


def _of_two(body: Callable[[str, str], str]) -> Rule:
    def rule(node: Apply, writer: Writer, write_as: WriteAs) -> str:
        left, right = (write_as(argument, Kind.INTEGER, writer) for argument in node.arguments)
        return _whole(writer.let(left, lambda x: writer.let(right, lambda y: body(x, y))))

    return rule


def _uneven(x: str, y: str) -> str:
    """Whether rounding towards zero, as the engine does, is one above rounding down."""
    return f"{x} % {y} <> 0 AND ({x} % {y} < 0) <> ({y} < 0)"


def _floor_divide(x: str, y: str) -> str:
    return f"(CASE WHEN {y} = 0 THEN NULL WHEN {_uneven(x, y)} THEN {x} // {y} - 1 ELSE {x} // {y} END)"


def _modulo(x: str, y: str) -> str:
    return f"(CASE WHEN {y} = 0 THEN NULL WHEN {_uneven(x, y)} THEN {x} % {y} + {y} ELSE {x} % {y} END)"


def _prefix(name: str) -> Rule:
    def rule(node: Apply, writer: Writer, write_as: WriteAs) -> str:
        (value,) = _numbers(node, writer, write_as)
        return _whole(f"{name}({value})") if node.facts.kind is Kind.INTEGER else f"{name}({value})"

    return rule


def _sign(node: Apply, writer: Writer, write_as: WriteAs) -> str:
    (argument,) = node.arguments
    sign = f"sign({write_as(argument, argument.facts.kind, writer)})"
    return f"CAST({sign} AS {'BIGINT' if node.facts.kind is Kind.INTEGER else 'DOUBLE'})"


def _to_whole(name: str) -> Rule:
    def rule(node: Apply, writer: Writer, write_as: WriteAs) -> str:
        (argument,) = node.arguments
        value = write_as(argument, argument.facts.kind, writer)
        if argument.facts.kind is Kind.INTEGER:
            return write_as(argument, node.facts.kind, writer)
        return f"TRY_CAST({name}({value}) AS BIGINT)" if node.facts.kind is Kind.INTEGER else f"{name}({value})"

    return rule


def _round(node: Apply, writer: Writer, write_as: WriteAs) -> str:
    argument = node.arguments[0]
    wanted = literal_integer(node.arguments[1]) if len(node.arguments) > 1 else 0
    decimals = max(-_MOST_DECIMALS, min(_MOST_DECIMALS, wanted))
    value = write_as(argument, argument.facts.kind, writer)
    if argument.facts.kind is Kind.INTEGER:
        rounded = value if decimals >= 0 else _whole(_round_whole(value, 10**-decimals, writer))
        return rounded if node.facts.kind is Kind.INTEGER else f"CAST({rounded} AS DOUBLE)"
    rounded = finite(_round_real(value, decimals, writer), node.facts, writer)
    return rounded if node.facts.kind is Kind.REAL else f"TRY_CAST({rounded} AS BIGINT)"


def _round_whole(value: str, power: int, writer: Writer) -> str:
    half = power // 2

    def body(x: str) -> str:
        return (
            f"(CASE WHEN {x} < 0 THEN ({x} - {half}) // {power} * {power} ELSE ({x} + {half}) // {power} * {power} END)"
        )

    return writer.let(value, body)


def _round_real(value: str, decimals: int, writer: Writer) -> str:
    if decimals == 0:
        return f"round({value})"
    power = real(10.0 ** abs(decimals))
    there, back = ("*", "/") if decimals > 0 else ("/", "*")

    def body(x: str) -> str:
        return f"(CASE WHEN isfinite({x} {there} {power}) THEN round({x} {there} {power}) {back} {power} ELSE {x} END)"

    return writer.let(value, body)


def _where(condition: str, name: str) -> Rule:
    def rule(node: Apply, writer: Writer, write_as: WriteAs) -> str:
        (argument,) = node.arguments
        value = write_as(argument, Kind.REAL, writer)
        return writer.let(value, lambda x: f"(CASE WHEN {x} {condition} THEN {name}({x}) END)")

    return rule


def _power(node: Apply, writer: Writer, write_as: WriteAs) -> str:
    exponent = literal_integer(node.arguments[1])
    value = write_as(node.arguments[0], node.facts.kind, writer)
    one = "CAST(1 AS BIGINT)" if node.facts.kind is Kind.INTEGER else "1e0"

    def body(x: str) -> str:
        return f"({' * '.join([x] * exponent)})" if exponent else f"(CASE WHEN {x} IS NOT NULL THEN {one} END)"

    return _settled(writer.let(value, body), node, writer)


NUMBERS: Mapping[Operator, Rule] = {
    Operator.ADD: _infix("+"),
    Operator.SUBTRACT: _infix("-"),
    Operator.MULTIPLY: _infix("*"),
    Operator.DIVIDE: _divide,
    Operator.FLOOR_DIVIDE: _of_two(_floor_divide),
    Operator.MODULO: _of_two(_modulo),
    Operator.NEGATE: _prefix("-"),
    Operator.ABSOLUTE: _prefix("abs"),
    Operator.SIGN: _sign,
    Operator.FLOOR: _to_whole("floor"),
    Operator.CEILING: _to_whole("ceil"),
    Operator.ROUND: _round,
    Operator.SQUARE_ROOT: _where(">= 0", "sqrt"),
    Operator.LOGARITHM: _where("> 0", "ln"),
    Operator.EXPONENTIAL: _where(f"<= {real(_LARGEST_EXPONENT)}", "exp"),
    Operator.POWER: _power,
}
