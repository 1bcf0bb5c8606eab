"""Streams of Arrow in this process: a reader, which is read once, a data set of files, a lazy frame of polars.

Types are those of frames in memory, by the same rule (`frames.tables`), batch by batch.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, final

from discreet.errors import AnswerFailed, InvalidParameter, Refused
from discreet.frames.tables import arrow_schema, arrow_table
from discreet.query.engine import Deadline
from discreet.query.sources.protocol import DataSource, ScanRequest, SourceColumn, silent

__all__ = ["ArrowSource", "arrow_columns", "arrow_source", "safe_stream"]

Open = Callable[[tuple[str, ...]], Any]  # of columns: their batches
_BEGUN: weakref.WeakSet[Any] = weakref.WeakSet()  # Readers that were begun: nobody else finds their first rows there.
_BEGIN = threading.Lock()
_TEXTS = ("CsvFileFormat", "JsonFileFormat")


@final
@dataclass(frozen=True, slots=True, eq=False)
class ArrowSource:
    """Batches that somebody else makes. `schema` and `open` are asked anew for every question, if it can be."""

    identity: Hashable
    schema: Callable[[], Any]
    open: Open
    once: Any = None  # A reader of one pass and no more: what it has is kept, and every question reads the same.
    _kept: list[Any] = field(default_factory=list)
    _lock: Any = field(default_factory=threading.Lock)

    @property
    def server(self) -> Hashable:
        return self.identity

    def describe(self) -> Mapping[str, SourceColumn]:
        if self.once is not None and self.once in _BEGUN and not (self._kept or self._lock.locked()):
            raise _spent()
        with silent(_unreadable):
            return arrow_columns(self.schema())

    @contextmanager
    def snapshot(self, tables: Sequence[DataSource], deadline: Deadline) -> Iterator[ArrowSnapshot]:
        yield ArrowSnapshot()

    def batches(self, columns: tuple[str, ...]) -> Any:
        """Return a reader of some columns."""
        if self.once is None:
            return safe_stream(self.open(columns))
        with self._lock:
            if not self._kept:
                _begin(self.once)
                self._kept.append(safe_stream(self.open(tuple(arrow_columns(self.schema())))).read_all())
        return self._kept[0].select(list(columns)).to_reader()


def _begin(reader: Any) -> None:
    """Begin to read, unless somebody did."""
    with _BEGIN:
        if reader in _BEGUN:
            raise AnswerFailed
        _BEGUN.add(reader)


@final
class ArrowSnapshot:
    """The state that is found: of files, which others may write meanwhile, each is read once."""

    def __init__(self) -> None:
        self._stopped = threading.Event()

    def describe(self, source: DataSource) -> Mapping[str, SourceColumn]:
        return source.describe()

    def stream(self, source: DataSource, request: ScanRequest) -> Any:
        import pyarrow as pa

        assert isinstance(source, ArrowSource)
        found = source.batches(request.columns)
        return pa.RecordBatchReader.from_batches(found.schema, self._until_stopped(found))

    def cancel(self) -> None:
        self._stopped.set()

    def _until_stopped(self, batches: Any) -> Iterator[Any]:
        for batch in batches:
            if self._stopped.is_set():
                raise AnswerFailed
            yield batch


def arrow_source(table: Any) -> ArrowSource:
    """Take a reader, a data set or a lazy frame."""
    if type(table).__module__.partition(".")[0] == "polars":
        return ArrowSource(id(table), lambda: _lazy_schema(table), lambda columns: _lazy_batches(table, columns))
    if hasattr(table, "to_reader") or hasattr(table, "scanner"):
        with silent(_unreadable):
            _check_files(table)
        return ArrowSource(id(table), lambda: table.schema, lambda columns: _scanned(table, columns))
    return ArrowSource(id(table), lambda: table.schema, lambda columns: _selected(table, columns), once=table)


def _check_files(data: Any) -> None:
    """Refuse files in which one row could fail to be read as what the schema says. Looks at schemas, at no row."""
    for part in getattr(data, "children", ()):
        _check_files(part)
    if type(getattr(data, "format", None)).__name__ in _TEXTS:
        raise InvalidParameter(
            "a data set of CSV or JSON files takes its types from the first rows, and fails at a row that has others: "
            "hand over the path of a CSV file, or write the rows as Parquet"
        )
    for part in data.get_fragments():
        for one in part.physical_schema:
            if one.name in data.schema.names and one.type != data.schema.field(one.name).type:
                raise InvalidParameter("the files of a data set differ in types of columns: make them alike")


def arrow_columns(schema: Any) -> dict[str, SourceColumn]:
    """Return the columns of a stream that can be read, in their safe types."""
    from discreet.query.engines.tables import sql_types

    declared = {one.name: str(one.type) for one in schema}
    safe = sql_types(arrow_schema(schema.empty_table()))
    return {name: SourceColumn(declared[name], sql_type, sql_type) for name, sql_type in safe.items()}


def safe_stream(batches: Any) -> Any:
    """Return the same batches in their safe types, one after the other."""
    import pyarrow as pa

    schema = arrow_schema(batches.schema.empty_table())

    def made() -> Iterator[Any]:
        for batch in batches:
            safe = arrow_table(batch)
            if safe.schema != schema:
                raise AnswerFailed
            yield from safe.to_batches()

    return pa.RecordBatchReader.from_batches(schema, made())


def _scanned(table: Any, columns: tuple[str, ...]) -> Any:
    return table.scanner(columns=list(columns)).to_reader()


def _selected(reader: Any, columns: tuple[str, ...]) -> Any:
    import pyarrow as pa

    schema = pa.schema([reader.schema.field(name) for name in columns])
    return pa.RecordBatchReader.from_batches(schema, (batch.select(list(columns)) for batch in reader))


def _lazy_schema(frame: Any) -> Any:
    import polars as pl

    return pl.DataFrame(schema=frame.collect_schema()).to_arrow().schema


def _lazy_batches(frame: Any, columns: tuple[str, ...]) -> Any:
    """Evaluate a lazy frame once, with the columns that are asked for."""
    return frame.select(list(columns)).collect(engine="streaming").to_arrow().to_reader()


def _spent() -> Refused:
    return Refused(
        "this stream was read before, and can be read once only",
        reason="its first rows are gone: what is left, or nothing, would be taken for the table",
        way_out="make the stream again, and open another session on it; or hand over a table or a data set",
    )


def _unreadable() -> Refused:
    return Refused(
        "the columns of a stream cannot be told",
        reason="what its library says about it may hold values, and is not repeated",
        way_out="look at its schema yourself; DISCREET_CUSTODIAN_DEBUG=1 shows the custodian what was said",
    )
