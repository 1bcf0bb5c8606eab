"""Whether two Parquet files hold the same table: columns, types and values; how they are packed does not matter."""

from __future__ import annotations

import io

__all__ = ["same_parquet"]


def same_parquet(one: bytes, other: bytes) -> bool:
    """Compare two files; one that is no Parquet file is not the same as anything."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        tables = [pq.read_table(io.BytesIO(held)) for held in (one, other)]
    except (pa.ArrowException, OSError):
        return False
    return bool(tables[0].equals(tables[1], check_metadata=False))
