"""Tables of lakes and of ADBC connections are counted as the same rows in memory are, at one version."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import adbc_driver_duckdb.dbapi
import deltalake
import pyarrow as pa
import pyarrow.dataset
import pytest
from engines_agree import differing
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.metadata import new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.table.update import update_table_metadata

import discreet as dp
from discreet.query.sources.known_sources import source_of

ROWS = pa.table(
    {
        "who": pa.array([1, 2, 3, None] * 40, pa.int64()),
        "city": ["a", "b", None, "A"] * 40,
        "price": [1.5, -2.0, None, 1e300] * 40,
        "open": [True, False, None, True] * 40,
        "day": pa.array([0, 1, None, 20_000] * 40, pa.date32()),
        "extra": pa.array([[1], [2], None, []] * 40, pa.list_(pa.int64())),
    }
)
ASKED = [
    ("SELECT COUNT(*) AS n FROM t", None),
    ("SELECT COUNT(*) AS n, SUM(price) AS s FROM t WHERE city = 'a' AND day >= DATE '1970-01-01'", None),
    ("SELECT city, COUNT(*) AS n FROM t GROUP BY city", "1e-6"),
    ("SELECT COUNT(DISTINCT city) AS n FROM t WHERE open", None),
    ("SELECT COUNT(*) AS n FROM t WHERE extra IS NOT NULL", None),
]


class HeldCatalog(NoopCatalog):
    """Keeps the metadata of a table in the table."""

    def commit_table(self, table: Any, requirements: Any, updates: Any) -> Any:
        changed = update_table_metadata(table.metadata, updates)
        return CommitTableResponse(metadata=changed, metadata_location="held")


def iceberg(folder: Path) -> tuple[Any, Callable[[], None]]:
    catalog = HeldCatalog("held")
    schema = catalog._convert_schema_if_needed(ROWS.schema)
    made = new_table_metadata(schema, UNPARTITIONED_PARTITION_SPEC, UNSORTED_SORT_ORDER, f"file://{folder}")
    table = Table(("n", "t"), made, "held", PyArrowFileIO(), catalog)
    table.append(ROWS)
    return table, lambda: table.append(ROWS)


def delta(folder: Path) -> tuple[Any, Callable[[], None]]:
    deltalake.write_deltalake(str(folder), ROWS)
    return deltalake.DeltaTable(str(folder)), lambda: deltalake.write_deltalake(str(folder), ROWS, mode="append")


def opened(table: Any) -> dp.Session:
    return dp.Session(
        {"t": table},
        unit=dp.Unit("who", 2, 60),
        budget=dp.Budget(epsilon=1000, delta="1e-3"),
        columns={"price": dp.between(-5, 5), "day": dp.between("1900-01-01", "2020-01-01")},
        ledger="memory",
        dataset="lake",
        principal="me",
    )


@pytest.mark.parametrize("make", [delta, iceberg])
def test_a_lake_is_read_at_the_version_of_the_opening(tmp_path: Path, make: Callable[..., Any]) -> None:
    table, grow = make(tmp_path / "lake")
    with opened(ROWS) as one, opened(table) as other:
        assert differing(one, other, ASKED) == []
        grow()
        assert differing(one, other, ASKED) == []
    with opened(ROWS) as one, opened(make(tmp_path / "new")[0]) as other:
        assert differing(one, other, ASKED) == []
        later, more = make(tmp_path / "later")
        more()
        fresh = deltalake.DeltaTable(later.table_uri) if make is delta else later
        with opened(fresh) as grown:  # The wrong neighbour: another version is another table.
            assert differing(one, grown, ASKED[:1]) != []


def test_partitioned_files_have_the_columns_of_their_folders(tmp_path: Path) -> None:
    small = ROWS.drop_columns(["extra"])
    pyarrow.dataset.write_dataset(
        small, tmp_path, format="parquet", partitioning=["city"], partitioning_flavor="hive", max_open_files=4
    )
    there = pyarrow.dataset.dataset(tmp_path, partitioning="hive", format="parquet")
    with opened(small) as one, opened(there) as other:
        assert differing(one, other, ASKED[:4]) == []


def test_a_base_table_behind_a_connection_is_read_and_a_view_is_refused(tmp_path: Path) -> None:
    with closing(adbc_driver_duckdb.dbapi.connect(str(tmp_path / "x.duckdb"))) as connection:
        with connection.cursor() as cursor:
            cursor.adbc_ingest("t", ROWS)
            cursor.execute("CREATE VIEW v AS SELECT * FROM t")
        connection.commit()
        with opened(ROWS) as one, opened(connection) as other:
            assert differing(one, other, ASKED) == []
        for name in ("v", "nowhere", '"; DROP TABLE t'):
            with pytest.raises(dp.InvalidParameter, match="not a view"):
                source_of(name, connection)


@pytest.mark.parametrize(("vendor", "way_out"), [("PostgreSQL", r"dp\.postgres"), ("SQLite", "Parquet")])
def test_systems_whose_answers_need_care_are_refused(
    tmp_path: Path, vendor: str, way_out: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(adbc_driver_duckdb.dbapi.connect(str(tmp_path / "x.duckdb"))) as connection:
        monkeypatch.setattr(type(connection), "adbc_get_info", lambda self: {"vendor_name": vendor})
        with pytest.raises(dp.InvalidParameter, match=way_out):
            source_of("t", connection)


def test_what_a_driver_says_is_not_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(adbc_driver_duckdb.dbapi.connect(str(tmp_path / "x.duckdb"))) as connection:

        def fails(self: Any) -> Any:
            raise RuntimeError("Canary-7Q")

        monkeypatch.setattr(type(connection), "adbc_get_info", fails)
        with pytest.raises(dp.Refused, match="cannot be looked up") as error:
            source_of("t", connection)
        assert error.value.__context__ is None
        assert error.value.__cause__ is None


# --- one table under two names ---


def two(first: Any, second: Any) -> dp.Session:
    return dp.Session(
        {"t": first, "u": second},
        unit=dp.Unit("row"),
        budget=dp.Budget(epsilon=1),
        ledger="memory",
        dataset="d",
        principal="me",
    )


def test_two_versions_of_one_table_share_rows_and_are_not_two_tables(tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path, ROWS.drop_columns(["extra"]))
    deltalake.write_deltalake(tmp_path, ROWS.drop_columns(["extra"]), mode="append")
    now, before = deltalake.DeltaTable(tmp_path), deltalake.DeltaTable(tmp_path, version=0)
    with pytest.raises(dp.InvalidParameter, match="under two names"):
        two(now, before)
    with pytest.raises(dp.InvalidParameter, match="public under another"):
        two(now, dp.public(before))
    files = now.to_pyarrow_dataset().files
    again = [pyarrow.dataset.dataset([str(tmp_path / file) for file in files]) for _ in range(2)]
    with pytest.raises(dp.InvalidParameter, match="under two names"):
        two(*again)


def test_two_tables_behind_one_connection_are_two_tables(tmp_path: Path) -> None:
    with closing(adbc_driver_duckdb.dbapi.connect(str(tmp_path / "x.duckdb"))) as connection:
        with connection.cursor() as cursor:
            for name in ("t", "u"):
                cursor.adbc_ingest(name, ROWS)
        connection.commit()
        with two(connection, connection) as session:
            assert session.spent.epsilon == 0
