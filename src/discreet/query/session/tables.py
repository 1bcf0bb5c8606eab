"""The tables of a session under their names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from discreet.errors import InvalidParameter
from discreet.query.policy import PublicTable

__all__ = ["named_tables"]

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
