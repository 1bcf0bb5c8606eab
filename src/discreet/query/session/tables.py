"""The tables of a session under their names."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any

from discreet.errors import InvalidParameter
from discreet.query.policy import PublicTable

__all__ = ["check_apart", "named_tables"]

_ONLY = "data"  # What a single table is called that brings no name of its own.

_DATABASES = (".duckdb", ".ddb", ".db")


def named_tables(tables: Any) -> dict[str, Any]:
    """Return tables by name: as they are named, a file by the name of the file, any other single table as "data"."""
    if isinstance(tables, Mapping):
        if not tables:
            raise InvalidParameter("a session needs at least one table")
        if not all(isinstance(name, str) and name for name in tables):
            raise InvalidParameter("names of tables must be texts that are not empty")
        return dict(tables)
    if isinstance(tables, PublicTable):
        raise InvalidParameter("all tables are public: a session needs one that is not")
    if isinstance(tables, (str, Path)):
        if Path(tables).suffix.lower() in _DATABASES:
            raise InvalidParameter('name the tables of a database: {"orders": "shop.duckdb", "people": "shop.duckdb"}')
        stem = Path(tables).stem
        return {stem if re.fullmatch(r"[A-Za-z_]\w*", stem) else _ONLY: tables}
    return {_ONLY: tables}


def check_apart(tables: Mapping[str, Any], *, rows: bool) -> None:
    """Refuse a table that is both private and public, or that is there twice where rows are the units.

    Nobody's rows are protected and known to everybody at once; and a row that is there twice counts twice.
    """
    public = {_identity(name, table.table) for name, table in tables.items() if isinstance(table, PublicTable)}
    private = [_identity(name, table) for name, table in tables.items() if not isinstance(table, PublicTable)]
    if not public.isdisjoint(private):
        raise InvalidParameter("a table is private under one name and public under another: hand it over once")
    if rows and len(set(private)) != len(private):
        raise InvalidParameter("a table is there under two names, and rows are the units: hand it over once")


def _identity(name: str, table: Any) -> Hashable:
    """Return what two names have in common if they mean the same table; a database holds one for each name."""
    if isinstance(table, (str, Path)):
        path = Path(table).resolve()
        return (path, name.casefold()) if path.suffix.lower() in _DATABASES else path
    return (id(table), name.casefold()) if type(table).__name__ == "DuckDBPyConnection" else id(table)
