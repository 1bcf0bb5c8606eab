"""Tables as people have them, frames, files and databases, and whether they still are what a session was opened on."""

from __future__ import annotations

import glob
import os
import threading
import time
from collections.abc import Callable, Container, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, TypeAlias, final

from discreet.errors import AnswerFailed, InvalidParameter, Refused
from discreet.frames.csv_rows import CsvRows
from discreet.frames.tables import arrow_schema, arrow_table, column_names, is_table
from discreet.query.engines.clamped_columns import kind_of
from discreet.query.engines.sql_writer import binary, path_text, quote
from discreet.query.engines.streamed_tables import Streamed
from discreet.query.policy import PublicTable
from discreet.query.sources.protocol import DataSource, is_source
from discreet.schema.columns import Kind
from discreet.schema.csv_file import CsvFile, csv, fields_of, goes_on, header_of

__all__ = [
    "FILES",
    "NO_TABLE",
    "ColumnLookup",
    "Csv",
    "Database",
    "HeldTable",
    "InMemory",
    "OpenedTable",
    "Parquet",
    "Schemas",
    "changed",
    "check_names",
    "check_public",
    "hold",
    "hold_all",
    "kinds_of",
    "read_in_binary",
    "sql_types",
]

# --- tables ---
# Tables as people have them: frames, Arrow tables, Parquet and CSV files, DuckDB databases and connections.
#
# What a table offers is known from its schema. Rows are read later, once the answer is paid for.


Describe: TypeAlias = Callable[["HeldTable"], dict[str, str]]
Schemas: TypeAlias = frozenset[Hashable]
NO_TABLE = "a DuckDB database must have a table (not a view, which may mix rows) of the name that it is given"
_WHOLE = {"int8": "TINYINT", "int16": "SMALLINT", "int32": "INTEGER", "int64": "BIGINT"}
_SQL_TYPES = {
    **_WHOLE,
    **{f"u{kind}": f"U{sql_type}" for kind, sql_type in _WHOLE.items()},
    "bool": "BOOLEAN",
    "float": "FLOAT",
    "double": "DOUBLE",
    "date32[day]": "DATE",
    "timestamp[us]": "TIMESTAMP",
    "timestamp[ns]": "TIMESTAMP_NS",
}
_FORMS = (
    "a pandas or polars DataFrame, an Arrow table, a path of Parquet or CSV files, dp.csv(path), a DuckDB database or "
    "connection"
)


class HeldTable(Protocol):
    """A table that the custodian handed over."""

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that may be read for it, and no others."""

    @property
    def types(self) -> Mapping[str, str] | None:
        """The types of its columns, if they are known without asking the engine."""

    @property
    def inferred(self) -> bool:
        """Whether the types follow from the rows, as those of pandas do: one missing value makes real numbers."""

    def prepare(self, connection: Any, name: str) -> None:
        """Make the table known to a connection under a name of ours, before the cage is locked or after."""

    def relation(self, name: str) -> str:
        """Return what a SELECT reads from."""

    def is_table(self, connection: Any, name: str) -> bool:
        """Whether it is there and is a table; a view is none, since it may mix the rows of several people."""

    def columns_now(self, connection: Any, name: str) -> Schemas:
        """Return the columns at this moment, as every file has them: one schema, if they agree. Reads no row."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class InMemory:
    """Columns in memory, converted when they are read for the first time."""

    types: Mapping[str, str]
    load: Callable[[], Any]
    schema: Callable[[], Mapping[str, str]] | None = None  # of what may still change before it is converted
    paths: tuple[str, ...] = ()
    inferred: bool = False
    _loaded: list[Any] = field(default_factory=list)
    _lock: Any = field(default_factory=threading.Lock)

    def prepare(self, connection: Any, name: str) -> None:
        with self._lock:
            if not self._loaded:
                self._loaded.append(self.converted())
        connection.register(name, self._loaded[0])

    def converted(self) -> Any:
        """Convert the columns, unless they are not those of the opening any more."""
        table = self.load()
        if sql_types(table.schema) != dict(self.types):
            raise AnswerFailed
        return table

    def relation(self, name: str) -> str:
        return name

    def is_table(self, connection: Any, name: str) -> bool:
        return True

    def columns_now(self, connection: Any, name: str) -> Schemas:
        types = self.types if self._loaded or self.schema is None else self.schema()
        return frozenset([frozenset(types.items())])


