"""Sub-queries: SELECT, UNION ALL and WITH, read into rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, final

from discreet.errors import Refused
from discreet.query.ast import (
    Expression,
    Field,
    Filter,
    Named,
    Operator,
    Project,
    Source,
    Table,
    TableColumn,
    UnionAll,
    is_private,
)
from discreet.query.catalogue import CatalogueTable
from discreet.query.functions.expressions import apply, renamed, when
from discreet.query.parse.aggregates import has_aggregate
from discreet.query.parse.allow_list import check_slots, class_of, refuse_form
from discreet.query.parse.expression_reader import read_condition, read_expression
from discreet.query.parse.scopes import Context, Scope, ScopeColumn, SubqueryRows, unknown

if TYPE_CHECKING:
    from sqlglot import exp

__all__ = [
    "SELECT_SLOTS",
    "Computed",
    "Item",
    "items_of",
    "project",
    "read_query",
    "read_table",
    "read_union",
    "renamed_columns",
    "tables_in",
    "with_queries",
]

SELECT_SLOTS = frozenset({"with_", "expressions", "from_", "joins", "where", "group", "having", "distinct"})


@final
@dataclass(frozen=True, slots=True)
class Item:
    """An entry of a SELECT list: a node, or a column that `*` stands for."""

    name: str  # empty if it has none
    node: exp.Expr | None
    column: ScopeColumn | None = None

    @property
    def place(self) -> exp.Expr | None:
        return self.node


def read_query(context: Context, node: exp.Expr) -> SubqueryRows:
    """Read a sub-query: row by row, or one row for each unit."""
    match class_of(node):
        case "Select":
            return _read_select(context, node)
        case "Union":
            return read_union(context, node)
        case "Subquery":
            check_slots(context.script, node, frozenset({"this", "with_"}))
            return read_query(with_queries(context, node), node.this)
    raise refuse_form(context.script, node, "a source of rows")


def with_queries(context: Context, node: exp.Expr) -> Context:
    """Add the queries of WITH; each knows those before it."""
    clause = node.args.get("with_")
    if clause is None:
        return context
    check_slots(context.script, clause, frozenset({"expressions"}))
    known = dict(context.queries)
    for query in clause.args.get("expressions") or ():
        check_slots(context.script, query, frozenset({"this", "alias", "materialized"}))
        known[str(query.alias).lower()] = (query, context.knowing(dict(known)))
    return context.knowing(known)


def read_table(context: Context, node: exp.Expr) -> SubqueryRows:
    """Read a table of the catalogue, or a query of WITH, by its name."""
    from sqlglot import exp

    check_slots(context.script, node, frozenset({"this", "alias"}))
    if not isinstance(node.this, exp.Identifier):
        raise context.script.refuse(
            node,
            "FROM takes tables that the custodian has named, and sub-queries",
            reason="a function or a file can show anything",
            way_out="; ".join(["the tables are " + ", ".join(context.catalogue.tables)]),
        )
    name = str(node.this.this)
    if name.lower() in context.queries:
        query, inner = context.queries[name.lower()]
        return renamed_columns(context, query.args["alias"], read_query(inner, query.this))
    found = next((table for key, table in context.catalogue.tables.items() if key.lower() == name.lower()), None)
    if found is None:
        raise unknown(context.script, "table", name, [*context.catalogue.tables, *context.queries], node)
    return _scan(context, found)


def _scan(context: Context, table: CatalogueTable) -> SubqueryRows:
    columns = tuple(
        TableColumn(
            column.name,
            Field(context.fresh(), column.facts),
            column.missing,
            column.format,
            column.unit_key,
            column.of_unit or None,
        )
        for column in table.columns.values()
    )
    unit = next((c.field.name for c in columns if table.unit is not None and c.column == table.unit), None)
    source = Table(table.name, table.private, columns, unit)
    visible = tuple(ScopeColumn(column.column, column.field, column.column) for column in columns)
    return SubqueryRows(source, visible, frozenset() if unit is None else frozenset({unit}))


def renamed_columns(context: Context, alias: exp.Expr | None, rows: SubqueryRows) -> SubqueryRows:
    """Give columns the names of `AS t(a, b)`."""
    if alias is None:
        return rows
    check_slots(context.script, alias, frozenset({"this", "columns"}))
    names = [str(name.this) for name in alias.args.get("columns") or ()]
    if not names:
        return rows
    if len(names) != len(rows.columns):
        raise context.script.refuse(
            alias,
            f"there are {len(rows.columns)} columns to name, and {len(names)} names",
            reason="it is not clear what is meant",
            way_out="name each column once",
        )
    columns = tuple(
        ScopeColumn(name, column.field, column.origin) for name, column in zip(names, rows.columns, strict=True)
    )
    return SubqueryRows(rows.source, columns, rows.units)


def _read_select(context: Context, node: exp.Expr) -> SubqueryRows:
    from discreet.query.parse.from_clause import read_from
    from discreet.query.parse.per_unit import read_per_unit, read_windows

    check_slots(context.script, node, SELECT_SLOTS | {"qualify"})
    inner = with_queries(context, node)
    scope = read_from(inner, node)
    items = items_of(inner, scope, node)
    grouped = any(node.args.get(slot) is not None for slot in ("group", "having", "distinct"))
    if grouped or any(item.node is not None and has_aggregate(item.node) for item in items):
        check_slots(context.script, node, SELECT_SLOTS)
        return read_per_unit(inner, scope, node, items)
    scope = read_windows(inner, scope, node, items)
    columns = [_item_column(inner, scope, item, place) for place, item in enumerate(items, 1)]
    return project(inner, _qualified(inner, scope, node, columns), columns)


def _qualified(context: Context, scope: Scope, node: exp.Expr, columns: Sequence[Computed]) -> Scope:
    """Keep the rows that QUALIFY names, by columns, windows, or what SELECT calls them."""
    clause = node.args.get("qualify")
    if clause is None:
        return scope
    check_slots(context.script, clause, frozenset({"this"}))
    named = {column.name.lower(): column.expression for column in columns}
    condition = read_condition(context, replace(scope, aliases=named), clause.this)
    return replace(scope, source=Filter(scope.source, condition))


def items_of(context: Context, scope: Scope, node: exp.Expr) -> list[Item]:
    """Return the SELECT list, with `*` written out."""
    items: list[Item] = []
    for entry in node.args.get("expressions") or ():
        if class_of(entry) == "Star":
            items += _starred(context, entry, list(scope.columns))
        elif class_of(entry) == "Column" and class_of(entry.this) == "Star":
            wanted = entry.text("table").lower()
            parts = [part for part in scope.parts if part.name.lower() == wanted]
            if not parts:
                raise unknown(context.script, "table", wanted, [part.name for part in scope.parts], entry)
            items += _starred(context, entry.this, [column for part in parts for column in part.columns])
        else:
            items.append(_item(context, entry))
    return items


def _starred(context: Context, node: exp.Expr, columns: Sequence[ScopeColumn]) -> list[Item]:
    check_slots(context.script, node, frozenset({"except_"}))
    left_out = {str(name.name).lower() for name in node.args.get("except_") or ()}
    return [Item(column.name, None, column) for column in columns if column.name.lower() not in left_out]


def _item(context: Context, node: exp.Expr) -> Item:
    from sqlglot import exp

    if class_of(node) == "Alias":
        check_slots(context.script, node, frozenset({"this", "alias"}))
        if not isinstance(node.args["alias"], exp.Identifier):
            raise refuse_form(context.script, node, "a column of the answer")
        return Item(str(node.alias), node.this)
    return Item(str(node.name) if class_of(node) == "Column" else "", node)


@final
@dataclass(frozen=True, slots=True)
class Computed:
    name: str
    expression: Expression
    origin: str | None


def _item_column(context: Context, scope: Scope, item: Item, place: int) -> Computed:
    if item.column is not None:
        return Computed(item.name, item.column.field, item.column.origin)
    assert item.node is not None
    expression = read_expression(context, scope, item.node)
    known = (column for part in scope.parts for column in part.columns)
    origin = next((column.origin for column in known if column.field == expression), None)
    return Computed(item.name or f"column_{place}", expression, origin)


def project(context: Context, scope: Scope, columns: Sequence[Computed]) -> SubqueryRows:
    """Compute columns row by row. The unit goes along, named or not, so that it cannot be lost or altered."""
    if all(isinstance(column.expression, Field) for column in columns):
        plain = tuple(
            ScopeColumn(column.name, column.expression, column.origin)
            for column in columns
            if isinstance(column.expression, Field)
        )
        return SubqueryRows(scope.source, plain, scope.units)
    named = [Named(renamed(column.expression, context.fresh()), column.expression) for column in columns]
    units = [entry for entry in named if isinstance(entry.expression, Field) and entry.expression.name in scope.units]
    unit = scope.unit_field
    if unit is not None and not units:
        named.append(Named(Field(context.fresh(), unit.facts), unit))
        units = [named[-1]]
    source = Project(scope.source, tuple(named), units[0].field.name if units and is_private(scope.source) else None)
    visible = tuple(
        ScopeColumn(column.name, entry.field, column.origin) for column, entry in zip(columns, named, strict=False)
    )
    return SubqueryRows(source, visible, frozenset(entry.field.name for entry in units))


# --- unions: UNION ALL: rows of several sources, by position. ---


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
    from discreet.query.functions.agreement import agree

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
