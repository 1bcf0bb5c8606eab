"""The types of tables choose the engine of a session, and nothing in them does."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import date
from typing import Any

import pyarrow as pa
import pytest

import discreet as dp
from discreet.errors import InvalidParameter, Refused
from discreet.query.engine import Engine
from discreet.query.engines.duckdb import DuckDBEngine
from discreet.query.policy import PublicTable, Resources
from discreet.query.session import engine_choice
from discreet.query.session.engine_choice import EngineFamily, open_engine, open_here
from discreet.query.session.row_streams import DailyRows, StoredRows
from discreet.query.workers.worker_engine import WorkerEngine

TABLE = pa.table({"who": [1, 2, 3], "city": ["A", "B", "A"]})


@dataclass(frozen=True)
class Elsewhere:
    """A table that another engine reads."""

    table: Any


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Mapping[str, Any]]:
    """Add a family of engines, and tell what it was asked to open."""
    asked: list[Mapping[str, Any]] = []

    def here(tables: Mapping[str, Any], resources: Resources) -> Engine:
        asked.append(tables)
        plain = {name: table.table if isinstance(table, Elsewhere) else table for name, table in tables.items()}
        return DuckDBEngine(plain, memory=resources.memory)

    family = EngineFamily("elsewhere", lambda table: isinstance(table, Elsewhere), here)
    monkeypatch.setattr(engine_choice, "FAMILIES", (family,))
    return asked


def test_tables_that_no_family_takes_are_read_by_workers(opened: list[Mapping[str, Any]]) -> None:
    with closing(open_engine({"t": TABLE}, Resources())) as engine:
        assert isinstance(engine, WorkerEngine)
    assert opened == []


def test_a_session_asks_the_family_that_takes_its_tables(opened: list[Mapping[str, Any]]) -> None:
    with dp.Session(
        {"t": Elsewhere(TABLE), "cities": dp.public(pa.table({"city": ["A", "B"]}))},
        unit=dp.Unit("who", max_groups=1, max_rows_per_group=1),
        budget=dp.Budget(epsilon=100),
        ledger="memory",
        dataset="d",
        principal="me",
        columns={"t": {"city": dp.categories(["A", "B"])}},
    ) as session:
        answer = session.sql("SELECT COUNT(*) AS n FROM t", epsilon=100).release()
    assert answer.single().value == 3
    (tables,) = opened
    assert isinstance(tables["cities"], PublicTable)  # of another family, and handed over all the same


def test_private_tables_of_two_families_are_refused(opened: list[Mapping[str, Any]]) -> None:
    with pytest.raises(InvalidParameter, match="'t' by elsewhere, 'u' by a worker"):
        open_engine({"t": Elsewhere(TABLE), "u": TABLE}, Resources())
    assert opened == []


def test_only_public_tables_are_read_in_this_process() -> None:
    with pytest.raises(InvalidParameter, match="a process of their own"):
        open_here({"t": TABLE})
    with closing(open_here({"t": dp.public(TABLE)})) as engine:
        assert engine.public_rows("t") == 3


class OnlyCounts:
    """An engine that counts where the data are, as Spark does."""

    def __init__(self, engine: DuckDBEngine) -> None:
        for name in ("columns", "infers_types", "check_unchanged", "run", "run_all", "close"):
            setattr(self, name, getattr(engine, name))


def test_what_needs_rows_is_refused_before_the_charge(monkeypatch: pytest.MonkeyPatch) -> None:
    table = TABLE.append_column("day", pa.array([date(2025, 1, 1)] * 3))
    family = EngineFamily(
        "elsewhere",
        lambda one: isinstance(one, Elsewhere),
        lambda tables, _: OnlyCounts(DuckDBEngine({name: one.table for name, one in tables.items()})),  # type: ignore[arg-type, return-value]
    )
    monkeypatch.setattr(engine_choice, "FAMILIES", (family,))
    with dp.Session(
        {"t": Elsewhere(table)},
        unit=dp.Unit("row"),
        budget=dp.Budget(epsilon=1),
        ledger="memory",
        dataset="d",
        principal="me",
        columns={"t": {"city": dp.categories(["A", "B"])}},
    ) as session:
        with pytest.raises(Refused, match="hands over no rows"):
            StoredRows.of(session, "t")
        with pytest.raises(Refused, match="hands over no rows"):
            DailyRows.of(session, "t", "day", where=None, first=date(2025, 1, 1), days=1)
        with pytest.raises(Refused, match="hands over no rows"):
            dp.synth.plan("t", session=session, epsilon=1, delta=1e-6)
        assert session.spent.epsilon == 0
