"""PostgreSQL, read through ADBC: one transaction is one state of all tables of a question.

What the server does is as little as can be: it leaves out columns and rows, and writes types that every library reads
alike. Texts of every type are cast to `text` before anything is compared, and compared byte by byte; decimals are
written as texts, which are read in the cage. Nothing is computed there but exact sums of whole numbers, where rows are
the units: an operator that fails for one row, or means something else, would be an answer about that row.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, ClassVar, final
from urllib.parse import urlsplit

from discreet.errors import InvalidParameter, Refused
from discreet.query.engine import Deadline
from discreet.query.sources.protocol import (
    ColumnCompares,
    DataSource,
    NotNull,
    RowFilter,
    ScanRequest,
    ServerSum,
    SourceColumn,
    SumRequest,
    TextEquals,
    need,
    silent,
    unreachable,
)

__all__ = ["CAST_TO_TEXT", "PostgresSource", "connected", "postgres", "quoted", "written_filter"]

_SETUP = 60.0  # Seconds for looking at a schema.
_PATIENCE = (1, 5, 20, 60)  # Seconds for connecting: the most of these that are left.
_BATCH = 4 << 20  # bytes
_TABLES = ("r", "p")  # ordinary and partitioned ones
# Types by their names in pg_catalog; what is not here is not offered. Each is written so that all values of it arrive.
_PLAIN = {"bool": "BOOLEAN", "int2": "SMALLINT", "int4": "INTEGER", "int8": "BIGINT"}
_PLAIN |= {"float4": "FLOAT", "float8": "DOUBLE"}
CAST_TO_TEXT = ("text", "varchar", "bpchar", "citext", "name", "uuid")
_DATES = ("DATE '0001-01-01'", "DATE '9999-12-31'")
_TIMES = ("TIMESTAMP '0001-01-01 00:00:00'", "TIMESTAMP '9999-12-31 23:59:59.999999'")
_DECIMAL = 38  # digits
_NARROW = 1 << 22  # What a row may add where sums are of 64 bits: below 2^62 for 2^40 rows.
_INT4 = 1 << 31
# What a session sets before it reads: names mean what they mean in the catalogue, and texts what they say.
_SETTINGS = {
    "search_path": "",
    "standard_conforming_strings": "on",
    "DateStyle": "ISO, YMD",
    "TimeZone": "UTC",
    "extra_float_digits": "1",
    "application_name": "discreet",
    "client_min_messages": "error",
}
_COLUMNS = """
SELECT c.relkind::pg_catalog.text, (c.relrowsecurity)::pg_catalog.int4, a.attname::pg_catalog.text,
       b.typname::pg_catalog.text, b.typtype::pg_catalog.text, n.nspname::pg_catalog.text,
       (CASE WHEN t.typtype = 'd' THEN t.typtypmod ELSE a.atttypmod END)::pg_catalog.int4,
       pg_catalog.format_type(a.atttypid, a.atttypmod)::pg_catalog.text,
       pg_catalog.has_column_privilege(c.oid, a.attnum, 'SELECT')::pg_catalog.int4,
       pg_catalog.current_setting('server_encoding')::pg_catalog.text
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace s ON s.oid = c.relnamespace
JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
JOIN pg_catalog.pg_type b ON b.oid = CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.oid END
JOIN pg_catalog.pg_namespace n ON n.oid = b.typnamespace
WHERE s.nspname = {schema} AND c.relname = {table}
ORDER BY a.attnum
"""


@final
@dataclass(frozen=True, slots=True)
class PostgresSource:
    """A table in PostgreSQL; `postgres` makes one. Whoever prints it sees no password."""

    schema: str
    table: str
    view: bool = False
    place: str = ""  # host, port and database, without who and how
    _dsn: str = field(default="", repr=False)
    adds_up: ClassVar[bool] = True

    @property
    def identity(self) -> Hashable:
        return ("postgresql", self.place, self.schema, self.table)

    @property
    def server(self) -> Hashable:
        return ("postgresql", self._dsn)

    def describe(self) -> Mapping[str, SourceColumn]:
        """Return the columns that this user may read, of types on the list. Reads no row."""
        with connected(self._dsn, Deadline.after(_SETUP)) as connection:
            return PostgresSnapshot(connection).describe(self)

    @contextmanager
    def snapshot(self, tables: Sequence[DataSource], deadline: Deadline) -> Iterator[PostgresSnapshot]:
        """Open a transaction that sees one state, writes nothing, and ends at the deadline.

        Tables are locked first, against changes of their columns only: what sees a table rewritten behind its back
        sees it empty. Who may read some columns only may not lock, and reads without.
        """
        with connected(self._dsn, deadline) as connection:
            with silent(), connection.cursor() as cursor:
                _lock([_name(one) for one in tables if isinstance(one, PostgresSource)], cursor, deadline)
            yield PostgresSnapshot(connection)


@contextmanager
def connected(dsn: str, deadline: Deadline) -> Iterator[Any]:
    """Connect, set what names and texts mean, and begin to read; the transaction is rolled back in the end."""
    need("adbc_driver_manager", "adbc_driver_postgresql", extra="postgres")
    with silent(partial(unreachable, "the PostgreSQL server")):
        connection = _connection(dsn, deadline)
    try:
        yield connection
    finally:
        with suppress(Exception):
            connection.close()


class _LastingDatabase:
    """Stands for a database whose connections come and go."""

    def close(self) -> None:
        """Leave it: it is for the next connection."""


@lru_cache(maxsize=64)
def _database(dsn: str) -> Any:
    """Return what the driver knows of a server: its types, which it takes longer to look up than to connect.

    No connection is held by it. Types that are made later are none that is read.
    """
    import adbc_driver_postgresql

    return adbc_driver_postgresql.connect(dsn)


def _connection(dsn: str, deadline: Deadline) -> Any:
    from adbc_driver_manager import AdbcConnection, dbapi

    seconds = max(limit for limit in _PATIENCE if limit <= max(deadline.left, 1))
    database = _database(_with(dsn, connect_timeout=str(seconds)))
    lasting: Any = _LastingDatabase()
    connection = dbapi.Connection(lasting, AdbcConnection(database), autocommit=True)
    try:
        with connection.cursor() as cursor:
            _begin(cursor, deadline)
    except BaseException:
        connection.close()
        raise
    return connection


def _begin(cursor: Any, deadline: Deadline) -> None:
    """Begin to read one state, with settings of this transaction: a pool may give the next one to somebody else."""
    limits = {"statement_timeout": deadline.left, "lock_timeout": min(deadline.left, _SETUP)}
    settings = _SETTINGS | {name: str(max(1, int(1000 * left))) for name, left in limits.items()}
    local = (f"SET LOCAL {name} = {_text(to)}" for name, to in settings.items())
    cursor.executescript("; ".join(["BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY", *local]))


def _lock(tables: Sequence[str], cursor: Any, deadline: Deadline) -> None:
    from adbc_driver_manager.dbapi import Error

    try:
        cursor.execute(f"LOCK TABLE {', '.join(tables)} IN ACCESS SHARE MODE")
    except Error:
        cursor.execute("ROLLBACK")
        _begin(cursor, deadline)


def _with(dsn: str, **options: str) -> str:
    if any(f"{name}=" in dsn for name in options):
        return dsn
    return dsn + ("&" if "?" in dsn else "?") + "&".join(f"{name}={value}" for name, value in options.items())


@final
class PostgresSnapshot:
    """One transaction; tables are streamed one after the other."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._cursor: Any = None
        self._known: dict[DataSource, Mapping[str, SourceColumn]] = {}  # In one state columns are what they are.

    def describe(self, source: DataSource) -> Mapping[str, SourceColumn]:
        if source not in self._known:
            self._known[source] = self._look_up(source)
        return self._known[source]

    def _look_up(self, source: DataSource) -> Mapping[str, SourceColumn]:
        assert isinstance(source, PostgresSource)
        with silent(partial(unreachable, "the PostgreSQL server")), self._connection.cursor() as cursor:
            cursor.execute(_COLUMNS.format(schema=_text(source.schema), table=_text(source.table)))
            found = cursor.fetchall()
        return _columns(source, found)

    def stream(self, source: DataSource, request: ScanRequest) -> Any:
        assert isinstance(source, PostgresSource)
        return self._read(written_scan(source, request, self.describe(source)))

    def sums(self, source: DataSource, request: SumRequest) -> Any:
        assert isinstance(source, PostgresSource)
        return self._read(written_sums(source, request, self.describe(source)))

    def _read(self, statement: str) -> Any:
        self._cursor = self._connection.cursor()
        self._cursor.adbc_statement.set_options(**{"adbc.postgresql.batch_size_hint_bytes": str(_BATCH)})
        self._cursor.execute(statement)
        return self._cursor.fetch_record_batch()

    def cancel(self) -> None:
        with suppress(Exception):
            if self._cursor is not None:
                self._cursor.adbc_cancel()  # PQcancel: the server ends the statement, as by pg_cancel_backend.


