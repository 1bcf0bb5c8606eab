"""Discreet: a Session for a data set of the corpus."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import discreet as dp
from benchmarks.corpus.policies import Choice, Column, Dataset, Number, Text, Time

__all__ = ["declared", "opened"]


def declared(column: Column) -> Any:
    """Say in our words what the policy says of a column."""
    match column:
        case Number():
            return dp.between(column.low, column.high, step=column.step)
        case Choice():
            return dp.categories(column.values)
        case Text():
            return dp.text()
        case Time():
            return dp.between(column.low, column.high)


def opened(dataset: Dataset, tables: Any, *, max_groups: int, max_rows: int, epsilon: int) -> dp.Session:
    """Open a session whose budget lives in memory; `tables` are a folder of Parquet files, or in memory."""
    found = {path.stem: path for path in sorted(tables.glob("*.parquet"))} if isinstance(tables, Path) else tables
    public = {table.name for table in dataset.public}
    return dp.Session(
        {name: dp.public(table) if name in public else table for name, table in found.items()},
        unit="row" if dataset.unit == "row" else dp.Unit(dataset.unit, max_groups, max_rows),
        budget=dp.Budget(epsilon=epsilon, delta="1e-2"),
        columns={
            table.name: {name: declared(column) for name, column in table.columns.items()} for table in dataset.private
        },
        ledger="memory",
        dataset=dataset.name,
        principal="analyst",
    )
