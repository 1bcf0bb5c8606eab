"""Sub-queries that aggregate the rows of each unit by themselves: exact, before contributions are bounded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from discreet.errors import Refused
from discreet.formatting import exponent
from discreet.query.ast import (
    Expression,
    Field,
    Filter,
    Named,
    PerUnit,
    Source,
    Statistic,
    UnitStatistic,
    UnitTotal,
    is_private,
)
from discreet.query.functions.expressions import renamed
from discreet.query.parse.aggregates import Aggregate, is_aggregate, read_aggregate
from discreet.query.parse.expression_reader import read_condition, read_expression
from discreet.query.parse.group_by import keys_of, settle
from discreet.query.parse.scopes import Context, Scope, SubqueryRows
from discreet.query.parse.subqueries import Computed, Item, project
from discreet.schema.columns import ExpressionFacts, Kind

if TYPE_CHECKING:
    from sqlglot import exp

__all__ = ["read_per_unit", "unit_total"]

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