def written_scan(source: PostgresSource, request: ScanRequest, columns: Mapping[str, SourceColumn]) -> str:
    """Write the one statement that reads rows: columns as they are, or as texts, and what is left out."""
    listed = ", ".join(f"{_value(name, columns[name])} AS {quoted(name)}" for name in request.columns)
    where = " AND ".join(written_filter(one, columns) for one in request.filters)
    return f"SELECT {listed} FROM {_name(source)}" + (f" WHERE {where}" if where else "")


def written_sums(source: PostgresSource, request: SumRequest, columns: Mapping[str, SourceColumn]) -> str:
    """Write the one statement that adds up: by values as they are stored, of exactly the rows that pass the filters."""
    keys = [_key(name, columns[name]) for name in request.columns]
    inner = [f"{key} AS k{place}" for place, key in enumerate(keys)]
    inner += [f"{_sum(one, columns)} AS s{place}" for place, one in enumerate(request.sums)]
    where = " AND ".join(_whole_filter(one, columns) for one in request.filters)
    grouped = f" GROUP BY {', '.join(map(str, range(1, len(keys) + 1)))}" if keys else ""
    listed = [f"k{place} AS {quoted(name)}" for place, name in enumerate(request.columns)]
    listed += [
        f"{half} AS {quoted(request.names[2 * place + side])}"
        for place, one in enumerate(request.sums)
        for side, half in enumerate(_halves(f"s{place}", one))
    ]
    rows = f"SELECT {', '.join(inner)} FROM {_name(source)}{f' WHERE {where}' if where else ''}{grouped}"
    return f"SELECT {', '.join(listed)} FROM ({rows}) AS added"


