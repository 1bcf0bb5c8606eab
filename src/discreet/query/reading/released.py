"""A SELECT around a question: it looks at released values only, so that it is free and may do as it likes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, final

from discreet.query.expressions import Expression, Field
from discreet.query.facts import ExpressionFacts, Kind
from discreet.query.operators import Operator
from discreet.query.question import Combine, Order, OutputColumn, Post, Query
from discreet.query.reading.aggregates import has_aggregate
from discreet.query.reading.expressions import read_condition, read_expression
from discreet.query.reading.forms import check_slots, class_of
from discreet.query.reading.ordering import place_in, read_limit
from discreet.query.reading.posts import ReleasedScope, post_of
from discreet.query.reading.scopes import Context, FromItem, Scope, ScopeColumn
from discreet.query.reading.statements import items_of, with_queries

if TYPE_CHECKING:
    from sqlglot import exp

__all__ = ["Shown", "inner_question", "read_around"]


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
