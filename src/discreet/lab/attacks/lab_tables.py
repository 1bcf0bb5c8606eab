"""Where the lab finds its tables: on this machine, in memory or in files. It opens nothing on a network."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter, Refused
from discreet.query.engines.duckdb_sandbox import Sandbox, default_threads
from discreet.query.engines.sql_writer import quote
from discreet.query.engines.streamed_tables import Streamed
from discreet.query.engines.tables import HeldTable, hold, read_in_binary

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "Codes",
    "ColumnEncoder",
    "Columns",
    "Encoded",
    "Lab",
    "NamedColumns",
    "encoded",
    "encoder",
    "laboratory",
    "numbered",
    "read_columns",
    "taken",
    "text_of",
    "written_columns",
]

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
        f"the file cannot be read in the format of its suffix; a DuckDB database must have a table {name!r}"
    )


def _hold(name: str, table: Any) -> HeldTable:
    if isinstance(table, (str, Path)) and _remote(str(table)):
        raise _elsewhere()
    if isinstance(table, (list, tuple)) and any(_remote(str(part)) for part in table):
        raise _elsewhere()
    if type(table).__name__ == "DuckDBPyConnection":
        _check_connection(table)
    held = hold(name, table)
    if isinstance(held, Streamed):  # A source may be anywhere.
        raise _elsewhere()
    return held


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


# --- codes: Columns as small whole numbers: each value gets a number once, and everything after that is counting. ---


Codes: TypeAlias = NDArray[np.uint32]
NamedColumns: TypeAlias = Sequence[str] | Mapping[str, str]  # names of columns, or names for what is calculated of them


@final
@dataclass(frozen=True, slots=True, eq=False)
class Encoded:
    """A table of codes, column by column. A missing value is a value of its own."""

    names: tuple[str, ...]
    codes: tuple[Codes, ...]
    sizes: tuple[int, ...]  # how many codes a column has
    who: Codes | None  # whose row it is; None if every row is a person
    people: int

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self.codes[0])


def written_columns(lab: Lab, columns: NamedColumns | None, leave_out: str | None) -> dict[str, str]:
    """Return what is written in a statement for each column; all columns of the table if none are named."""
    if isinstance(columns, Mapping):
        for text in columns.values():
            lab.select(f"SELECT ({text}\n) AS value FROM {lab.relations['rows']} LIMIT 0")
        named = {name: f"({text}\n)" for name, text in columns.items()}
    else:
        chosen = [name for name in lab.columns["rows"] if name != leave_out] if columns is None else columns
        named = {name: lab.column("rows", name) for name in chosen}
    if not named:
        raise InvalidParameter("say which columns an attacker may know, such as columns=['zip', 'birth_date', 'sex']")
    return named


def encoded(lab: Lab, columns: Mapping[str, str], person: str | None) -> Encoded:
    """Number the values of each column, in an order of no meaning, and fetch the numbers."""
    written = [*columns.values(), *([] if person is None else [lab.column("rows", person)])]
    values = ", ".join(f"{text} AS value_{i}" for i, text in enumerate(written))
    lab.execute(f"CREATE TEMP TABLE picked AS SELECT {values} FROM {lab.relations['rows']}")
    for i in range(len(written)):
        lab.connection.execute(
            f"CREATE TEMP TABLE dictionary_{i} AS SELECT value_{i} AS value, "
            f"CAST(row_number() OVER () - 1 AS UINTEGER) AS code FROM (SELECT DISTINCT value_{i} FROM picked)"
        )
    codes, sizes = _fetched(lab.connection, len(written)), _sizes(lab.connection, len(written))
    who = None if person is None else codes[-1]
    count = len(columns)
    people = len(codes[0]) if person is None else sizes[-1]
    return Encoded(tuple(columns), tuple(codes[:count]), tuple(sizes[:count]), who, people)


def _fetched(connection: Any, count: int) -> list[Codes]:
    """Join every column with its dictionary; rows are in the same order in all columns, since they come at once."""
    joins = " ".join(
        f"JOIN dictionary_{i} ON picked.value_{i} IS NOT DISTINCT FROM dictionary_{i}.value" for i in range(count)
    )
    listed = ", ".join(f"dictionary_{i}.code AS code_{i}" for i in range(count))
    table = connection.sql(f"SELECT {listed} FROM picked {joins}").to_arrow_table()
    return [table.column(i).to_numpy() for i in range(count)]


def _sizes(connection: Any, count: int) -> list[int]:
    return [int(connection.execute(f"SELECT count(*) FROM dictionary_{i}").fetchone()[0]) for i in range(count)]


# --- encoding ---
# Columns of a table as numbers for a model: numbers as they are, around their mean; all else one column a value.


Columns: TypeAlias = Mapping[str, NDArray[Any]]  # name to values, one for each person
Floats: TypeAlias = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, eq=False)
class ColumnEncoder:
    """How some columns become numbers: of each either its mean and deviation, or the values that it can have."""

    scales: Mapping[str, tuple[float, float]]
    values: Mapping[str, NDArray[Any]]

    def __call__(self, table: Columns) -> Floats:
        """Encode people. A value that was not there when the encoder was made becomes zeros."""
        parts = [_scaled(table[name], *ends)[:, None] for name, ends in self.scales.items()]
        parts += [(_texts(table[name])[:, None] == values).astype(np.float64) for name, values in self.values.items()]
        return np.concatenate(parts, axis=1)


def encoder(table: Columns, names: Sequence[str]) -> ColumnEncoder:
    """Learn how to encode columns of a table. A missing number counts as the mean."""
    unknown = [name for name in names if name not in table]
    if unknown or not names:
        raise InvalidParameter(f"columns must be some of {', '.join(table)}")
    scales, values = {}, {}
    for name in names:
        if np.issubdtype(table[name].dtype, np.number):
            column = table[name].astype(np.float64)
            scales[name] = float(np.nanmean(column)), float(np.nanstd(column)) or 1.0
        else:
            values[name] = np.unique(_texts(table[name]))
    return ColumnEncoder(scales, values)


def numbered(column: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the values of a column in order, and the number of each person's value among them."""
    values, numbers = np.unique(_texts(column), return_inverse=True)
    return values, numbers.astype(np.int64)


