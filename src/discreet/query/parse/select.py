"""The SELECT itself: keys, measures, what is shown of released values, and columns that nothing needs."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, final

from discreet.errors import InvalidParameter, Refused
from discreet.formatting import quantile_label
from discreet.query.ast import (
    Expression,
    Field,
    Filter,
    Join,
    Key,
    KeyValue,
    Measure,
    Named,
    Order,
    OutputColumn,
    PerUnit,
    Post,
    Project,
    Query,
    Side,
    Source,
    Statistic,
    Table,
    UnionAll,
    UnitTotal,
    WithinUnit,
    is_private,
    unit_of,
    walk,
)
from discreet.query.catalogue import Catalogue
from discreet.query.functions.expressions import clamp
from discreet.query.parse.aggregates import Aggregate, has_aggregate, is_aggregate, is_list, read_aggregate
from discreet.query.parse.allow_list import check_slots, class_of, refuse_form
from discreet.query.parse.expression_reader import read_condition, read_expression
from discreet.query.parse.from_clause import read_from
from discreet.query.parse.group_by import domain_of, keys_of, listed_domain, settle
from discreet.query.parse.outer_select import (
    ReleasedScope,
    Shown,
    inner_question,
    place_in,
    post_of,
    read_around,
    read_limit,
)
from discreet.query.parse.per_unit import unit_total
from discreet.query.parse.privacy_options import PrivacyOptions
from discreet.query.parse.refusals import Script
from discreet.query.parse.scopes import Context, Scope, ScopeColumn, new_context
from discreet.query.parse.subqueries import SELECT_SLOTS, Item, items_of, with_queries
from discreet.query.parse.tokens import Bounds, Per, lift, parse, tokenize
from discreet.schema.columns import ExpressionFacts, Kind

if TYPE_CHECKING:
    from sqlglot import exp

__all__ = ["PerGroup", "Reading", "keys_with_domains", "measure_of", "measures_of", "prune", "read", "read_question"]

# --- measures: Measures: an aggregate with all that its noise depends on, or a refusal that says what is missing. ---


_MEASURES_S = Statistic
_BOUNDED = frozenset(
    {
        _MEASURES_S.SUM,
        _MEASURES_S.MEAN,
        _MEASURES_S.VARIANCE,
        _MEASURES_S.DEVIATION,
        _MEASURES_S.COVARIANCE,
        _MEASURES_S.CORRELATION,
        _MEASURES_S.QUANTILE,
    }
)
_GROUPED = frozenset({_MEASURES_S.ROWS, _MEASURES_S.COUNT, _MEASURES_S.DISTINCT, _MEASURES_S.SUM, _MEASURES_S.MEAN})


def measure_of(asked: Aggregate) -> Measure:
    """Check that an aggregate has what its noise depends on."""
    argument = asked.argument
    if asked.quantiles is not None:
        raise Refused(
            "a list of quantiles is several columns, and stands for itself in the SELECT list",
            reason="nothing is computed of several values at once",
            way_out="SELECT QUANTILE(x, [0.25, 0.5]) AS x …, and name one of them elsewhere: ORDER BY x_q50",
        )
    unbounded = [one for one in (argument, asked.other) if one is not None and not one.facts.is_bounded]
    if asked.statistic in _BOUNDED and unbounded:
        raise Refused(
            "this expression has no bounds",
            reason="the noise must hide the largest change that one unit can make, and here there is none",
            way_out="declare the column with dp.between(low, high); or clamp the values, as in "
            "LEAST(GREATEST(x, 0), 100), or LEAST(n, 20) for a count",
        )
    if asked.statistic is _MEASURES_S.MODE and argument is not None:
        argument = _listed(argument)
    return Measure(asked.statistic, argument, asked.quantile, asked.sample, asked.called, other=asked.other)


def measures_of(asked: Aggregate) -> tuple[Measure, ...]:
    """Return the measures of a list of quantiles, in its order; of one that names one, that quantile by itself."""
    levels = asked.quantiles or ()
    among = tuple(sorted(levels)) if len(levels) > 1 else None
    single = [measure_of(replace(asked, quantiles=None, quantile=level)) for level in levels]
    return tuple(replace(measure, among=among) for measure in single)


def _listed(argument: Expression) -> Expression:
    domain = domain_of(argument)
    if domain is None:
        raise Refused(
            "MODE needs a public list of values",
            reason="the value that is shown would otherwise be somebody's own",
            way_out="declare the column with dp.categories([...]), or GROUP BY it and ORDER BY COUNT(*)",
        )
    return replace(argument, facts=replace(argument.facts, members=domain))


@final
@dataclass(slots=True)
class PerGroup:
    """Totals of each unit in each group, bounded as a whole: BigQuery's contribution_bounds_per_group.

    Each unit's rows of a group are added up first, exactly; that sum is clamped, and the clamped sums are what is added
    up with noise. AVG becomes the mean of the units' own means, as it is there.
    """

    context: Context
    totals: dict[Aggregate, UnitTotal] = field(default_factory=dict)

    def measure(self, asked: Aggregate) -> Measure:
        if asked.statistic is _MEASURES_S.UNITS and asked.per_group is None:
            return Measure(_MEASURES_S.UNITS)
        bounds = asked.per_group or self._default(asked)
        if bounds is None:
            raise Refused(
                "this does not go together with contribution_bounds_per_group",
                reason="each unit is added up by itself first, so that its rows can no longer be told apart",
                way_out="ask for COUNT, SUM and AVG here, and for the others on their own",
            )
        total = clamp(self._field(replace(asked, per_group=None)), bounds.low, bounds.high)
        return Measure(_MEASURES_S.MEAN if asked.statistic is _MEASURES_S.MEAN else _MEASURES_S.SUM, total)

    def _default(self, asked: Aggregate) -> Bounds | None:
        """Return what a unit's rows can add to a group within the policy."""
        rows = self.context.catalogue.unit.max_rows_per_group
        if asked.statistic in (_MEASURES_S.ROWS, _MEASURES_S.COUNT, _MEASURES_S.DISTINCT):
            return Bounds(Per.GROUP, Fraction(0), Fraction(rows))
        facts = None if asked.argument is None else asked.argument.facts
        if asked.statistic not in _GROUPED or facts is None or facts.low is None or facts.high is None:
            return None
        times = rows if asked.statistic is _MEASURES_S.SUM else 1
        return Bounds(Per.GROUP, min(facts.low, times * facts.low), max(facts.high, times * facts.high))

    def _field(self, asked: Aggregate) -> Field:
        if asked not in self.totals:
            self.totals[asked] = unit_total(self.context.fresh(), asked)
        return self.totals[asked].field


