"""PostgreSQL keeps the laws of all engines, to the last number."""

from __future__ import annotations

from typing import Any

import pytest
from engine_contract import EngineContract
from engine_together import TogetherContract
from postgres_cluster import shared_cluster
from postgres_tables import in_postgres
from system_parts import needs_postgres

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
