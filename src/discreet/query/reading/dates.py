"""Functions of dates and timestamps, and INTERVAL constants."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from discreet.errors import Refused
from discreet.query.expressions import Expression
from discreet.query.facts import Kind
from discreet.query.operators import Operator
from discreet.query.reading.expressions import Handler, one, read_expression
from discreet.query.reading.forms import check_slots, class_of, table_of
from discreet.query.reading.rules import apply, cast, literal
from discreet.query.reading.scopes import Context, Scope
from discreet.query.reading.times import TRUNCATIONS

if TYPE_CHECKING:
    from sqlglot import exp

__all__ = ["DATE_FORMS", "minus", "moved", "plus", "read_date_part", "shifted"]

_O = Operator
_PARTS = {
    "YEAR": _O.YEAR,
    "QUARTER": _O.QUARTER,
    "MONTH": _O.MONTH,
    "WEEK": _O.WEEK,
    "DAY": _O.DAY,
    "DOW": _O.WEEKDAY,
    "DAYOFWEEK": _O.WEEKDAY,
    "WEEKDAY": _O.WEEKDAY,
    "DOY": _O.DAY_OF_YEAR,
    "DAYOFYEAR": _O.DAY_OF_YEAR,
    "HOUR": _O.HOUR,
    "MINUTE": _O.MINUTE,
    "SECOND": _O.SECOND,
}
_DAYS = {"DAY": 1, "WEEK": 7}
_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}


def _part(context: Context, scope: Scope, node: exp.Expr) -> Expression:
    return _named_part(str(node.this.this), read_expression(context, scope, node.args["expression"]))


def _named_part(name: str, moment: Expression) -> Expression:
    operator = _PARTS.get(name.upper().removesuffix("S") if name.upper() not in _PARTS else name.upper())
    if operator is None:
        raise Refused(
            "this part of a time is not answered",
            reason="only parts that mean the same on every engine are",
            way_out="the parts are " + ", ".join(sorted(part.lower() for part in _PARTS)),
        )
    return apply(operator, moment)


def read_date_part(context: Context, scope: Scope, node: exp.Expr, parts: Sequence[exp.Expr]) -> Expression:
    """Read date_part('year', d)."""
    return _named_part(str(parts[0].this), read_expression(context, scope, parts[1]))


def _truncated(context: Context, scope: Scope, node: exp.Expr) -> Expression:
    """DATE_TRUNC('month', d), or DATE_TRUNC(d, MONTH) as BigQuery has it."""
    unit, moment = str(node.args["unit"].this).lower(), node.args["this"]
    if unit not in TRUNCATIONS and class_of(moment) == "Column" and str(moment.name).lower() in TRUNCATIONS:
        swapped = scope.look_up(context.script, unit, None, node).field
        return apply(_O.TRUNCATE_TIME, literal(str(moment.name).lower()), swapped)
    return apply(_O.TRUNCATE_TIME, literal(unit), read_expression(context, scope, moment))


def _between(context: Context, scope: Scope, node: exp.Expr) -> Expression:
    """DATE_DIFF counts how many starts of days, months or years lie between."""
    last, first = (read_expression(context, scope, node.args[slot]) for slot in ("this", "expression"))
    unit = str(node.args["unit"].this).upper()
    if unit == "DAY":
        return apply(_O.DAYS_BETWEEN, cast(first, Kind.DATE), cast(last, Kind.DATE))
    years = apply(_O.SUBTRACT, apply(_O.YEAR, last), apply(_O.YEAR, first))
    if unit == "YEAR":
        return years
    if unit == "MONTH":
        months = apply(_O.SUBTRACT, apply(_O.MONTH, last), apply(_O.MONTH, first))
        return apply(_O.ADD, apply(_O.MULTIPLY, years, literal(12)), months)
    raise Refused(
        "DATE_DIFF counts days, months or years",
        reason="other units are counted differently by every engine",
        way_out="write DATE_DIFF('day', first, last)",
    )


def _to_date(context: Context, scope: Scope, node: exp.Expr) -> Expression:
    return cast(read_expression(context, scope, node.args["this"]), Kind.DATE)


def moved(context: Context, scope: Scope, sides: Sequence[exp.Expr], sign: int) -> Expression | None:
    """Read a time plus (or minus) an INTERVAL; None if there is no INTERVAL."""
    moment, interval = sides
    if class_of(moment) == "Interval" and sign > 0:
        moment, interval = interval, moment
    if class_of(interval) != "Interval":
        return None
    operator, steps = _interval(context, interval)
    return apply(operator, read_expression(context, scope, moment), literal(sign * steps))


def plus(one_side: Expression, other: Expression) -> Expression:
    """Add two numbers, or days to a date."""
    if one_side.facts.kind is Kind.DATE and other.facts.kind is Kind.INTEGER:
        return apply(_O.ADD_DAYS, one_side, other)
    return apply(_O.ADD, one_side, other)


def minus(one_side: Expression, other: Expression) -> Expression:
    """Subtract two numbers, days from a date, or two dates, which gives days."""
    if one_side.facts.kind is Kind.DATE and other.facts.kind is Kind.INTEGER:
        return apply(_O.ADD_DAYS, one_side, apply(_O.NEGATE, other))
    if one_side.facts.kind is Kind.DATE and other.facts.kind is Kind.DATE:
        return apply(_O.DAYS_BETWEEN, other, one_side)
    return apply(_O.SUBTRACT, one_side, other)


def _interval(context: Context, node: exp.Expr) -> tuple[Operator, int]:
    check_slots(context.script, node, frozenset({"this", "unit"}))
    unit = node.args.get("unit")
    amount = node.args.get("this")
    text = "" if amount is None or class_of(amount) not in ("Literal", "Neg", "Paren") else _digits(amount)
    match = re.fullmatch(r"\s*(-?\d{1,7})\s*([A-Za-z]*)\s*", text)
    name = (match[2] if match and match[2] else "" if unit is None else str(unit.this)).upper().removesuffix("S")
    if match and name in _DAYS:
        return _O.ADD_DAYS, int(match[1]) * _DAYS[name]
    if match and name in _MONTHS:
        return _O.ADD_MONTHS, int(match[1]) * _MONTHS[name]
    raise context.script.refuse(
        node,
        "an INTERVAL is a constant number of days, weeks, months, quarters or years",
        reason="a time that is moved by data may leave the calendar for one row only",
        way_out="for example INTERVAL 30 DAY",
    )


def _digits(node: exp.Expr) -> str:
    if class_of(node) == "Neg":
        return "-" + _digits(node.this)
    return _digits(node.this) if class_of(node) == "Paren" else str(node.this)


def _added(context: Context, scope: Scope, node: exp.Expr) -> Expression:
    return shifted(context, scope, [node.args["this"], node.args["expression"]], 1)


def shifted(context: Context, scope: Scope, sides: Sequence[exp.Expr], sign: int) -> Expression:
    """Read DATE_ADD and DATE_SUB."""
    result = moved(context, scope, sides, sign)
    if result is None:
        raise Refused("a time is moved by an INTERVAL", reason="it has one meaning", way_out="d + INTERVAL 1 DAY")
    return result


_FORMATS = {"%Y": (1, 4), "%Y-%m": (1, 7), "%Y-%m-%d": (1, 10), "%m": (6, 2), "%d": (9, 2)}


def _formatted(context: Context, scope: Scope, node: exp.Expr) -> Expression:
    """Write a date as a text; ISO 8601 puts every part in its place."""
    places = _FORMATS.get(str(node.args["format"].this))
    if places is None:
        raise Refused(
            "dates are written as " + ", ".join(_FORMATS),
            reason="other formats differ between engines",
            way_out="use EXTRACT, or one of these formats",
        )
    text = cast(cast(read_expression(context, scope, node.args["this"]), Kind.DATE), Kind.TEXT)
    return apply(_O.SUBSTRING, text, *(literal(place) for place in places))


def _simple(*rows: tuple[str, Operator]) -> list[tuple[str, str, Handler]]:
    return [(name, "this", one(operator)) for name, operator in rows]


DATE_FORMS = table_of(
    *_simple(
        ("Year", _O.YEAR),
        ("Quarter", _O.QUARTER),
        ("Month", _O.MONTH),
        ("Week", _O.WEEK),
        ("WeekOfYear", _O.WEEK),
        ("Day", _O.DAY),
        ("DayOfMonth", _O.DAY),
        ("DayOfWeek", _O.WEEKDAY),
        ("DayOfYear", _O.DAY_OF_YEAR),
        ("Hour", _O.HOUR),
        ("Minute", _O.MINUTE),
        ("Second", _O.SECOND),
    ),
    ("Extract", "this expression", _part),
    ("TimestampTrunc", "this unit", _truncated),
    ("DateTrunc", "this unit", _truncated),
    ("DateDiff", "this expression unit date_part_boundary?", _between),
    ("DateAdd", "this expression", _added),
    ("Date", "this", _to_date),
    ("TimeToStr", "this format", _formatted),
)
