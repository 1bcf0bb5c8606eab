"""Read a query: text in, a question out, or a refusal that says where, why and what to do."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, final

from discreet.errors import InvalidParameter, Refused
from discreet.query.ast import Key, Query
from discreet.query.catalogue import Catalogue
from discreet.query.column_types import ExpressionFacts
from discreet.query.parse.privacy_options import PrivacyOptions
from discreet.query.parse.refusals import Script
from discreet.query.parse.scopes import Context, new_context
from discreet.query.parse.select import read_question
from discreet.query.parse.tokens import lift, parse, tokenize

__all__ = ["Reading", "read"]

_DEEPEST = 100  # Nodes below each other. What follows walks the tree by recursion, also where the charge is made.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A question, and what BigQuery's clause asks for beside it."""

    question: Query
    options: PrivacyOptions


def _check_bounds(context: Context) -> None:
    """Refuse bounds that no aggregate has taken: whoever wrote them counts on them."""
    left = sorted(set(context.bounds) - context.placed)
    if left:
        raise context.script.refuse(
            left[0],
            "bounds stand inside an aggregate",
            reason="they say how much one unit can change it",
            way_out="for example SUM(x, contribution_bounds_per_group => (0, 100))",
        )


def read(sql: str, catalogue: Catalogue, *, keys: Mapping[str, Sequence[Hashable]] | None = None) -> Reading:
    """Read one SELECT. `keys` lists public values of keys, by the name of an output or a column."""
    if not isinstance(sql, str):
        raise InvalidParameter("a query is a text")
    script = Script(sql)
    lifted = lift(script, tokenize(script), catalogue.unit)
    context = new_context(script, catalogue, lifted.bounds)
    try:
        question = read_question(context, parse(script, lifted), keys or {})
        _check_bounds(context)
    except Refused as refused:
        raise script.point(refused, None) from None
    except RecursionError:
        raise _too_deep(script) from None
    if _depth(question) > _DEEPEST:
        raise _too_deep(script)
    return Reading(question=question, options=lifted.options or PrivacyOptions())


def _too_deep(script: Script) -> Refused:
    return script.refuse(
        None,
        "this query nests too deep",
        reason="it costs time before anything is paid",
        way_out="split it, compute parts of a long chain in a sub-query, or put long lists into a public table",
    )


def _depth(question: Query) -> int:
    """Return how many nodes stand below each other, without recursion."""
    seen: dict[int, int] = {}
    left: list[tuple[Any, int]] = [(question, 0)]
    while left:
        value, depth = left.pop()
        if is_dataclass(value):
            if seen.get(id(value), 0) > depth or depth > _DEEPEST:
                continue
            seen[id(value)] = depth + 1
            left += [(part, depth + 1) for part in _parts(value)]
        elif isinstance(value, tuple):
            left += [(part, depth) for part in value]
    return max(seen.values())


def _parts(node: Any) -> list[Any]:
    """List what may have nodes below it, and not what is known of a node: long lists of values."""
    if isinstance(node, Key):
        return [node.expression]
    return [part for field in fields(node) if not isinstance(part := getattr(node, field.name), ExpressionFacts)]
