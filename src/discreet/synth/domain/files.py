"""Tables in files and in sessions: a worker reads them, and no value ends in an error of its own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from discreet.mechanisms.column import Column
from discreet.query import Session
from discreet.query.engine import Deadline
from discreet.query.session.stored import StoredRows
from discreet.query.workers import WorkerEngine
from discreet.statistics.columns import as_column
from discreet.synth.domain.tables import UnreadTable

__all__ = ["file_table", "session_table"]

_NAME = "table"
_SECONDS = 3600.0


def file_table(path: Path) -> UnreadTable:
    """Take a file of comma-separated values or a Parquet file; its header or schema is looked at."""
    engine = WorkerEngine({_NAME: path})

    def read(names: Sequence[str], numbers: Sequence[str]) -> dict[str, Column]:
        return _columns(engine.rows(_NAME, names, numbers, deadline=Deadline.after(_SECONDS)), names)

    return UnreadTable(tuple(engine.columns(_NAME)), None, read)


def session_table(session: Session, table: str) -> UnreadTable:
    """Take a private table of a session."""
    stored = StoredRows.of(session, table)
    return UnreadTable(stored.names, None, lambda names, numbers: _columns(stored.read(names, numbers), names), True)


def _columns(table: Any, names: Sequence[str]) -> dict[str, Column]:
    return {name: as_column(table.column(name)) for name in names}
