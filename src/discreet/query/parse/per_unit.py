"""Sub-queries that look at the rows of each unit by themselves: one row for each, or windows; exact, before bounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, final

from discreet.errors import Refused
from discreet.formatting import exponent
from discreet.query.ast import (
    Expression,
    Field,
    Filter,
    Named,
    PerUnit,
    RowOrder,
    Source,
    Statistic,
    UnitStatistic,
    UnitTotal,
    UnitWindow,
    WithinUnit,
    is_private,
    walk,
)
from discreet.query.functions.expressions import renamed
from discreet.query.parse.aggregates import Aggregate, is_aggregate, read_aggregate
from discreet.query.parse.allow_list import check_form, check_slots, class_of, form_of
from discreet.query.parse.expression_reader import read_condition, read_expression
from discreet.query.parse.group_by import keys_of, settle
from discreet.query.parse.scopes import Context, Scope, SubqueryRows
from discreet.query.parse.subqueries import Computed, Item, project
from discreet.schema.columns import ExpressionFacts, Kind

if TYPE_CHECKING:
    from sqlglot import exp

__all__ = ["read_per_unit", "read_windows", "unit_total"]

_U = UnitStatistic
_KeyField = Callable[[Expression], Expression | None]
_STATISTICS = {
    Statistic.ROWS: _U.ROWS,
    Statistic.COUNT: _U.COUNT,
    Statistic.DISTINCT: _U.DISTINCT,
    Statistic.SUM: _U.SUM,
    Statistic.MEAN: _U.MEAN,
}
_FINE = 1 << 32  # Steps from bound to bound, at least; a sum saturates at 2^62 of them, not below 2^26 rows.
_EXTREMES = {"MIN": _U.LEAST, "MAX": _U.GREATEST}


def read_per_unit(context: Context, scope: Scope, node: exp.Expr, items: Sequence[Item]) -> SubqueryRows:
    """Read a sub-query whose GROUP BY contains the unit."""
    keys = keys_of(context, scope, node, items)
    _check_keys(context, scope, node, keys)
    others = [key for key in keys if not _is_unit(scope, key)]
    unit = next(key for key in keys if _is_unit(scope, key))
    named = tuple(Named(renamed(key, context.fresh()), key) for key in others)
    own = Field(context.fresh(), replace(unit.facts, nullable=False))
    totals: dict[Aggregate, UnitTotal] = {}

    def key_field(expression: Expression) -> Expression | None:
        if _is_unit(scope, expression):
            return own
        return next((entry.field for entry in named if entry.expression == expression), None)

    def total_field(part: exp.Expr) -> Expression | None:
        if not is_aggregate(part):
            return None
        asked = read_aggregate(context, scope, part)
        if asked not in totals:
            totals[asked] = _total(context, part, asked)
        return totals[asked].field

    having = node.args.get("having")
    nodes = [item.node for item in items if item.node is not None] + ([] if having is None else [having.this])
    settled = settle(context, scope, nodes, key_field, total_field)
    grouped = Scope(scope.source, scope.parts, scope.shared, frozenset({own.name}), settled)
    columns = [_column(context, grouped, item, place, key_field) for place, item in enumerate(items, 1)]
    condition = None if having is None else read_condition(context, grouped, having.this)
    source: Source = PerUnit(scope.source, own, named, tuple(totals.values()))
    if condition is not None:
        source = Filter(source, condition)
    return project(context, Scope(source, (), frozenset(), frozenset({own.name})), columns)


def _is_unit(scope: Scope, expression: Expression) -> bool:
    return isinstance(expression, Field) and expression.name in scope.units


def _check_keys(context: Context, scope: Scope, node: exp.Expr, keys: Sequence[Expression]) -> None:
    place = next((node.args[slot] for slot in ("group", "distinct") if node.args.get(slot) is not None), node)
    if not is_private(scope.source):
        raise context.script.refuse(
            place,
            "public tables are not aggregated here",
            reason="anybody can do it beforehand, for free",
            way_out="aggregate the public table yourself and give the result as another public table",
        )
    if context.catalogue.unit.is_row:
        raise context.script.refuse(
            place,
            "a sub-query cannot aggregate where the privacy unit is a row",
            reason="it would mix rows of different people before anything is bounded",
            way_out='ask the custodian to protect a unit: Unit("column", …) instead of "row"',
        )
    if not any(_is_unit(scope, key) for key in keys):
        column = context.catalogue.unit.called
        raise context.script.refuse(
            place,
            f"a sub-query that aggregates must GROUP BY the unit, {column}, itself",
            reason="otherwise it mixes people before anything is bounded, and their shares can no longer be told",
            way_out=f"add {column} to GROUP BY, unchanged; or make this the question itself",
        )


def _column(context: Context, scope: Scope, item: Item, place: int, key_field: _KeyField) -> Computed:
    if item.node is None:
        assert item.column is not None
        found = key_field(item.column.field)
        if found is None:
            raise context.script.refuse(
                None,
                "* stands for columns that are not in GROUP BY",
                reason="they have many values for one unit",
                way_out="name the columns",
            )
        return Computed(item.name, found, item.column.origin)
    expression = read_expression(context, scope, item.node)
    return Computed(item.name or f"column_{place}", expression, None)


def _total(context: Context, node: exp.Expr, asked: Aggregate) -> UnitTotal:
    try:
        return unit_total(context.fresh(), asked)
    except Refused as refused:
        raise context.script.point(refused, node) from None


def unit_total(name: str, asked: Aggregate) -> UnitTotal:
    """Return a statistic of one unit's rows, and what is known of it."""
    statistic = _EXTREMES.get(asked.called) or _STATISTICS.get(asked.statistic)
    if statistic is None or asked.per_group is not None:
        raise Refused(
            "within one unit COUNT, SUM, AVG, MIN and MAX are answered",
            reason="these are exact for one unit's rows on every engine",
            way_out="use one of them, or ask about the rows themselves",
        )
    step = _step(asked.argument) if statistic in (_U.SUM, _U.MEAN) else None
    return UnitTotal(Field(name, _facts(statistic, asked.argument, step)), statistic, asked.argument, step)


