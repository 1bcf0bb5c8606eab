"""The embedded engine keeps the laws of all engines."""

from __future__ import annotations

from typing import Any

from engine_contract import EngineContract

from discreet.query.engines.duckdb import DuckDBEngine


class TestDuckDB(EngineContract):
    @classmethod
    def make(cls, tables: dict[str, Any], **options: Any) -> DuckDBEngine:
        return DuckDBEngine(tables, **options)
