"""`EXISTS (SELECT … WHERE inner.key = outer.key AND …)` is membership of the outer key in a list of inner ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.query.reading.expressions import chain
from discreet.query.reading.forms import check_slots, class_of, refuse_form
from discreet.query.reading.scopes import Context, Scope

if TYPE_CHECKING:
    from sqlglot import exp

__all__ = ["as_membership"]


def as_membership(context: Context, scope: Scope, node: exp.Expr) -> tuple[exp.Expr, exp.Expr]:
    """Return the outer column, and the inner query of the column that it must equal."""
    query = node.this
    if class_of(query) != "Select" or query.args.get("where") is None:
        raise refuse_form(context.script, node, "a condition")
    check_slots(context.script, query, frozenset({"expressions", "from_", "joins", "where"}))
    inner = _names(query)
    outer = {part.name.lower() for part in scope.parts} - inner
    condition = query.args["where"].this
    parts = chain(condition) if class_of(condition) == "And" else [condition]
    links = [part for part in parts if _sides(part, inner, outer) is not None]
    if len(links) != 1:
        raise refuse_form(context.script, node, "a condition")
    sides = _sides(links[0], inner, outer)
    assert sides is not None
    return sides[0], _without(query, parts.index(links[0]), len(parts), sides[1])


def _names(query: exp.Expr) -> set[str]:
    sources = [query.args["from_"].this] if query.args.get("from_") is not None else []
    sources += [join.this for join in query.args.get("joins") or ()]
    return {str(source.alias_or_name).lower() for source in sources}


def _sides(node: exp.Expr, inner: set[str], outer: set[str]) -> tuple[exp.Expr, exp.Expr] | None:
    """Return the outer and the inner column of an equality between the two queries."""
    if class_of(node) != "EQ" or class_of(node.this) != "Column" or class_of(node.args["expression"]) != "Column":
        return None
    one, other = node.this, node.args["expression"]
    tables = one.text("table").lower(), other.text("table").lower()
    if tables[0] in outer and tables[1] in inner:
        return one, other
    return (other, one) if tables[1] in outer and tables[0] in inner else None


def _without(query: exp.Expr, place: int, count: int, column: exp.Expr) -> exp.Expr:
    """Return the query that selects the inner column, without the condition that ties it to the outer query."""
    from sqlglot import exp

    plain = query.copy()
    condition = plain.args["where"].this
    parts = chain(condition) if class_of(condition) == "And" else [condition]
    assert len(parts) == count
    rest = [part for index, part in enumerate(parts) if index != place]
    plain.set("expressions", [column.copy()])
    plain.set("where", exp.Where(this=exp.and_(*rest, copy=False)) if rest else None)
    return plain
