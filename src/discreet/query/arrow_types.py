"""The Arrow type in which values of a kind are handed over, to an engine and to whoever reads an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.query.column_types import Kind

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["arrow_type"]


def arrow_type(kind: Kind) -> pa.DataType:
    """Return the type of a kind; it never depends on values."""
    import pyarrow as pa

    return {
        Kind.BOOLEAN: pa.bool_(),
        Kind.INTEGER: pa.int64(),
        Kind.REAL: pa.float64(),
        Kind.TEXT: pa.string(),
        Kind.DATE: pa.date32(),
        Kind.TIMESTAMP: pa.timestamp("us"),
        Kind.UNDECLARED: pa.string(),
        Kind.IDENTITY: pa.string(),
    }[kind]
