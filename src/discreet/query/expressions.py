"""Expressions: what is computed from one row. A closed set of frozen nodes, each with its facts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime
from fractions import Fraction
from typing import TypeAlias, final

from discreet.query.facts import ExpressionFacts
from discreet.query.operators import Operator

__all__ = ["Apply", "Case", "Expression", "Field", "Literal", "Value", "walk"]

Value: TypeAlias = bool | int | Fraction | str | date | datetime | None


@final
@dataclass(frozen=True, slots=True)
class Field:
    """A column of a source, by a name that occurs once in the whole question."""

    name: str
    facts: ExpressionFacts


@final
@dataclass(frozen=True, slots=True)
class Literal:
    """A constant that the analyst typed. It reaches an engine as a bound parameter or a number we wrote ourselves."""

    value: Value
    facts: ExpressionFacts


@final
@dataclass(frozen=True, slots=True)
class Apply:
    """An operator on its arguments."""

    operator: Operator
    arguments: tuple[Expression, ...]
    facts: ExpressionFacts


@final
@dataclass(frozen=True, slots=True)
class Case:
    """The value of the first branch whose condition is true, or else `otherwise`."""

    branches: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression
    facts: ExpressionFacts


Expression: TypeAlias = Field | Literal | Apply | Case


def walk(expression: Expression) -> Iterator[Expression]:
    """Visit a node and all nodes below it."""
    yield expression
    match expression:
        case Apply():
            for argument in expression.arguments:
                yield from walk(argument)
        case Case():
            for condition, value in expression.branches:
                yield from walk(condition)
                yield from walk(value)
            yield from walk(expression.otherwise)
        case Field() | Literal():
            pass
