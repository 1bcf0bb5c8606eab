"""Constants, and the facts that a constant has of itself."""

from __future__ import annotations

from datetime import date, datetime
from fractions import Fraction

from discreet.query.expressions import Expression, Literal, Value
from discreet.query.facts import ExpressionFacts, Kind
from discreet.query.policy import time_number

__all__ = ["LARGEST", "NULL", "a", "is_null", "literal", "null_of", "truth"]

LARGEST = Fraction(1 << 62)  # Whole numbers stay within it, half of what 64 bits hold.
NULL = Literal(None, ExpressionFacts(kind=Kind.TEXT))  # Of any kind: whoever takes it chooses.


def a(kind: Kind) -> str:
    """Return a kind with its article."""
    return f"an {kind.value}" if kind is Kind.INTEGER else f"a {kind.value}"


def literal(value: Value, kind: Kind | None = None) -> Literal:
    """Return a constant; a whole number is an integer unless `kind` says that it is real."""
    match value:
        case None:
            return NULL
        case bool():
            return Literal(value, truth(nullable=False))
        case str():
            return Literal(value, ExpressionFacts(kind=Kind.TEXT, members=(value,), nullable=False))
        case date():
            return _point(value, time_number(value), Kind.TIMESTAMP if isinstance(value, datetime) else Kind.DATE)
        case int() | Fraction():
            number = Fraction(value)
            whole = number.denominator == 1 and abs(number) <= LARGEST
            settled = kind or (Kind.INTEGER if whole else Kind.REAL)
            return _point(int(number) if settled is Kind.INTEGER else number, number, settled)


def _point(value: Value, number: Fraction, kind: Kind) -> Literal:
    return Literal(value, ExpressionFacts(kind=kind, low=number, high=number, nullable=False))


def null_of(kind: Kind) -> Literal:
    """Return NULL of a kind."""
    return Literal(None, ExpressionFacts(kind=kind))


def is_null(expression: Expression) -> bool:
    """Whether an expression is the word NULL."""
    return isinstance(expression, Literal) and expression.value is None


def truth(*, nullable: bool) -> ExpressionFacts:
    """Return the facts of a truth value."""
    return ExpressionFacts(
        kind=Kind.BOOLEAN, low=Fraction(0), high=Fraction(1), members=(False, True), nullable=nullable
    )
