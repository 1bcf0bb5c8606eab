"""Bring values that meet in one place to one kind: two sides of a comparison, the branches of a CASE."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime
from fractions import Fraction

from discreet.errors import InvalidParameter, Refused
from discreet.exact import exact
from discreet.query.ast import Apply, Expression, Literal, Operator
from discreet.query.functions.constants import DAY, is_null, literal, null_of, parse_time
from discreet.query.functions.intervals import bounds_of, nearest_double
from discreet.query.policy import INFERRED
from discreet.schema.columns import ExpressionFacts, Kind

__all__ = ["agree", "identity_only", "to_real", "to_timestamp"]


def agree(arguments: Sequence[Expression]) -> tuple[Kind, list[Expression]]:
    """Return the one kind of all arguments, and the arguments as values of it. NULL is of any kind."""
    kinds = {argument.facts.kind for argument in arguments if not is_null(argument)}
    if not kinds:
        return Kind.TEXT, list(arguments)
    if Kind.IDENTITY in kinds and len(kinds) > 1:
        raise identity_only()
    kind = _common_kind(kinds, arguments)
    return kind, [_as_kind(argument, kind) for argument in arguments]


def identity_only() -> Refused:
    """Refuse to compute with the unit of a frame: it is told apart from others, and of no kind."""
    return Refused(
        "the unit of a pandas frame is counted, grouped by and joined with itself only",
        reason=INFERRED,
        way_out="ask the custodian to hand the table over as Arrow or polars, whose types are declared",
    )


def _common_kind(kinds: set[Kind], arguments: Sequence[Expression]) -> Kind:
    if kinds <= {Kind.INTEGER, Kind.REAL}:
        return Kind.REAL if Kind.REAL in kinds else Kind.INTEGER
    if kinds <= {Kind.DATE, Kind.TIMESTAMP}:
        return Kind.TIMESTAMP if Kind.TIMESTAMP in kinds else Kind.DATE
    if len(kinds) == 1:
        return next(iter(kinds))
    constants = {argument for argument in arguments if _is_text_constant(argument)}
    others = [argument for argument in arguments if argument not in constants]
    rest = {argument.facts.kind for argument in others if not is_null(argument)}
    if Kind.TEXT in kinds and rest and Kind.TEXT not in rest:
        return _common_kind(rest, others)
    names = " and ".join(sorted(kind.value for kind in kinds))
    raise Refused(
        f"{names} do not go together here",
        reason="a hidden cast could fail for one row only, and a failure tells about that row",
        way_out="CAST one side, or write the constant in the form of the column",
    )


def _is_text_constant(argument: Expression) -> bool:
    return isinstance(argument, Literal) and isinstance(argument.value, str)


def _as_kind(argument: Expression, kind: Kind) -> Expression:
    if is_null(argument):
        return null_of(kind)
    if argument.facts.kind is kind:
        return argument
    if isinstance(argument, Literal) and isinstance(argument.value, str):
        return _parsed(argument.value, kind)
    return to_timestamp(argument) if kind is Kind.TIMESTAMP else to_real(argument)


def _parsed(text: str, kind: Kind) -> Expression:
    """Read a constant text as what it is compared with."""
    if kind.is_time:
        moment = parse_time(text, kind)
        if moment is not None:
            return literal(moment)
    elif kind.is_number:
        try:
            number = exact(text)
        except InvalidParameter:
            pass
        else:
            return literal(number, Kind.REAL) if kind is Kind.REAL else _whole(number)
    elif text.strip().lower() in ("true", "false"):
        return literal(text.strip().lower() == "true")
    raise Refused(
        f"this text is no {kind.value}",
        reason="the other side is one, and nothing else can be equal to it",
        way_out=_EXAMPLES[kind],
    )


def _whole(number: Fraction) -> Literal:
    value = literal(number)
    if value.facts.kind is not Kind.INTEGER:
        raise Refused(
            "this text is no whole number",
            reason="the other side is one, and nothing else can be equal to it",
            way_out="write a number without quotes",
        )
    return value


_EXAMPLES = {
    Kind.DATE: "write a date such as DATE '2024-12-31'",
    Kind.TIMESTAMP: "write a timestamp such as TIMESTAMP '2024-12-31 23:59:59', without a time zone",
    Kind.INTEGER: "write a number without quotes",
    Kind.REAL: "write a number without quotes",
    Kind.BOOLEAN: "write TRUE or FALSE",
}


def to_real(argument: Expression) -> Expression:
    """Turn a whole number into a double."""
    if argument.facts.kind is Kind.REAL:
        return argument
    if isinstance(argument, Literal) and isinstance(argument.value, int):
        return literal(Fraction(argument.value), Kind.REAL)
    low, high = bounds_of(argument.facts).monotone(nearest_double)
    facts = ExpressionFacts(kind=Kind.REAL, low=low, high=high, step=Fraction(1), nullable=argument.facts.nullable)
    return Apply(Operator.TO_REAL, (argument,), facts)


def to_timestamp(argument: Expression) -> Expression:
    """Turn a date into the moment at which it begins."""
    if argument.facts.kind is Kind.TIMESTAMP:
        return argument
    if isinstance(argument, Literal) and isinstance(argument.value, date):
        return literal(datetime(argument.value.year, argument.value.month, argument.value.day))
    low, high = bounds_of(argument.facts).monotone(lambda bound: bound * DAY)
    facts = replace(argument.facts, kind=Kind.TIMESTAMP, low=low, high=high, members=None)
    return Apply(Operator.TO_TIMESTAMP, (argument,), facts)