def taken(table: Columns, rows: Any) -> Columns:
    """Take some rows of every column."""
    return {name: column[rows] for name, column in table.items()}


def read_columns(table: Any, names: Sequence[str], *, people: int | None = None) -> Columns:
    """Read columns of a table of this machine, of some people drawn at random if `people` says how many.

    Args:
        table: The private table: a file of this machine, a frame or an Arrow table.
        names: The columns to read.
        people: How many rows to draw; all if not said.

    Returns:
        The columns by their names. They are private.

    Raises:
        InvalidParameter: If there is no such column.

    Examples:
        >>> from pathlib import Path
        >>> files = dp.data.copy("visits", Path())
        >>> columns = dp.attacks.read_columns("visits.csv", ["age", "clinic"], people=100)
        >>> list(columns), len(columns["age"])
        (['age', 'clinic'], 100)
    """
    from discreet import noise

    with laboratory({"table": table}) as lab:
        listed = ", ".join(lab.column("table", name) for name in dict.fromkeys(names))
        found = lab.select(f"SELECT {listed} FROM {lab.relations['table']}")
    if people is not None and people < found.num_rows:
        found = found.take(np.sort(noise.permutation(found.num_rows)[:people]))
    return {name: found.column(name).to_numpy() for name in found.column_names}


def _texts(column: NDArray[Any]) -> NDArray[Any]:
    return column.astype(str)


def _scaled(column: NDArray[Any], mean: float, spread: float) -> Floats:
    return np.nan_to_num((column.astype(np.float64) - mean) / spread)
