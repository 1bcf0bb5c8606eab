"""Post-processing of released values, which is free: a SELECT around a query, ORDER BY and LIMIT."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, final

from discreet.query.ast import (
    Apply,
    Case,
    Choose,
    Combine,
    End,
    Expression,
    Field,
    KeyValue,
    Limit,
    Literal,
    Measure,
    Operator,
    Order,
    OutputColumn,
    Post,
    Query,
    ReleasedMeasure,
    Side,
    Statistic,
)
from discreet.query.parse.aggregates import has_aggregate
from discreet.query.parse.allow_list import check_slots, class_of
from discreet.query.parse.expression_reader import read_condition, read_expression
from discreet.query.parse.scopes import Context, FromItem, Scope, ScopeColumn
from discreet.query.parse.subqueries import items_of, with_queries
from discreet.schema.columns import ExpressionFacts, Kind

if TYPE_CHECKING:
    from sqlglot import exp

__all__ = ["ReleasedScope", "Shown", "inner_question", "place_in", "post_of", "read_around", "read_limit"]

# --- released ---
# A SELECT around a question: it looks at released values only, so that it is free and may do as it likes.


@final
@dataclass(frozen=True, slots=True)
class Shown:
    """A question, and the kinds of its outputs."""

    question: Query
    kinds: tuple[Kind, ...]


def inner_question(context: Context, node: exp.Expr) -> tuple[Context, exp.Expr, str] | None:
    """Return the query that a SELECT without aggregates stands around, if it is a question; and its name."""
    if any(node.args.get(slot) is not None for slot in ("joins", "group", "distinct", "having")):
        return None
    clause = node.args.get("from_")
    if clause is None or any(has_aggregate(part) for part in node.args.get("expressions") or ()):
        return None
    found = _named_query(context, clause.this)
    if found is None:
        return None
    inside, query, name = found
    return (inside, query, name) if _is_question(inside, query) else None


def _named_query(context: Context, node: exp.Expr) -> tuple[Context, exp.Expr, str] | None:
    if class_of(node) == "Subquery":
        check_slots(context.script, node, frozenset({"this", "alias"}))
        return context, node.this, str(node.alias)
    name = str(node.name).lower()
    if class_of(node) != "Table" or name not in context.queries:
        return None
    check_slots(context.script, node, frozenset({"this", "alias"}))
    query, inner = context.queries[name]
    alias = query.args["alias"]
    if alias.args.get("columns"):
        return None
    return inner, query.this, str(node.alias_or_name)


def _is_question(context: Context, query: exp.Expr) -> bool:
    """Whether a query aggregates, or stands around one that does."""
    if class_of(query) != "Select":
        return False
    return inner_question(with_queries(context, query), query) is not None or _aggregates(query)


def _aggregates(query: exp.Expr) -> bool:
    return query.args.get("group") is not None or any(
        has_aggregate(part) for part in query.args.get("expressions") or ()
    )


def read_around(context: Context, node: exp.Expr, name: str, inner: Shown) -> Shown:
    """Read a SELECT over the outputs of a question: its WHERE becomes HAVING, its columns post-processing."""
    _refuse_after_limit(context, node, inner.question)
    released = ReleasedScope()
    fields = [_field(released, place, inner) for place in range(len(inner.kinds))]
    outputs = inner.question.outputs
    columns = tuple(ScopeColumn(output.name, field) for output, field in zip(outputs, fields, strict=True))
    scope = Scope(inner.question.source, (FromItem(name, columns),))
    shown: list[OutputColumn] = []
    kinds: list[Kind] = []
    for place, item in enumerate(items_of(context, scope, node), 1):
        value = item.column.field if item.column is not None else _read(context, scope, item.node)
        shown.append(OutputColumn(item.name or f"column_{place}", _post(context, released, value, node)))
        kinds.append(value.facts.kind)
    _refuse_twice(context, node, shown)
    question = replace(
        inner.question,
        outputs=tuple(shown),
        having=_having(context, scope, released, node, inner.question.having),
        order=_order(context, scope, released, node, shown) or inner.question.order,
        limit=read_limit(context, node) or inner.question.limit,
    )
    return Shown(question, tuple(kinds))


def _read(context: Context, scope: Scope, node: exp.Expr | None) -> Expression:
    assert node is not None
    return read_expression(context, scope, node)


def _post(context: Context, released: ReleasedScope, value: Expression, node: exp.Expr) -> Post:
    post = post_of(released, value)
    context.check_size(post, node)
    return post


def _field(released: ReleasedScope, place: int, inner: Shown) -> Field:
    name = f"output {place}"
    released.posts[name] = inner.question.outputs[place].value
    return Field(name, ExpressionFacts(kind=inner.kinds[place]))


def _refuse_after_limit(context: Context, node: exp.Expr, inner: Query) -> None:
    if inner.limit is not None and any(node.args.get(slot) is not None for slot in ("where", "order", "limit")):
        raise context.script.refuse(
            node,
            "there is a LIMIT inside and another clause outside",
            reason="an answer is filtered, sorted and cut once, in this order",
            way_out="move LIMIT to the outer SELECT",
        )


def _refuse_twice(context: Context, node: exp.Expr, shown: list[OutputColumn]) -> None:
    if len({output.name.lower() for output in shown}) != len(shown):
        raise context.script.refuse(
            node,
            "two columns of the answer have one name",
            reason="they could not be told apart",
            way_out="give each its own with AS",
        )


def _having(context: Context, scope: Scope, released: ReleasedScope, node: exp.Expr, inner: Post | None) -> Post | None:
    clause = node.args.get("where")
    if clause is None:
        return inner
    check_slots(context.script, clause, frozenset({"this"}))
    outer = _post(context, released, read_condition(context, scope, clause.this), node)
    return outer if inner is None else Combine(Operator.AND, (inner, outer))


def _order(
    context: Context, scope: Scope, released: ReleasedScope, node: exp.Expr, shown: list[OutputColumn]
) -> tuple[Order, ...]:
    clause = node.args.get("order")
    if clause is None:
        return ()
    check_slots(context.script, clause, frozenset({"expressions"}))
    orders: list[Order] = []
    for entry in clause.args.get("expressions") or ():
        found = place_in(context, entry, shown)
        value = _post(context, released, read_expression(context, scope, entry.this), node) if found is None else found
        orders.append(Order(value, bool(entry.args.get("desc"))))
    return tuple(orders)


# --- posts ---
# What is done to released values. It is read like an expression of a row whose fields are keys and answers.


_WHOLE = frozenset({Statistic.QUANTILE, Statistic.MODE})


@final
@dataclass(slots=True)
class ReleasedScope:
    """The measures and keys of a question while it is read, each standing for its released value as a field."""

    measures: list[Measure] = field(default_factory=list)
    posts: dict[str, Post] = field(default_factory=dict)

    def key(self, index: int, expression: Expression) -> Field:
        return self._stand_for(f"key {index}", KeyValue(index), expression.facts.kind)

    def answer(self, measure: Measure) -> Field:
        index = self._index(measure)
        return self._stand_for(f"answer {index}", ReleasedMeasure(index), _kind(measure))

    def end(self, measure: Measure, side: Side) -> Field:
        index = self._index(measure)
        return self._stand_for(f"{side.value} {index}", End(index, side), _kind(measure))

    def _index(self, measure: Measure) -> int:
        if measure not in self.measures:
            self.measures.append(measure)
        return self.measures.index(measure)

    def _stand_for(self, name: str, post: Post, kind: Kind) -> Field:
        self.posts[name] = post
        return Field(name, ExpressionFacts(kind=kind))


def _kind(measure: Measure) -> Kind:
    """A released number may be anything: noise knows no bounds, and an average is no whole number."""
    if measure.statistic is Statistic.MODE or (measure.argument is not None and measure.argument.facts.kind.is_time):
        return (
            measure.argument.facts.kind if measure.argument is not None and measure.statistic in _WHOLE else Kind.REAL
        )
    return Kind.REAL


def post_of(released: ReleasedScope, expression: Expression) -> Post:
    """Turn an expression of released values into post-processing."""
    match expression:
        case Field():
            return released.posts[expression.name]
        case Literal():
            return expression
        case Apply():
            return Combine(expression.operator, tuple(post_of(released, part) for part in _arguments(expression)))
        case Case():
            branches = tuple((post_of(released, one), post_of(released, two)) for one, two in expression.branches)
            return Choose(branches, post_of(released, expression.otherwise))


def _arguments(expression: Apply) -> tuple[Expression, ...]:
    """Divide by x where somebody divides by NULLIF(x, 0): division by zero is NULL anyway."""
    if expression.operator is not Operator.DIVIDE:
        return expression.arguments
    over, under = expression.arguments
    return over, _without_zero_guard(under)


def _without_zero_guard(under: Expression) -> Expression:
    if not isinstance(under, Case) or len(under.branches) != 1:
        return under
    (condition, value), rest = under.branches[0], under.otherwise
    guards = (
        isinstance(condition, Apply)
        and condition.operator is Operator.EQUAL
        and condition.arguments[0] == rest
        and isinstance(condition.arguments[1], Literal)
        and condition.arguments[1].value == 0
        and isinstance(value, Literal)
        and value.value is None
    )
    return rest if guards else under


# --- ordering: ORDER BY, LIMIT and OFFSET, which look at released values only. ---


def place_in(context: Context, node: exp.Expr, outputs: Sequence[OutputColumn]) -> Post | None:
    """Return the output that an entry of ORDER BY means by its place or name; None if it is an expression."""
    check_slots(context.script, node, frozenset({"this", "desc"}))
    inside = node.this
    if class_of(inside) == "Literal" and not inside.args.get("is_string"):
        text = str(inside.this)
        if not text.isdecimal() or not 1 <= int(text[:6]) <= len(outputs):
            raise context.script.refuse(
                node,
                f"a place in the SELECT list is a whole number from 1 to {len(outputs)}",
                reason="there is no such column",
                way_out="count the columns, or write the name",
            )
        return outputs[int(text) - 1].value
    if class_of(inside) == "Column" and inside.args.get("table") is None:
        name = str(inside.name).lower()
        return next((output.value for output in outputs if output.name.lower() == name), None)
    return None


def read_limit(context: Context, node: exp.Expr) -> Limit | None:
    """Read LIMIT and OFFSET; both are constants."""
    limit, offset = node.args.get("limit"), node.args.get("offset")
    if limit is None and offset is None:
        return None
    count = None if limit is None else _whole(context, limit)
    return Limit(count, 0 if offset is None else _whole(context, offset))


def _whole(context: Context, node: exp.Expr) -> int:
    check_slots(context.script, node, frozenset({"expression"}))
    inside = node.args.get("expression")
    text = str(inside.this) if inside is not None and class_of(inside) == "Literal" else ""
    if not text.isdecimal() or len(text) > 9:
        raise context.script.refuse(
            node,
            "LIMIT and OFFSET take a constant whole number",
            reason="how many rows are shown must follow from the text alone",
            way_out="write the number",
        )
    return int(text)
