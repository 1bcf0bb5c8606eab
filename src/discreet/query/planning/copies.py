"""How many rows one private row can become by joins.

A question that makes millions of copies of one person's row, and none if the person is not there, would run out of
time or memory by that person alone: its failure would tell. Sizes of public tables are public, so such a question is
refused before anything is paid or read. How many rows a person has is not: where private tables are joined, a person
is taken to have up to a hundred in each.
"""

from __future__ import annotations

from math import prod

from discreet.errors import Refused
from discreet.query.catalogue import Catalogue
from discreet.query.expressions import Field
from discreet.query.sources import Filter, Join, PerUnit, Project, Source, Table, UnionAll, is_private

__all__ = ["MOST_COPIES", "ROWS_OF_A_UNIT", "check_copies", "copies", "matches_once", "one_row_per_unit"]

MOST_COPIES = 1_000_000
ROWS_OF_A_UNIT = 100  # In each private table that is joined to another.


def check_copies(source: Source, catalogue: Catalogue) -> None:
    """Refuse joins that could make too many rows of one."""
    made = copies(source, catalogue)
    if made > MOST_COPIES:
        raise Refused(
            f"these joins could make {made:,} rows of one, more than {MOST_COPIES:,}",
            reason="a question that takes long for one person's rows only would tell whether they are there",
            way_out="join public tables on columns that have no duplicates, fewer of them, or smaller ones; of private "
            "tables, join those with one row for each unit: GROUP BY the unit in a sub-query",
        )


def matches_once(join: Join, catalogue: Catalogue) -> bool:
    """Whether the right side is a public table and the pairs name a set of its columns without duplicates."""
    if not isinstance(join.right, Table) or join.right.private:
        return False
    table = catalogue.tables.get(join.right.table)
    names = {column.field.name: column.column for column in join.right.columns}
    paired = {names[right.name] for _, right in join.pairs if isinstance(right, Field) and right.name in names}
    return table is not None and any(key <= paired for key in table.unique)


def one_row_per_unit(source: Source, catalogue: Catalogue) -> bool:
    """Whether a unit surely has one row at most."""
    match source:
        case PerUnit():
            return not source.keys
        case Filter() | Project():
            return one_row_per_unit(source.source, catalogue)
        case Join() if is_private(source.right):
            # One of the pairs equates the units, so that a unit's row meets one row at most.
            return one_row_per_unit(source.left, catalogue) and one_row_per_unit(source.right, catalogue)
        case Join():
            return one_row_per_unit(source.left, catalogue) and matches_once(source, catalogue)
        case Table() | UnionAll():
            return False


def copies(source: Source, catalogue: Catalogue) -> int:
    """Return at most how many rows one private row becomes."""
    match source:
        case Table():
            return 1
        case Filter() | Project() | PerUnit():
            return copies(source.source, catalogue)
        case UnionAll():
            return sum(copies(part, catalogue) for part in source.sources)
        case Join() if is_private(source.right):
            sides = (source.left, source.right)
            others = 1 if any(one_row_per_unit(side, catalogue) for side in sides) else ROWS_OF_A_UNIT
            return others * prod(copies(side, catalogue) for side in sides)
        case Join():
            matches = 1 if matches_once(source, catalogue) else _public_rows(source.right, catalogue)
            return copies(source.left, catalogue) * max(1, matches)


def _public_rows(source: Source, catalogue: Catalogue) -> int:
    """Return at most how many rows a public source has."""
    match source:
        case Table():
            table = catalogue.tables.get(source.table)
            return 1 if table is None else table.rows
        case Filter() | Project() | PerUnit():
            return _public_rows(source.source, catalogue)
        case UnionAll():
            return sum(_public_rows(part, catalogue) for part in source.sources)
        case Join():
            return prod(_public_rows(side, catalogue) for side in (source.left, source.right))