# --- questions: The question itself: keys, measures, and what is shown of the released values. ---


_S = Statistic
_MOST_OUTPUTS = 200
_ENDS = {"dp_low": Side.LOW, "dp_high": Side.HIGH}


@final
@dataclass(slots=True)
class _SelectDraft:
    """A question while it is read."""

    context: Context
    scope: Scope
    keys: list[Expression]
    items: Sequence[Item]
    released: ReleasedScope = field(default_factory=ReleasedScope)
    aliases: dict[str, Expression] = field(default_factory=dict)
    kinds: list[Kind] = field(default_factory=list)
    per_group: PerGroup | None = None
    lists: dict[str, Measure] = field(default_factory=dict)  # columns of lists of quantiles

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
            name = str(inside.name).lower()
            if name in self.lists:
                return self.lists[name]
            named = (item.node for item in self.items if item.name.lower() == name)
            inside = next((found for found in named if found is not None), inside)
        if not is_aggregate(inside):
            raise self.context.script.refuse(
                node,
                "DP_LOW and DP_HIGH take the name of an aggregate in the SELECT list",
                reason="only a released aggregate has a confidence interval",
                way_out="SELECT COUNT(*) AS n, DP_LOW(n), DP_HIGH(n) …",
            )
        return self._measure(inside)

    def listed(self, item: Item, place: int) -> list[tuple[str, Measure]] | None:
        """Return the columns of a list of quantiles, by their names; None where an item is none."""
        if item.node is None or not is_list(item.node):
            return None
        asked = read_aggregate(self.context, self.scope, item.node)
        try:
            # Where units are added up first, it is refused.
            found = measures_of(_by_row(asked)) if self.per_group is None else (self.per_group.measure(asked),)
        except Refused as refused:
            raise self.context.script.point(refused, item.node) from None
        name = item.name or _listed_name(item.node, place)
        return [(f"{name}_{quantile_label(one.quantile or Fraction(0))}", one) for one in found]

    def _measure(self, node: exp.Expr) -> Measure:
        asked = read_aggregate(self.context, self.scope, node)
        try:
            return measure_of(_by_row(asked)) if self.per_group is None else self.per_group.measure(asked)
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


