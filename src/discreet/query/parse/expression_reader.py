"""From a parsed expression to ours: one row in, one value out, and nothing that is not on the list."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from discreet.errors import InvalidParameter, Refused
from discreet.exact import exact
from discreet.query.ast import Expression, Literal, Operator
from discreet.query.functions.constants import a, is_null, literal
from discreet.query.functions.expressions import apply, cast, when
from discreet.query.parse.allow_list import AGGREGATE, check_form, check_slots, class_of, refuse_form, table_of
from discreet.query.parse.scopes import Context, Scope
from discreet.schema.columns import Kind

if TYPE_CHECKING:
    from sqlglot import exp

__all__ = ["FORMS", "Handler", "chain", "kind_of_type", "read_condition", "read_expression"]

# --- types: Names of types, and the kinds that they stand for. ---


_TYPES = {
    **dict.fromkeys(("BIGINT", "INT", "SMALLINT", "TINYINT", "MEDIUMINT", "INT128"), Kind.INTEGER),
    **dict.fromkeys(("UBIGINT", "UINT", "USMALLINT", "UTINYINT"), Kind.INTEGER),
    **dict.fromkeys(("DOUBLE", "FLOAT", "DECIMAL"), Kind.REAL),
    **dict.fromkeys(("TEXT", "VARCHAR", "CHAR", "NVARCHAR", "NCHAR"), Kind.TEXT),
    **dict.fromkeys(("TIMESTAMPNTZ", "TIMESTAMP", "DATETIME"), Kind.TIMESTAMP),
    "DATE": Kind.DATE,
    "BOOLEAN": Kind.BOOLEAN,
    "FLOAT64": Kind.REAL,
    "INT64": Kind.INTEGER,
}


def kind_of_type(context: Context, node: exp.Expr) -> tuple[Kind, int | None]:
    """Return the kind that a type stands for, and how many decimals it keeps, if it says so."""
    check_slots(context.script, node, frozenset({"this", "nested", "expressions", "kind"}))
    name = str(node.args.get("kind") or getattr(node.this, "name", node.this)).upper()
    kind = _TYPES.get(name)
    if kind is None or node.args.get("nested"):
        raise Refused(
            "values are cast to BOOLEAN, INTEGER, DOUBLE, VARCHAR, DATE or TIMESTAMP",
            reason="these mean the same on every engine",
            way_out="choose one of them; times have no zone here",
        )
    parameters = [str(parameter.this.this) for parameter in node.args.get("expressions") or ()]
    decimals = int(parameters[1]) if name == "DECIMAL" and len(parameters) == 2 and parameters[1].isdecimal() else None
    return kind, decimals


Handler: TypeAlias = "Callable[[Context, Scope, exp.Expr], Expression]"
_O = Operator


def read_expression(context: Context, scope: Scope, node: exp.Expr) -> Expression:
    """Read an expression of one row."""
    from discreet.query.parse.function_calls import CALLS

    if scope.settled is not None and id(node) in scope.settled:
        return scope.settled[id(node)]
    if id(node) in scope.windows:
        return scope.windows[id(node)]
    form = FORMS.get(class_of(node)) or CALLS.get(class_of(node))
    if form is None:
        raise _refuse(context, node)
    check_form(context.script, node, form)
    try:
        expression = form.read(context, scope, node)
    except Refused as refused:
        raise context.script.point(refused, node) from None
    context.check_size(expression, node)
    return expression


def _refuse(context: Context, node: exp.Expr) -> Refused:
    from discreet.query.parse.aggregates import is_aggregate

    if not is_aggregate(node):
        return refuse_form(context.script, node, "an expression of a row")
    problem, reason, way_out = AGGREGATE
    return context.script.refuse(node, problem, reason=reason, way_out=way_out)


def read_condition(context: Context, scope: Scope, node: exp.Expr) -> Expression:
    """Read an expression that must be true or false."""
    condition = read_expression(context, scope, node)
    if condition.facts.kind is not Kind.BOOLEAN:
        raise context.script.refuse(
            node,
            f"a condition is needed here, and this is {a(condition.facts.kind)}",
            reason="what counts as true differs between engines",
            way_out="compare it, for example with <> 0",
        )
    return condition


def _column(context: Context, scope: Scope, node: exp.Expr) -> Expression:
    from sqlglot import exp

    name, table = node.args["this"], node.args.get("table")
    if not isinstance(name, exp.Identifier):
        raise refuse_form(context.script, name if isinstance(name, exp.Expr) else node, "an expression of a row")
    where = None if table is None else str(table.this)
    if scope.settled is not None:
        return _alias(context, scope, str(name.this), node)
    if where is None and str(name.this).lower() in scope.aliases and scope.find(str(name.this), None) is None:
        return scope.aliases[str(name.this).lower()]
    return scope.look_up(context.script, str(name.this), where, node).field


def _alias(context: Context, scope: Scope, name: str, node: exp.Expr) -> Expression:
    """After grouping only outputs can be named: a column that is no key has many values in a group."""
    found = None if node.args.get("table") is not None else scope.aliases.get(name.lower())
    if found is not None:
        return found
    scope.look_up(context.script, name, node.text("table") or None, node)
    raise context.script.refuse(
        node,
        "this column is neither in GROUP BY nor inside an aggregate",
        reason="one row's own value would be shown",
        way_out="add it to GROUP BY, or use AVG, MEDIAN or MODE of it",
    )


def _literal(context: Context, scope: Scope, node: exp.Expr) -> Expression:
    text = str(node.this)
    if node.args.get("is_string"):
        return literal(text)
    if text.isdecimal() and len(text) < 18:
        return literal(int(text))
    try:
        number = exact(text)
    except InvalidParameter:
        raise Refused(
            "this number cannot be read", reason="a constant has a sane size", way_out="write fewer digits"
        ) from None
    real = any(letter in text for letter in ".eE")
    if abs(number) > 10**300:
        raise Refused("this number is too large", reason="no double holds it", way_out="write a smaller one")
    return literal(number, Kind.REAL if real else None)


def chain(node: exp.Expr) -> list[exp.Expr]:
    """Return what a chain of AND, or of OR, connects; however long, without recursion."""
    parts: list[exp.Expr] = []
    waiting = [node]
    while waiting:
        current = waiting.pop()
        if class_of(current) == class_of(node):
            waiting += [current.args["expression"], current.args["this"]]
        elif class_of(current) == "Paren" and class_of(current.this) == class_of(node):
            waiting.append(current.this)
        else:
            parts.append(current)
    return parts


def _connected(operator: Operator) -> Handler:
    def read(context: Context, scope: Scope, node: exp.Expr) -> Expression:
        return apply(operator, *(read_condition(context, scope, part) for part in chain(node)))

    return read


def _inside(context: Context, scope: Scope, node: exp.Expr) -> Expression:
    return read_expression(context, scope, node.args["this"])


def _between(context: Context, scope: Scope, node: exp.Expr) -> Expression:
    value, low, high = (read_expression(context, scope, node.args[slot]) for slot in ("this", "low", "high"))
    return apply(_O.AND, apply(_O.GREATER_OR_EQUAL, value, low), apply(_O.LESS_OR_EQUAL, value, high))


def _in(context: Context, scope: Scope, node: exp.Expr) -> Expression:
    value = read_expression(context, scope, node.args["this"])
    others = [read_expression(context, scope, other) for other in node.args.get("expressions") or ()]
    if not others or not all(isinstance(other, Literal) for other in others):
        raise Refused(
            "IN takes a list of constants",
            reason="a list that comes from data would depend on other people's rows",
            way_out="write the values, or join a table that holds them",
        )
    return apply(_O.IN, value, *dict.fromkeys(others))


def _is(context: Context, scope: Scope, node: exp.Expr) -> Expression:
    value = read_expression(context, scope, node.args["this"])
    other = read_expression(context, scope, node.args["expression"])
    if is_null(other):
        return apply(_O.IS_NULL, value)
    if isinstance(other, Literal) and isinstance(other.value, bool):
        return apply(_O.COALESCE, apply(_O.EQUAL, value, other), literal(False))
    raise Refused("IS is for NULL, TRUE and FALSE", reason="anything else is compared with =", way_out="write =")


def _same(wanted: bool) -> Handler:
    def read(context: Context, scope: Scope, node: exp.Expr) -> Expression:
        sides = [read_expression(context, scope, node.args[slot]) for slot in ("this", "expression")]
        if any(is_null(side) for side in sides):
            other = next((side for side in sides if not is_null(side)), sides[0])
            missing = apply(_O.IS_NULL, other)
            return missing if wanted else apply(_O.NOT, missing)
        absent = [apply(_O.IS_NULL, side) for side in sides]
        equal = when([(absent[0], absent[1]), (absent[1], literal(False))], apply(_O.EQUAL, *sides))
        return equal if wanted else apply(_O.NOT, equal)

    return read


def _case(context: Context, scope: Scope, node: exp.Expr) -> Expression:
    subject = node.args.get("this")
    value = None if subject is None else read_expression(context, scope, subject)
    branches = [_branch(context, scope, value, branch) for branch in node.args["ifs"]]
    otherwise = node.args.get("default")
    return when(branches, None if otherwise is None else read_expression(context, scope, otherwise))


def _branch(
    context: Context, scope: Scope, subject: Expression | None, node: exp.Expr
) -> tuple[Expression, Expression]:
    check_slots(context.script, node, frozenset({"this", "true"}))
    if subject is None:
        condition = read_condition(context, scope, node.args["this"])
    else:
        condition = apply(_O.EQUAL, subject, read_expression(context, scope, node.args["this"]))
    return condition, read_expression(context, scope, node.args["true"])


def _if(context: Context, scope: Scope, node: exp.Expr) -> Expression:
    condition = read_condition(context, scope, node.args["this"])
    yes = read_expression(context, scope, node.args["true"])
    no = node.args.get("false")
    return when([(condition, yes)], None if no is None else read_expression(context, scope, no))


def _null_if(context: Context, scope: Scope, node: exp.Expr) -> Expression:
    value = read_expression(context, scope, node.args["this"])
    other = read_expression(context, scope, node.args["expression"])
    return when([(apply(_O.EQUAL, value, other), literal(None))], value)


def _cast(context: Context, scope: Scope, node: exp.Expr) -> Expression:
    value = read_expression(context, scope, node.args["this"])
    kind, decimals = kind_of_type(context, node.args["to"])
    if isinstance(value, Literal) and isinstance(value.value, str) and kind.is_time:
        return _constant_time(value.value, kind)
    result = cast(value, kind)
    return result if decimals is None else apply(_O.ROUND, result, literal(min(decimals, 15)))


def _constant_time(text: str, kind: Kind) -> Expression:
    moment = cast(literal(text), kind)
    if is_null(moment):
        raise Refused(
            f"this text is no {kind.value}",
            reason="only what is understood in full is answered",
            way_out="write DATE '2024-12-31' or TIMESTAMP '2024-12-31 23:59:59', without a time zone",
        )
    return moment


FORMS = table_of(
    ("Column", "this table?", _column),
    ("Literal", "this is_string?", _literal),
    ("Boolean", "this", lambda context, scope, node: literal(bool(node.this))),
    ("Null", "", lambda context, scope, node: literal(None)),
    ("Paren", "this", _inside),
    ("And", "this expression", _connected(_O.AND)),
    ("Or", "this expression", _connected(_O.OR)),
    ("NullSafeEQ", "this expression", _same(True)),
    ("NullSafeNEQ", "this expression", _same(False)),
    ("Between", "this low high", _between),
    ("In", "this expressions?", _in),
    ("Is", "this expression", _is),
    ("Case", "this? ifs default?", _case),
    ("If", "this true false?", _if),
    ("Nullif", "this expression", _null_if),
    ("Cast", "this to _type?", _cast),
    ("TryCast", "this to safe? _type?", _cast),
)
