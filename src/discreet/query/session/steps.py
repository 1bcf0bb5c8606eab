"""What the private steps share: finding the table they are about."""

from __future__ import annotations

from dataclasses import replace

from discreet.errors import InvalidParameter
from discreet.query.catalogue import Catalogue, CatalogueColumn, CatalogueTable
from discreet.query.policy import Declared
from discreet.query.session.catalogue_building import nearest

__all__ = ["column_of", "private_table", "with_declared"]


def private_table(catalogue: Catalogue, table: str | None) -> CatalogueTable:
    """Return the private table that is meant: the one that is named, or the only one."""
    private = {name: found for name, found in catalogue.tables.items() if found.private}
    if table is None:
        if len(private) > 1:
            raise InvalidParameter(f"say which table is meant: table=… There are: {', '.join(private)}")
        return next(iter(private.values()))
    found = next((known for name, known in private.items() if name.casefold() == table.casefold()), None)
    if found is None:
        raise InvalidParameter(f"there is no private table {table!r}. {nearest(table, private)}")
    return found


def column_of(table: CatalogueTable, column: str) -> CatalogueColumn:
    """Return the column that is meant; the unit's own is refused, for it names people."""
    found = next((known for name, known in table.columns.items() if name.casefold() == column.casefold()), None)
    if found is None:
        raise InvalidParameter(f"table {table.name!r} has no column {column!r}. {nearest(column, table.columns)}")
    if table.unit is not None and found.name == table.unit:
        raise InvalidParameter(f"{found.name!r} tells whom a row belongs to, and is not released")
    return found


def with_declared(catalogue: Catalogue, table: CatalogueTable, column: str, declared: Declared) -> Catalogue:
    """Return the catalogue with another declaration of one column."""
    stored = table.columns[column].stored
    changed = CatalogueColumn(
        name=column, facts=declared.stored_as(stored), missing=declared.missing, format=declared.format, stored=stored
    )
    tables = dict(catalogue.tables) | {table.name: replace(table, columns=dict(table.columns) | {column: changed})}
    return replace(catalogue, tables=tables)
