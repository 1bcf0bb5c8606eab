"""Which source a table is: it follows from the type of what is handed over."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from discreet.query.sources.protocol import DataSource, is_source

__all__ = ["identity_of", "source_of"]


def source_of(name: str, table: Any) -> DataSource | None:
    """Return the source that a table is; None if it is a frame, a file or a database that engines open themselves.

    Looks at types and schemas, at no row. A library is imported only where the type of a table is its own.
    """
    homes = _homes(table)
    if homes & {("pyarrow", "RecordBatchReader"), ("pyarrow", "Dataset"), ("polars", "LazyFrame")}:
        from discreet.query.sources.arrow_streams import arrow_source

        return arrow_source(table)
    if ("deltalake", "DeltaTable") in homes:
        from discreet.query.sources.lakes import delta_source

        return delta_source(table)
    if any(home == "pyiceberg" and kind in ("Table", "StaticTable") for home, kind in homes):
        from discreet.query.sources.lakes import iceberg_source

        return iceberg_source(table)
    if ("adbc_driver_manager", "Connection") in homes:
        from discreet.query.sources.adbc import adbc_source

        return adbc_source(name, table)
    return None


def identity_of(name: str, table: Any) -> Hashable | None:
    """Return what two names have in common if they mean the same rows; None if the table itself is all there is.

    All versions of a table of a lake are one: they share rows. Nothing is opened.
    """
    homes = _homes(table)
    if is_source(table):
        return table.identity
    if ("deltalake", "DeltaTable") in homes:
        return ("delta", str(table.table_uri))
    if any(home == "pyiceberg" and kind in ("Table", "StaticTable") for home, kind in homes):
        return ("iceberg", str(table.location()))
    if ("adbc_driver_manager", "Connection") in homes:
        return ("adbc", id(table), name)
    if ("pyarrow", "FileSystemDataset") in homes:
        return ("files", tuple(sorted(table.files)))
    return None


def _homes(table: Any) -> set[tuple[str, str]]:
    """Name the types that a table is of, and their libraries."""
    return {(kind.__module__.partition(".")[0], kind.__name__) for kind in type(table).__mro__}
