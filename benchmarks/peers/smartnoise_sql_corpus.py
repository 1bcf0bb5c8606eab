"""SmartNoise SQL: the corpus, on DuckDB through its PostgreSQL reader.

It gets the types and bounds of the policy. Its one limit is the number of rows of a unit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import duckdb
import snsql  # type: ignore[import-not-found]

from benchmarks.corpus.names import DELTA, HUGE, Trial
from benchmarks.corpus.policies import Column, Dataset, Number, Time
from benchmarks.corpus.queries import Query
from benchmarks.peers.asking import Ask, ask_all, load, world

KEYWORDS = "year|quarter|month|day|hour|weekday|variance|second"


class Cursor:
    """The little of a database cursor that the reader uses."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.description: Any = None
        self.rows: list[Any] = []

    def execute(self, sql: str) -> None:
        found = self.connection.execute(sql)
        self.description, self.rows = found.description, found.fetchall()

    def __iter__(self) -> Iterator[Any]:
        return iter(self.rows)


class Connection:
    """DuckDB, dressed as a PostgreSQL connection."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection

    def cursor(self) -> Cursor:
        return Cursor(self.connection)

    def commit(self) -> None:
        """There is nothing to write."""

    def rollback(self) -> None:
        """There is nothing to undo."""


def described(column: Column | None, name: str) -> dict[str, Any]:
    """Return what its metadata say of a column."""
    match column:
        case Number():
            whole = column.step is None or float(column.step) >= 1
            kind, bounds = (
                ("int", (column.low, column.high)) if whole else ("float", (float(column.low), float(column.high)))
            )
            return {"name": name, "type": kind, "lower": bounds[0], "upper": bounds[1]}
        case Time():
            return {"name": name, "type": "datetime"}
        case _:
            return {"name": name, "type": "string"}


def named(name: str) -> str:
    """Give a column that is called like a keyword another name."""
    return f"{name}_" if name in KEYWORDS.split("|") else name


def metadata(dataset: Dataset, trial: Trial, sizes: dict[str, int]) -> dict[str, Any]:
    """Return its metadata of all tables."""
    unit_type = "string" if dataset.text_unit else "int"
    tables: dict[str, Any] = {}
    for table in dataset.private:
        columns = {named(name): described(column, named(name)) for name, column in table.columns.items()}
        facts: dict[str, Any] = {"rows": sizes[table.name], "censor_dims": True, "clamp_counts": False}
        if dataset.unit == "row":
            facts |= {"row_privacy": True}
        else:
            columns[dataset.unit] = {"name": dataset.unit, "type": unit_type, "private_id": True}
            facts |= {"max_ids": trial.rows_in_all, "sample_max_ids": True, "clamp_columns": True}
        tables[table.name] = facts | columns
    for public in dataset.public:
        kinds = zip(public.columns, public.rows[0], strict=True)
        columns = {name: {"name": name, "type": "int" if isinstance(value, int) else "string"} for name, value in kinds}
        tables[public.name] = {"rows": len(public.rows)} | columns
    return {"": {"main": tables}}


def respelled(sql: str, dataset: Dataset) -> str:
    """Write a query as its grammar wants it; our own keywords are in capitals."""
    names = "|".join([table.name for table in dataset.private] + [table.name for table in dataset.public])
    rules = {
        rf"\b(FROM|JOIN) ({names})\b": r"\1 main.\2",  # the schema before each table
        rf"\bmain\.({names}) ([a-z]+)\b": r"main.\1 AS \2",  # AS before each alias
        r"\b(?:DATE|TIMESTAMP) ('[^']*')": r"\1",  # plain literals
        rf"\b({KEYWORDS})\b": r"\1_",  # no keyword as a name
        r"\bDOW\b": "WEEKDAY",
        r"\bSTDDEV_(?:SAMP|POP)\b": "STDDEV",
        r"\bVAR_(?:SAMP|POP)\b": "VARIANCE",
    }
    for pattern, words in rules.items():
        sql = re.sub(pattern, words, sql)
    return sql


def start(dataset: Dataset, trial: Trial) -> Ask:
    """Open one data set."""
    connection = duckdb.connect()
    known = metadata(dataset, trial, load(connection, world(trial, dataset)))
    for table in dataset.private:
        for name in table.columns.keys() & set(KEYWORDS.split("|")):
            connection.execute(f"ALTER TABLE {table.name} RENAME COLUMN {name} TO {named(name)}")

    def ask(query: Query, sql: str) -> Sequence[Sequence[Any]]:
        privacy = snsql.Privacy(epsilon=float(HUGE), delta=DELTA)
        reader = snsql.from_connection(Connection(connection), privacy=privacy, metadata=known, engine="postgres")
        answer: list[Any] = reader.execute(respelled(sql, dataset))
        return answer[1:]

    return ask


if __name__ == "__main__":
    ask_all("smartnoise-sql", start)
