"""A table behind any ADBC connection (Arrow Database Connectivity): named columns of a base table, in one statement."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from discreet.errors import InvalidParameter, Refused
from discreet.query.sources.arrow_streams import ArrowSource
from discreet.query.sources.protocol import silent

__all__ = ["adbc_source"]

# Systems whose answers cannot be taken as they are, and what to do instead.
_OTHERWISE = {
    "postgresql": "hand it over as dp.postgres(address, table), which reads in one transaction and casts types",
    "sqlite": "copy it to a file of Parquet: the type of a column there follows from its rows",
}


def adbc_source(name: str, connection: Any) -> ArrowSource:
    """Take the base table of that name; views are none, since they may mix the rows of several people."""
    with silent(_unreadable):
        vendor = str(connection.adbc_get_info().get("vendor_name", "")).lower()
        for system, instead in _OTHERWISE.items():
            if system in vendor:
                raise InvalidParameter(f"a connection to {system} is not read by itself: {instead}")
        if not _is_base_table(name, connection):
            raise InvalidParameter("the database must have a table (not a view, which may mix rows) of that name")

    def schema() -> Any:
        return connection.adbc_get_table_schema(name)

    def batches(columns: tuple[str, ...]) -> Any:
        import pyarrow as pa

        cursor = connection.cursor()
        cursor.execute(f"SELECT {', '.join(map(_quoted, columns))} FROM {_quoted(name)}")
        found = cursor.fetch_record_batch()
        return pa.RecordBatchReader.from_batches(found.schema, _all_of(found, cursor))

    return ArrowSource(("adbc", id(connection), name), schema, batches)


def _all_of(batches: Any, cursor: Any) -> Iterator[Any]:
    """Yield batches, and let their statement live as long."""
    with cursor:
        yield from batches


def _is_base_table(name: str, connection: Any) -> bool:
    listed = connection.adbc_get_objects(depth="tables").read_all().to_pylist()
    kinds = [
        str(table["table_type"]).upper()
        for catalog in listed
        for schema in catalog["catalog_db_schemas"] or ()
        for table in schema["db_schema_tables"] or ()
        if table["table_name"] == name
    ]
    return bool(kinds) and set(kinds) <= {"TABLE", "BASE TABLE"}


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _unreadable() -> Refused:
    return Refused(
        "the table cannot be looked up through this ADBC connection",
        reason="what its driver says about it may hold values or passwords, and is not repeated",
        way_out="try a statement of your own on it; DISCREET_CUSTODIAN_DEBUG=1 shows the custodian what was said",
    )
