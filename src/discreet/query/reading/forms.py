"""The allow-list: which nodes of a parsed text are understood, and which of their slots.

A node is matched by its exact class, and a slot that is set but not named here is refused. What a parser may add
tomorrow, in a new class or a new slot, is refused until somebody has thought about it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar, final

from discreet.errors import Refused
from discreet.query.reading.refusals import Script

if TYPE_CHECKING:
    from sqlglot import exp

__all__ = ["Form", "check_slots", "class_of", "refuse_form", "table_of"]

Handler = TypeVar("Handler", bound=Callable[..., Any])


@final
@dataclass(frozen=True, slots=True)
class Form(Generic[Handler]):
    """How one class of nodes is read, and which slots it may have."""

    read: Handler
    slots: frozenset[str]


def table_of(*rows: tuple[str, str, Handler]) -> dict[str, Form[Handler]]:
    """Write an allow-list as rows: the class, its slots, what reads it."""
    return {name: Form(read, frozenset(slots.split())) for name, slots, read in rows}


def class_of(node: object) -> str:
    """Return the name of a node's own class; a subclass is another."""
    return type(node).__name__


def check_slots(script: Script, node: exp.Expr, slots: frozenset[str]) -> None:
    """Refuse a node that says more than is understood."""
    for name, value in node.args.items():
        if name not in slots and not (value is None or value is False or value == [] or value == ""):
            raise script.refuse(
                node,
                f"{_title(name)} is not answered in {_title(class_of(node))}",
                reason=_REASONS.get(name, "only what is proven to be private is answered, clause by clause"),
                way_out=_WAYS.get(name, "leave it out"),
            )


def refuse_form(script: Script, node: exp.Expr, wanted: str) -> Refused:
    """Refuse a node that is not on the list."""
    name = _function_name(node) or _title(class_of(node))
    reason, way_out = _KNOWN.get(class_of(node), ("only what is on the list is answered, and this is not", ""))
    return script.refuse(
        node, f"{name} is not answered as {wanted}", reason=reason, way_out=way_out or "see the list on the page on SQL"
    )


def _function_name(node: exp.Expr) -> str:
    """Return the name of a function that the parser does not know itself."""
    if class_of(node) != "Anonymous" or not isinstance(node.this, str):
        return ""
    return f"the function {node.this[:40]!r}"


def _title(name: str) -> str:
    words = "".join(f" {letter}" if letter.isupper() else letter for letter in name.rstrip("_")).split()
    return " ".join(words).replace("_", " ").upper()


_REASONS: Mapping[str, str] = {
    "qualify": "a window looks at other people's rows",
    "windows": "a window looks at other people's rows",
    "sample": "what is sampled is decided by the engine, not by a secret that is ours",
    "pivots": "the columns of the answer would depend on the data",
    "laterals": "rows that depend on other rows multiply without a bound",
    "locks": "a question changes nothing",
    "into": "an answer is returned, never stored in a table",
    "distinct": "which of several rows is kept would depend on other people's rows",
    "recursive": "how often it recurs depends on the data",
    "when": "the data are those of one version, which the custodian declares",
}
_WAYS: Mapping[str, str] = {
    "qualify": "filter released values with HAVING",
    "sample": "ask about all rows: the noise is the same",
    "pivots": "GROUP BY the column instead",
}
_KNOWN: Mapping[str, tuple[str, str]] = {
    "Window": ("a window looks at other people's rows", "GROUP BY, and compare released values"),
    "Subquery": (
        "a value from a sub-query may be everybody's, and would be paid by nobody",
        "join it, or ask for it first and write the number",
    ),
    "Exists": ("whether a row exists may depend on another person", "JOIN a sub-query that groups by the unit"),
    "AnyValue": ("one row's own value would be shown", "use MODE or MEDIAN"),
    "First": ("one row's own value would be shown", "use MODE or MEDIAN"),
    "Last": ("one row's own value would be shown", "use MODE or MEDIAN"),
    "GroupConcat": ("rows' own values would be shown", "GROUP BY the column and count"),
    "ArrayAgg": ("rows' own values would be shown", "GROUP BY the column and count"),
    "ArgMax": ("one row's own value would be shown", "GROUP BY the column and ORDER BY the released maximum"),
    "ArgMin": ("one row's own value would be shown", "GROUP BY the column and ORDER BY the released minimum"),
    "Rand": ("randomness comes from one secret source only", "leave it out"),
    "CurrentDate": ("the same question must have the same price and meaning tomorrow", "write the date"),
    "CurrentTimestamp": ("the same question must have the same price and meaning tomorrow", "write the time"),
    "RegexpLike": ("a pattern may cost time that depends on the data", "use LIKE"),
    "Placeholder": ("there are no parameters here", "write the constant"),
    "Star": ("rows themselves are never shown", "count or add up: COUNT(*), SUM(x)"),
}
