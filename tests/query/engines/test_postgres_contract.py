"""PostgreSQL keeps the laws of all engines, to the last number."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import psycopg
import pytest
from engine_contract import EngineContract
from engine_small import LARGE, MANY, check_many
from engine_together import TogetherContract
from postgres_cluster import shared_cluster
from postgres_tables import in_postgres
from system_parts import needs_postgres

from discreet.query.sources.postgres import postgres
from discreet.query.workers.worker_engine import WorkerEngine


class InPostgres:
    dsn: str

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def database(cls) -> Any:
        with shared_cluster().database() as dsn:
            cls.dsn = dsn
            yield

    @classmethod
    def make(cls, tables: dict[str, Any], **options: Any) -> WorkerEngine:
        return WorkerEngine(in_postgres(cls.dsn, tables), **options)


@needs_postgres
class TestPostgres(InPostgres, EngineContract):
    """All laws, on a server."""


@needs_postgres
class TestPostgresTogether(InPostgres, TogetherContract):
    """Shared scans, on a server."""


@needs_postgres
@pytest.mark.slow
def test_sums_of_ten_million_rows_are_exact(postgres_database: str) -> None:
    values = f"(ARRAY{list(LARGE)}::bigint[])[n % 3 + 1]"
    made = f"CREATE TABLE many AS SELECT n % 1000 AS who, {values} AS x FROM generate_series(0, {MANY - 1}) AS n"
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        connection.execute(made.encode())
    with closing(WorkerEngine({"many": postgres(postgres_database, "many")})) as engine:
        for unit in ("who", None):
            check_many(engine, unit)
