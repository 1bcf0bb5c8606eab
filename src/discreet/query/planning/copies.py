"""How many rows one private row can become by joins with public tables.

A question that makes millions of copies of one person's row, and none if the person is not there, would run out of
time or memory by that person alone: its failure would tell. Sizes of public tables are public, so such a question is
refused before anything is paid or read.
"""

from __future__ import annotations

from math import prod

from discreet.errors import Refused
from discreet.query.catalogue import Catalogue
from discreet.query.expressions import Field
from discreet.query.sources import Filter, Join, PerUnit, Project, Source, Table, UnionAll, is_private

__all__ = ["MOST_COPIES", "check_copies", "matches_once"]

MOST_COPIES = 1_000_000


def check_copies(source: Source, catalogue: Catalogue) -> None:
    """Refuse joins that could make too many rows of one."""
    copies = _copies(source, catalogue)
    if copies > MOST_COPIES:
        raise Refused(
            f"these joins could make {copies:,} rows of one, more than {MOST_COPIES:,}",
            reason="a question that takes long for one person's rows only would tell whether they are there",
            way_out="join public tables on columns that have no duplicates, fewer of them, or smaller ones",
        )


def matches_once(join: Join, catalogue: Catalogue) -> bool:
    """Whether the right side is a public table and the pairs name a set of its columns without duplicates."""
    if not isinstance(join.right, Table) or join.right.private:
        return False
    table = catalogue.tables.get(join.right.table)
    names = {column.field.name: column.column for column in join.right.columns}
    paired = {names[right.name] for _, right in join.pairs if isinstance(right, Field) and right.name in names}
    return table is not None and any(key <= paired for key in table.unique)


def _copies(source: Source, catalogue: Catalogue) -> int:
    match source:
        case Table():
            return 1
        case Filter() | Project() | PerUnit():
            return _copies(source.source, catalogue)
        case UnionAll():
            return sum(_copies(part, catalogue) for part in source.sources)
        case Join() if is_private(source.right):
            return _copies(source.left, catalogue) * _copies(source.right, catalogue)
        case Join():
            matches = 1 if matches_once(source, catalogue) else _public_rows(source.right, catalogue)
            return _copies(source.left, catalogue) * max(1, matches)


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