def _by_row(asked: Aggregate) -> Aggregate:
    """Bound a row instead of all rows of a unit in a group, where each row is a unit of its own."""
    if asked.per_group is None or asked.argument is None or not asked.argument.facts.kind.is_number:
        return asked
    return replace(asked, argument=clamp(asked.argument, asked.per_group.low, asked.per_group.high))


def read_question(context: Context, node: exp.Expr, keys: Mapping[str, Sequence[Hashable]]) -> Query:
    """Read the outermost SELECT."""
    return prune(_read(context, node, keys).question)


def _read(context: Context, node: exp.Expr, keys: Mapping[str, Sequence[Hashable]]) -> Shown:
    while class_of(node) == "Subquery":
        check_slots(context.script, node, frozenset({"this", "with_"}))
        context, node = with_queries(context, node), node.this
    if class_of(node) != "Select":
        raise refuse_form(context.script, node, "a question")
    check_slots(context.script, node, SELECT_SLOTS | {"order", "limit", "offset"})
    inner = with_queries(context, node)
    inside = inner_question(inner, node)
    if inside is not None:
        return read_around(inner, node, inside[2], _read(inside[0], inside[1], keys))
    return _read_select(inner, read_from(inner, node), node, keys)


def _read_select(context: Context, scope: Scope, node: exp.Expr, keys: Mapping[str, Sequence[Hashable]]) -> Shown:
    items = items_of(context, scope, node)
    _check(context, scope, node, items)
    draft = _draft(context, scope, node, items)
    _check_keys(draft, node)
    outputs = _outputs(draft)
    having = node.args.get("having")
    condition = None if having is None else draft.condition(having.this)
    order = _order(draft, node, outputs)
    listed = keys_with_domains(context, scope, draft.keys, outputs, keys)
    question = Query(
        source=scope.source,
        keys=listed,
        measures=_measures(draft, listed),
        outputs=outputs,
        having=condition,
        order=order,
        limit=read_limit(context, node),
    )
    return Shown(_by_unit(draft, question), tuple(draft.kinds))


def _draft(context: Context, scope: Scope, node: exp.Expr, items: Sequence[Item]) -> _SelectDraft:
    keys = keys_of(context, scope, node, items)
    grouped = any(bounds.per is Per.GROUP for bounds in context.bounds.values())
    per_group = PerGroup(context) if grouped and scope.units else None
    draft = _SelectDraft(context, scope, keys, items, per_group=per_group)
    for place, item in enumerate(items, 1):
        draft.lists.update((name.lower(), measure) for name, measure in draft.listed(item, place) or ())
    return draft


def _by_unit(draft: _SelectDraft, question: Query) -> Query:
    """Group by unit and key first where contributions to a group are bounded as a whole."""
    unit = draft.scope.unit_field
    if draft.per_group is None or unit is None:
        return question
    named = tuple(Named(Field(draft.context.fresh(), key.expression.facts), key.expression) for key in question.keys)
    own = Field(draft.context.fresh(), unit.facts)
    source = PerUnit(question.source, own, named, tuple(draft.per_group.totals.values()))
    keys = tuple(replace(key, expression=entry.field) for key, entry in zip(question.keys, named, strict=True))
    return replace(question, source=source, keys=keys)


def _measures(draft: _SelectDraft, keys: Sequence[Key]) -> tuple[Measure, ...]:
    """Return the measures. A list of keys alone has none if data must tell them: then finding them is what is paid."""
    if draft.released.measures or any(key.domain is None for key in keys):
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
        _refuse_foreign(context, parts)
        raise context.script.refuse(
            node,
            "rows themselves are never shown",
            reason="a row is one person's data",
            way_out="aggregate: SELECT key, COUNT(*), AVG(x) FROM … GROUP BY key",
        )
    if not items:
        raise context.script.refuse(
            node, "SELECT is empty", reason="nothing is asked", way_out="name keys and aggregates"
        )
    if len(items) > _MOST_OUTPUTS:
        raise context.script.refuse(
            node,
            f"an answer has at most {_MOST_OUTPUTS} columns",
            reason="each takes its share of the budget",
            way_out="ask for fewer",
        )


def _refuse_foreign(context: Context, nodes: Sequence[exp.Expr]) -> None:
    """Name the aggregate or function that is not answered, if that is what is wrong."""
    from sqlglot import exp

    foreign = (exp.AggFunc, exp.Window, exp.Anonymous, exp.Subquery, exp.IgnoreNulls)
    for node in nodes:
        for part in node.walk():
            if isinstance(part, foreign):
                raise refuse_form(context.script, part, "an aggregate")


