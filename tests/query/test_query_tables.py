"""One table under two names: a row that is there twice counts twice, and what is public protects nobody."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dp

DATA = pa.table({"u": [1, 2, 3], "x": [1, 2, 3]})


def _session(tables: dict[str, Any], unit: dp.Unit) -> dp.Session:
    budget = dp.Budget(epsilon=10)
    return dp.Session(tables, unit=unit, budget=budget, ledger="memory", dataset="d", principal="p")


def test_a_table_is_not_there_twice_where_rows_are_units(tmp_path: Path) -> None:
    pq.write_table(DATA, tmp_path / "t.parquet")
    again = tmp_path / "t.parquet", str(tmp_path / ".." / tmp_path.name / "t.parquet")
    for one, other in ((DATA, DATA), again):
        with pytest.raises(dp.InvalidParameter, match="under two names"):
            _session({"a": one, "b": other}, dp.Unit("row"))


@pytest.mark.parametrize("unit", [dp.Unit("row"), dp.Unit("u")])
def test_a_table_is_not_private_and_public(unit: dp.Unit, tmp_path: Path) -> None:
    pq.write_table(DATA, tmp_path / "t.parquet")
    for table in (DATA, tmp_path / "t.parquet"):
        with pytest.raises(dp.InvalidParameter, match="public under another"):
            _session({"a": table, "b": dp.public(table)}, unit)


def test_two_tables_of_one_database_are_two() -> None:
    connection = duckdb.connect()
    for name in ("a", "b", "c"):
        connection.execute(f"CREATE TABLE {name} AS SELECT 1 AS u")
    with _session({"a": connection, "b": connection, "c": dp.public(connection)}, dp.Unit("row")) as session:
        union = "SELECT COUNT(*) AS n FROM (SELECT u FROM a UNION ALL SELECT u FROM b) AS q"
        assert session.sql(union, epsilon=1).cost == "ε = 1"


def test_where_people_are_units_a_table_may_be_there_twice() -> None:
    """All of a person's rows go together, and their share is bounded after everything was put together."""
    with _session({"a": DATA, "b": DATA}, dp.Unit("u")) as session:
        assert session.sql("SELECT COUNT(*) AS n FROM a JOIN b ON a.u = b.u", epsilon=1).cost == "ε = 1"
