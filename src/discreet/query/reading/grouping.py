"""GROUP BY: what the keys are, and what an expression means after rows have been grouped."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from discreet.errors import Refused
from discreet.query.expressions import Expression, Literal
from discreet.query.reading.aggregates import has_aggregate, is_aggregate
from discreet.query.reading.expressions import read_expression
from discreet.query.reading.forms import check_slots, class_of
from discreet.query.reading.scopes import Context, Scope
from discreet.query.reading.statements import Item

if TYPE_CHECKING:
    from sqlglot import exp

__all__ = ["keys_of", "settle"]

_STOPS = frozenset({"Select", "Subquery", "Union", "Window"})
_CONSTANTS = frozenset({"Literal", "Boolean", "Null"})


def keys_of(context: Context, scope: Scope, node: exp.Expr, items: Sequence[Item]) -> list[Expression]:
    """Return the distinct expressions that rows are grouped by; those of the SELECT list for DISTINCT."""
    distinct, group = node.args.get("distinct"), node.args.get("group")
    if distinct is not None:
        check_slots(context.script, distinct, frozenset({"expressions"}))
        _refuse_both(context, node, items)
        return list(dict.fromkeys(_expression(context, scope, item) for item in items))
    if group is None:
        return []
    check_slots(context.script, group, frozenset({"expressions", "all"}))
    if group.args.get("all"):
        plain = [item for item in items if item.node is None or not has_aggregate(item.node)]
        return list(dict.fromkeys(_expression(context, scope, item) for item in plain))
    keys = [_key(context, scope, entry, items) for entry in group.args.get("expressions") or ()]
    return list(dict.fromkeys(keys))


def _refuse_both(context: Context, node: exp.Expr, items: Sequence[Item]) -> None:
    if node.args.get("group") is not None or any(item.node is not None and has_aggregate(item.node) for item in items):
        raise context.script.refuse(
            node.args["distinct"],
            "DISTINCT stands without GROUP BY and without aggregates",
            reason="groups are distinct already",
            way_out="leave DISTINCT out",
        )


def _expression(context: Context, scope: Scope, item: Item) -> Expression:
    return item.column.field if item.column is not None else read_expression(context, scope, _node(item))


def _node(item: Item) -> exp.Expr:
    assert item.node is not None
    return item.node


def _key(context: Context, scope: Scope, node: exp.Expr, items: Sequence[Item]) -> Expression:
    """A place in the SELECT list, a column, an alias, or an expression; a column comes before an alias, as in SQL."""
    if class_of(node) == "Literal" and not node.args.get("is_string"):
        return _expression(context, scope, _at(context, node, items))
    if class_of(node) == "Column" and node.args.get("table") is None:
        named = next((item for item in items if item.name.lower() == str(node.name).lower()), None)
        if named is not None and scope.find(str(node.name), None) is None:
            return _grouped_by(context, node, _expression(context, scope, named))
    return _grouped_by(context, node, read_expression(context, scope, node))


def _grouped_by(context: Context, node: exp.Expr, key: Expression) -> Expression:
    if isinstance(key, Literal):
        raise context.script.refuse(
            node, "rows are not grouped by a constant", reason="there would be one group", way_out="leave it out"
        )
    return key


def _at(context: Context, node: exp.Expr, items: Sequence[Item]) -> Item:
    text = str(node.this)
    if not text.isdecimal() or not 1 <= int(text[:6]) <= len(items):
        raise context.script.refuse(
            node,
            f"a place in the SELECT list is a whole number from 1 to {len(items)}",
            reason="there is no such column",
            way_out="count the columns, or write the name",
        )
    return items[int(text) - 1]


def settle(
    context: Context,
    scope: Scope,
    nodes: Iterable[exp.Expr],
    keys: Callable[[Expression], Expression | None],
    aggregate: Callable[[exp.Expr], Expression | None],
) -> dict[int, Expression]:
    """Say what the largest nodes that are keys or aggregates stand for; everything else is computed from them."""
    settled: dict[int, Expression] = {}
    waiting = list(nodes)
    while waiting:
        node = waiting.pop(0)
        found = aggregate(node) or _as_key(context, scope, node, keys)
        if found is not None:
            settled[id(node)] = found
        elif class_of(node) not in _STOPS and not is_aggregate(node):
            waiting += [child for child in node.iter_expressions() if class_of(child) not in ("Identifier", "DataType")]
    return settled


def _is_link(node: exp.Expr) -> bool:
    """Whether a node is inside a chain of AND or OR: to look at each link as a key takes the square of its length."""
    return class_of(node) in ("And", "Or") and class_of(node.parent) == class_of(node)


def _as_key(
    context: Context, scope: Scope, node: exp.Expr, keys: Callable[[Expression], Expression | None]
) -> Expression | None:
    if class_of(node) in _STOPS | _CONSTANTS or _is_link(node) or has_aggregate(node):
        return None
    try:
        return keys(read_expression(context, scope, node))
    except Refused:
        return None