@final
@dataclass(frozen=True, slots=True)
class Parquet:
    """Parquet files of one schema."""

    paths: tuple[str, ...]
    types: None = None
    inferred: bool = False

    def prepare(self, connection: Any, name: str) -> None:
        """Nothing to do: files are read where they are."""

    def relation(self, name: str) -> str:
        files = ", ".join(path_text(path) for path in self.paths)
        return f"read_parquet([{files}], hive_partitioning = false)"

    def is_table(self, connection: Any, name: str) -> bool:
        return True

    def columns_now(self, connection: Any, name: str) -> Schemas:
        files = ", ".join(path_text(path) for path in self.paths)
        rows = connection.execute(
            f"SELECT file_name, name, duckdb_type FROM parquet_schema([{files}]) WHERE type IS NOT NULL"
        ).fetchall()
        by_file: dict[str, set[tuple[str, str]]] = {}
        for file, column, sql_type in rows:
            by_file.setdefault(file, set()).add((column, sql_type))
        return frozenset(frozenset(columns) for columns in by_file.values())


@final
@dataclass(frozen=True, slots=True)
class Csv:
    """A CSV file with a header. Every column is text; no line can fail to be read, at worst it is left out."""

    file: CsvFile
    names: tuple[str, ...]
    inferred: bool = False

    @property
    def paths(self) -> tuple[str, ...]:
        return (self.file.path,)

    @property
    def types(self) -> Mapping[str, str]:
        return dict.fromkeys(self.names, "VARCHAR")

    def prepare(self, connection: Any, name: str) -> None:
        """Let a connection read the lines; it may do so several times, and anew for every question."""
        file = self.file
        rows = CsvRows(
            file.path,
            len(self.names),
            file.delimiter.encode(),
            file.quote.encode(),
            file.encoding,
            divide=fields_of,
            is_open=goes_on,
            line_breaks=file.line_breaks,
        )
        connection.register(name, rows)

    def relation(self, name: str) -> str:
        columns = (f"nullif(f[{place}], '') AS {quote(column)}" for place, column in enumerate(self.names, 1))
        return f"(SELECT {', '.join(columns)} FROM {name})"

    def is_table(self, connection: Any, name: str) -> bool:
        return True

    def columns_now(self, connection: Any, name: str) -> Schemas:
        """Return the header, in its order: lines are read by position."""
        return frozenset([header_of(self.file)])


@final
@dataclass(frozen=True, slots=True)
class Database:
    """A base table in a DuckDB database file, which is opened for reading only."""

    file: str
    table: str
    types: None = None
    inferred: bool = False

    @property
    def paths(self) -> tuple[str, ...]:
        return (self.file, f"{self.file}.wal")

    def prepare(self, connection: Any, name: str) -> None:
        connection.execute(f"ATTACH IF NOT EXISTS {path_text(self.file)} AS {name} (READ_ONLY)")

    def relation(self, name: str) -> str:
        return f"{name}.main.{quote(self.table)}"

    def is_table(self, connection: Any, name: str) -> bool:
        return _is_base_table(connection, name, self.table)

    def columns_now(self, connection: Any, name: str) -> Schemas:
        self.prepare(connection, name)
        if not self.is_table(connection, name):
            return frozenset([NO_TABLE])
        rows = connection.execute(f"DESCRIBE SELECT * FROM {self.relation(name)}").fetchall()
        return frozenset([tuple((column, sql_type) for column, sql_type, *_ in rows)])


# Tables in files. A worker opens them by itself, so they must be values that can be handed to one (`messages.py`).
FILES = (Csv, Database, Parquet)


def hold_all(tables: Mapping[str, Any]) -> dict[str, HeldTable]:
    """Take tables in hand. A public one of a source is read here and now: what is known of it follows from its rows."""
    held: dict[str, HeldTable] = {}
    for name, table in tables.items():
        is_public = isinstance(table, PublicTable)
        one = hold(name, table.table if is_public else table)
        held[name] = (
            _read_whole(name, one) if is_public and isinstance(one, Streamed) and one.source is not None else one
        )
    return held


