"""`x IN (SELECT …)` and EXISTS in WHERE: whoever is in a list that a sub-query makes.

The list is of units, each of which decides about itself, or public. It becomes a join with one row for each entry.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from discreet.query.expressions import Apply, Expression, Field
from discreet.query.operators import Operator
from discreet.query.reading.existence import as_membership
from discreet.query.reading.expressions import read_expression
from discreet.query.reading.forms import check_slots, class_of
from discreet.query.reading.rules import apply, literal
from discreet.query.reading.scopes import Context, Scope, SubqueryRows
from discreet.query.reading.statements import read_query
from discreet.query.sources import Filter, Join, JoinKind, PerUnit, Source, Table, is_private

if TYPE_CHECKING:
    from sqlglot import exp

__all__ = ["is_membership", "keep_members"]

_MOST = 10_000  # entries of a public list that are written out


def is_membership(node: exp.Expr) -> bool:
    """Whether a condition asks for membership in a sub-query."""
    return _inside(node) is not None


def _inside(node: exp.Expr) -> exp.Expr | None:
    while class_of(node) in ("Not", "Paren"):
        node = node.this
    in_query = class_of(node) == "In" and node.args.get("query") is not None
    return node if in_query or class_of(node) == "Exists" else None


def keep_members(context: Context, scope: Scope, node: exp.Expr) -> Source:
    """Return the rows of a scope that are, or with NOT are not, in the sub-query."""
    question = _inside(node)
    assert question is not None
    check_slots(context.script, question, frozenset({"this", "query"}))
    if class_of(question) == "Exists":
        subject, query = as_membership(context, scope, question)
    else:
        subject, query = question.this, question.args["query"]
    value, members = read_expression(context, scope, subject), read_query(context, query)
    wanted = not _is_negated(node)
    if len(members.columns) != 1:
        raise context.script.refuse(
            question, "IN takes a sub-query with one column", reason="one value is compared", way_out="select one"
        )
    if is_private(members.source):
        return _keep_units(context, scope, question, value, members, wanted)
    return _keep_public(context, scope, question, value, members, wanted)


def _is_negated(node: exp.Expr) -> bool:
    negated = False
    while class_of(node) in ("Not", "Paren"):
        negated ^= class_of(node) == "Not"
        node = node.this
    return negated


def _keep_units(
    context: Context, scope: Scope, node: exp.Expr, value: Expression, members: SubqueryRows, wanted: bool
) -> Source:
    field = members.columns[0].field
    mine = isinstance(value, Field) and value.name in scope.units
    if not mine or field.name not in members.units:
        column = context.catalogue.unit.column
        raise context.script.refuse(
            node,
            "membership in a private sub-query compares the unit with the unit",
            reason="otherwise one person's rows decide about another's",
            way_out="use a column of the same table, or a public list"
            if context.catalogue.unit.is_row
            else f"write {column} IN (SELECT {column} FROM … WHERE …), unchanged",
        )
    own = Field(context.fresh(), field.facts)
    return _joined(scope.source, PerUnit(members.source, own, (), ()), value, own, wanted)


def _joined(source: Source, members: Source, value: Expression, own: Field, wanted: bool) -> Source:
    pair = _sides(apply(Operator.EQUAL, value, own))
    if wanted:
        return Join(source, members, JoinKind.INNER, (pair,))
    absent = apply(Operator.IS_NULL, Field(own.name, replace(own.facts, nullable=True)))
    return Filter(Join(source, members, JoinKind.LEFT, (pair,)), absent)


def _sides(equality: Expression) -> tuple[Expression, Expression]:
    assert isinstance(equality, Apply)
    return equality.arguments[0], equality.arguments[1]


def _keep_public(
    context: Context, scope: Scope, node: exp.Expr, value: Expression, members: SubqueryRows, wanted: bool
) -> Source:
    field = members.columns[0].field
    if isinstance(members.source, Table) and field.facts.members is not None and len(field.facts.members) <= _MOST:
        values = [literal(member) for member in field.facts.members]  # type: ignore[arg-type]
        found = apply(Operator.IN, value, *values)
        return Filter(scope.source, found if wanted else apply(Operator.NOT, found))
    if not _is_key(context, members.source, field):
        raise context.script.refuse(
            node,
            "this list may have entries twice",
            reason="a row that matches twice would count twice",
            way_out="use the key of a public table, or a public table without duplicates",
        )
    kept = _joined(scope.source, members.source, value, field, wanted)
    # NULL is not known to be outside of a list, so that NOT IN leaves it out; NOT EXISTS does not.
    leaves_out = not wanted and class_of(node) == "In" and value.facts.nullable
    return Filter(kept, apply(Operator.NOT, apply(Operator.IS_NULL, value))) if leaves_out else kept


def _is_key(context: Context, source: Source, field: Field) -> bool:
    table = source.source if isinstance(source, Filter) else source
    if not isinstance(table, Table):
        return False
    column = next((column.column for column in table.columns if column.field.name == field.name), None)
    known = next(entry for entry in context.catalogue.tables.values() if entry.name == table.table)
    return frozenset({column}) in known.unique