def _step(argument: Expression | None) -> Fraction:
    """Return the grid on which one unit's values are added up exactly."""
    assert argument is not None
    facts = argument.facts
    if facts.kind is Kind.INTEGER:
        return Fraction(1)
    if facts.step is not None:
        return facts.step
    if facts.low is None or facts.high is None or facts.low == facts.high:
        raise Refused(
            "this adds up numbers without bounds",
            reason="they are added up exactly, on a grid, and a grid has bounds",
            way_out="declare the column with dp.between(low, high), or clamp it: LEAST(GREATEST(x, 0), 100)",
        )
    width = max(facts.high - facts.low, abs(facts.low) / _FINE, abs(facts.high) / _FINE)
    return Fraction(10) ** exponent(width / _FINE)


def _facts(statistic: UnitStatistic, argument: Expression | None, step: Fraction | None) -> ExpressionFacts:
    if statistic is _U.ROWS:
        return ExpressionFacts(kind=Kind.INTEGER, low=Fraction(1), nullable=False)
    assert argument is not None
    facts = argument.facts
    if statistic in (_U.COUNT, _U.DISTINCT):
        return ExpressionFacts(kind=Kind.INTEGER, low=Fraction(0), nullable=False)
    if statistic is _U.SUM:
        low = Fraction(0) if facts.low is not None and facts.low >= 0 else None
        high = Fraction(0) if facts.high is not None and facts.high <= 0 else None
        return ExpressionFacts(kind=facts.kind, low=low, high=high, step=step if facts.kind is Kind.REAL else None)
    if statistic is _U.MEAN:
        return ExpressionFacts(kind=Kind.REAL, low=facts.low, high=facts.high)
    return replace(facts, members=None, nullable=True)


