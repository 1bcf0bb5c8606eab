"""How calls of functions are read: as their records say, or by a rule here where a word stands for more than that."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from discreet.errors import Refused
from discreet.query.ast import Expression, Literal, Operator
from discreet.query.functions.constants import literal
from discreet.query.functions.expressions import apply, cast, when
from discreet.query.functions.record import SqlFunction
from discreet.query.functions.table import FUNCTIONS
from discreet.query.functions.times import TRUNCATIONS
from discreet.query.parse.allow_list import Form, check_slots, class_of, form_of, refuse_form, table_of
from discreet.query.parse.expression_reader import Handler, read_expression
from discreet.query.parse.scopes import Context, Scope
from discreet.schema.columns import Kind

if TYPE_CHECKING:
    from sqlglot import exp

__all__ = ["CALLS"]

# --- dates: Functions of dates and timestamps, and INTERVAL constants. ---


_O = Operator
_PARTS = {name: function.operator for function in FUNCTIONS.values() for name in function.date_parts}
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


def _read_date_part(context: Context, scope: Scope, node: exp.Expr, parts: Sequence[exp.Expr]) -> Expression:
    """Read date_part('year', d)."""
    return _named_part(str(parts[0].this), read_expression(context, scope, parts[1]))


def _dates_truncated(context: Context, scope: Scope, node: exp.Expr) -> Expression:
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


def _moved(context: Context, scope: Scope, sides: Sequence[exp.Expr], sign: int) -> Expression | None:
    """Read a time plus (or minus) an INTERVAL; None if there is no INTERVAL."""
    moment, interval = sides
    if class_of(moment) == "Interval" and sign > 0:
        moment, interval = interval, moment
    if class_of(interval) != "Interval":
        return None
    operator, steps = _interval(context, interval)
    return apply(operator, read_expression(context, scope, moment), literal(sign * steps))


def _plus(one_side: Expression, other: Expression) -> Expression:
    """Add two numbers, or days to a date."""
    if one_side.facts.kind is Kind.DATE and other.facts.kind is Kind.INTEGER:
        return apply(_O.ADD_DAYS, one_side, other)
    return apply(_O.ADD, one_side, other)


def _minus(one_side: Expression, other: Expression) -> Expression:
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
    return _shifted(context, scope, [node.args["this"], node.args["expression"]], 1)


def _shifted(context: Context, scope: Scope, sides: Sequence[exp.Expr], sign: int) -> Expression:
    """Read DATE_ADD and DATE_SUB."""
    result = _moved(context, scope, sides, sign)
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


# --- numbers and texts ---


_REST = 10_000  # characters; what SUBSTRING without a length takes


def _round(context: Context, scope: Scope, node: exp.Expr) -> Expression:
    value = read_expression(context, scope, node.args["this"])
    decimals = node.args.get("decimals")
    places = literal(0) if decimals is None else read_expression(context, scope, decimals)
    whole = places.value if isinstance(places, Literal) and isinstance(places.value, int) else -1
    if value.facts.kind is Kind.INTEGER and whole >= 0:
        return value
    return apply(_O.ROUND, value, places)


def _truncated(context: Context, scope: Scope, node: exp.Expr) -> Expression:
    value = read_expression(context, scope, node.args["this"])
    return when([(apply(_O.LESS, value, literal(0)), apply(_O.CEILING, value))], apply(_O.FLOOR, value))


def _power(context: Context, scope: Scope, node: exp.Expr) -> Expression:
    value = read_expression(context, scope, node.args["this"])
    exponent = read_expression(context, scope, node.args["expression"])
    if isinstance(exponent, Literal) and exponent.value == Fraction(1, 2):
        return apply(_O.SQUARE_ROOT, value)
    if isinstance(exponent, Literal) and isinstance(exponent.value, Fraction) and exponent.value.denominator == 1:
        exponent = literal(int(exponent.value))
    return apply(_O.POWER, value, exponent)


def _logarithm(context: Context, scope: Scope, node: exp.Expr) -> Expression:
    """LOG with a base is a quotient of natural logarithms; without one it has the base ten, as in DuckDB."""
    second = node.args.get("expression")
    base = literal(10) if second is None else read_expression(context, scope, node.args["this"])
    value = read_expression(context, scope, node.args["this"] if second is None else second)
    if not isinstance(base, Literal) or not isinstance(base.value, (int, Fraction)) or base.value <= 1:
        raise Refused(
            "the base of a logarithm is a constant above one",
            reason="any other base may fail for one row only",
            way_out="write LN(x)",
        )
    return apply(_O.DIVIDE, apply(_O.LOGARITHM, value), apply(_O.LOGARITHM, base))


def _like(operator: Operator) -> Handler:
    def read(context: Context, scope: Scope, node: exp.Expr) -> Expression:
        value = read_expression(context, scope, node.args["this"])
        found = apply(operator, value, read_expression(context, scope, node.args["expression"]))
        return apply(_O.NOT, found) if node.args.get("negate") else found

    return read


def _contains(before: str, after: str) -> Handler:
    def read(context: Context, scope: Scope, node: exp.Expr) -> Expression:
        value = read_expression(context, scope, node.args["this"])
        part = read_expression(context, scope, node.args["expression"])
        if not isinstance(part, Literal) or not isinstance(part.value, str) or set(part.value) & set("%_"):
            raise Refused(
                "this looks for a constant text without % and _",
                reason="a pattern that comes from data costs time that depends on the data",
                way_out="use LIKE",
            )
        return apply(_O.LIKE, value, literal(before + part.value + after))

    return read


def _substring(context: Context, scope: Scope, node: exp.Expr) -> Expression:
    value = read_expression(context, scope, node.args["this"])
    start, length = (node.args.get(slot) for slot in ("start", "length"))
    first = literal(1) if start is None else read_expression(context, scope, start)
    return apply(
        _O.SUBSTRING, value, first, literal(_REST) if length is None else read_expression(context, scope, length)
    )


def _left(context: Context, scope: Scope, node: exp.Expr) -> Expression:
    value = read_expression(context, scope, node.args["this"])
    return apply(_O.SUBSTRING, value, literal(1), read_expression(context, scope, node.args["expression"]))


def _joined(context: Context, scope: Scope, node: exp.Expr) -> Expression:
    """`a || b` is NULL if one of them is."""
    sides = (read_expression(context, scope, node.args[slot]) for slot in ("this", "expression"))
    return apply(_O.CONCAT, *(cast(side, Kind.TEXT) for side in sides))


def _concat(context: Context, scope: Scope, node: exp.Expr) -> Expression:
    """CONCAT leaves NULL out."""
    texts = [cast(read_expression(context, scope, part), Kind.TEXT) for part in node.args["expressions"]]
    return apply(_O.CONCAT, *(apply(_O.COALESCE, text, literal("")) for text in texts))


def _sum(sign: int) -> Handler:
    def read(context: Context, scope: Scope, node: exp.Expr) -> Expression:
        sides = [node.args["this"], node.args["expression"]]
        time = _moved(context, scope, sides, sign)
        if time is not None:
            return time
        one_side, other = (read_expression(context, scope, side) for side in sides)
        return _plus(one_side, other) if sign > 0 else _minus(one_side, other)

    return read


def _unnamed(context: Context, scope: Scope, node: exp.Expr) -> Expression:
    """Read the few functions that the parser has no class for."""
    name = str(node.this).lower()
    parts = node.args.get("expressions") or []
    if name in ("date_part", "datepart") and len(parts) == 2:
        return _read_date_part(context, scope, node, parts)
    if name in ("iff", "iif") and len(parts) == 3:
        condition, yes, no = (read_expression(context, scope, part) for part in parts)
        return when([(condition, yes)], no)
    if name == "date_sub" and len(parts) == 2:
        return _shifted(context, scope, parts, -1)
    raise refuse_form(context.script, node, "an expression of a row")


def _as_spelled(function: SqlFunction, spelled: str) -> tuple[str, Form[Handler]]:
    """Return a class of nodes and how it is read, as a record spells it."""
    name, _, slots = spelled.partition(": ")
    single = [slot for slot in slots.split() if slot[-1] not in "*?"]
    several = [slot[:-1] for slot in slots.split() if slot.endswith("*")]

    def read(context: Context, scope: Scope, node: exp.Expr) -> Expression:
        parts = [node.args[slot] for slot in single]
        parts += [part for slot in several for part in node.args.get(slot) or ()]
        return apply(function.operator, *(read_expression(context, scope, part) for part in parts))

    return name, form_of(slots.replace("*", "?"), read)


CALLS = {
    **dict(_as_spelled(function, spelled) for function in FUNCTIONS.values() for spelled in function.spelled),
    **table_of(
        ("Add", "this expression", _sum(1)),
        ("Sub", "this expression", _sum(-1)),
        ("Round", "this decimals?", _round),
        ("Trunc", "this", _truncated),
        ("Log", "this expression?", _logarithm),
        ("Pow", "this expression", _power),
        ("Substring", "this start? length?", _substring),
        ("Left", "this expression", _left),
        ("DPipe", "this expression safe?", _joined),
        ("Concat", "expressions safe? coalesce?", _concat),
        ("Like", "this expression negate?", _like(_O.LIKE)),
        ("ILike", "this expression negate?", _like(_O.LIKE_ANY_CASE)),
        ("EndsWith", "this expression", _contains("%", "")),
        ("Contains", "this expression", _contains("%", "%")),
        ("Extract", "this expression", _part),
        ("TimestampTrunc", "this unit", _dates_truncated),
        ("DateTrunc", "this unit", _dates_truncated),
        ("DateDiff", "this expression unit date_part_boundary?", _between),
        ("DateAdd", "this expression", _added),
        ("Date", "this", _to_date),
        ("TimeToStr", "this format", _formatted),
        ("Anonymous", "this expressions?", _unnamed),
    ),
}
