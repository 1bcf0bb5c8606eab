"""Tables in files: DuckDB reads them, and turns no value into an error."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from discreet.errors import InvalidParameter
from discreet.mechanisms.column import Column
from discreet.statistics.columns import as_column
from discreet.synth.domain.tables import Table

__all__ = ["file_table"]

# Whatever a line holds is text: which types a reader would guess, and whether it fails, would depend on values.
_SOURCES = {
    ".csv": "read_csv(?, header = true, all_varchar = true, ignore_errors = true, null_padding = true, delim = ',')",
    ".tsv": "read_csv(?, header = true, all_varchar = true, ignore_errors = true, null_padding = true, delim = '\t')",
    ".parquet": "read_parquet(?)",
}


def file_table(path: Path) -> Table:
    """Take a file of comma-separated values or a Parquet file; its first line or its schema is looked at."""
    source = _SOURCES.get(path.suffix.lower())
    if source is None or not path.is_file():
        raise InvalidParameter("a table in a file needs the path of a .csv, .tsv or .parquet file that is there")
    names = _names(path, source)
    return Table(names, None, lambda wanted: _columns(path, source, wanted))


def _names(path: Path, source: str) -> tuple[str, ...]:
    import duckdb

    try:
        described = _rows(f"DESCRIBE SELECT * FROM {source}", path).fetchall()
    except duckdb.Error:
        raise InvalidParameter("the file cannot be read as a table: check that its first line names columns") from None
    return tuple(str(row[0]) for row in described)


def _columns(path: Path, source: str, names: Sequence[str]) -> dict[str, Column]:
    listed = ", ".join('"' + name.replace('"', '""') + '"' for name in names)
    table = _rows(f"SELECT {listed} FROM {source}", path).to_arrow_table()
    return {name: as_column(table.column(name)) for name in names}


def _rows(sql: str, path: Path) -> Any:
    import duckdb

    return duckdb.connect().execute(sql, [str(path)])
