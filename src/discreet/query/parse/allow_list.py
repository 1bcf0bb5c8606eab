"""The allow-list of SQL: which parsed nodes are understood, and what is said about those that are not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar, final

from discreet.errors import Refused
from discreet.query.parse.dialect_hints import function_hint
from discreet.query.parse.refusals import Script

if TYPE_CHECKING:
    from sqlglot import exp

__all__ = [
    "AGGREGATE",
    "CLASSES",
    "SLOTS",
    "Form",
    "check_form",
    "check_slots",
    "class_of",
    "form_of",
    "refuse_form",
    "table_of",
]

# --- forms: The allow-list: which nodes of a parsed text are understood, and which of their slots. ---
#
# A node is matched by its exact class, and a slot that is set but not named here is refused. What a parser may add
# tomorrow, in a new class or a new slot, is refused until somebody has thought about it.


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
        way_out=function_hint(_function_name(node).removeprefix("the function ")) or "see the list on the page on SQL",
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


# --- advice ---
# What to say about the parts of SQL that people do write and that are not answered: what, why, and what instead.


Advice: TypeAlias = tuple[str, str, str]
_OTHERS = "it looks at other people's rows"
_SHOWN = "one row's own value would be shown"
_MOMENT = "the same question must mean the same tomorrow, at the same price"
_WINDOW: Advice = (
    "window functions stand in a sub-query without GROUP BY, OVER (PARTITION BY unit)",
    "anywhere else they look at other people's rows",
    "write FROM (SELECT …, ROW_NUMBER() OVER (PARTITION BY unit ORDER BY at) AS place FROM t) with the column of the "
    "unit; or GROUP BY, and compare released values",
)
_ONE_VALUE = ("this shows the value of one row", _SHOWN, "use MODE, MEDIAN or AVG")
_LIST = ("lists of rows are not answered", "rows' own values would be shown", "GROUP BY the column and COUNT")
_SETS = (
    "several groupings at once are not answered",
    "each is a question of its own, with a price of its own",
    "ask one GROUP BY at a time",
)

# An aggregate where one row is looked at: in WHERE, in GROUP BY, or inside another aggregate.
AGGREGATE: Advice = (
    "an aggregate stands where one row is looked at",
    "it looks at all rows",
    "filter groups with HAVING; or aggregate in a sub-query that groups by the unit",
)

CLASSES: Mapping[str, Advice] = {
    "Window": _WINDOW,
    "Subquery": (
        "a sub-query is not answered as a value",
        "it may be everybody's, and would be paid by nobody",
        "join it, or ask for it first and write the number",
    ),
    "Exists": (
        "EXISTS stands by itself in WHERE, and ties its query to the outer one by one equality",
        "otherwise whether a row exists may depend on another person",
        "write EXISTS (SELECT 1 FROM b WHERE b.unit = a.unit AND …), or a.unit IN (SELECT unit FROM b WHERE …)",
    ),
    "Any": ("ANY is not answered", "it compares with other people's rows", "write IN (…) with constants"),
    "All": ("ALL is not answered", "it compares with other people's rows", "compare with a constant"),
    "AnyValue": _ONE_VALUE,
    "IgnoreNulls": _ONE_VALUE,
    "First": _ONE_VALUE,
    "Last": _ONE_VALUE,
    "ArgMax": (_ONE_VALUE[0], _SHOWN, "GROUP BY the column and ORDER BY a released value"),
    "ArgMin": (_ONE_VALUE[0], _SHOWN, "GROUP BY the column and ORDER BY a released value"),
    "GroupConcat": _LIST,
    "ArrayAgg": _LIST,
    "Order": (
        "ORDER BY is not answered inside an aggregate",
        "which row comes first is a row's own value",
        "leave it out",
    ),
    "Rollup": _SETS,
    "Cube": _SETS,
    "GroupingSets": _SETS,
    "Rand": ("random numbers are not answered", "randomness comes from one secret source only", "leave it out"),
    "CurrentDate": ("the date of today is not answered", _MOMENT, "write the date"),
    "CurrentTimestamp": ("the time of now is not answered", _MOMENT, "write the time"),
    "RegexpLike": (
        "regular expressions are not answered",
        "a pattern may cost time that depends on the data",
        "use LIKE",
    ),
    "SimilarTo": (
        "regular expressions are not answered",
        "a pattern may cost time that depends on the data",
        "use LIKE",
    ),
    "Escape": ("LIKE has no escape character here", "engines disagree about it", "use STARTS_WITH or CONTAINS"),
    "Placeholder": ("there are no parameters here", "the price must follow from the text alone", "write the constant"),
    "Star": ("rows themselves are never shown", "a row is somebody's", "count or add up: COUNT(*), SUM(x)"),
    "Union": (
        "UNION of answers is not answered",
        "each side is a question of its own, with a price of its own",
        "ask them one after the other; or unite rows in a sub-query with UNION ALL",
    ),
    "Intersect": ("INTERSECT is not answered", "which rows remain depends on other people's", "JOIN on the unit"),
    "Except": ("EXCEPT is not answered", "which rows remain depends on other people's", "use NOT IN on the unit"),
    "Values": ("VALUES is not answered", "constants belong to nobody", "give them as a public table"),
    "Lateral": (
        "LATERAL is not answered",
        "rows that depend on other rows multiply without a bound",
        "join a sub-query",
    ),
}

_FETCH = (
    "FETCH FIRST is not answered",
    "it is spelled otherwise here",
    "write LIMIT 5 at the end: SELECT … ORDER BY n DESC LIMIT 5",
)
SLOTS: Mapping[str, Advice] = {
    "Fetch.direction": _FETCH,
    "Fetch.count": _FETCH,
    "qualify": (
        "QUALIFY stands in a sub-query without GROUP BY",
        "it keeps rows of each unit by themselves, before anything is added up",
        "write FROM (SELECT … FROM t QUALIFY ROW_NUMBER() OVER (PARTITION BY unit …) = 1); filter groups with HAVING",
    ),
    "windows": _WINDOW,
    "sample": (
        "samples are not answered",
        "what is sampled is decided by the engine, not by a secret that is ours",
        "ask about all rows: the noise is the same",
    ),
    "pivots": ("PIVOT is not answered", "the columns would depend on the data", "GROUP BY the column instead"),
    "locks": ("FOR UPDATE is not answered", "a question changes nothing", "leave it out"),
    "into": ("INTO is not answered", "an answer is returned, never stored in a table", "leave it out"),
    "recursive": ("WITH RECURSIVE is not answered", "how often it recurs depends on the data", "write it out"),
    "when": ("AT is not answered", "the data are those of the version that the custodian declares", "leave it out"),
    "db": (
        "tables have no schema here",
        "FROM takes tables that the custodian has named",
        "leave the schema and its dot out",
    ),
    "Select.limit": (
        "LIMIT is not answered in a sub-query",
        "which rows are kept would depend on other people's",
        "LIMIT the answer instead",
    ),
    "Select.offset": (
        "OFFSET is not answered in a sub-query",
        "which rows are kept would depend on other people's",
        "LIMIT the answer instead",
    ),
    "Select.order": ("ORDER BY has no effect in a sub-query", "rows have no order", "leave it out"),
    "Distinct.on": (
        "DISTINCT ON is not answered",
        "which of several rows is kept would depend on other people's",
        "GROUP BY, with MIN or MAX",
    ),
    "Union.distinct": (
        "UNION without ALL is not answered",
        "whether a row is there twice may depend on another person",
        "write UNION ALL",
    ),
    "Union.by_name": ("UNION BY NAME is not answered", "columns are matched by position", "write UNION ALL"),
    "In.query": (
        "IN (SELECT …) stands by itself in WHERE, or behind AND",
        "it becomes a join, which keeps a row or does not",
        "use two questions, or CASE in a sub-query that groups by the unit",
    ),
    "In.field": ("IN takes a list in parentheses", "it is not clear what is meant", "write x IN (1, 2)"),
    "Between.symmetric": ("SYMMETRIC is not answered", "engines disagree about it", "write the lower bound first"),
    "Ordered.nulls_first": ("NULLS FIRST is not answered", "NULL comes last, as in DuckDB", "leave it out"),
    "Table.alias": ("this alias is not answered", "it is not clear what is meant", "write FROM table AS name"),
}
