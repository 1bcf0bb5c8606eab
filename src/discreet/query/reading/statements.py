"""Sub-queries: SELECT, UNION ALL and WITH, read into rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from discreet.query.catalogue import CatalogueTable
from discreet.query.expressions import Expression, Field
from discreet.query.reading.aggregates import has_aggregate
from discreet.query.reading.expressions import read_expression
from discreet.query.reading.forms import check_slots, class_of, refuse_form
from discreet.query.reading.rules import renamed
from discreet.query.reading.scopes import Context, Scope, ScopeColumn, SubqueryRows, unknown
from discreet.query.sources import Named, Project, Table, TableColumn, is_private

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
    "renamed_columns",
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
    from discreet.query.reading.unions import read_union

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
        TableColumn(column.name, Field(context.fresh(), column.facts), column.missing, column.format)
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
    from discreet.query.reading.joins import read_from
    from discreet.query.reading.units import read_per_unit

    check_slots(context.script, node, SELECT_SLOTS)
    inner = with_queries(context, node)
    scope = read_from(inner, node)
    items = items_of(inner, scope, node)
    grouped = any(node.args.get(slot) is not None for slot in ("group", "having", "distinct"))
    if grouped or any(item.node is not None and has_aggregate(item.node) for item in items):
        return read_per_unit(inner, scope, node, items)
    columns = [_item_column(inner, scope, item, place) for place, item in enumerate(items, 1)]
    return project(inner, scope, columns)


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
