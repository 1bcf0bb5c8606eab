"""Tables as people have them. Names and shapes may be looked at before payment; values are read by `columns` alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

from discreet.errors import InvalidParameter
from discreet.frames.column import Column, as_column, reader_for
from discreet.frames.tables import column_names, table_columns
from discreet.query import Session
from discreet.query.engine import Deadline, RowEngine
from discreet.query.policy import Resources
from discreet.query.session.engine_choice import open_engine
from discreet.query.session.private_bounds_and_keys import private_table
from discreet.query.session.row_streams import StoredRows
from discreet.schema.csv_file import CsvFile
from discreet.synth.domain.domain import Domain, cells_of

__all__ = ["UnreadTable", "domain_of_session", "file_table", "session_table", "table_of"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class UnreadTable:
    """A table before it is read: the names of its columns, and how to read some of them."""

    names: tuple[str, ...]
    rows: int | None  # known without reading for tables in memory; private under add-remove
    _read: Callable[[Sequence[str], Sequence[str]], Mapping[str, Column]] = field(repr=False)
    of_session: bool = False  # whether a session holds its rows, and whoever asks does not

    def columns(self, names: Sequence[str], *, numbers: Sequence[str] = ()) -> dict[str, Column]:
        """Read some columns, where texts of some are to be taken as numbers. This is private."""
        return dict(self._read(names, numbers))

    def check_has(self, names: Sequence[str]) -> None:
        """Refuse if a column is not there."""
        missing = [name for name in names if name not in self.names]
        if missing:
            raise InvalidParameter(
                f"the table has no column {', '.join(map(repr, missing))}. It has: {', '.join(map(str, self.names))}"
            )


def table_of(data: Any) -> UnreadTable:
    """Take a table of any known kind; no value is looked at."""
    if isinstance(data, UnreadTable):
        return data
    if isinstance(data, (str, Path, CsvFile)):
        return file_table(data if isinstance(data, CsvFile) else Path(data))
    if isinstance(data, Mapping):
        return _of_mapping(data)
    names = column_names(data)
    if names is not None:
        return _of_columns(names, lambda: table_columns(data), len(data))
    raise InvalidParameter(
        f"a table must be of pandas, polars or Arrow, a dictionary of columns, a path of a CSV or Parquet file, or "
        f"dp.csv(path), not {type(data).__name__}"
    )


def _of_mapping(data: Mapping[Any, Any]) -> UnreadTable:
    for column in data.values():
        reader_for(column)  # Refuses what is no column by its kind.
    lengths = {len(column) for column in data.values()}
    if len(lengths) != 1:
        raise InvalidParameter("a table needs columns, all of one length")
    return _of_columns(tuple(data), lambda: [data[name] for name in data], lengths.pop())


def _of_columns(names: tuple[Any, ...], columns: Callable[[], Sequence[Any]], rows: int) -> UnreadTable:
    if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise InvalidParameter("the columns of a table must have names that are texts, each another one")

    def read(wanted: Sequence[str], _: Sequence[str]) -> dict[str, Column]:
        found = dict(zip(names, columns(), strict=True))
        return {name: as_column(found[name]) for name in wanted}

    return UnreadTable(names, rows, read)


# --- files: Tables in files and in sessions: a worker reads them, and no value ends in an error of its own. ---


_NAME = "table"
_SECONDS = 3600.0


def file_table(path: Path | CsvFile) -> UnreadTable:
    """Take a file of comma-separated values or a Parquet file; its header or schema is looked at."""
    engine = open_engine({_NAME: path}, Resources())
    if not isinstance(engine, RowEngine):
        raise InvalidParameter("a file is read by an engine that hands over rows")

    def read(names: Sequence[str], numbers: Sequence[str]) -> dict[str, Column]:
        return _columns(engine.rows(_NAME, names, numbers, deadline=Deadline.after(_SECONDS)), names)

    return UnreadTable(tuple(engine.columns(_NAME)), None, read)


def session_table(session: Session, table: str) -> UnreadTable:
    """Take a private table of a session."""
    stored = StoredRows.of(session, table)
    return UnreadTable(stored.names, None, lambda names, numbers: _columns(stored.read(names, numbers), names), True)


def _columns(table: Any, names: Sequence[str]) -> dict[str, Column]:
    return {name: as_column(table.column(name)) for name in names}


# --- of_session: A domain from what a session's policy declares of a table; nothing is read from the data. ---


def domain_of_session(session: Session, table: str | None = None) -> Domain:
    """Return the domain of a private table: its columns with declared categories or bounds, or truth values.

    Columns of which nothing is declared, timestamps, and the column that tells people apart are left out.

    Args:
        session: The session that holds the private table.
        table: The table, where there are several.

    Returns:
        The domain.

    Raises:
        InvalidParameter: If nothing is declared of the columns.

    Examples:
        >>> import pyarrow as pa
        >>> session = dp.Session(
        ...     pa.table({"city": ["A", "B"] * 500, "age": [30, 50] * 500}),
        ...     unit="row",
        ...     budget=dp.Budget(epsilon=4, delta=1e-6),
        ...     columns={"city": dp.categories(["A", "B"]), "age": dp.between(0, 120, whole=True)},
        ...     ledger="memory",
        ...     dataset="people",
        ...     principal="ana",
        ... )
        >>> dp.synth.domain_of_session(session).names
        ('city', 'age')
    """
    known = private_table(session.catalogue, table)
    found = {
        column.name: cells
        for column in known.columns.values()
        if column.name != known.unit
        and (cells := cells_of(column.facts, null=column.facts.nullable and column.missing is None)) is not None
    }
    if not found:
        raise InvalidParameter(
            f"nothing is declared of the columns of table {known.name!r}: declare categories and bounds in the policy, "
            "or say domain=dp.synth.Domain({…})"
        )
    return Domain(found)
