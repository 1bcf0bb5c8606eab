"""Expressions of one row: built from operators with kinds checked and bounds derived, and evaluated in Python."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from discreet.errors import Refused
from discreet.query.ast import Apply, Case, Expression, Field, Literal, Operator
from discreet.query.functions.agreement import agree, identity_only
from discreet.query.functions.constants import is_null, literal, null_of
from discreet.query.functions.logic import as_conditions, one_of
from discreet.query.functions.table import FUNCTIONS
from discreet.schema.columns import Kind

__all__ = ["apply", "cast", "clamp", "compute", "evaluate", "literal_value", "renamed", "result_of", "when"]

# --- building ---
# Whoever builds an expression, from SQL or from Python, builds it here: the facts of a node follow from those below it.
# Refusals name no place; the reader of a text adds it.


_O = Operator
_CASTS = {
    Kind.INTEGER: _O.TO_INTEGER,
    Kind.REAL: _O.TO_REAL,
    Kind.TEXT: _O.TO_TEXT,
    Kind.DATE: _O.TO_DATE,
    Kind.TIMESTAMP: _O.TO_TIMESTAMP,
    Kind.BOOLEAN: _O.TO_BOOLEAN,
}


def apply(operator: Operator, *arguments: Expression) -> Expression:
    """Apply an operator: check kinds, derive bounds, and compute at once what is constant."""
    function = FUNCTIONS[operator]
    if not function.tells_apart and any(argument.facts.kind is Kind.IDENTITY for argument in arguments):
        raise identity_only()
    return _folded(function.build(function, arguments))


def _folded(node: Expression) -> Expression:
    if not isinstance(node, Apply) or not all(isinstance(argument, Literal) for argument in node.arguments):
        return node
    value = evaluate(node, {})
    if value is None:
        return null_of(node.facts.kind)
    return literal(Fraction(repr(value)), Kind.REAL) if isinstance(value, float) else literal(value)


def when(branches: Sequence[tuple[Expression, Expression]], otherwise: Expression | None = None) -> Expression:
    """Return the value of the first branch whose condition is true, or else `otherwise`, or else NULL."""
    for condition, _ in branches:
        as_conditions((condition,))
    last = literal(None) if otherwise is None else otherwise
    kind, values = agree([*(value for _, value in branches), last])
    conditions = (condition for condition, _ in branches)
    pairs = tuple(zip(conditions, values[:-1], strict=True))
    return Case(pairs, values[-1], one_of(kind, values))


def cast(argument: Expression, kind: Kind) -> Expression:
    """Cast to a kind; what has no value of it becomes NULL."""
    if is_null(argument):
        return null_of(kind)
    return argument if argument.facts.kind is kind else apply(_CASTS[kind], argument)


def clamp(argument: Expression, low: Fraction, high: Fraction) -> Expression:
    """Move a number into bounds; NULL stays NULL."""
    if not argument.facts.kind.is_number:
        raise Refused("bounds are for numbers", reason="only numbers are added up", way_out="CAST it to a number")
    inside = apply(_O.LEAST, apply(_O.GREATEST, argument, literal(low)), literal(high))
    if not argument.facts.nullable:
        return inside
    return when([(apply(_O.IS_NULL, argument), literal(None))], inside)


def renamed(expression: Expression, name: str) -> Field:
    """Return the field that holds an expression under a name."""
    return Field(name, expression.facts)


# --- evaluation ---
# What an expression is for given values, in Python: the engines' reference.
#
# Used on public values only: to fold constants, to list the values that a key can take, and on released answers.


def evaluate(expression: Expression, row: Mapping[str, Any]) -> Any:
    """Compute an expression of one row, given by the names of its fields."""
    match expression:
        case Field():
            return row[expression.name]
        case Literal():
            return literal_value(expression)
        case Apply():
            return result_of(expression, [evaluate(argument, row) for argument in expression.arguments])
        case Case():
            for condition, value in expression.branches:
                if evaluate(condition, row) is True:
                    return evaluate(value, row)
            return evaluate(expression.otherwise, row)


def result_of(expression: Apply, values: Sequence[Any]) -> Any:
    """Compute a node from the values of its arguments."""
    return _as_kind(compute(expression.operator, values), expression.facts.kind)


def literal_value(literal: Literal) -> Any:
    """Return a constant as the engine sees it: a real is a double."""
    return _as_kind(literal.value, literal.facts.kind)


def _as_kind(value: Any, kind: Kind) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if kind is Kind.REAL:
        return float(value)
    return int(value) if kind is Kind.INTEGER else value


def compute(operator: Operator, values: Sequence[Any]) -> Any:
    """Apply an operator to values; None is NULL. What cannot be computed is None."""
    function = FUNCTIONS[operator]
    if function.sees_null:
        return function.value(*values)
    if any(value is None for value in values):
        return None
    try:
        return _finite(function.value(*values))
    except (ArithmeticError, ValueError):
        return None


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
