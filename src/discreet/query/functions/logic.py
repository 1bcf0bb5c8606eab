"""Comparisons, truth values with SQL's three-valued logic, and choices among values."""

from __future__ import annotations

import operator as python
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from discreet.errors import Refused
from discreet.query.ast import Apply, Expression, Literal, Operator
from discreet.query.engines.sql_writer import Rule, WriteAs, Writer
from discreet.query.functions.agreement import agree
from discreet.query.functions.constants import a, is_null, null_of, truth
from discreet.query.functions.intervals import Interval, bounds_of, common_step, greatest_of, hull, least_of
from discreet.query.functions.record import SqlFunction
from discreet.schema.columns import ExpressionFacts, Kind

__all__ = ["LOGIC", "as_conditions", "one_of", "wider_kind"]

_O = Operator

# --- facts: Which values go together, and what is known of one of several. ---


def _truth_of_any(arguments: Sequence[Expression]) -> ExpressionFacts:
    return truth(nullable=any(argument.facts.nullable for argument in arguments))


def as_conditions(arguments: Sequence[Expression]) -> tuple[Expression, ...]:
    """Return truth values as they are, NULL as one of them, and refuse all else."""
    truths = tuple(null_of(Kind.BOOLEAN) if is_null(argument) else argument for argument in arguments)
    for argument in truths:
        if argument.facts.kind is not Kind.BOOLEAN:
            raise Refused(
                f"a condition is needed here, and this is {a(argument.facts.kind)}",
                reason="what counts as true differs between engines",
                way_out="compare it, for example with <> 0",
            )
    return truths


def _connect(function: SqlFunction, arguments: tuple[Expression, ...]) -> Expression:
    truths = as_conditions(arguments)
    return Apply(function.operator, truths, function.facts(truths))


def _compare(function: SqlFunction, arguments: tuple[Expression, ...]) -> Expression:
    if any(is_null(argument) for argument in arguments):
        raise Refused(
            "a comparison with NULL is never true",
            reason="the value of NULL is unknown, so that it equals nothing",
            way_out="write IS NULL or IS NOT NULL",
        )
    _, sides = agree(arguments)
    return Apply(function.operator, tuple(sides), function.facts(sides))


def _missing(function: SqlFunction, arguments: tuple[Expression, ...]) -> Expression:
    return Apply(function.operator, arguments, function.facts(arguments))


def _coalesce(function: SqlFunction, arguments: tuple[Expression, ...]) -> Expression:
    _, sides = agree([argument for argument in arguments if not is_null(argument)] or arguments)
    return sides[0] if len(sides) == 1 else Apply(function.operator, tuple(sides), function.facts(sides))


def _coalesce_facts(sides: Sequence[Expression]) -> ExpressionFacts:
    kind, _ = agree(sides)
    return replace(one_of(kind, sides), nullable=all(side.facts.nullable for side in sides))


def one_of(kind: Kind, values: Sequence[Expression]) -> ExpressionFacts:
    """Return what is known of a value that is one of several; NULL adds nothing."""
    known = [value for value in values if not is_null(value)]
    if not known:
        return ExpressionFacts(kind=kind)
    interval = hull(bounds_of(value.facts) for value in known)
    step = common_step(known, interval) if kind is Kind.REAL else None
    members = _joined_members(known) if kind in (Kind.TEXT, Kind.BOOLEAN, Kind.INTEGER) else None
    nullable = any(is_null(value) or value.facts.nullable for value in values)
    return ExpressionFacts(
        kind=kind, low=interval.low, high=interval.high, step=step, members=members, nullable=nullable
    )


def _joined_members(values: Sequence[Expression]) -> tuple[object, ...] | None:
    lists = [_members(value) for value in values]
    if any(members is None for members in lists):
        return None
    return tuple(dict.fromkeys(member for members in lists for member in members or ()))


def _members(value: Expression) -> tuple[object, ...] | None:
    return (value.value,) if isinstance(value, Literal) else value.facts.members


def _extreme(function: SqlFunction, arguments: tuple[Expression, ...]) -> Expression:
    _, sides = agree([argument for argument in arguments if not is_null(argument)] or arguments)
    if not (sides[0].facts.kind.is_number or sides[0].facts.kind.is_time):
        raise Refused(
            f"{function.operator.name} compares numbers or times",
            reason="the order of texts differs between engines",
            way_out="use CASE",
        )
    return Apply(function.operator, tuple(sides), function.facts(sides))


def _extreme_facts(operator: Operator, arguments: Sequence[Expression]) -> ExpressionFacts:
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


# --- values: What they mean, in Python. ---


def _and(*values: Any) -> bool | None:
    if any(value is False for value in values):
        return False
    return None if any(value is None for value in values) else True


def _or(*values: Any) -> bool | None:
    if any(value is True for value in values):
        return True
    return None if any(value is None for value in values) else False


def _known(values: Sequence[Any]) -> list[Any]:
    return [value for value in values if value is not None]


# --- SQL ---


def wider_kind(arguments: tuple[Expression, ...]) -> Kind:
    """Return the kind in which values are compared: the wider of two numbers or of two times."""
    kinds = {argument.facts.kind for argument in arguments if not is_null(argument)}
    for wider in (Kind.REAL, Kind.TIMESTAMP):
        if wider in kinds:
            return wider
    return next(iter(kinds), arguments[0].facts.kind)


def _write_compare(sign: str) -> Rule:
    def rule(node: Apply, writer: Writer, write_as: WriteAs) -> str:
        kind = wider_kind(node.arguments)
        left, right = (write_as(argument, kind, writer) for argument in node.arguments)
        return f"({left} {sign} {right})"

    return rule


