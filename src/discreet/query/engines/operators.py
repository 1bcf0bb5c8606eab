"""How each operator of the closed tree is written in DuckDB's SQL: one small function an operator."""

from __future__ import annotations

from collections.abc import Mapping

from discreet.query.engines.casts import CASTS
from discreet.query.engines.numbers import NUMBERS
from discreet.query.engines.texts import TEXTS
from discreet.query.engines.times import TIMES
from discreet.query.engines.writing import Rule, WriteAs, Writer
from discreet.query.expressions import Apply, Expression, Literal
from discreet.query.facts import Kind
from discreet.query.operators import Operator

__all__ = ["OPERATORS", "common_kind"]


def common_kind(arguments: tuple[Expression, ...]) -> Kind:
    """Return the kind in which values are compared: the wider of two numbers or of two times."""
    kinds = {argument.facts.kind for argument in arguments if not _is_null(argument)}
    for wider in (Kind.REAL, Kind.TIMESTAMP):
        if wider in kinds:
            return wider
    return next(iter(kinds), arguments[0].facts.kind)


def _is_null(argument: Expression) -> bool:
    return isinstance(argument, Literal) and argument.value is None


def _compare(sign: str) -> Rule:
    def rule(node: Apply, writer: Writer, write_as: WriteAs) -> str:
        kind = common_kind(node.arguments)
        left, right = (write_as(argument, kind, writer) for argument in node.arguments)
        return f"({left} {sign} {right})"

    return rule


def _is_null_rule(node: Apply, writer: Writer, write_as: WriteAs) -> str:
    return f"({write_as(node.arguments[0], node.arguments[0].facts.kind, writer)} IS NULL)"


def _in(node: Apply, writer: Writer, write_as: WriteAs) -> str:
    kind = common_kind(node.arguments)
    first, *others = (write_as(argument, kind, writer) for argument in node.arguments)
    return f"({first} IN ({', '.join(others)}))" if others else "FALSE"


def _joined(word: str) -> Rule:
    def rule(node: Apply, writer: Writer, write_as: WriteAs) -> str:
        return "(" + f" {word} ".join(write_as(argument, Kind.BOOLEAN, writer) for argument in node.arguments) + ")"

    return rule


def _not(node: Apply, writer: Writer, write_as: WriteAs) -> str:
    return f"(NOT {write_as(node.arguments[0], Kind.BOOLEAN, writer)})"


def _choice(name: str) -> Rule:
    def rule(node: Apply, writer: Writer, write_as: WriteAs) -> str:
        parts = [write_as(argument, node.facts.kind, writer) for argument in node.arguments]
        return f"{name}({', '.join(parts)})"

    return rule


OPERATORS: Mapping[Operator, Rule] = {
    **NUMBERS,
    **TEXTS,
    **TIMES,
    **CASTS,
    Operator.LEAST: _choice("least"),
    Operator.GREATEST: _choice("greatest"),
    Operator.COALESCE: _choice("coalesce"),
    Operator.EQUAL: _compare("="),
    Operator.NOT_EQUAL: _compare("<>"),
    Operator.LESS: _compare("<"),
    Operator.LESS_OR_EQUAL: _compare("<="),
    Operator.GREATER: _compare(">"),
    Operator.GREATER_OR_EQUAL: _compare(">="),
    Operator.IS_NULL: _is_null_rule,
    Operator.IN: _in,
    Operator.AND: _joined("AND"),
    Operator.OR: _joined("OR"),
    Operator.NOT: _not,
}