def _key(name: str, column: SourceColumn) -> str:
    value = _value(name, column)
    return f'({value} COLLATE pg_catalog."C")' if column.arrives == "VARCHAR" else value


def _sum(one: ServerSum, columns: Mapping[str, SourceColumn]) -> str:
    """Write a sum: `sum` of 64 bits is exact there, of 32 bits it is one of 64, which no number of rows must exceed."""
    if one.of == "rows":
        return "pg_catalog.count(*)"
    value, arrives = quoted(one.column), columns[one.column].arrives
    if one.of == "values":
        return f"pg_catalog.count({_value(one.column, columns[one.column]) if arrives == 'DATE' else value})"
    level = _level(value, one, narrow=arrives != "BIGINT" and one.most < _NARROW)
    added = f"{level} * {level}" if one.of == "squares" else level
    return f"pg_catalog.sum({added})"


def _level(value: str, one: ServerSum, *, narrow: bool) -> str:
    """Write how far a number is above `low`, moved to its bounds first: nothing of it can overflow.

    No branch takes NULL, so it stays NULL and is not added; LEAST and GREATEST would skip it, and return a bound.
    """
    kind = "int4" if narrow and one.low >= -_INT4 and one.high < _INT4 else "int8"
    low, width = (f"CAST({end:d} AS pg_catalog.{kind})" for end in (one.low, one.high - one.low))
    inside = f"WHEN {value} BETWEEN ({one.low:d}) AND ({one.high:d}) THEN CAST({value} AS pg_catalog.{kind}) - {low}"
    return f"(CASE {inside} WHEN {value} > ({one.high:d}) THEN {width} WHEN {value} < ({one.low:d}) THEN 0 END)"


def _halves(value: str, one: ServerSum) -> tuple[str, str]:
    """Write a sum as two numbers of 64 bits. Tables of 2^40 rows and more are none."""
    if one.most < _NARROW >> 10:
        return f"CAST({value} AS pg_catalog.int8)", "CAST(0 AS pg_catalog.int8)"
    whole = f"CAST({value} AS pg_catalog.numeric)"
    return (
        f"CAST(pg_catalog.mod({whole}, {1 << 52}) AS pg_catalog.int8)",
        f"CAST(pg_catalog.div({whole}, {1 << 52}) AS pg_catalog.int8)",
    )


