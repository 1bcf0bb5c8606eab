"""UNION ALL: rows of several sources, by position."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from discreet.errors import Refused
from discreet.query.expressions import Expression, Field
from discreet.query.operators import Operator
from discreet.query.reading.forms import check_slots, class_of
from discreet.query.reading.rules import apply, renamed, when
from discreet.query.reading.scopes import Context, Scope, ScopeColumn, SubqueryRows
from discreet.query.reading.statements import read_query, with_queries
from discreet.query.sources import Named, Project, Source, Table, UnionAll, is_private

if TYPE_CHECKING:
    from sqlglot import exp

__all__ = ["read_union", "tables_in"]

_SLOTS = frozenset({"this", "expression", "with_"})


def read_union(context: Context, node: exp.Expr) -> SubqueryRows:
    """Read a chain of UNION ALL."""
    inner = with_queries(context, node)
    branches = [read_query(inner, branch) for branch in _branches(inner, node)]
    widths = {len(branch.columns) for branch in branches}
    if len(widths) != 1:
        raise inner.script.refuse(
            node,
            "the sides of UNION ALL have different numbers of columns",
            reason="columns are matched by position",
            way_out="select the same columns on every side",
        )
    _check_privacy(inner, node, branches)
    return _unite(inner, node, branches)


def _branches(context: Context, node: exp.Expr) -> list[exp.Expr]:
    branches: list[exp.Expr] = []
    waiting = [node]
    while waiting:
        current = waiting.pop()
        if class_of(current) != "Union":
            branches.append(current)
            continue
        check_slots(context.script, current, _SLOTS if current is node else _SLOTS - {"with_"})
        waiting += [current.args["expression"], current.args["this"]]
    return branches


def tables_in(source: Source) -> list[Table]:
    """Return all tables of a source, as often as they occur."""
    match source:
        case Table():
            return [source]
        case UnionAll():
            return [table for part in source.sources for table in tables_in(part)]
    sides = [getattr(source, slot, None) for slot in ("source", "left", "right")]
    return [table for side in sides if side is not None for table in tables_in(side)]


def _check_privacy(context: Context, node: exp.Expr, branches: Sequence[SubqueryRows]) -> None:
    if len({is_private(branch.source) for branch in branches}) != 1:
        raise context.script.refuse(
            node,
            "UNION ALL takes private tables only, or public ones only",
            reason="a public row belongs to nobody, so that nobody's share of it can be bounded",
            way_out="ask about the private tables, and add public numbers to the answer",
        )
    if context.catalogue.unit.is_row:
        names = [table.table for branch in branches for table in tables_in(branch.source) if table.private]
        if len(names) != len(set(names)):
            raise context.script.refuse(
                node,
                "the same table is in this UNION ALL twice",
                reason="rows are protected one by one, and a row that is there twice counts twice",
                way_out="use CASE to tell the two apart in one pass over the table",
            )


def _unite(context: Context, node: exp.Expr, branches: Sequence[SubqueryRows]) -> SubqueryRows:
    units = [_unit_field(branch) for branch in branches]
    columns: list[tuple[str, str | None, list[Expression]]] = []
    for place, column in enumerate(branches[0].columns):
        values = [branch.columns[place].field for branch in branches]
        origins = {branch.columns[place].origin for branch in branches}
        columns.append((column.name, origins.pop() if len(origins) == 1 else None, _alike(context, node, values)))
    held = [all(_is_unit(v, u) for v, u in zip(values, units, strict=True)) for _, _, values in columns]
    if units[0] is not None and not any(held):
        columns.append(("", None, _units_alike(context, node, [unit for unit in units if unit is not None])))
        held.append(True)
    fields = [renamed(_hull(values), context.fresh()) for _, _, values in columns]
    sources = tuple(
        _aligned(context, branch, [values[place] for _, _, values in columns]) for place, branch in enumerate(branches)
    )
    unit = next((field.name for field, holds in zip(fields, held, strict=True) if holds), None)
    visible = tuple(
        ScopeColumn(name, field, origin) for (name, origin, _), field in zip(columns, fields, strict=True) if name
    )
    source = UnionAll(sources, tuple(fields), unit if units[0] is not None else None)
    return SubqueryRows(
        source, visible, frozenset(f.name for f, holds in zip(fields, held, strict=True) if holds and unit)
    )


def _unit_field(branch: SubqueryRows) -> Field | None:
    return Scope(branch.source, ()).unit_field


def _is_unit(value: Expression, unit: Field | None) -> bool:
    return unit is not None and isinstance(value, Field) and value.name == unit.name


def _units_alike(context: Context, node: exp.Expr, units: Sequence[Field]) -> list[Expression]:
    if len({unit.facts.kind for unit in units}) != 1:
        raise context.script.refuse(
            node,
            "the unit is of another kind on each side",
            reason="one and the same person could be counted as two",
            way_out="ask the custodian to declare the unit's column alike in all tables",
        )
    return list(units)


def _alike(context: Context, node: exp.Expr, values: Sequence[Expression]) -> list[Expression]:
    from discreet.query.reading.agreement import agree

    try:
        return agree(values)[1]
    except Refused as refused:
        raise context.script.point(refused, node) from None


def _hull(values: Sequence[Expression]) -> Expression:
    """Return a node with the facts that hold for all of them."""
    always = apply(Operator.IS_NULL, values[0])
    return when([(always, value) for value in values[1:]], values[0])


def _aligned(context: Context, branch: SubqueryRows, values: Sequence[Expression]) -> Source:
    """Project a side to its columns in order; the unit keeps its place."""
    named = tuple(Named(renamed(value, context.fresh()), value) for value in values)
    unit = _unit_field(branch)
    name = next((entry.field.name for entry in named if _is_unit(entry.expression, unit)), None)
    return Project(branch.source, named, name)