def _write_is_null(node: Apply, writer: Writer, write_as: WriteAs) -> str:
    return f"({write_as(node.arguments[0], node.arguments[0].facts.kind, writer)} IS NULL)"


def _write_in(node: Apply, writer: Writer, write_as: WriteAs) -> str:
    kind = wider_kind(node.arguments)
    first, *others = (write_as(argument, kind, writer) for argument in node.arguments)
    return f"({first} IN ({', '.join(others)}))" if others else "FALSE"


def _write_joined(word: str) -> Rule:
    def rule(node: Apply, writer: Writer, write_as: WriteAs) -> str:
        return "(" + f" {word} ".join(write_as(argument, Kind.BOOLEAN, writer) for argument in node.arguments) + ")"

    return rule


def _write_not(node: Apply, writer: Writer, write_as: WriteAs) -> str:
    return f"(NOT {write_as(node.arguments[0], Kind.BOOLEAN, writer)})"


def _write_choice(name: str) -> Rule:
    def rule(node: Apply, writer: Writer, write_as: WriteAs) -> str:
        parts = [write_as(argument, node.facts.kind, writer) for argument in node.arguments]
        return f"{name}({', '.join(parts)})"

    return rule


# --- work ---


def _work_of_comparison(arguments: Sequence[Expression], lengths: Sequence[int], length: int) -> int:
    return 1 + sum(lengths) - max(lengths)  # No text is made, and the shorter one ends a comparison.


# --- records ---


LOGIC = (
    SqlFunction(
        operator=_O.EQUAL,
        spelled=("EQ: this expression",),
        facts=_truth_of_any,
        build=_compare,
        tells_apart=True,
        value=python.eq,
        duckdb=_write_compare("="),
        kind=Kind.BOOLEAN,
        work=_work_of_comparison,
    ),
    SqlFunction(
        operator=_O.NOT_EQUAL,
        spelled=("NEQ: this expression",),
        facts=_truth_of_any,
        build=_compare,
        tells_apart=True,
        value=python.ne,
        duckdb=_write_compare("<>"),
        kind=Kind.BOOLEAN,
        work=_work_of_comparison,
    ),
    SqlFunction(
        operator=_O.LESS,
        spelled=("LT: this expression",),
        facts=_truth_of_any,
        build=_compare,
        value=python.lt,
        duckdb=_write_compare("<"),
        kind=Kind.BOOLEAN,
        work=_work_of_comparison,
    ),
    SqlFunction(
        operator=_O.LESS_OR_EQUAL,
        spelled=("LTE: this expression",),
        facts=_truth_of_any,
        build=_compare,
        value=python.le,
        duckdb=_write_compare("<="),
        kind=Kind.BOOLEAN,
        work=_work_of_comparison,
    ),
    SqlFunction(
        operator=_O.GREATER,
        spelled=("GT: this expression",),
        facts=_truth_of_any,
        build=_compare,
        value=python.gt,
        duckdb=_write_compare(">"),
        kind=Kind.BOOLEAN,
        work=_work_of_comparison,
    ),
    SqlFunction(
        operator=_O.GREATER_OR_EQUAL,
        spelled=("GTE: this expression",),
        facts=_truth_of_any,
        build=_compare,
        value=python.ge,
        duckdb=_write_compare(">="),
        kind=Kind.BOOLEAN,
        work=_work_of_comparison,
    ),
    SqlFunction(
        operator=_O.IS_NULL,
        facts=lambda arguments: truth(nullable=False),
        build=_missing,
        tells_apart=True,
        value=lambda *values: values[0] is None,
        sees_null=True,
        duckdb=_write_is_null,
        kind=Kind.BOOLEAN,
        work=_work_of_comparison,
    ),
    SqlFunction(
        operator=_O.IN,
        facts=_truth_of_any,
        build=_compare,
        tells_apart=True,
        value=lambda value, *others: value in others,
        duckdb=_write_in,
        kind=Kind.BOOLEAN,
        work=_work_of_comparison,
    ),
    SqlFunction(
        operator=_O.AND,
        facts=_truth_of_any,
        build=_connect,
        value=_and,
        sees_null=True,
        duckdb=_write_joined("AND"),
        kind=Kind.BOOLEAN,
    ),
    SqlFunction(
        operator=_O.OR,
        facts=_truth_of_any,
        build=_connect,
        value=_or,
        sees_null=True,
        duckdb=_write_joined("OR"),
        kind=Kind.BOOLEAN,
    ),
    SqlFunction(
        operator=_O.NOT,
        spelled=("Not: this",),
        facts=_truth_of_any,
        build=_connect,
        value=python.not_,
        duckdb=_write_not,
        kind=Kind.BOOLEAN,
    ),
    SqlFunction(
        operator=_O.COALESCE,
        spelled=("Coalesce: this expressions*",),
        facts=_coalesce_facts,
        build=_coalesce,
        value=lambda *values: next(iter(_known(values)), None),
        sees_null=True,
        duckdb=_write_choice("coalesce"),
        ends=lambda *parts: hull(parts),
    ),
    SqlFunction(
        operator=_O.LEAST,
        spelled=("Least: this expressions* ignore_nulls?",),
        facts=lambda sides: _extreme_facts(_O.LEAST, sides),
        build=_extreme,
        value=lambda *values: min(_known(values), default=None),
        sees_null=True,
        duckdb=_write_choice("least"),
        ends=least_of,
    ),
    SqlFunction(
        operator=_O.GREATEST,
        spelled=("Greatest: this expressions* ignore_nulls?",),
        facts=lambda sides: _extreme_facts(_O.GREATEST, sides),
        build=_extreme,
        value=lambda *values: max(_known(values), default=None),
        sees_null=True,
        duckdb=_write_choice("greatest"),
        ends=greatest_of,
    ),
)
