"""The real data sets, from a folder that the caller names; nothing of them is kept but below .bench/."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.corpus.policies import Dataset, Private
from benchmarks.corpus.public_tables import PublicRows

__all__ = ["real_tables"]


def real_tables(dataset: Dataset, data: Path, target: Path) -> Path:
    """Write the columns that the policy names as Parquet, and return the folder."""
    import duckdb

    target.mkdir(parents=True, exist_ok=True)
    connection = duckdb.connect()
    tables: list[Private | PublicRows] = [*dataset.private, *dataset.public]
    for table in tables:
        path = target / f"{table.name}.parquet"
        connection.execute(f"COPY ({_selected(connection, table, data)}) TO '{path}' (FORMAT parquet)")
    return target


def _selected(connection: Any, table: Private | PublicRows, data: Path) -> str:
    if table.file is not None:
        return f"SELECT {table.select} FROM read_parquet('{data / table.file}')"
    if isinstance(table, Private):
        raise FileNotFoundError(f"{table.name} is drawn, not read")
    import pyarrow as pa

    name = f"listed_{table.name}"
    connection.register(name, pa.table({column: table.column(column) for column in table.columns}))
    return f"SELECT * FROM {name}"
