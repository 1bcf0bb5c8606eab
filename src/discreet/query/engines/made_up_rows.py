"""Rows that were made up from public facts alone, to try a question before it is asked of anybody's data."""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet import noise
from discreet.query.catalogue import Catalogue, CatalogueColumn, CatalogueTable
from discreet.query.engines.duckdb import DuckDBEngine
from discreet.query.policy import PublicTable
from discreet.schema.columns import ExpressionFacts, Kind

__all__ = ["dummy_engine", "made_up_tables"]

_ROWS = 1_000
_LABELS = ("alpha", "beta", "gamma", "delta", "epsilon")
_DEFAULTS = {
    Kind.BOOLEAN: (0, 1),
    Kind.INTEGER: (0, 100),
    Kind.REAL: (0, 100),
    **dict.fromkeys((Kind.UNDECLARED, Kind.IDENTITY), (0, 100)),
    Kind.DATE: (18_262, 20_088),  # The years 2020 to 2024.
    Kind.TIMESTAMP: (18_262 * 86_400 * 10**6, 20_088 * 86_400 * 10**6),
}


def dummy_engine(catalogue: Catalogue, *, rows: int = _ROWS) -> DuckDBEngine:
    """Return an engine on made-up tables with the names, kinds, bounds and members of a catalogue."""
    return DuckDBEngine(made_up_tables(catalogue, rows=rows))


def made_up_tables(catalogue: Catalogue, *, rows: int) -> dict[str, Any]:
    """Return made-up tables by name; those of public tables are marked as such."""
    return {name: _table(table, rows) for name, table in catalogue.tables.items()}


def _table(table: CatalogueTable, rows: int) -> Any:
    import pyarrow as pa

    stored = {name: column for name, column in table.columns.items() if column.unit_key is None}
    columns = {column.name: _column(column, rows) for column in stored.values()}
    for name in _telling_apart(table):
        columns[name] = _units(stored[name].facts.kind, rows)
    made = pa.table(columns)
    return made if table.private else PublicTable(made)


def _telling_apart(table: CatalogueTable) -> tuple[str, ...]:
    """Name the columns that tell units apart, but for those that are declared for queries, too."""
    if table.unit is None or table.unit not in table.columns:
        return ()
    key = table.columns[table.unit].unit_key
    if key is None:
        return (table.unit,)
    return tuple(
        name
        for name in key.columns
        if table.columns[name].facts == ExpressionFacts(kind=table.columns[name].facts.kind)
    )


def _units(kind: Kind, rows: int) -> Any:
    """Make up units with a few rows each."""
    import pyarrow as pa

    numbers = noise.uniform(max(1, rows // 3), size=rows)
    return pa.array([f"unit {number}" for number in numbers.tolist()]) if kind is Kind.TEXT else _stored(numbers, kind)


def _column(column: CatalogueColumn, rows: int) -> Any:
    import pyarrow as pa

    facts = column.facts
    members = facts.members if facts.members is not None else _LABELS if facts.kind is Kind.TEXT else None
    if members is not None:
        places = noise.uniform(len(members), size=rows)
        return pa.array(members).take(pa.array(places))
    low, high = _range(facts)
    steps = 1_000 if facts.kind is Kind.REAL else int(high - low)
    drawn = noise.uniform(steps + 1, size=rows)
    if facts.kind is Kind.REAL:
        return pa.array(float(low) + drawn * (float(high - low) / steps), pa.float64())
    return _stored(int(low) + drawn, facts.kind)


def _range(facts: ExpressionFacts) -> tuple[Any, Any]:
    low, high = _DEFAULTS[facts.kind]
    first = facts.low if facts.low is not None else min(low, facts.high if facts.high is not None else low)
    last = facts.high if facts.high is not None else max(high, first)
    return first, last


def _stored(numbers: Any, kind: Kind) -> Any:
    import pyarrow as pa

    if kind is Kind.DATE:
        return pa.array(numbers.astype(np.int32)).view(pa.date32())
    if kind is Kind.TIMESTAMP:
        return pa.array(numbers.astype(np.int64)).view(pa.timestamp("us"))
    if kind is Kind.REAL:
        return pa.array(numbers.astype(np.float64))
    return pa.array(numbers.astype(bool)) if kind is Kind.BOOLEAN else pa.array(numbers.astype(np.int64))
