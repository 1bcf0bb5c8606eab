"""GROUP BY: what the keys are, and which values a key can take, from public facts alone."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from datetime import date, datetime
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

from discreet.errors import InvalidParameter, Refused
from discreet.query.ast import Apply, Case, Expression, Field, Literal, Operator, walk
from discreet.query.functions.constants import DAY, add_months, time_of
from discreet.query.functions.expressions import evaluate, literal_value, result_of
from discreet.query.functions.table import FUNCTIONS
from discreet.query.parse.aggregates import has_aggregate, is_aggregate
from discreet.query.parse.allow_list import check_slots, class_of
from discreet.query.parse.expression_reader import read_expression
from discreet.query.parse.scopes import Context, Scope
from discreet.query.parse.subqueries import Item
from discreet.schema.columns import ExpressionFacts, Kind

if TYPE_CHECKING:
    from sqlglot import exp

__all__ = ["domain_of", "keys_of", "listed_domain", "settle"]

# --- grouping: GROUP BY: what the keys are, and what an expression means after rows have been grouped. ---


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
            "DISTINCT is redundant beside GROUP BY and aggregates",
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


# --- domains ---
# Which values a key can take, from public facts alone. What is listed is shown even if nobody is in it.
#
# A domain never contains NULL, unless somebody lists it: rows whose key is NULL, or is not listed, are in no group.


_MOST = 100_000  # values that are listed
_MANY = 20_000  # combinations that are tried to find them
_FEW = 2_000
_WORK = 300_000  # nodes that are computed to find them
_MOST_LISTED = 1_000_000
_TYPES: dict[Kind, type | tuple[type, ...]] = {
    Kind.BOOLEAN: bool,
    Kind.INTEGER: int,
    Kind.TEXT: str,
    Kind.DATE: date,
    Kind.TIMESTAMP: datetime,
}
_STEPS = {"year": 12, "quarter": 3, "month": 1}  # months
_MICROSECONDS = {"week": 7 * DAY, "day": DAY, "hour": DAY // 24, "minute": DAY // 1440}


def domain_of(expression: Expression) -> tuple[Hashable, ...] | None:
    """Return all values that an expression can take apart from NULL, in order; None if data must tell them."""
    if expression.facts.kind is Kind.REAL:
        return None
    found = _values(expression)
    if found is None or isinstance(expression, Field):
        return None if found is None else tuple(found)
    distinct = dict.fromkeys(value for value in found if value is not None)
    return tuple(distinct) if _written(expression) is not None else tuple(sorted(distinct))


def _values(expression: Expression) -> Sequence[Any] | None:
    match expression:
        case Field():
            return _of_facts(expression.facts)
        case Literal():
            return [literal_value(expression)]
        case Case():
            return _written(expression) or _by_fields(expression) or _by_branches(expression)
        case Apply() if expression.facts.kind is Kind.BOOLEAN:
            return (False, True)
        case Apply():
            return _starts_of_time(expression) or _by_arguments(expression) or _of_facts(expression.facts)


def _of_facts(facts: ExpressionFacts) -> tuple[Any, ...] | None:
    if facts.members is not None:
        return facts.members
    if facts.low is None or facts.high is None or facts.high - facts.low >= _MOST:
        return None
    if facts.kind is Kind.INTEGER:
        return tuple(range(-int(-facts.low // 1), int(facts.high // 1) + 1))
    if facts.kind is Kind.DATE:
        first = date(1970, 1, 1).toordinal()
        return tuple(map(date.fromordinal, range(first + int(facts.low), first + int(facts.high) + 1)))
    return None


def _by_arguments(expression: Apply) -> Sequence[Any] | None:
    """Compute the operator for all that its arguments can be; NULL among it, for COALESCE of NULL is something."""
    if FUNCTIONS[expression.operator].lists_its_bounds and isinstance(expression.arguments[0], Field):
        return _of_facts(expression.facts)
    varying = [argument for argument in expression.arguments if not isinstance(argument, Literal)]
    # Columns that occur twice are tried together, or else too much would be listed; unless that takes long.
    few = _by_fields(expression, _FEW) if len(varying) > 1 else None
    return few or _combined(expression) or (_by_fields(expression) if len(varying) > 1 else None)


def _by_fields(expression: Expression, most: int = _MANY) -> Sequence[Any] | None:
    """Try all combinations of the columns below, if they are few."""
    fields = {part.name: part for part in walk(expression) if isinstance(part, Field)}
    domains = [_of_facts(field.facts) for field in fields.values()]
    rows = _rows([_with_null(domain) for domain in domains], min(most, _WORK // sum(1 for _ in walk(expression))))
    return None if rows is None else [evaluate(expression, dict(zip(fields, row, strict=True))) for row in rows]


def _rows(domains: Sequence[Sequence[Any] | None], most: int) -> Iterable[tuple[Any, ...]] | None:
    """Return all combinations of values; None if they are too many to try."""
    known = [domain for domain in domains if domain is not None]
    if len(known) < len(domains) or prod(len(domain) for domain in known) > most:
        return None
    return product(*known)


def _with_null(domain: Sequence[Any] | None) -> Sequence[Any] | None:
    """NULL is always possible, and what is made of it may be something, as with COALESCE."""
    return None if domain is None else (*dict.fromkeys(domain), None)


def _argument_values(argument: Expression) -> Sequence[Any] | None:
    return [literal_value(argument)] if isinstance(argument, Literal) else _with_null(_values(argument))


def _combined(expression: Apply) -> Sequence[Any] | None:
    most = min(_MANY, _WORK // len(expression.arguments))
    rows = _rows([_argument_values(argument) for argument in expression.arguments], most)
    return None if rows is None else list(dict.fromkeys(result_of(expression, row) for row in rows))


def _by_branches(expression: Case) -> Sequence[Any] | None:
    results = [value for _, value in expression.branches] + [expression.otherwise]
    domains = [_values(value) for value in results]
    known = [domain for domain in domains if domain is not None]
    return [value for domain in known for value in domain] if len(known) == len(domains) else None


def _starts_of_time(expression: Apply) -> Sequence[Any] | None:
    """List the starts of years, months or days between the bounds of a time."""
    if expression.operator is not Operator.TRUNCATE_TIME:
        return None
    unit = expression.arguments[0]
    facts = expression.facts
    if not isinstance(unit, Literal) or facts.low is None or facts.high is None:
        return None
    first, last = (time_of(facts.kind, bound) for bound in (facts.low, facts.high))
    if first is None or last is None:
        return None
    return _starts(str(unit.value), facts, first, last)


def _starts(unit: str, facts: ExpressionFacts, first: date, last: date) -> list[Any] | None:
    if unit in _STEPS:
        months = (last.year - first.year) * 12 + last.month - first.month
        return [add_months(first, step) for step in range(0, months + 1, _STEPS[unit])] if months < _MOST else None
    size = _MICROSECONDS[unit] if facts.kind is Kind.TIMESTAMP else max(_MICROSECONDS[unit] // DAY, 1)
    assert facts.low is not None
    assert facts.high is not None
    count = int((facts.high - facts.low) // size) + 1
    return [time_of(facts.kind, facts.low + step * size) for step in range(count)] if count < _MOST else None


def _written(expression: Expression) -> list[Any] | None:
    """Return the constants of a CASE in the order in which they were written."""
    if not isinstance(expression, Case):
        return None
    results = [value for _, value in expression.branches] + [expression.otherwise]
    if not all(isinstance(value, Literal) for value in results):
        return None
    constants = [value.value for value in results if isinstance(value, Literal)]
    return list(dict.fromkeys(value for value in constants if value is not None))


def listed_domain(name: str, values: Sequence[Hashable], kind: Kind) -> tuple[Hashable, ...]:
    """Check a list of key values that somebody gives: distinct, of the kind of the key, NULL written as None."""
    wanted = _TYPES.get(kind)
    if wanted is None or isinstance(values, (str, bytes)):
        raise InvalidParameter(
            f"keys of {name} must be a list of texts, whole numbers, dates or truth values"
            + ("; declare the column with whole=True if its numbers are whole" if kind is Kind.REAL else "")
        )
    members = tuple(values)
    if not 1 <= len(members) <= _MOST_LISTED or len(set(members)) != len(members):
        raise InvalidParameter(f"keys of {name} must be distinct, at least one and at most a million")
    for member in members:
        if member is not None and not _is_of(member, kind):
            raise InvalidParameter(f"keys of {name} must be of its kind, {kind.value}")
    return members


def _is_of(value: object, kind: Kind) -> bool:
    if kind is Kind.INTEGER and isinstance(value, bool):
        return False
    if isinstance(value, datetime) and (kind is Kind.DATE or value.tzinfo is not None):
        return False
    return isinstance(value, _TYPES[kind])