def _check_keys(draft: _SelectDraft, node: exp.Expr) -> None:
    if any(isinstance(key, Field) and key.name in draft.scope.units for key in draft.keys):
        raise draft.context.script.refuse(
            node.args.get("group") or node,
            "the unit column cannot be a group key",
            reason="each group would be one person, and all of them would be hidden",
            way_out="group by the unit in a sub-query, and ask about its rows",
        )


def _outputs(draft: _SelectDraft) -> tuple[OutputColumn, ...]:
    outputs: list[OutputColumn] = []
    taken: set[str] = set()
    for place, item in enumerate(draft.items, 1):
        columns = draft.listed(item, place)
        is_named = bool(item.name) or columns is not None
        for name, expression in _columns(draft, item, place, columns):
            if name.lower() in taken and is_named:
                raise draft.context.script.refuse(
                    item.node,
                    "two columns of the answer have one name",
                    reason="they could not be told apart",
                    way_out="give each its own with AS",
                )
            shown = f"{name}_{place}" if name.lower() in taken else name
            taken.add(shown.lower())
            outputs.append(OutputColumn(shown, post_of(draft.released, expression)))
            draft.kinds.append(expression.facts.kind)
            if is_named:
                draft.aliases.setdefault(shown.lower(), expression)
    return tuple(outputs)


def _columns(
    draft: _SelectDraft, item: Item, place: int, listed: list[tuple[str, Measure]] | None
) -> list[tuple[str, Expression]]:
    """Return the columns of an item: one, or those of a list of quantiles."""
    if listed is None:
        return [(item.name or _made_up(item, place), _value(draft, item))]
    return [(name, draft.released.answer(measure)) for name, measure in listed]


def _listed_name(node: exp.Expr, place: int) -> str:
    """Name a list that has no name: by the column that its quantiles are of."""
    from sqlglot import exp

    while isinstance(node, exp.Filter):
        node = node.this
    of = node.args["expression"].args["expressions"][0].this if isinstance(node, exp.WithinGroup) else node.this
    if isinstance(node, exp.Anonymous):
        of = (node.expressions or [None])[0]
    return str(of.name) if isinstance(of, exp.Column) else f"column_{place}"


def _value(draft: _SelectDraft, item: Item) -> Expression:
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
    from sqlglot import exp

    node = item.node
    while isinstance(node, (exp.Filter, exp.WithinGroup)):
        node = node.this
    if node is None or not is_aggregate(node) or not isinstance(node, exp.Func) or isinstance(node, exp.Anonymous):
        return f"column_{place}"
    inside, name = node.args.get("this"), node.sql_name().lower()
    if isinstance(inside, exp.Distinct):
        inside, name = (inside.expressions or [None])[0], f"{name}_distinct"
    return f"{name}_{inside.name}" if isinstance(inside, exp.Column) else name


def _order(draft: _SelectDraft, node: exp.Expr, outputs: Sequence[OutputColumn]) -> tuple[Order, ...]:
    clause = node.args.get("order")
    if clause is None:
        return ()
    check_slots(draft.context.script, clause, frozenset({"expressions"}))
    return tuple(_ordered(draft, entry, outputs) for entry in clause.args.get("expressions") or ())


def _ordered(draft: _SelectDraft, node: exp.Expr, outputs: Sequence[OutputColumn]) -> Order:
    if draft.lists and class_of(node.this) == "Literal":
        raise draft.context.script.refuse(
            node,
            "a list of quantiles is several columns, so that places are not clear",
            reason="it is one entry of the SELECT list",
            way_out="write the name of a column, such as ORDER BY x_q50",
        )
    found = place_in(draft.context, node, outputs)
    value = post_of(draft.released, draft.read(node.this)) if found is None else found
    return Order(value, bool(node.args.get("desc")))


# --- keys: Keys of an answer: what each is called, and which of its values are public. ---


_Lists = Mapping[str, Sequence[Hashable]]


def keys_with_domains(
    context: Context, scope: Scope, keys: Sequence[Expression], outputs: Sequence[OutputColumn], given: _Lists
) -> tuple[Key, ...]:
    """Name keys as the answer does, and list their values: as given, or as found, or as public facts have it."""
    lists = {name.lower(): values for name, values in given.items()}
    shown = [[output.name for output in outputs if output.value == KeyValue(place)] for place in range(len(keys))]
    found = [
        _key(context, expression, names, _column(scope, expression), lists)
        for expression, names in zip(keys, shown, strict=True)
    ]
    unused = sorted(set(lists) - {name for _, name in found})
    if unused:
        raise InvalidParameter(f"keys are given for {unused[0]}, which is no key of this question")
    return tuple(key for key, _ in found)