def _whole_filter(one: RowFilter, columns: Mapping[str, SourceColumn]) -> str:
    """Write a filter that decides by itself: days that no date of ours can be are NULL, and pass none."""
    written = written_filter(one, columns)
    if columns[one.column].arrives != "DATE":
        return written
    return f"({quoted(one.column)} BETWEEN {_DATES[0]} AND {_DATES[1]} AND {written})"


def _value(name: str, column: SourceColumn) -> str:
    """Write a column so that whatever is stored arrives: what no date of ours can be is NULL, as in a file."""
    value = quoted(name)
    match column.arrives:
        case "VARCHAR":
            return f"CAST({value} AS pg_catalog.text)"
        case "DATE":
            return f"CASE WHEN {value} BETWEEN {_DATES[0]} AND {_DATES[1]} THEN CAST({value} AS pg_catalog.date) END"
        case "TIMESTAMP":
            time = f"({value} AT TIME ZONE 'UTC')" if "with time zone" in column.declared else value
            time = f"CAST({time} AS pg_catalog.timestamp)"
            return f"CASE WHEN {time} BETWEEN {_TIMES[0]} AND {_TIMES[1]} THEN {time} END"
    return f"CAST({value} AS pg_catalog.{_own_type(column)})"


def _own_type(column: SourceColumn) -> str:
    return next(own for own, ours in _PLAIN.items() if ours == column.arrives)


def written_filter(one: RowFilter, columns: Mapping[str, SourceColumn]) -> str:
    """Write a filter. Collations are overridden here and nowhere else."""
    match one:
        case NotNull(column):
            return f"{quoted(column)} IS NOT NULL"
        case ColumnCompares(column, sign, value):
            written = f"({value:d})" if isinstance(value, int) else f"DATE '{value.isoformat()}'"
            kind = "date" if columns[column].arrives == "DATE" else _own_type(columns[column])
            return f"CAST({quoted(column)} AS pg_catalog.{kind}) {sign} {written}"
        case TextEquals(column, value):
            return f'CAST({quoted(column)} AS pg_catalog.text) COLLATE pg_catalog."C" = {_text(value)}'


def _columns(source: PostgresSource, found: list[tuple[Any, ...]]) -> dict[str, SourceColumn]:
    if not found:
        raise InvalidParameter(
            "the PostgreSQL database has no such table, or none that this user may see: name it as schema.table"
        )
    kind, secured, encoding = found[0][0], bool(found[0][1]), found[0][-1]
    if kind not in _TABLES and not source.view:
        raise InvalidParameter(
            "a view, or a table of another server, may mix the rows of several people: name the table itself, or say "
            "view=True if each of its rows is made of one row of one person"
        )
    if secured and not source.view:
        raise InvalidParameter(
            "this table has row security, whose conditions may look at other rows: let this user bypass it, or say "
            "view=True if whether a row is seen depends on that row alone"
        )
    if encoding != "UTF8":
        raise InvalidParameter("the PostgreSQL database must be in UTF8: in another encoding a row may fail to be read")
    offered = {name: _column(*rest) for _, _, name, *rest, allowed, _ in found if allowed}
    columns = {name: column for name, column in offered.items() if column is not None}
    if not columns:
        raise Refused(
            "this user may read no column of the PostgreSQL table, or none of a type that can be read",
            way_out="`discreet source prepare postgres` writes the grants; types are listed in docs/engines.md",
        )
    return columns


def _column(name: str, kind: str, schema: str, modifier: int, declared: str) -> SourceColumn | None:
    """Say how a type arrives and is read; None for those that are not offered."""
    if kind == "e":  # an enumeration, whatever its name is
        return SourceColumn(declared, "VARCHAR", "VARCHAR")
    if name == "citext" and kind == "b":  # an extension, in any schema
        return SourceColumn(declared, "VARCHAR", "VARCHAR")
    if schema != "pg_catalog" or kind != "b":
        return None
    if name in _PLAIN:
        return SourceColumn(declared, _PLAIN[name], _PLAIN[name])
    if name in CAST_TO_TEXT:
        return SourceColumn(declared, "VARCHAR", "VARCHAR")
    match name:
        case "date":
            return SourceColumn(declared, "DATE", "DATE")
        case "timestamp" | "timestamptz":
            return SourceColumn(declared, "TIMESTAMP", "TIMESTAMP")
        case "numeric":
            return SourceColumn(declared, "VARCHAR", _decimal(modifier))
    return None


