"""Tables of lakes: Delta at a version, Iceberg at a snapshot. Both are pinned when a session is opened.

A version names files that nobody changes any more, so all questions of a session see the same rows. What is read are
Arrow batches, by the rule of all streams (`arrow_streams`).
"""

from __future__ import annotations

from typing import Any

from discreet.errors import Refused
from discreet.query.sources.arrow_streams import ArrowSource
from discreet.query.sources.protocol import need, silent

__all__ = ["delta_source", "iceberg_source"]


def delta_source(table: Any) -> ArrowSource:
    """Take a Delta table at the version that it is loaded at."""
    need("deltalake", extra="lakes")
    with silent(_unreadable):
        from deltalake import DeltaTable

        version, place = int(table.version()), str(table.table_uri)
        pinned = DeltaTable(place, version=version, storage_options=table._storage_options)
        # A reader of files that knows all of the protocol; what it does not know it refuses here, and not at a row.
        data = pinned.to_pyarrow_dataset()
    return ArrowSource(
        ("delta", place),
        lambda: data.schema,
        lambda columns: data.scanner(columns=list(columns)).to_reader(),
    )


def iceberg_source(table: Any) -> ArrowSource:
    """Take an Iceberg table at its current snapshot."""
    need("pyiceberg", extra="lakes")
    with silent(_unreadable):
        snapshot = table.current_snapshot()
        pinned = None if snapshot is None else int(snapshot.snapshot_id)
        place, schema = str(table.location()), table.scan(snapshot_id=pinned).to_arrow_batch_reader().schema
    return ArrowSource(
        ("iceberg", place),
        lambda: schema,
        lambda columns: table.scan(snapshot_id=pinned, selected_fields=columns).to_arrow_batch_reader(),
    )


def _unreadable() -> Refused:
    return Refused(
        "the table of the lake cannot be read",
        reason="what its library says about it may hold values or passwords, and is not repeated",
        way_out="load it yourself at the version that is to be asked; DISCREET_CUSTODIAN_DEBUG=1 shows what was said",
    )
