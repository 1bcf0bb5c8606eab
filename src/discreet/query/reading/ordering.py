"""ORDER BY, LIMIT and OFFSET, which look at released values only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from discreet.query.question import Limit, OutputColumn, Post
from discreet.query.reading.forms import check_slots, class_of
from discreet.query.reading.scopes import Context

if TYPE_CHECKING:
    from sqlglot import exp

__all__ = ["place_in", "read_limit"]


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