def _decimal(modifier: int) -> str:
    """Return the type in which decimals are read: of as many digits as are declared, or doubles."""
    if modifier < 0:
        return "DOUBLE"
    precision, scale = (modifier - 4) >> 16 & 0xFFFF, (modifier - 4) & 0x7FF
    exact = precision <= _DECIMAL and scale <= precision
    return f"DECIMAL({precision},{scale})" if exact else "DOUBLE"


def quoted(name: str) -> str:
    """Write a name so that it is nothing but that name."""
    return '"' + name.replace('"', '""') + '"'


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _name(source: PostgresSource) -> str:
    return f"{quoted(source.schema)}.{quoted(source.table)}"


def postgres(dsn: str, table: str, *, view: bool = False) -> PostgresSource:
    """Name a table in PostgreSQL, which stays where it is.

    Each question reads the columns that it needs in one read-only transaction (REPEATABLE READ), over ADBC, and counts
    them here, as it counts those of a file. The user needs no right but SELECT; `discreet source prepare postgres`
    writes the statements that make one, and `discreet source check` tells what is open besides.

    Args:
        dsn: The address, as in "postgresql://reader@db.example/clinic". Leave the password to a service file, to
            PGPASSWORD or to .pgpass; it is shown nowhere if it is here.
        table: The table, as schema.table or in the schema "public"; quote a name that has a dot, as in SQL.
        view: Whether it may be a view, or have row security: you vouch that each of its rows is made of one row of
            one person, and that no other row decides whether it is there.

    Returns:
        The table, for `Session`; nothing is opened before.

    Raises:
        InvalidParameter: If this is no address, or no name of a table.

    Examples:
        >>> dp.postgres("postgresql://reader:secret@db.example/clinic", "public.visits")
        PostgresSource(schema='public', table='visits', view=False, place='db.example:5432/clinic')
    """
    schema, name = _read_name(table)
    return PostgresSource(schema, name, view, _read_place(dsn), dsn)


_HOST = re.compile(r"(?:[\w.%~-]*(?::\d+)?|\[[0-9A-Fa-f:.]+\](?::\d+)?)(?:,(?:[\w.%~-]*(?::\d+)?))*", re.ASCII)


def _read_place(dsn: object) -> str:
    """Check an address, and return what of it may be shown: it is repeated in no error."""
    wrong = InvalidParameter(
        "an address of PostgreSQL begins with postgresql:// and names a host and a database, as in "
        '"postgresql://reader@db.example/clinic"; in a password /, ?, # and @ are written as %2F, %3F, %23 and %40'
    )
    if not isinstance(dsn, str) or not dsn.isprintable() or len(dsn) > 2000:
        raise wrong
    place = None
    with suppress(ValueError):
        parts = urlsplit(dsn)
        if parts.scheme in ("postgresql", "postgres") and "#" not in dsn:
            host = parts.netloc.rpartition("@")[2] or "local"
            # Of a password with a / or a ? a part would be taken for the host or the database, and be shown.
            if _HOST.fullmatch(host) and "@" not in parts.path and ("@" in parts.netloc or "@" not in parts.query):
                place = f"{host if ':' in host else f'{host}:5432'}{parts.path}"
    if place is None:
        raise wrong
    return place


_PART = r'(?:[A-Za-z_][A-Za-z_0-9$]*|"(?:[^"]|"")+")'


def _read_name(table: object) -> tuple[str, str]:
    """Read schema and name as PostgreSQL would: what is not quoted is in lower case."""
    found = re.fullmatch(rf"(?:({_PART})\.)?({_PART})", table) if isinstance(table, str) else None
    if found is None or "\0" in found[0]:
        raise InvalidParameter(
            'a table of PostgreSQL is named as schema.table; other names are quoted: public."my table"'
        )
    schema, name = (None if part is None else _unquoted(part) for part in found.groups())
    assert name is not None
    return schema or "public", name


def _unquoted(part: str) -> str:
    return part[1:-1].replace('""', '"') if part.startswith('"') else part.lower()
