"""A table as Parquet, typed by the question, with what it is in its metadata."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from discreet.query import Kind
from discreet.query.arrow_types import arrow_type
from discreet.release.bundle.layout import FileColumn

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["arrow_table", "parquet_bytes"]

_LARGEST = (1 << 63) - 1


def parquet_bytes(fields: Sequence[FileColumn], about: Mapping[str, str]) -> bytes:
    """Write the columns of a table; `about` becomes metadata of the file."""
    import pyarrow.parquet as pq

    table = arrow_table(fields).replace_schema_metadata(dict(about))
    written = io.BytesIO()
    pq.write_table(table, written, compression="zstd", version="2.6", store_schema=True)
    return written.getvalue()


def arrow_table(fields: Sequence[FileColumn]) -> pa.Table:
    """Return the columns as an Arrow table; fractions become the nearest floats."""
    import pyarrow as pa

    arrays = [pa.array([_converted(v, field.kind) for v in field.values], arrow_type(field.kind)) for field in fields]
    return pa.Table.from_arrays(arrays, names=[field.name for field in fields])


def _converted(value: Any, kind: Kind) -> Any:
    if value is None:
        return None
    match kind:
        case Kind.INTEGER:
            return min(max(round(value), -_LARGEST), _LARGEST)
        case Kind.REAL:
            return float(value)
        case Kind.TEXT:
            return str(value)
        case Kind.BOOLEAN | Kind.DATE | Kind.TIMESTAMP:
            return value
