"""Functions of one row: numbers, texts, dates."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from discreet.errors import Refused
from discreet.query.expressions import Expression, Literal
from discreet.query.facts import Kind
from discreet.query.operators import Operator
from discreet.query.reading.dates import DATE_FORMS, minus, moved, plus, read_date_part, shifted
from discreet.query.reading.expressions import Handler, one, read_expression
from discreet.query.reading.forms import refuse_form, table_of
from discreet.query.reading.rules import apply, cast, literal, when
from discreet.query.reading.scopes import Context, Scope

if TYPE_CHECKING:
    from sqlglot import exp

__all__ = ["FUNCTIONS"]

_O = Operator
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


def _starts_with(context: Context, scope: Scope, node: exp.Expr) -> Expression:
    value = read_expression(context, scope, node.args["this"])
    return apply(_O.STARTS_WITH, value, read_expression(context, scope, node.args["expression"]))


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


def _replace(context: Context, scope: Scope, node: exp.Expr) -> Expression:
    slots = ("this", "expression", "replacement")
    return apply(_O.REPLACE, *(read_expression(context, scope, node.args[slot]) for slot in slots))


def _sum(sign: int) -> Handler:
    def read(context: Context, scope: Scope, node: exp.Expr) -> Expression:
        sides = [node.args["this"], node.args["expression"]]
        time = moved(context, scope, sides, sign)
        if time is not None:
            return time
        one_side, other = (read_expression(context, scope, side) for side in sides)
        return plus(one_side, other) if sign > 0 else minus(one_side, other)

    return read


def _unnamed(context: Context, scope: Scope, node: exp.Expr) -> Expression:
    """Read the few functions that the parser has no class for."""
    name = str(node.this).lower()
    parts = node.args.get("expressions") or []
    if name in ("date_part", "datepart") and len(parts) == 2:
        return read_date_part(context, scope, node, parts)
    if name in ("iff", "iif") and len(parts) == 3:
        condition, yes, no = (read_expression(context, scope, part) for part in parts)
        return when([(condition, yes)], no)
    if name == "date_sub" and len(parts) == 2:
        return shifted(context, scope, parts, -1)
    raise refuse_form(context.script, node, "an expression of a row")


FUNCTIONS = {
    **DATE_FORMS,
    **table_of(
        ("Add", "this expression", _sum(1)),
        ("Sub", "this expression", _sum(-1)),
        ("Abs", "this", one(_O.ABSOLUTE)),
        ("Sign", "this", one(_O.SIGN)),
        ("Floor", "this", one(_O.FLOOR)),
        ("Ceil", "this", one(_O.CEILING)),
        ("Round", "this decimals?", _round),
        ("Trunc", "this", _truncated),
        ("Sqrt", "this", one(_O.SQUARE_ROOT)),
        ("Ln", "this", one(_O.LOGARITHM)),
        ("Log", "this expression?", _logarithm),
        ("Exp", "this", one(_O.EXPONENTIAL)),
        ("Pow", "this expression", _power),
        ("Lower", "this", one(_O.LOWER)),
        ("Upper", "this", one(_O.UPPER)),
        ("Length", "this", one(_O.LENGTH)),
        ("Trim", "this", one(_O.TRIM)),
        ("Substring", "this start? length?", _substring),
        ("Left", "this expression", _left),
        ("DPipe", "this expression safe?", _joined),
        ("Concat", "expressions safe? coalesce?", _concat),
        ("Replace", "this expression replacement", _replace),
        ("Like", "this expression negate?", _like(_O.LIKE)),
        ("ILike", "this expression negate?", _like(_O.LIKE_ANY_CASE)),
        ("StartsWith", "this expression", _starts_with),
        ("EndsWith", "this expression", _contains("%", "")),
        ("Contains", "this expression", _contains("%", "%")),
        ("Anonymous", "this expressions?", _unnamed),
    ),
}
