"""The embedded engine keeps the laws of all engines."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest
from engine_contract import EngineContract
from engine_small import check_many, many_rows

from discreet.query.engines.duckdb import DuckDBEngine


class TestDuckDB(EngineContract):
    @classmethod
    def make(cls, tables: dict[str, Any], **options: Any) -> DuckDBEngine:
        return DuckDBEngine(tables, **options)


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["who", None])
def test_sums_of_ten_million_rows_are_exact(unit: str | None) -> None:
    with closing(DuckDBEngine({"many": many_rows()})) as engine:
        check_many(engine, unit)
