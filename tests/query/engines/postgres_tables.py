"""Arrow tables in PostgreSQL, as the tests of engines need them: every value as it is, or as near as types allow."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import psycopg
import pyarrow as pa

from discreet.query.policy import PublicTable
from discreet.query.sources.postgres import PostgresSource, postgres, quoted

TYPES = {
    "bool": "boolean",
    "int8": "smallint",
    "int16": "smallint",
    "int32": "integer",
    "int64": "bigint",
    "uint8": "smallint",
    "uint16": "integer",
    "uint32": "bigint",
    "uint64": "numeric(20,0)",
    "float": "real",
    "double": "double precision",
    "string": "text",
    "large_string": "text",
    "date32[day]": "date",
    "timestamp[us]": "timestamp",
}
_numbers = itertools.count(1)


def load(dsn: str, table: pa.Table, *, types: dict[str, str] | None = None, name: str = "") -> PostgresSource:
    """Write a table to the server, and return it as a source."""
    name = name or f"t{next(_numbers)}"
    declared = {one.name: (types or {}).get(one.name) or _type(one.type) for one in table.schema}
    listed = ", ".join(f"{quoted(column)} {declared[column]}" for column in declared)
    columns = ", ".join(map(quoted, declared))
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(f"CREATE TABLE {name} ({listed})".encode())
        with connection.cursor().copy(f"COPY {name} ({columns}) FROM STDIN".encode()) as copy:
            for row in _rows(table):
                copy.write_row(row)
    return postgres(dsn, name)


def in_postgres(dsn: str, tables: dict[str, Any]) -> dict[str, Any]:
    """Hand over tables as PostgreSQL has them, private ones and public ones."""
    return {
        name: PublicTable(load(dsn, table.table)) if isinstance(table, PublicTable) else load(dsn, table)
        for name, table in tables.items()
    }


def _type(kind: Any) -> str:
    if pa.types.is_decimal(kind):
        return f"numeric({kind.precision},{kind.scale})"
    return TYPES[str(kind)]


def _rows(table: pa.Table) -> Iterator[Iterable[Any]]:
    columns = [_written(column) for column in table.columns]
    yield from zip(*columns, strict=True)


def _written(column: Any) -> list[Any]:
    """Write values as PostgreSQL reads them; a text cannot have a NUL there."""
    values = column.to_pylist()
    if str(column.type) in ("string", "large_string"):
        return [None if value is None else value.replace("\0", "") for value in values]
    if str(column.type) == "float":
        return list(column.cast(pa.string()).to_pylist())
    return values
