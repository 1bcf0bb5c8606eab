"""Which engine reads the tables of a session: it follows from the types of the tables, and from nothing in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, final

from discreet.errors import InvalidParameter
from discreet.query.engine import Engine, RowEngine
from discreet.query.policy import PublicTable, Resources

__all__ = ["EngineFamily", "open_engine", "open_here"]


@final
@dataclass(frozen=True, slots=True)
class EngineFamily:
    """Tables of a kind, and the engine that reads them.

    `takes` looks at the type of a table and at nothing else. `open` gets all tables of a session, the public ones
    marked as such and perhaps of another family, and returns an `Engine`: tests/query/engines/engine_contract.py
    holds for it. Whatever library it needs is imported when it is called.
    """

    name: str  # as people know it
    takes: Callable[[Any], bool]
    open: Callable[[Mapping[str, Any], Resources], Engine]


def _is_spark(table: Any) -> bool:
    homes = {(kind.__module__.partition(".")[0], kind.__name__) for kind in type(table).__mro__}
    return ("pyspark", "DataFrame") in homes


def _open_spark(tables: Mapping[str, Any], resources: Resources) -> Engine:
    from discreet.query.spark.spark_engine import SparkEngine

    return SparkEngine(tables, memory=resources.memory, on_progress=resources.on_progress)


# What is read elsewhere than here. A new engine is one line; tables that no family takes are read by workers.
FAMILIES: tuple[EngineFamily, ...] = (EngineFamily("Spark", _is_spark, _open_spark),)


def open_engine(tables: Mapping[str, Any], resources: Resources) -> Engine:
    """Open the engine that the private tables ask for; it is the caller's to close."""
    private = {name: table for name, table in tables.items() if not isinstance(table, PublicTable)}
    asked = {name: _family(table) for name, table in (private or tables).items()}
    if len(set(asked.values())) > 1:
        told = ", ".join(f"{name!r} by {'a worker' if one is None else one.name}" for name, one in asked.items())
        raise InvalidParameter(f"private tables of one session are read by one engine, and here are {told}")
    family = next(iter(asked.values()), None)
    return _open_workers(tables, resources) if family is None else family.open(tables, resources)


def open_here(tables: Mapping[str, Any]) -> RowEngine:
    """Open tables that anybody may read, in this process: what is public needs no walls."""
    from discreet.query.engines.duckdb import DuckDBEngine

    if not all(isinstance(table, PublicTable) for table in tables.values()):
        raise InvalidParameter("private tables are read in a process of their own")
    return DuckDBEngine(tables)


def _family(table: Any) -> EngineFamily | None:
    table = table.table if isinstance(table, PublicTable) else table
    return next((family for family in FAMILIES if family.takes(table)), None)


def _open_workers(tables: Mapping[str, Any], resources: Resources) -> RowEngine:
    from discreet.query.workers.worker_engine import WorkerEngine

    return WorkerEngine(tables, memory=resources.memory, threads=resources.threads, on_progress=resources.on_progress)