# --- windows: OVER (PARTITION BY unit): what each row may know of the other rows of its own unit. ---
#
# Every row that a question sees then follows from the rows of one unit, so that adding or removing a unit changes no
# row of anybody else: what bounds contributions afterwards holds as it did [WZLDSG20]. Rows that are equal in ORDER BY
# are put in order by all other columns, or else the engine would choose, which it may do by other people's rows.


_FROM_ROWS = {"FirstValue": _U.FIRST, "First": _U.FIRST, "LastValue": _U.LAST, "Last": _U.LAST}
_OVER = (_U.ROWS, _U.COUNT, _U.SUM, _U.LEAST, _U.GREATEST)
_WHOLE_FRAME = {"start": "UNBOUNDED", "start_side": "PRECEDING", "end": "UNBOUNDED", "end_side": "FOLLOWING"}
_TO_HERE = {"start": "UNBOUNDED", "start_side": "PRECEDING", "end": "CURRENT ROW", "end_side": ""}


def read_windows(context: Context, scope: Scope, node: exp.Expr, items: Sequence[Item]) -> Scope:
    """Read what is OVER the unit in SELECT and QUALIFY, and return the scope in which it is known."""
    qualify = node.args.get("qualify")
    parts = [item.node for item in items if item.node is not None] + ([] if qualify is None else [qualify.this])
    found = [one for part in parts for one in part.walk(prune=_is_window) if _is_window(one)]
    if qualify is not None and not found:
        raise context.script.refuse(
            qualify,
            "there is no window that QUALIFY could look at",
            reason="it keeps rows by what is OVER the unit",
            way_out="write WHERE for conditions of a row, and ROW_NUMBER() OVER (PARTITION BY unit …) = 1 here",
        )
    windows: dict[UnitWindow, UnitWindow] = {}
    fields: dict[int, Expression] = {}
    for one in found:
        window = _WindowReader(context, scope, one).read()
        same = replace(window, total=replace(window.total, field=replace(window.total.field, name="")))
        fields[id(one)] = windows.setdefault(same, window).total.field
    source = WithinUnit(scope.source, tuple(windows.values())) if windows else scope.source
    return replace(scope, source=source, windows=fields)


def _is_window(node: exp.Expr) -> bool:
    return class_of(node) == "Window"


