"""Tables that are elsewhere, in the cage: a stream is read once, into a table that ends with the question.

So a question sees one state of the data, however often it looks at it. The rows are kept as all scratch data of the
engine: in its memory, and beyond that in files that are encrypted and closed to others.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import IO, Any, final

from discreet.errors import AnswerFailed
from discreet.query.engine import Deadline
from discreet.query.engines.sql_writer import Writer, quote
from discreet.query.functions.casts import shortened, write_cast
from discreet.query.sources.protocol import DataSource, ScanRequest, SourceColumn, silent
from discreet.schema.columns import Kind

__all__ = ["Streamed", "forget", "open_stream", "spill"]

_SETUP = 3600.0  # Seconds for reading a whole table in this process.
_COUNT = 8  # Bytes that tell the number of rows, behind a stream.
_TEXTS = ("string", "large_string", "string_view")
_ARRIVES = {
    "int8": "TINYINT",
    "int16": "SMALLINT",
    "int32": "INTEGER",
    "int64": "BIGINT",
    "uint8": "UTINYINT",
    "uint16": "USMALLINT",
    "uint32": "UINTEGER",
    "uint64": "UBIGINT",
    "bool": "BOOLEAN",
    "float": "FLOAT",
    "double": "DOUBLE",
    "date32[day]": "DATE",
    "timestamp[us]": "TIMESTAMP",
    "timestamp[ns]": "TIMESTAMP_NS",
    **dict.fromkeys(_TEXTS, "VARCHAR"),
}


@final
@dataclass(frozen=True, slots=True, eq=False)
class Streamed:
    """A table of a source. Where it has none, in a worker, a stream is given to it for each question that reads it."""

    columns: Mapping[str, SourceColumn]
    source: DataSource | None = None
    paths: tuple[str, ...] = ()
    inferred: bool = False
    _given: list[int] = field(default_factory=list)
    _read: list[str] = field(default_factory=list)  # the name of the table that has the rows of this question

    @property
    def types(self) -> Mapping[str, str]:
        return {name: column.read_as for name, column in self.columns.items()}

    def give(self, stream: int) -> None:
        """Take the open file with the stream that the next question reads."""
        self._given.append(stream)

    def prepare(self, connection: Any, name: str) -> None:
        if self.source is not None:
            self._read_here(self.source, connection, name)
            return
        if self._read:
            return
        if not self._given:
            raise AnswerFailed
        with open(self._given.pop(), "rb") as stream:
            self._read.append(name)
            rows = spill(connection, f"memory.main.{name}", self.columns, open_stream(stream))
            # A stream may end anywhere and still look whole: the number of its rows comes last.
            if stream.read(_COUNT + 1) != rows.to_bytes(_COUNT, "little"):
                raise AnswerFailed

    def left(self) -> list[str]:
        """Close what was given and not read, and return the name of the table that has the rows of a question."""
        while self._given:
            os.close(self._given.pop())
        left, self._read[:] = list(self._read), []
        return left

    def _read_here(self, source: DataSource, connection: Any, name: str) -> None:
        with silent(), source.snapshot([source], Deadline.after(_SETUP)) as snapshot:
            if dict(snapshot.describe(source)) != dict(self.columns):
                raise AnswerFailed
            spill(
                connection, f"temp.main.{name}", self.columns, snapshot.stream(source, ScanRequest(tuple(self.columns)))
            )

    def relation(self, name: str) -> str:
        return name

    def is_table(self, connection: Any, name: str) -> bool:
        return True

    def columns_now(self, connection: Any, name: str) -> frozenset[Any]:
        found = self.columns if self.source is None else self.source.describe()
        return frozenset([frozenset(found.items())])


def forget(tables: Iterable[Streamed], connection: Any) -> None:
    """Let go of the rows of a question."""
    for name in (name for table in tables for name in table.left()):
        connection.execute(f"DROP TABLE IF EXISTS memory.main.{name}")


def open_stream(stream: IO[bytes]) -> Any:
    """Read batches from an open file."""
    import pyarrow as pa

    return pa.ipc.open_stream(stream)


def spill(connection: Any, table: str, columns: Mapping[str, SourceColumn], batches: Any) -> int:
    """Read batches into a new table, numbers by our rule, and return how many rows there are."""
    for one in batches.schema:
        if one.name not in columns or _ARRIVES.get(str(one.type)) != columns[one.name].arrives:
            raise AnswerFailed
    read = ", ".join(f"{_reading(one, columns[one])} AS {quote(one)}" for one in batches.schema.names)
    made = "TEMP TABLE" if table.startswith("temp.") else "TABLE"
    connection.execute(f"DROP TABLE IF EXISTS {table}")
    connection.register("arriving", batches)
    try:
        connection.execute(f"CREATE {made} {table} AS SELECT {read} FROM arriving")
    finally:
        connection.unregister("arriving")
    ((rows,),) = connection.execute(f"SELECT count(*) FROM {table}").fetchall()
    return int(rows)


def _reading(name: str, column: SourceColumn) -> str:
    """Write how a value that arrives is read: a text that is no number becomes NULL, and fails for no row."""
    value = quote(name)
    if column.arrives == column.read_as:
        return value
    if column.read_as != "DOUBLE":  # a decimal, of as many digits as it has at the source
        return f"TRY_CAST({value} AS {column.read_as})"
    return write_cast(shortened(value), Kind.TEXT, Kind.REAL, Writer())
