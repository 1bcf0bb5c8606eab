"""Write an expression of the closed tree as DuckDB's SQL: total, one row at a time, the same kind of value always.

Where an operator needs an argument twice it says so by `let`, so that a statement grows with the tree and no faster.
Whole numbers are in TRY on top of their bounds: what would overflow is NULL, not an error that names a value.
"""

from __future__ import annotations

from datetime import date, datetime
from fractions import Fraction

from discreet.query.engines.operators import OPERATORS
from discreet.query.engines.writing import SQL_TYPES, Writer, day, moment, real
from discreet.query.expressions import Apply, Case, Expression, Field, Literal
from discreet.query.facts import Kind

__all__ = ["write", "write_as"]


def write(expression: Expression, writer: Writer) -> str:
    """Write an expression; its value has the SQL type of its kind."""
    match expression:
        case Field():
            return writer.column(expression.name)
        case Literal():
            return _literal(expression, writer)
        case Case():
            return _case(expression, writer)
        case Apply():
            return OPERATORS[expression.operator](expression, writer, write_as)


def write_as(expression: Expression, kind: Kind, writer: Writer) -> str:
    """Write an expression as a value of a kind; only casts that always succeed are asked for here."""
    if isinstance(expression, Literal) and kind is Kind.REAL and isinstance(expression.value, (int, Fraction)):
        return real(Fraction(expression.value))
    text = write(expression, writer)
    if isinstance(expression, Field) and kind is Kind.INTEGER and expression.facts.kind is kind:
        return f"CAST({text} AS BIGINT)"  # It may be stored in a narrower type, which would overflow.
    return text if expression.facts.kind is kind else f"TRY_CAST({text} AS {SQL_TYPES[kind]})"


def _literal(literal: Literal, writer: Writer) -> str:
    value, kind = literal.value, literal.facts.kind
    match value:
        case None:
            return "NULL" if kind is Kind.IDENTITY else f"CAST(NULL AS {SQL_TYPES[kind]})"
        case bool():
            return "TRUE" if value else "FALSE"
        case str():
            return f"CAST({writer.bind(value)} AS VARCHAR)"
        case datetime():
            return moment(value)
        case date():
            return day(value) if kind is Kind.DATE else moment(datetime(value.year, value.month, value.day))
        case _:
            return f"CAST({int(value)} AS BIGINT)" if kind is Kind.INTEGER else real(Fraction(value))


def _case(case: Case, writer: Writer) -> str:
    kind = case.facts.kind
    branches = " ".join(
        f"WHEN {write(condition, writer)} THEN {write_as(value, kind, writer)}" for condition, value in case.branches
    )
    return f"(CASE {branches} ELSE {write_as(case.otherwise, kind, writer)} END)"
