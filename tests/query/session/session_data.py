"""A small shop for the tests of sessions: who bought what, where, for how much. All of it is made up by a rule."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

import discreet as dp

CITIES = ["Bern", "Genf", "Lugano"]
COLUMNS = {
    "city": dp.categories(CITIES),
    "price": dp.between(0, 50, step="0.5"),
    "age": dp.between(18, 100),
}
CUSTOMERS = 300


def shop(customers: int = CUSTOMERS) -> pa.Table:
    """One or two orders of each customer."""
    rows = [
        {
            "customer": f"c{number:04}",
            "city": CITIES[number % 7 % 3],
            "price": float(number * 13 % 90) / 2,
            "age": 18 + number * 7 % 70,
        }
        for number in range(customers)
        for _ in range(1 + number % 2)
    ]
    return pa.Table.from_pylist(rows)


# Libraries are imported where they are used: processes that are killed start sooner.


def as_pandas(table: pa.Table, folder: Path) -> Any:
    return table.to_pandas()


def as_polars(table: pa.Table, folder: Path) -> Any:
    import polars as pl

    return pl.from_arrow(table)


def as_arrow(table: pa.Table, folder: Path) -> pa.Table:
    return table


def as_parquet(table: pa.Table, folder: Path) -> Path:
    import pyarrow.parquet

    path = folder / "orders.parquet"
    pyarrow.parquet.write_table(table, path)
    return path


def as_csv(table: pa.Table, folder: Path) -> Path:
    import pyarrow.csv

    path = folder / "orders.csv"
    pyarrow.csv.write_csv(table, path)
    return path


def as_duckdb(table: pa.Table, folder: Path) -> Path:
    import duckdb

    path = folder / "shop.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.register("given", table)
        connection.execute("CREATE TABLE orders AS SELECT * FROM given")
    return path


FORMS = {form.__name__[3:]: form for form in (as_pandas, as_polars, as_arrow, as_parquet, as_csv, as_duckdb)}


def opened(folder: Path, tables: Any = None, **changes: Any) -> dp.Session:
    """A session on the shop, as it is usually declared."""
    usual: dict[str, Any] = {
        "unit": dp.Unit("customer", max_groups=2, max_rows_per_group=2),
        "budget": dp.Budget(epsilon=200, delta="1e-5"),
        "columns": COLUMNS,
        "ledger": folder / "shop.ledger",
        "dataset": "shop",
        "principal": "ana",
    }
    given = {"orders": shop()} if tables is None else tables
    return dp.Session(given, **usual | changes)


def charges(session: dp.Session) -> int:
    """How many charges the ledger has."""
    return sum(entry.kind == "charge" for entry in session.history())
