"""What DuckDB says without privacy, of the rows that belong to somebody."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.corpus.names import WORLDS
from benchmarks.corpus.policies import Dataset
from benchmarks.corpus.queries import Query, spelling
from benchmarks.corpus.standins import Tables
from benchmarks.corpus.worlds import make_world

__all__ = ["plain_connection", "truths"]


def plain_connection(dataset: Dataset, tables: Tables) -> Any:
    """Open DuckDB with all tables; rows of nobody are left out, as every subject leaves them out."""
    import duckdb

    connection = duckdb.connect()
    private = {table.name for table in dataset.private}
    for name, table in tables.items():
        connection.register(f"all_{name}", table)
        owned = f"WHERE {dataset.unit} IS NOT NULL" if name in private and dataset.unit != "row" else ""
        connection.execute(f"CREATE TABLE {name} AS SELECT * FROM all_{name} {owned}")
    return connection


def truths(dataset: Dataset, asked: tuple[Query, ...]) -> Mapping[str, dict[str, Any]]:
    """Answer every query on every world, and count the rows behind it; None where that is not compared."""
    found: dict[str, dict[str, Any]] = {query.id: {} for query in asked}
    for world in WORLDS:
        connection = plain_connection(dataset, make_world(dataset, world))
        for query in asked:
            sql = spelling(query, "plain")
            comparable = query.answerable or (world == "whole" and sql.startswith("SELECT"))
            found[query.id][world] = _rows(connection, sql) if comparable else None
            found[query.id][f"{world} rows"] = _rows(connection, rows_behind(sql)) if query.answerable else None
    return found


def rows_behind(sql: str) -> str:
    """Count the rows that the outermost aggregates see."""
    import sqlglot
    from sqlglot import exp

    tree = sqlglot.parse_one(sql, dialect="duckdb").assert_is(exp.Select).select("COUNT(*)", append=False)
    for clause in ("group", "having", "order", "limit"):
        tree.set(clause, None)
    return str(tree.sql(dialect="duckdb"))


def _rows(connection: Any, sql: str) -> list[tuple[Any, ...]] | None:
    import duckdb

    try:
        found: list[tuple[Any, ...]] = connection.execute(sql).fetchmany(5_000)
    except duckdb.Error:
        return None
    return found