def _column(scope: Scope, expression: Expression) -> ScopeColumn | None:
    columns = (column for part in scope.parts for column in part.columns)
    return next((column for column in columns if column.field == expression), None)


def _key(
    context: Context, expression: Expression, shown: Sequence[str], column: ScopeColumn | None, lists: _Lists
) -> tuple[Key, str]:
    """Return a key, and under which name its values were given, if they were."""
    names = [*shown, *([] if column is None else [column.name, column.origin or column.name])]
    name = names[0] if names else "key"
    chosen = next((entry.lower() for entry in names if entry.lower() in lists), "")
    if chosen:
        return Key(name, expression, listed_domain(name, lists[chosen], expression.facts.kind)), chosen
    stored = {entry.lower(): values for entry, values in context.catalogue.keys.items()}
    origin = "" if column is None or column.origin is None else column.origin.lower()
    return Key(name, expression, stored[origin] if origin in stored else domain_of(expression)), ""


# --- pruning: Leave out columns that nothing needs, so that two texts which ask the same become the same tree. ---


def prune(question: Query) -> Query:
    """Keep the columns of keys, measures, conditions and joins, and the unit."""
    asked = [key.expression for key in question.keys]
    asked += [argument for measure in question.measures for argument in measure.arguments]
    return replace(question, source=_pruned(question.source, _used(asked)))


def _used(expressions: Iterable[Expression]) -> frozenset[str]:
    return frozenset(part.name for expression in expressions for part in walk(expression) if isinstance(part, Field))


def _with_unit(source: Source, needed: frozenset[str]) -> frozenset[str]:
    unit = unit_of(source)
    return needed if unit is None else needed | {unit}


def _pruned(source: Source, wanted: frozenset[str]) -> Source:
    needed = _with_unit(source, wanted)
    match source:
        case Table():
            columns = tuple(column for column in source.columns if column.field.name in needed)
            return replace(source, columns=columns or source.columns[:1])
        case Filter():
            return replace(source, source=_pruned(source.source, needed | _used([source.condition])))
        case Project():
            named = tuple(entry for entry in source.columns if entry.field.name in needed) or source.columns[:1]
            inner = _used(entry.expression for entry in named)
            return replace(source, source=_pruned(source.source, inner), columns=named)
        case Join():
            both = needed | _used(side for pair in source.pairs for side in pair)
            return replace(source, left=_pruned(source.left, both), right=_pruned(source.right, both))
        case PerUnit():
            return _pruned_units(source, needed)
        case WithinUnit():
            return _pruned_windows(source, needed)
        case UnionAll():
            return _pruned_union(source, needed)


def _pruned_units(source: PerUnit, needed: frozenset[str]) -> PerUnit:
    totals = tuple(total for total in source.totals if total.field.name in needed)
    inner = _used([key.expression for key in source.keys])
    inner |= _used(total.argument for total in totals if total.argument is not None)
    return replace(source, source=_pruned(source.source, inner), totals=totals)


def _pruned_windows(source: WithinUnit, needed: frozenset[str]) -> Source:
    windows = tuple(window for window in source.columns if window.total.field.name in needed)
    inner = needed - {window.total.field.name for window in source.columns}
    for window in windows:
        ordered = [*(one.value for one in window.order), *window.ties]
        inner |= _used([*ordered, *(() if window.total.argument is None else (window.total.argument,))])
    below = _pruned(source.source, inner)
    return replace(source, source=below, columns=windows) if windows else below


def _pruned_union(source: UnionAll, needed: frozenset[str]) -> UnionAll:
    """Keep the same places on every side; the sides are projections by position."""
    places = [place for place, field in enumerate(source.columns) if field.name in needed] or [0]
    sides: list[Source] = []
    for side in source.sources:
        assert isinstance(side, Project)
        named = tuple(side.columns[place] for place in places)
        kept = {entry.field.name for entry in named}
        inner = _used(entry.expression for entry in named)
        unit = side.unit if side.unit in kept else None
        sides.append(Project(_pruned(side.source, inner), named, unit))
    return replace(source, sources=tuple(sides), columns=tuple(source.columns[place] for place in places))


# --- reader: Read a query: text in, a question out, or a refusal that says where, why and what to do. ---


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
