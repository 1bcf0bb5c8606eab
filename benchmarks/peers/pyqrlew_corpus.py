"""Qrlew: the corpus, rewritten to private SQL in PostgreSQL's dialect and run by DuckDB.

It gets the schema, the ranges and categories of the policy, the sizes of the tables and which columns have no
duplicates. Its limits are rows of a unit in all and groups of a unit.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import duckdb
import pyqrlew as qrlew  # type: ignore[import-not-found]
import sqlalchemy as sa  # type: ignore[import-not-found]

from benchmarks.corpus.names import DELTA, HUGE, Trial
from benchmarks.corpus.policies import Choice, Column, Dataset, Number, Time
from benchmarks.corpus.queries import Query
from benchmarks.peers.asking import Ask, ask_all, load, world


def sql_type(column: Column | None) -> Any:
    """Return the type of a column in the schema that Qrlew reads."""
    match column:
        case Number():
            return sa.BigInteger if column.step is None or float(column.step) >= 1 else sa.Float
        case Time():
            return sa.DateTime if column.is_timestamp else sa.Date
        case _:
            return sa.String


def schema(dataset: Dataset) -> sa.MetaData:
    """Describe all tables."""
    found = sa.MetaData()
    unit = sa.String if dataset.text_unit else sa.BigInteger
    for table in dataset.private:
        columns = [sa.Column(name, sql_type(column)) for name, column in table.columns.items()]
        own = [] if dataset.unit == "row" else [sa.Column(dataset.unit, unit)]
        sa.Table(table.name, found, *columns, *own)
    for public in dataset.public:
        kinds = zip(public.columns, public.rows[0], strict=True)
        columns = [sa.Column(name, sa.BigInteger if isinstance(value, int) else sa.String) for name, value in kinds]
        sa.Table(public.name, found, *columns)
    return found


def described(dataset: Dataset, sizes: dict[str, int]) -> Any:
    """Return Qrlew's data set with everything that the policy says."""
    engine = sa.create_engine("sqlite://")
    schema(dataset).create_all(engine)
    found = sized(qrlew.Dataset.from_database("corpus", engine, None, False, None), sizes)
    for table in dataset.private:
        for name, column in table.columns.items():
            if isinstance(column, Number):
                found = found.with_range(None, table.name, name, float(column.low), float(column.high))
            elif isinstance(column, Choice):
                found = found.with_possible_values(None, table.name, name, list(column.values))
    for public in dataset.public:
        for name in public.columns:
            found = _public(found, public.name, name, public.column(name))
        found = found.with_constraint(None, public.name, public.columns[0], "_UNIQUE_")
    return found


def _public(found: Any, table: str, name: str, values: list[str | int]) -> Any:
    numbers = [value for value in values if isinstance(value, int)]
    if numbers:
        return found.with_range(None, table, name, float(min(numbers)), float(max(numbers)))
    return found.with_possible_values(None, table, name, sorted({str(value) for value in values}))


def sized(found: Any, sizes: dict[str, int]) -> Any:
    """Tell it how large the tables are: it reads that from a database, and ours has the schema only."""
    size = json.loads(found.size)
    for field in size["statistics"]["union"]["fields"]:
        rows = sizes[field["name"]]
        field["statistics"]["struct"]["size"] = str(rows)
    head = next(line for line in str(found).splitlines() if line.startswith("Dataset: "))
    return qrlew.Dataset.from_str(head.removeprefix("Dataset: "), found.schema, json.dumps(size))


def respelled(sql: str) -> str:
    """Write dates as plain literals, and deviations under the names it knows."""
    plain = re.sub(r"\b(?:DATE|TIMESTAMP) ('[^']*')", r"\1", sql)
    return re.sub(r"\bVAR_(?:SAMP|POP)\b", "VARIANCE", re.sub(r"\bSTDDEV_(?:SAMP|POP)\b", "STDDEV", plain))


def private_sql(found: Any, dataset: Dataset, trial: Trial, sql: str, *, epsilon: float, delta: float) -> str:
    """Rewrite a query."""
    unit = "_PRIVACY_UNIT_ROW_" if dataset.unit == "row" else dataset.unit
    groups, rows = (1, 1) if dataset.unit == "row" else (trial.max_groups, trial.rows_joined)
    private = found.relation(respelled(sql)).rewrite_with_differential_privacy(
        found,
        [(table.name, [], unit) for table in dataset.private],
        {"epsilon": float(epsilon), "delta": delta},
        max_multiplicity=float(rows),
        max_multiplicity_share=1.0,
        max_privacy_unit_groups=groups,
    )
    return str(private.relation().to_query(qrlew.Dialect.PostgreSql))


def start(dataset: Dataset, trial: Trial) -> Ask:
    """Open one data set."""
    connection = duckdb.connect()
    found = described(dataset, load(connection, world(trial, dataset)))

    def ask(query: Query, sql: str) -> Sequence[Sequence[Any]]:
        rewritten = private_sql(found, dataset, trial, sql, epsilon=HUGE, delta=DELTA)
        return connection.execute(rewritten).fetchall()

    return ask


if __name__ == "__main__":
    ask_all("pyqrlew", start)