@final
@dataclass(frozen=True, slots=True)
class _WindowReader:
    """One function OVER a window, and where it stands."""

    context: Context
    scope: Scope
    node: exp.Expr

    def read(self) -> UnitWindow:
        check_slots(self.context.script, self.node, frozenset({"this", "partition_by", "order", "spec", "over"}))
        self._check_partition()
        total, order = self._total(), self._order()
        running = self._is_running(bool(order))
        if total.statistic in _OVER:
            return UnitWindow(total, order if running else (), (), running)
        if total.statistic is _U.LAST and running:
            raise self._refusal(
                "LAST_VALUE with ORDER BY needs a frame",
                reason="without one, SQL means the last of the rows up to this one, which is the row itself",
                way_out="write ORDER BY … ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING; or FIRST_VALUE "
                "with ORDER BY … DESC",
            )
        named = {one.value.name for one in order if isinstance(one.value, Field)}
        columns = dict.fromkeys(column.field for part in self.scope.parts for column in part.columns)
        return UnitWindow(total, order, tuple(one for one in columns if self._decides(one) and one.name not in named))

    def _decides(self, field: Field) -> bool:
        """Whether a column may put rows in order: what is not declared has a type that follows from all rows."""
        return field.name not in self.scope.units and field.facts.kind not in (Kind.UNDECLARED, Kind.IDENTITY)

    def _refusal(self, problem: str, *, reason: str, way_out: str) -> Exception:
        return self.context.script.refuse(self.node, problem, reason=reason, way_out=way_out)

    def _check_partition(self) -> None:
        unit = self.context.catalogue.unit
        if unit.is_row or not is_private(self.scope.source):
            raise self._refusal(
                "a window is of the rows of one unit, and there is no column of a unit here",
                reason="it would look at rows of several people, or of nobody",
                way_out='ask the custodian to protect a unit: Unit("column", …); public tables can be read as they are',
            )
        parts = self.node.args.get("partition_by") or ()
        expressions = [read_expression(self.context, self.scope, part) for part in parts]
        if len(expressions) != 1 or not _is_unit(self.scope, expressions[0]):
            raise self._refusal(
                f"a window is OVER (PARTITION BY {unit.called}), the unit itself and nothing else",
                reason="otherwise a row would depend on other people's rows"
                + (", or on another window of time" if unit.window is not None else ""),
                way_out=f"write OVER (PARTITION BY {unit.called} ORDER BY …); for less than all rows of a unit, "
                f"GROUP BY {unit.called} and the other column in a sub-query",
            )

    def _total(self) -> UnitTotal:
        inside, context = self.node.this, self.context
        if class_of(inside) == "RowNumber":
            check_slots(context.script, inside, frozenset())
            facts = ExpressionFacts(kind=Kind.INTEGER, low=Fraction(1), nullable=False)
            return UnitTotal(Field(context.fresh(), facts), _U.PLACE, None)
        if class_of(inside) in _FROM_ROWS:
            check_form(context.script, inside, form_of("this", read_expression))
            value = read_expression(context, self.scope, inside.this)
            if not isinstance(value, Field) or self._decides(value):
                facts = replace(value.facts, nullable=True)
                return UnitTotal(Field(context.fresh(), facts), _FROM_ROWS[class_of(inside)], value)
        elif is_aggregate(inside):
            total = _total(context, inside, read_aggregate(context, self.scope, inside))
            if total.statistic in _OVER:
                return total
        raise self._refusal(
            "OVER (PARTITION BY unit) is answered for MIN, MAX, FIRST_VALUE, LAST_VALUE, COUNT, SUM and ROW_NUMBER",
            reason="these follow from one unit's rows alone, on every engine, of columns that do not name units",
            way_out="use one of them; or AVG and COUNT(DISTINCT …) in a sub-query that groups by the unit",
        )

    def _order(self) -> tuple[RowOrder, ...]:
        clause = self.node.args.get("order")
        if clause is None:
            return ()
        check_slots(self.context.script, clause, frozenset({"expressions"}))
        return tuple(self._ordered(entry) for entry in clause.args.get("expressions") or ())

    def _ordered(self, node: exp.Expr) -> RowOrder:
        check_slots(self.context.script, node, frozenset({"this", "desc"}))
        value = read_expression(self.context, self.scope, node.this)
        if not any(isinstance(part, Field) for part in walk(value)):
            raise self._refusal(
                "a window is ordered by something that is the same in every row",
                reason="places in the SELECT list mean nothing here",
                way_out="name a column: ORDER BY at",
            )
        return RowOrder(value, bool(node.args.get("desc")))

    def _is_running(self, is_ordered: bool) -> bool:
        """Whether only rows up to this one count: as SQL has it where rows are ordered and no frame is said."""
        spec = self.node.args.get("spec")
        if spec is None:
            return is_ordered
        said = {name: str(spec.args.get(name) or "").upper() for name in _WHOLE_FRAME}
        check_slots(self.context.script, spec, frozenset({"kind", *_WHOLE_FRAME}))
        if said == _WHOLE_FRAME:
            return False
        if said == _TO_HERE and str(spec.args.get("kind")).upper() == "RANGE":
            return is_ordered
        raise self._refusal(
            "a frame is all rows of the unit, or RANGE up to this one",
            reason="with others, rows that are equal in ORDER BY would be told apart by the engine alone",
            way_out="leave the frame out, or write ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
        )