def hold(name: str, table: Any) -> HeldTable:
    """Take a table in hand; looks at its type and its schema, at no row."""
    if isinstance(table, (InMemory, Streamed, *FILES)):
        return table
    source = _source(name, table)
    if source is not None:
        columns = source.describe()
        check_names(list(columns), what=f"columns of table {name!r}")
        return Streamed(dict(columns), source)
    if isinstance(table, CsvFile):
        return _csv(name, table)
    if isinstance(table, (str, Path)):
        return _file(name, table)
    if isinstance(table, Sequence) and table and all(isinstance(part, (str, Path)) for part in table):
        return Parquet(tuple(path for part in table for path in _existing(part)))
    if is_table(table):
        return _frame(name, table)
    if any(kind.__name__ == "DuckDBPyConnection" for kind in type(table).__mro__):
        return _connection(name, table)
    raise InvalidParameter(f"a table must be {_FORMS}; not {type(table).__name__}")


def _source(name: str, table: Any) -> DataSource | None:
    if is_source(table):
        return table
    from discreet.query.sources.known_sources import source_of

    return source_of(name, table)


def _read_whole(name: str, held: Streamed) -> InMemory:
    import duckdb

    try:
        with duckdb.connect(":memory:") as connection:
            held.prepare(connection, "whole")
            table = connection.sql("SELECT * FROM whole").to_arrow_table()
    except AnswerFailed:
        raise InvalidParameter(f"public table {name!r} cannot be read from its source") from None
    return InMemory(sql_types(table.schema), lambda: table)


def sql_types(schema: Any) -> dict[str, str]:
    """Return the names of the columns and the types that they have in the engine."""
    return {field.name: _sql_type(field.type) for field in schema}


def _sql_type(kind: Any) -> str:
    import pyarrow as pa

    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision},{kind.scale})"
    return _SQL_TYPES.get(str(kind), "VARCHAR")


def check_names(names: Sequence[str], *, what: str) -> None:
    """Refuse names that are the same, or differ in case only: in SQL that is the same. None has a NUL in DuckDB."""
    if any("\0" in name for name in names):
        raise InvalidParameter(f"one of the {what} has a NUL character in its name: rename it")
    if len({name.casefold() for name in names}) != len(names):
        raise InvalidParameter(f"two {what} have the same name, up to upper and lower case: rename one")


def read_in_binary(relation: str, types: Mapping[str, str]) -> str:
    """Return what a SELECT reads from, with every text in binary collation, for who looks at columns as they are."""
    columns = [
        f"{binary(quote(name)) if sql_type == 'VARCHAR' else quote(name)} AS {quote(name)}"
        for name, sql_type in types.items()
    ]
    return f"(SELECT {', '.join(columns)} FROM {relation})"


def check_public(table: str, public: Container[str]) -> None:
    """Refuse to look into a private table."""
    if table not in public:
        raise InvalidParameter("only public tables are looked into")


def kinds_of(table: str, types: Mapping[str, str]) -> dict[str, Kind]:
    """Return the columns of a table that questions may name, and their kinds."""
    check_names(list(types), what=f"columns of table {table!r}")
    kinds = {name: kind_of(sql_type) for name, sql_type in types.items()}
    return {name: kind for name, kind in kinds.items() if kind is not None}


def _file(name: str, path: str | Path) -> HeldTable:
    plain = Path(path)
    endings = [ending.lower() for ending in plain.suffixes]
    ending = endings[-1] if endings else ""
    if ending == ".gz" and len(endings) > 1:
        ending = endings[-2]
    if ending in (".parquet", ".pq"):
        return Parquet(_existing(path))
    if ending in (".csv", ".tsv"):
        return _csv(name, csv(path))
    if ending in (".duckdb", ".ddb", ".db"):
        (file,) = _one(path)
        return Database(file, name)
    raise InvalidParameter(
        "a path must end in .parquet, .csv, .tsv (or .gz of these) or .duckdb; say dp.csv(path) for a CSV file of "
        "another name"
    )


def _csv(name: str, file: CsvFile) -> HeldTable:
    (path,) = _one(file.path)
    file = replace(file, path=path)
    names = header_of(file)
    check_names(names, what=f"columns of table {name!r}")
    return Csv(file, names)


def _one(path: str | Path) -> tuple[str]:
    files = _existing(path)
    if len(files) != 1:
        raise InvalidParameter("several files together must be Parquet files")
    return (files[0],)


def _existing(path: str | Path) -> tuple[str, ...]:
    """Return the absolute paths of a file or of all that a pattern matches."""
    found = [str(path)] if Path(path).is_file() else sorted(glob.glob(str(path), recursive=True))
    files = tuple(str(Path(file).resolve()) for file in found if Path(file).is_file())
    if not files:
        raise InvalidParameter(f"there is no file {str(path)!r}")
    if any(mark in file for file in files for mark in "*?[\0"):
        raise InvalidParameter("the path of a file must not contain *, ? or [")
    return files


