"""The allow-list: which nodes of a parsed text are understood, and which of their slots.

A node is matched by its exact class, and a slot that is set but not named here is refused. What a parser may add
tomorrow, in a new class or a new slot, is refused until somebody has thought about it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar, final

from discreet.errors import Refused
from discreet.query.reading.advice import CLASSES, SLOTS
from discreet.query.reading.refusals import Script

if TYPE_CHECKING:
    from sqlglot import exp

__all__ = ["Form", "check_form", "check_slots", "class_of", "form_of", "refuse_form", "table_of"]

Handler = TypeVar("Handler", bound=Callable[..., Any])


@final
@dataclass(frozen=True, slots=True)
class Form(Generic[Handler]):
    """How one class of nodes is read, and which slots it may have."""

    read: Handler
    slots: frozenset[str]
    needed: frozenset[str]


def form_of(slots: str, read: Handler) -> Form[Handler]:
    """Write a form as its slots, those that may be missing with a question mark, and what reads it."""
    names = slots.split()
    needed = frozenset(name for name in names if not name.endswith("?"))
    return Form(read, frozenset(name.removesuffix("?") for name in names), needed)


def table_of(*rows: tuple[str, str, Handler]) -> dict[str, Form[Handler]]:
    """Write an allow-list as rows: the class, its slots, what reads it."""
    return {name: form_of(slots, read) for name, slots, read in rows}


def check_form(script: Script, node: exp.Expr, form: Form[Handler]) -> None:
    """Refuse a node that says more, or less, than is understood."""
    check_slots(script, node, form.slots)
    if any(node.args.get(name) is None for name in form.needed):
        raise script.refuse(
            node,
            f"{_function_name(node) or _title(class_of(node))} lacks an argument",
            reason="it is not clear what is meant",
            way_out="write all arguments",
        )


def class_of(node: object) -> str:
    """Return the name of a node's own class; a subclass is another."""
    return type(node).__name__


def check_slots(script: Script, node: exp.Expr, slots: frozenset[str]) -> None:
    """Refuse a node that says more than is understood."""
    for name, value in node.args.items():
        if name not in slots and not (value is None or value is False or value == [] or value == ""):
            raise _refuse_slot(script, node, name, value)


def _refuse_slot(script: Script, node: exp.Expr, name: str, value: object) -> Refused:
    found: Any = value[0] if isinstance(value, list) else value
    known = SLOTS.get(f"{class_of(node)}.{name}") or SLOTS.get(name)
    problem, reason, way_out = known or (
        f"{_title(name)} is not answered in {_title(class_of(node))}",
        "only what is proven to be private is answered, clause by clause",
        "leave it out",
    )
    return script.refuse(found if hasattr(found, "args") else node, problem, reason=reason, way_out=way_out)


def refuse_form(script: Script, node: exp.Expr, wanted: str) -> Refused:
    """Refuse a node that is not on the list."""
    known = CLASSES.get(class_of(node))
    if known is not None:
        problem, reason, way_out = known
        return script.refuse(node, problem, reason=reason, way_out=way_out)
    return script.refuse(
        node,
        f"{_function_name(node) or _title(class_of(node))} is not answered as {wanted}",
        reason="only what is on the list is answered, and this is not",
        way_out="see the list on the page on SQL",
    )


def _function_name(node: exp.Expr) -> str:
    """Return what a function is called in SQL."""
    from sqlglot import exp

    if isinstance(node, exp.Anonymous):
        return f"the function {str(node.this)[:40]}"
    return f"the function {node.sql_name()}" if isinstance(node, exp.Func) else ""


def _title(name: str) -> str:
    words = "".join(f" {letter}" if letter.isupper() else letter for letter in name.rstrip("_")).split()
    return " ".join(words).replace("_", " ").upper()
