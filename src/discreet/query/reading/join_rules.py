"""Which joins are private: every joined row belongs to one unit, and to no other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from discreet.query.expressions import Expression, Field
from discreet.query.reading.scopes import Context
from discreet.query.sources import Filter, Source, Table, is_private

if TYPE_CHECKING:
    from sqlglot import exp

__all__ = ["Pair", "check_join", "equates_units"]

Pair: TypeAlias = tuple[Expression, Expression]  # of the left, of the right


def equates_units(left: frozenset[str], right: frozenset[str], pairs: Sequence[Pair]) -> bool:
    """Whether one of the pairs is the unit of both sides, unchanged."""
    return any(
        isinstance(one, Field) and one.name in left and isinstance(other, Field) and other.name in right
        for one, other in pairs
    )


def check_join(
    context: Context,
    node: exp.Expr,
    left: Source,
    left_units: frozenset[str],
    right: Source,
    right_units: frozenset[str],
    pairs: Sequence[Pair],
) -> None:
    """Refuse a join whose rows would belong to nobody, or to two units."""
    if is_private(right) and not is_private(left):
        raise context.script.refuse(
            node,
            "a public table cannot keep its rows in a join with a private one",
            reason="a public row without a partner belongs to nobody",
            way_out="put the private table on the left, or use JOIN; groups that are empty are shown anyway",
        )
    if context.catalogue.unit.is_row:
        _check_rows(context, node, left, right, pairs)
    elif is_private(left) and is_private(right) and not equates_units(left_units, right_units, pairs):
        raise context.script.refuse(
            node,
            f"private tables are joined on the unit, {context.catalogue.unit.column}, itself",
            reason="otherwise a joined row belongs to two people, and the share of neither is bounded",
            way_out=f"add a.{context.catalogue.unit.column} = b.{context.catalogue.unit.column} to ON, unchanged",
        )


def _check_rows(context: Context, node: exp.Expr, left: Source, right: Source, pairs: Sequence[Pair]) -> None:
    if is_private(left) and is_private(right):
        raise context.script.refuse(
            node,
            "private tables are not joined where rows are protected",
            reason="one row may match many, and would count as often",
            way_out='ask the custodian to protect a unit: Unit("column", …) instead of "row"',
        )
    if is_private(left) and not _is_unique(context, right, pairs):
        raise context.script.refuse(
            node,
            "the public side of this join must have each key once",
            reason="rows are protected one by one, and a row that matches twice counts twice",
            way_out="join on the key of the public table, or give one without duplicates",
        )


def _is_unique(context: Context, right: Source, pairs: Sequence[Pair]) -> bool:
    source = right.source if isinstance(right, Filter) else right
    if not isinstance(source, Table):
        return False
    columns = {column.field.name: column.column for column in source.columns}
    joined = {columns[field.name] for _, field in pairs if isinstance(field, Field) and field.name in columns}
    table = next(table for table in context.catalogue.tables.values() if table.name == source.table)
    return any(key <= joined for key in table.unique)
