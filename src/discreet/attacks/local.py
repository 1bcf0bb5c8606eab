"""Where the lab finds its tables: on this machine, in memory or in files. It opens nothing on a network."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, final

from discreet.errors import InvalidParameter, Refused
from discreet.query.engines.cage import Sandbox, default_threads
from discreet.query.engines.tables import HeldTable, hold, read_in_binary
from discreet.query.engines.writing import quote

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Lab", "laboratory", "text_of"]

T = TypeVar("T")

_MEMORY = 4 * 2**30  # Bytes; beyond them the engine works on disk.


@final
@dataclass(frozen=True, slots=True)
class Lab:
    """A caged engine with some tables, each under a name of ours."""

    connection: Any
    relations: Mapping[str, str]  # what a SELECT reads from, by the name that the caller gave
    columns: Mapping[str, Mapping[str, str]]  # of each table: the types of its columns

    def column(self, table: str, name: str) -> str:
        """Return a column for use in a statement, or refuse one that is not there."""
        if name not in self.columns[table]:
            raise InvalidParameter(f"there is no column {name!r}; there are {', '.join(self.columns[table])}")
        return quote(name)

    def condition(self, table: str, text: str) -> str:
        """Check a condition that the custodian wrote, and return it as a truth value that is never NULL."""
        written = f"(({text}\n) IS TRUE)"
        self.select(f"SELECT {written} AS fulfilled FROM {self.relations[table]} LIMIT 0")
        return written

    def select(self, statement: str) -> pa.Table:
        """Run a statement of ours; what the engine says about a failure is not repeated, since it may carry values."""
        return self._done(lambda: self.connection.sql(self._single(statement)).to_arrow_table())

    def execute(self, statement: str) -> None:
        """Do what a statement of ours says; a failure is told as by `select`."""
        self._done(lambda: self.connection.execute(self._single(statement)))

    def _single(self, statement: str) -> str:
        """Refuse a condition that ends our statement and begins another, which could write over the table."""
        if len(self.connection.extract_statements(statement)) != 1:
            raise InvalidParameter("a condition is one expression over columns of the table, with no ; after it")
        return statement

    def _done(self, work: Callable[[], T]) -> T:
        import duckdb

        try:
            return work()
        except duckdb.Error:
            pass
        raise InvalidParameter(
            "a condition cannot be evaluated: write one over columns of the table, as in SQL, which fits their types"
        )


@contextmanager
def laboratory(tables: Mapping[str, Any]) -> Iterator[Lab]:
    """Open tables of this machine: frames, Arrow tables, Parquet and CSV files, DuckDB databases and connections."""
    held = {name: _hold(name, table) for name, table in tables.items()}
    paths = [path for table in held.values() for path in table.paths]
    cage = Sandbox(paths, memory=_MEMORY, threads=default_threads())
    try:
        yield _prepared(cage.connection(), held)
    finally:
        cage.close()


def text_of(name: str) -> str:
    """Write a column as text, so that a date and its spelling are the same."""
    return f"CAST({name} AS VARCHAR)"


def _prepared(connection: Any, held: Mapping[str, HeldTable]) -> Lab:
    relations, columns = {}, {}
    for place, (name, table) in enumerate(held.items()):
        ours = f"lab_{place}"
        table.prepare(connection, ours)
        columns[name] = _columns(connection, table.relation(ours), name)
        relations[name] = read_in_binary(table.relation(ours), columns[name])
    return Lab(connection, relations, columns)


def _columns(connection: Any, relation: str, name: str) -> dict[str, str]:
    import duckdb

    try:
        return {row[0]: row[1] for row in connection.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()}
    except duckdb.Error:
        pass
    raise InvalidParameter(
        f"the file cannot be read as what it is called; a DuckDB database must have a table {name!r}"
    )


def _hold(name: str, table: Any) -> HeldTable:
    if isinstance(table, (str, Path)) and _remote(str(table)):
        raise _elsewhere()
    if isinstance(table, (list, tuple)) and any(_remote(str(part)) for part in table):
        raise _elsewhere()
    if type(table).__name__ == "DuckDBPyConnection":
        _check_connection(table)
    return hold(name, table)


def _remote(path: str) -> bool:
    """Whether a path names another machine; Path turns the second slash of an address into one."""
    return ":/" in path[2:] or path.startswith(("\\\\", "//"))


def _check_connection(connection: Any) -> None:
    kind, path = connection.execute(
        "SELECT type, path FROM duckdb_databases() WHERE database_name = current_database()"
    ).fetchone()
    if kind != "duckdb" or (path is not None and _remote(path)):
        raise _elsewhere()


def _elsewhere() -> Refused:
    return Refused(
        "the attack lab opens no table on another machine",
        reason="attacks are run on your own data, and their results are about real people",
        way_out="copy the table to a file on this machine, and name that file",
    )
