"""The question itself: keys, measures, and what is shown of the released values."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, final

from discreet.errors import InvalidParameter, Refused
from discreet.query.expressions import Expression, Field
from discreet.query.question import Key, Limit, Measure, Order, Output, Post, Question, Side, Statistic
from discreet.query.reading.aggregates import Aggregate, has_aggregate, is_aggregate, read_aggregate
from discreet.query.reading.domains import domain_of, listed_domain
from discreet.query.reading.expressions import read_condition, read_expression
from discreet.query.reading.forms import check_slots, class_of, refuse_form
from discreet.query.reading.grouping import keys_of, settle
from discreet.query.reading.joins import read_from
from discreet.query.reading.posts import Released, post_of
from discreet.query.reading.scopes import Context, Scope
from discreet.query.reading.statements import SELECT_SLOTS, Item, items_of, with_queries
from discreet.query.sources import is_private

if TYPE_CHECKING:
    from sqlglot import exp

__all__ = ["read_question"]

_S = Statistic
_BOUNDED = frozenset({_S.SUM, _S.MEAN, _S.VARIANCE, _S.DEVIATION, _S.QUANTILE})
_MOST_OUTPUTS = 200
_ENDS = {"dp_low": Side.LOW, "dp_high": Side.HIGH}


@final
@dataclass(slots=True)
class _Draft:
    """A question while it is read."""

    context: Context
    scope: Scope
    keys: list[Expression]
    items: Sequence[Item]
    released: Released = field(default_factory=Released)
    aliases: dict[str, Expression] = field(default_factory=dict)

    def key_field(self, expression: Expression) -> Expression | None:
        return self.released.key(self.keys.index(expression), expression) if expression in self.keys else None

    def answer_field(self, node: exp.Expr) -> Expression | None:
        if class_of(node) == "Anonymous" and str(node.this).lower() in _ENDS:
            return self.released.end(self._bounded_by(node), _ENDS[str(node.this).lower()])
        return self.released.answer(self._measure(node)) if is_aggregate(node) else None

    def _bounded_by(self, node: exp.Expr) -> Measure:
        """Return the measure whose interval DP_LOW or DP_HIGH asks for: an aggregate, or the name of one."""
        parts = node.args.get("expressions") or []
        inside = parts[0] if len(parts) == 1 else node
        if class_of(inside) == "Column":
            named = (item.node for item in self.items if item.name.lower() == str(inside.name).lower())
            inside = next((found for found in named if found is not None), inside)
        if not is_aggregate(inside):
            raise self.context.script.refuse(
                node,
                "DP_LOW and DP_HIGH take the name of an aggregate in the SELECT list",
                reason="only a released number has an interval",
                way_out="SELECT COUNT(*) AS n, DP_LOW(n), DP_HIGH(n) …",
            )
        return self._measure(inside)

    def _measure(self, node: exp.Expr) -> Measure:
        asked = read_aggregate(self.context, self.scope, node)
        try:
            return measure_of(asked)
        except Refused as refused:
            raise self.context.script.point(refused, node) from None

    def read(self, node: exp.Expr) -> Expression:
        """Read an expression of released values."""
        return read_expression(self.context, self._grouped(node), node)

    def condition(self, node: exp.Expr) -> Post:
        return post_of(self.released, read_condition(self.context, self._grouped(node), node))

    def _grouped(self, node: exp.Expr) -> Scope:
        settled = settle(self.context, self.scope, [node], self.key_field, self.answer_field)
        return replace(self.scope, settled=settled, aliases=self.aliases)


def measure_of(asked: Aggregate) -> Measure:
    """Check that an aggregate has what its noise depends on."""
    argument = asked.argument
    if asked.statistic in _BOUNDED and argument is not None and not _is_bounded(argument):
        raise Refused(
            "this expression has no bounds",
            reason="the noise must hide the largest change that one unit can make, and here there is none",
            way_out="declare the column with dp.between(low, high), clamp it with LEAST(GREATEST(x, 0), 100), "
            "or give contribution_bounds_per_row => (0, 100)",
        )
    if asked.statistic is _S.MODE and argument is not None:
        argument = _listed(argument)
    return Measure(asked.statistic, argument, asked.quantile, asked.sample, asked.called)


def _is_bounded(argument: Expression) -> bool:
    facts = argument.facts
    return facts.is_bounded and facts.low != facts.high


def _listed(argument: Expression) -> Expression:
    domain = domain_of(argument)
    if domain is None:
        raise Refused(
            "MODE needs a public list of values",
            reason="the value that is shown would otherwise be somebody's own",
            way_out="declare the column with dp.categories([...]), or GROUP BY it and ORDER BY COUNT(*)",
        )
    return replace(argument, facts=replace(argument.facts, members=domain))


def read_question(context: Context, node: exp.Expr, keys: Mapping[str, Sequence[Hashable]]) -> Question:
    """Read the outermost SELECT."""
    while class_of(node) == "Subquery":
        check_slots(context.script, node, frozenset({"this", "with_"}))
        context, node = with_queries(context, node), node.this
    if class_of(node) != "Select":
        raise refuse_form(context.script, node, "a question")
    check_slots(context.script, node, SELECT_SLOTS | {"order", "limit", "offset"})
    inner = with_queries(context, node)
    scope = read_from(inner, node)
    return _read_select(inner, scope, node, keys)


def _read_select(context: Context, scope: Scope, node: exp.Expr, keys: Mapping[str, Sequence[Hashable]]) -> Question:
    items = items_of(context, scope, node)
    _check(context, scope, node, items)
    draft = _Draft(context, scope, keys_of(context, scope, node, items), items)
    _check_keys(draft, node)
    outputs = _outputs(draft)
    having = node.args.get("having")
    condition = None if having is None else draft.condition(having.this)
    order = _order(draft, node, outputs)
    return Question(
        source=scope.source,
        keys=_keys(draft, outputs, keys),
        measures=_measures(draft),
        outputs=outputs,
        having=condition,
        order=order,
        limit=_limit(context, node),
    )


def _measures(draft: _Draft) -> tuple[Measure, ...]:
    """Return the measures; a list of keys alone needs one to know which groups there are."""
    if draft.released.measures:
        return tuple(draft.released.measures)
    return (Measure(_S.UNITS if draft.scope.units else _S.ROWS),)


def _check(context: Context, scope: Scope, node: exp.Expr, items: Sequence[Item]) -> None:
    if not is_private(scope.source):
        raise context.script.refuse(
            node.args["from_"],
            "there is no private table in this question",
            reason="public tables can be read as they are, for free",
            way_out="query the public table directly",
        )
    grouped = any(node.args.get(slot) is not None for slot in ("group", "distinct"))
    having = node.args.get("having")
    parts = [item.node for item in items if item.node is not None] + ([] if having is None else [having.this])
    if not grouped and not any(has_aggregate(part) for part in parts):
        raise context.script.refuse(
            node.args["expressions"][0],
            "rows themselves are never shown",
            reason="a row is somebody's",
            way_out="count or add up: SELECT key, COUNT(*), AVG(x) FROM … GROUP BY key",
        )
    if len(items) > _MOST_OUTPUTS:
        raise context.script.refuse(
            node,
            f"an answer has at most {_MOST_OUTPUTS} columns",
            reason="each takes its share of the budget",
            way_out="ask for fewer",
        )


def _check_keys(draft: _Draft, node: exp.Expr) -> None:
    if any(isinstance(key, Field) and key.name in draft.scope.units for key in draft.keys):
        raise draft.context.script.refuse(
            node.args.get("group") or node,
            "the unit itself is no key of an answer",
            reason="each group would be one person, and all of them would be hidden",
            way_out="group by the unit in a sub-query, and ask about its rows",
        )


def _outputs(draft: _Draft) -> tuple[Output, ...]:
    outputs: list[Output] = []
    taken: set[str] = set()
    for place, item in enumerate(draft.items, 1):
        expression = _value(draft, item)
        name = item.name or _made_up(item, place)
        if name.lower() in taken:
            if item.name:
                raise draft.context.script.refuse(
                    item.node,
                    "two columns of the answer have one name",
                    reason="they could not be told apart",
                    way_out="give each its own with AS",
                )
            name = f"{name}_{place}"
        taken.add(name.lower())
        outputs.append(Output(name, post_of(draft.released, expression)))
        if item.name:
            draft.aliases.setdefault(name.lower(), expression)
    return tuple(outputs)


def _value(draft: _Draft, item: Item) -> Expression:
    if item.node is not None:
        return draft.read(item.node)
    assert item.column is not None
    found = draft.key_field(item.column.field)
    if found is None:
        raise draft.context.script.refuse(
            None,
            "* stands for columns that are not in GROUP BY",
            reason="rows themselves are never shown",
            way_out="name keys and aggregates",
        )
    return found


def _made_up(item: Item, place: int) -> str:
    """Name a column that has no name: by its aggregate and column, or by its place."""
    node = item.node
    if node is None or not is_aggregate(node):
        return f"column_{place}"
    inside = node.this if class_of(node) != "Anonymous" else None
    column = str(inside.name) if inside is not None and class_of(inside) == "Column" else ""
    return class_of(node).lower() + (f"_{column}" if column else "")


def _keys(draft: _Draft, outputs: Sequence[Output], given: Mapping[str, Sequence[Hashable]]) -> tuple[Key, ...]:
    lists = {name.lower(): values for name, values in given.items()}
    found = [_key(draft, index, outputs, lists) for index in range(len(draft.keys))]
    used = {name for _, name in found}
    unused = sorted(set(lists) - used)
    if unused:
        raise InvalidParameter(f"keys are given for {unused[0]}, which is no key of this question")
    return tuple(key for key, _ in found)


def _key(
    draft: _Draft, index: int, outputs: Sequence[Output], lists: Mapping[str, Sequence[Hashable]]
) -> tuple[Key, str]:
    expression = draft.keys[index]
    shown = [output.name for output in outputs if output.value == _key_value(draft, index)]
    columns = (column for part in draft.scope.parts for column in part.columns)
    origin = next((column for column in columns if column.field == expression), None)
    names = [*shown, *([] if origin is None else [origin.name, origin.origin or origin.name])]
    name = shown[0] if shown else origin.name if origin is not None else f"key_{index + 1}"
    chosen = next((key.lower() for key in names if key.lower() in lists), "")
    if chosen:
        return Key(name, expression, listed_domain(name, lists[chosen], expression.facts.kind)), chosen
    stored = {key.lower(): values for key, values in draft.context.catalogue.keys.items()}
    if origin is not None and origin.origin is not None and origin.origin.lower() in stored:
        return Key(name, expression, stored[origin.origin.lower()]), ""
    return Key(name, expression, domain_of(expression)), ""


def _key_value(draft: _Draft, index: int) -> Post:
    return post_of(draft.released, draft.released.key(index, draft.keys[index]))


def _order(draft: _Draft, node: exp.Expr, outputs: Sequence[Output]) -> tuple[Order, ...]:
    clause = node.args.get("order")
    if clause is None:
        return ()
    check_slots(draft.context.script, clause, frozenset({"expressions"}))
    return tuple(_ordered(draft, entry, outputs) for entry in clause.args["expressions"])


def _ordered(draft: _Draft, node: exp.Expr, outputs: Sequence[Output]) -> Order:
    check_slots(draft.context.script, node, frozenset({"this", "desc"}))
    descending = bool(node.args.get("desc"))
    inside = node.this
    if class_of(inside) == "Literal" and not inside.args.get("is_string"):
        text = str(inside.this)
        if not text.isdecimal() or not 1 <= int(text[:6]) <= len(outputs):
            raise draft.context.script.refuse(
                node,
                f"a place in the SELECT list is a whole number from 1 to {len(outputs)}",
                reason="there is no such column",
                way_out="count the columns, or write the name",
            )
        return Order(outputs[int(text) - 1].value, descending)
    if class_of(inside) == "Column" and inside.args.get("table") is None:
        named = next((output for output in outputs if output.name.lower() == str(inside.name).lower()), None)
        if named is not None:
            return Order(named.value, descending)
    return Order(post_of(draft.released, draft.read(inside)), descending)


def _limit(context: Context, node: exp.Expr) -> Limit | None:
    limit, offset = node.args.get("limit"), node.args.get("offset")
    if limit is None and offset is None:
        return None
    count = None if limit is None else _whole(context, limit)
    return Limit(count, 0 if offset is None else _whole(context, offset))


def _whole(context: Context, node: exp.Expr) -> int:
    check_slots(context.script, node, frozenset({"expression"}))
    inside = node.args.get("expression")
    text = str(inside.this) if class_of(inside) == "Literal" and inside is not None else ""
    if not text.isdecimal() or len(text) > 9:
        raise context.script.refuse(
            node,
            "LIMIT and OFFSET take a constant whole number",
            reason="how many rows are shown must follow from the text alone",
            way_out="write the number",
        )
    return int(text)
