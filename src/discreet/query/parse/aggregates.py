"""Aggregates: which statistic of which expression is asked, whatever it is called."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias, final

from discreet.errors import Refused
from discreet.query.ast import Apply, Case, Expression, Literal, Operator, Statistic, table_column
from discreet.query.functions.casts import CASTS
from discreet.query.functions.constants import a, is_null, literal
from discreet.query.functions.expressions import apply, clamp, when
from discreet.query.parse.allow_list import Form, check_form, check_slots, class_of, form_of, refuse_form, table_of
from discreet.query.parse.expression_reader import read_condition, read_expression
from discreet.query.parse.scopes import Context, Scope
from discreet.query.parse.tokens import Bounds, Per
from discreet.schema.columns import Kind

if TYPE_CHECKING:
    from sqlglot import exp

__all__ = ["Aggregate", "has_aggregate", "is_aggregate", "is_list", "read_aggregate"]

_S = Statistic
# The noise of an extreme rank is as wide as the data are sparse there, and every number above the largest is equally
# "the maximum": a quantile just inside is the best that can be said. One row in a hundred is left out on that side.
_LEAST, _GREATEST = Fraction(1, 100), Fraction(99, 100)
# A summary has quantiles just inside instead of extremes: one row in twenty is left out on either side.
_FIVE = tuple(Fraction(percent, 100) for percent in (5, 25, 50, 75, 95))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate:
    """An aggregate as the analyst asks for it."""

    statistic: Statistic
    argument: Expression | None = None
    other: Expression | None = None  # of two
    quantile: Fraction | None = None
    quantiles: tuple[Fraction, ...] | None = None  # of a list, as it was written
    sample: bool = True
    called: str = ""
    per_group: Bounds | None = None  # bounds on what a unit adds to a group


_Reader: TypeAlias = "Callable[[Context, Scope, exp.Expr], Aggregate]"


def is_aggregate(node: exp.Expr) -> bool:
    """Whether a node is an aggregate that is answered."""
    name = class_of(node)
    return name in _FORMS or (name == "Anonymous" and str(node.this).lower() in _UNNAMED)


def is_list(node: exp.Expr) -> bool:
    """Whether a node asks for several quantiles at once."""
    inside = node
    while class_of(inside) in ("Filter", "WithinGroup"):
        inside = inside.this
    if class_of(inside) == "Anonymous":
        return str(inside.this).lower() == "five_numbers"
    levels = (inside.args.get(slot) for slot in ("this", "quantile", "expression"))
    return is_aggregate(inside) and any(part is not None and class_of(part) == "Array" for part in levels)


def has_aggregate(node: exp.Expr) -> bool:
    """Whether there is an aggregate in a node or below it; what is OVER a window is none."""
    return any(is_aggregate(part) for part in node.walk(prune=lambda part: class_of(part) == "Window"))


def read_aggregate(context: Context, scope: Scope, node: exp.Expr) -> Aggregate:
    """Read an aggregate, with its FILTER and its bounds."""
    form: Form[_Reader] = _FORMS.get(class_of(node), _ANONYMOUS)
    check_form(context.script, node, form)
    try:
        aggregate = form.read(context, scope, node)
        start = node.meta.get("start", -1)
        bounds = context.bounds.get(start)
        context.placed.add(start)
        return aggregate if bounds is None else _bounded(aggregate, bounds)
    except Refused as refused:
        raise context.script.point(refused, node) from None


def _bounded(aggregate: Aggregate, bounds: Bounds) -> Aggregate:
    if aggregate.other is not None:
        raise Refused(
            "contribution bounds are for aggregates of one number",
            reason="it is not clear which of the two is bounded",
            way_out="leave them out, and clamp each: CORR(LEAST(GREATEST(x, 0), 100), y)",
        )
    if bounds.per is Per.GROUP:
        return replace(aggregate, per_group=bounds)
    if aggregate.argument is None or aggregate.statistic not in _NUMERIC:
        raise Refused(
            "contribution_bounds_per_row is for aggregates of numbers",
            reason="there is no number in a row that could be bounded",
            way_out="leave it out",
        )
    return replace(aggregate, argument=clamp(aggregate.argument, bounds.low, bounds.high))


_CASTS = frozenset(function.operator for function in CASTS)
_NUMERIC = frozenset({_S.SUM, _S.MEAN, _S.VARIANCE, _S.DEVIATION, _S.QUANTILE})


def _argument(context: Context, scope: Scope, node: exp.Expr) -> Expression:
    """Read the argument of an aggregate; an aggregate inside of an aggregate is refused by the list of expressions."""
    if node.args.get("this") is None:
        raise Refused("an argument is missing", reason="it is not clear what is meant", way_out="name a column")
    if class_of(node.this) == "Distinct":
        raise Refused(
            "DISTINCT is answered in COUNT only",
            reason="which values are distinct depends on other people's rows, and so would every value's weight",
            way_out="use COUNT(DISTINCT x), or leave DISTINCT out",
        )
    return _of_something(read_expression(context, scope, node.this))


def _of_something(argument: Expression) -> Expression:
    """Refuse what is NULL whatever the rows are: it would be paid for, and nothing could be told."""
    if _is_always_null(argument):
        raise Refused(
            "this is NULL for every row",
            reason="an aggregate leaves NULL out, and nothing would be left of any data",
            way_out="name a column, or a CASE that has a value",
        )
    return argument


def _is_always_null(argument: Expression) -> bool:
    if isinstance(argument, Case):
        return all(map(_is_always_null, (*(value for _, value in argument.branches), argument.otherwise)))
    if isinstance(argument, Apply) and argument.operator in _CASTS:
        return is_null(argument) or _is_always_null(argument.arguments[0])
    return is_null(argument)


def _number(context: Context, scope: Scope, node: exp.Expr) -> Expression:
    """Read an argument that is a number; a condition counts as one where it is true and as zero where it is false."""
    return _as_number(_amount(scope, _argument(context, scope, node)))


def _as_number(argument: Expression) -> Expression:
    if argument.facts.kind is Kind.BOOLEAN:
        no = apply(Operator.NOT, argument)
        return when([(argument, literal(1)), (no, literal(0))])
    if not argument.facts.kind.is_number:
        raise Refused(
            f"this needs numbers, and this is {a(argument.facts.kind)}",
            reason="only numbers are added up",
            way_out="declare the column with dp.between(low, high), CAST it and clamp it, or count rows with COUNT",
        )
    return argument


def _amount(scope: Scope, argument: Expression) -> Expression:
    """Refuse what stands for something else: whoever is protected, and codes. Their sums and middles mean nothing."""
    values = _values_of(argument)
    if any(getattr(value, "name", None) in scope.units for value in values):
        raise Refused(
            "this column tells units apart, and is no amount",
            reason="it is never clamped, so what one unit adds has no bound, and its sum would mean nothing",
            way_out="count rows with COUNT(*), or units with COUNT(DISTINCT …)",
        )
    if any(_is_code(scope, value) for value in values):
        raise Refused(
            "this column is declared as categories, whose values are codes and no amounts",
            reason="the sum, the mean or the median of codes means nothing",
            way_out="GROUP BY it, or count some of its values as in COUNT_IF(x = 1) or AVG(x = 1); if its values are "
            "amounts, declare it by low and high: dp.between(low, high, whole=True)",
        )
    return argument


def _values_of(argument: Expression) -> tuple[Expression, ...]:
    """What a value can be, unchanged: that of a column, or of the branches of a CASE."""
    if isinstance(argument, Case):
        return (*(value for _, value in argument.branches), argument.otherwise)
    return (argument,)


def _is_code(scope: Scope, value: Expression) -> bool:
    found = table_column(scope.source, value)
    return found is not None and found[0].private and value.facts.members is not None and value.facts.kind.is_number


def _count(context: Context, scope: Scope, node: exp.Expr) -> Aggregate:
    inside = node.args.get("this")
    if inside is None or class_of(inside) == "Star":
        if inside is not None:
            check_slots(context.script, inside, frozenset())
        return Aggregate(statistic=_S.ROWS)
    if class_of(inside) == "Distinct":
        return _count_distinct(context, scope, inside)
    argument = read_expression(context, scope, inside)
    if isinstance(argument, Literal) and argument.value is not None:
        return Aggregate(statistic=_S.ROWS)
    return Aggregate(statistic=_S.COUNT, argument=argument)


def _count_distinct(context: Context, scope: Scope, node: exp.Expr) -> Aggregate:
    check_slots(context.script, node, frozenset({"expressions"}))
    parts: Sequence[exp.Expr] = node.args.get("expressions") or ()
    if len(parts) != 1:
        raise Refused(
            "COUNT(DISTINCT …) takes one expression",
            reason="rows of several columns are counted differently by every engine",
            way_out="join them to one text: COUNT(DISTINCT a || ' ' || b)",
        )
    argument = read_expression(context, scope, parts[0])
    return _distinct(scope, argument)


def _distinct(scope: Scope, argument: Expression) -> Aggregate:
    if getattr(argument, "name", None) in scope.units:
        return Aggregate(statistic=_S.UNITS)
    return Aggregate(statistic=_S.DISTINCT, argument=argument)


def _approximate_distinct(context: Context, scope: Scope, node: exp.Expr) -> Aggregate:
    return _distinct(scope, _argument(context, scope, node))


def _count_if(context: Context, scope: Scope, node: exp.Expr) -> Aggregate:
    condition = read_condition(context, scope, node.this)
    return Aggregate(statistic=_S.COUNT, argument=when([(condition, literal(1))]))


def _moment(statistic: Statistic, *, sample: bool = True) -> _Reader:
    def read(context: Context, scope: Scope, node: exp.Expr) -> Aggregate:
        return Aggregate(statistic=statistic, argument=_number(context, scope, node), sample=sample)

    return read


def _of_two(statistic: Statistic, *, sample: bool = True) -> _Reader:
    """Read a statistic of two numbers: of rows in which both have a value."""

    def read(context: Context, scope: Scope, node: exp.Expr) -> Aggregate:
        second = _of_something(read_expression(context, scope, node.args["expression"]))
        other = _as_number(_amount(scope, second))
        return Aggregate(statistic=statistic, argument=_number(context, scope, node), other=other, sample=sample)

    return read


def _refuse_text(argument: Expression) -> None:
    if argument.facts.kind is Kind.TEXT:
        raise Refused(
            "this needs numbers or times, and this is a text",
            reason="the order of texts differs between engines, and a text that is shown is somebody's",
            way_out="count with GROUP BY, or use MODE of a column with declared categories",
        )


def _ranked(argument: Expression) -> Expression:
    if argument.facts.kind is Kind.BOOLEAN:
        return when([(argument, literal(1)), (apply(Operator.NOT, argument), literal(0))])
    _refuse_text(argument)
    return argument


def _extreme(quantile: Fraction, called: str) -> _Reader:
    def read(context: Context, scope: Scope, node: exp.Expr) -> Aggregate:
        argument = _ranked(_argument(context, scope, node))
        return Aggregate(statistic=_S.QUANTILE, argument=argument, quantile=quantile, called=called)

    return read


def _median(context: Context, scope: Scope, node: exp.Expr) -> Aggregate:
    argument = _ranked(_amount(scope, _argument(context, scope, node)))
    return Aggregate(statistic=_S.QUANTILE, argument=argument, quantile=Fraction(1, 2), called="MEDIAN")


def _quantile(slot: str) -> _Reader:
    def read(context: Context, scope: Scope, node: exp.Expr) -> Aggregate:
        if node.args.get(slot) is None:
            raise Refused(
                "a quantile says which one, and of what",
                reason="it is not clear what is meant",
                way_out="write QUANTILE(x, 0.5), or PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x)",
            )
        argument = _ranked(_amount(scope, _argument(context, scope, node)))
        return _at(context, scope, argument, node.args[slot])

    return read


def _at(context: Context, scope: Scope, argument: Expression, levels: exp.Expr, *, falling: bool = False) -> Aggregate:
    """Read which quantile is meant, or which ones: a list is chosen together."""
    if class_of(levels) != "Array":
        level = _level(read_expression(context, scope, levels))
        return Aggregate(statistic=_S.QUANTILE, argument=argument, quantile=1 - level if falling else level)
    check_slots(context.script, levels, frozenset({"expressions", "bracket_notation"}))
    listed = tuple(_level(read_expression(context, scope, one)) for one in levels.args.get("expressions") or ())
    if not listed or len(set(listed)) != len(listed) or falling:
        raise Refused(
            "a list of quantiles names each of them once, of values in rising order",
            reason="they are chosen together, none below the one before it",
            way_out="for example PERCENTILE_CONT([0.25, 0.5, 0.75]) WITHIN GROUP (ORDER BY x)",
        )
    return Aggregate(statistic=_S.QUANTILE, argument=argument, quantiles=listed)


def _five_numbers(context: Context, scope: Scope, node: exp.Expr) -> Aggregate:
    argument = _ranked(_amount(scope, _argument(context, scope, node)))
    return Aggregate(statistic=_S.QUANTILE, argument=argument, quantiles=_FIVE, called="FIVE_NUMBERS")


def _level(level: Expression) -> Fraction:
    if isinstance(level, Literal) and isinstance(level.value, (int, Fraction)) and 0 <= level.value <= 1:
        return Fraction(level.value)
    raise Refused(
        "a quantile is a constant from 0 to 1",
        reason="the price must follow from the text alone",
        way_out="for example 0.5 for the median",
    )


def _mode(context: Context, scope: Scope, node: exp.Expr) -> Aggregate:
    return Aggregate(statistic=_S.MODE, argument=_argument(context, scope, node))


def _filtered(context: Context, scope: Scope, node: exp.Expr) -> Aggregate:
    """FILTER (WHERE …) counts what does not match as NULL, which is left out."""
    where = node.args["expression"]
    if not is_aggregate(node.this) or class_of(where) != "Where":
        raise refuse_form(context.script, node, "an aggregate")
    condition = read_condition(context, scope, where.this)
    aggregate = read_aggregate(context, scope, node.this)
    if aggregate.statistic is _S.ROWS:
        return replace(aggregate, statistic=_S.COUNT, argument=when([(condition, literal(1))]))
    argument = scope.unit_field if aggregate.statistic is _S.UNITS else aggregate.argument
    if argument is None:
        raise refuse_form(context.script, node, "an aggregate")
    statistic = _S.DISTINCT if aggregate.statistic is _S.UNITS else aggregate.statistic
    return replace(aggregate, statistic=statistic, argument=when([(condition, argument)]))


def _within(context: Context, scope: Scope, node: exp.Expr) -> Aggregate:
    """PERCENTILE_CONT(q) WITHIN GROUP (ORDER BY x), and MODE() likewise."""
    order = node.args["expression"]
    if class_of(order) != "Order" or len(order.args.get("expressions") or ()) != 1:
        raise refuse_form(context.script, node, "an aggregate")
    check_slots(context.script, order, frozenset({"expressions"}))
    ordered = order.args["expressions"][0]
    check_slots(context.script, ordered, frozenset({"this", "desc", "nulls_first"}))
    argument = _of_something(read_expression(context, scope, ordered.this))
    inside = node.this
    if class_of(inside) == "Mode" and inside.args.get("this") is None:
        return Aggregate(statistic=_S.MODE, argument=argument)
    if class_of(inside) not in ("PercentileCont", "PercentileDisc") or inside.args.get("expression") is not None:
        raise refuse_form(context.script, node, "an aggregate")
    argument = _ranked(_amount(scope, argument))
    return _at(context, scope, argument, inside.this, falling=bool(ordered.args.get("desc")))


_UNNAMED = {"mean": _moment(_S.MEAN), "std": _moment(_S.DEVIATION), "five_numbers": _five_numbers}


def _unnamed(context: Context, scope: Scope, node: exp.Expr) -> Aggregate:
    parts = node.args.get("expressions") or []
    if len(parts) != 1:
        raise refuse_form(context.script, node, "an aggregate")
    plain = node.copy()
    plain.set("this", parts[0])
    return _UNNAMED[str(node.this).lower()](context, scope, plain)


_ANONYMOUS: Form[_Reader] = form_of("this expressions?", _unnamed)
_FORMS: dict[str, Form[_Reader]] = table_of(
    ("Count", "this? big_int?", _count),
    ("CountIf", "this", _count_if),
    ("ApproxDistinct", "this", _approximate_distinct),
    ("Sum", "this", _moment(_S.SUM)),
    ("Avg", "this", _moment(_S.MEAN)),
    ("Variance", "this", _moment(_S.VARIANCE)),
    ("VariancePop", "this", _moment(_S.VARIANCE, sample=False)),
    ("Stddev", "this", _moment(_S.DEVIATION)),
    ("StddevSamp", "this", _moment(_S.DEVIATION)),
    ("StddevPop", "this", _moment(_S.DEVIATION, sample=False)),
    ("CovarPop", "this expression", _of_two(_S.COVARIANCE, sample=False)),
    ("CovarSamp", "this expression", _of_two(_S.COVARIANCE)),
    ("Corr", "this expression", _of_two(_S.CORRELATION)),
    ("Min", "this", _extreme(_LEAST, "MIN")),
    ("Max", "this", _extreme(_GREATEST, "MAX")),
    ("Median", "this", _median),
    ("Quantile", "this quantile", _quantile("quantile")),
    ("ApproxQuantile", "this quantile", _quantile("quantile")),
    ("PercentileCont", "this expression?", _quantile("expression")),
    ("PercentileDisc", "this expression?", _quantile("expression")),
    ("Mode", "this?", _mode),
    ("Filter", "this expression", _filtered),
    ("WithinGroup", "this expression", _within),
)