def _frame(name: str, frame: Any) -> HeldTable:
    check_names(list(map(str, column_names(frame) or ())), what=f"columns of table {name!r}")
    inferred = type(frame).__module__.partition(".")[0] == "pandas"

    def schema() -> dict[str, str]:
        return sql_types(arrow_schema(frame))

    return InMemory(schema(), lambda: arrow_table(frame), schema, inferred=inferred)


def _connection(name: str, connection: Any) -> HeldTable:
    """Read a base table of somebody else's connection, through a cursor of our own."""
    cursor = connection.cursor()
    (database,) = cursor.execute("SELECT current_database()").fetchone()
    if not _is_base_table(cursor, database, name):
        raise InvalidParameter(NO_TABLE)
    rows = f"SELECT * FROM {quote(name)}"

    def schema() -> dict[str, str]:
        return sql_types(arrow_schema(cursor.sql(f"{rows} LIMIT 0").to_arrow_table()))

    return InMemory(schema(), lambda: arrow_table(cursor.sql(rows).to_arrow_table()), schema)


def _is_base_table(connection: Any, database: str, table: str) -> bool:
    found = connection.execute(
        "SELECT table_type FROM information_schema.tables "
        "WHERE table_catalog = $database AND table_schema = 'main' AND table_name = $name",
        {"database": database, "name": table},
    ).fetchall()
    return ("BASE TABLE",) in found


# --- unchanged: Whether tables still are what a session was opened on. ---
#
# What is declared of a private table is about its columns, so these are looked at again before and after every read;
# what
# is known of a public table was read from its rows, so its files must be the very same. Whether a check fails depends
# on
# names, types and public files only, never on a private row.


_Identity: TypeAlias = tuple[tuple[int, ...] | None, ...]
_SETTLED = 2 * 10**9  # Nanoseconds. A file that was written later than this before may change and keep its time.


class ColumnLookup(Protocol):
    """What is asked of a table here."""

    @property
    def paths(self) -> tuple[str, ...]:
        """Its files."""

    def columns_now(self, connection: Any, name: str) -> Schemas:
        """Return the columns at this moment, as every file has them."""


@final
class OpenedTable:
    """A table as it was when a session was opened."""

    def __init__(self, held: ColumnLookup, name: str, *, public: bool) -> None:
        self._held, self._name, self._public = held, name, public
        self._known: Schemas = frozenset()
        self._files: _Identity = ()
        self._looked_at: _Identity | None = None  # files that were found to have the known columns

    def begin(self, connection: Any) -> int:
        """Remember files and columns, and return how many schemas the files have.

        Files first: whatever changes from now on is a change.
        """
        self._files = _identity(self._held.paths)
        self._known = self._held.columns_now(connection, self._name)
        return len(self._known)

    def is_unchanged(self, connection: Any) -> bool:
        """Whether columns are what they were and, of a public table, files are, too."""
        files = _identity(self._held.paths)
        if self._public and files != self._files:
            return False
        if files and files == self._looked_at:
            return True
        looked = time.time_ns()
        if self._columns(connection) != self._known:
            return False
        if files and all(one is not None and max(one[-2:]) < looked - _SETTLED for one in files):
            self._looked_at = files
        return True

    def _columns(self, connection: Any) -> Schemas:
        """Return the columns as they are; none if the table cannot be read any more."""
        import duckdb

        try:
            return self._held.columns_now(connection, self._name)
        except (duckdb.Error, OSError, ValueError, AnswerFailed):
            return frozenset()


def changed(private: Iterable[str], public: Iterable[str]) -> Refused:
    """Say which tables are not those of the opening."""
    columns, files = (", ".join(map(repr, names)) for names in (private, public))
    if columns:
        return Refused(
            f"the columns of table {columns} changed since this session was opened",
            reason="what was declared is about the columns as they were, and nothing may be read by another rule",
            way_out="open a new session on the table as it is now",
        )
    return Refused(
        f"public table {files} changed since this session was opened",
        reason="what is known of it, such as which columns have no duplicates, was read at the opening",
        way_out="open a new session",
    )


def _identity(paths: Iterable[str]) -> _Identity:
    return tuple(_stat(path) for path in paths)


def _stat(path: str) -> tuple[int, ...] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
