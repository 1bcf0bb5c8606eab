"""A table that changes under an open session is refused, never read by another rule than it was opened with."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dp
from discreet.errors import AnswerFailed
from discreet.query.engine import Deadline
from discreet.query.engines import tables as unchanged
from discreet.query.engines.duckdb import DuckDBEngine
from discreet.query.engines.tables import Schemas

PEOPLE, EACH = 20, 100
ROWS = pa.table(
    {
        "uid": [f"u{n}" for n in range(PEOPLE) for _ in range(EACH)],
        "age": [str(20 + n) for n in range(PEOPLE) for k in range(EACH)],
        "sex": ["f" if n % 2 else "m" for n in range(PEOPLE) for k in range(EACH)],
    }
)
SWAPPED = ROWS.set_column(0, "uid", pa.array([str(n) for n in range(PEOPLE * EACH)]))  # Everybody has one row.
COUNT = "SELECT COUNT(*) AS n FROM t"


def as_csv(table: pa.Table, path: Path) -> None:
    import pyarrow.csv

    pyarrow.csv.write_csv(table, path)


def as_duckdb(table: pa.Table, path: Path) -> None:
    path.unlink(missing_ok=True)
    with duckdb.connect(str(path)) as connection:
        connection.register("given", table)
        connection.execute("CREATE TABLE t AS SELECT * FROM given")


FILES: dict[str, Callable[[pa.Table, Path], None]] = {
    "t.csv": as_csv,
    "t.parquet": lambda table, path: pq.write_table(table, path),
    "t.duckdb": as_duckdb,
}
OTHERS = {
    "reordered": ROWS.select(["age", "uid", "sex"]),
    "renamed": ROWS.rename_columns(["uid", "years", "sex"]),
    "fewer": ROWS.select(["uid", "age"]),
    "more": ROWS.append_column("extra", pa.array(["x"] * ROWS.num_rows)),
    "types": ROWS.set_column(1, "age", pa.array([20] * ROWS.num_rows)),
}


def session_of(tables: Any, **said: Any) -> dp.Session:
    how: dict[str, Any] = {"unit": dp.Unit("uid", 1, 1), "budget": dp.Budget(epsilon=100)} | said
    return dp.Session(tables, ledger="memory", dataset="d", principal="ana", **how)


def test_every_kind_of_file_is_changed(tmp_path: Path) -> None:
    for name, write in FILES.items():
        write(ROWS, tmp_path / name)
    assert {type(unchanged.hold("t", tmp_path / name)) for name in FILES} == set(unchanged.FILES)


@pytest.mark.parametrize("old", [True, False], ids=["settled", "fresh"])
@pytest.mark.parametrize("change", OTHERS)
def test_a_csv_file_with_other_columns_is_refused_before_the_charge(tmp_path: Path, change: str, old: bool) -> None:
    file = tmp_path / "t.csv"
    as_csv(ROWS, file)
    if old:
        long_ago(file)
    with session_of({"t": file}) as session:
        assert session.sql(COUNT, epsilon=50).release()["n"][0].value == pytest.approx(PEOPLE, abs=3)
        as_csv(OTHERS[change], file)
        if change == "types":  # Every column of a CSV file is text.
            session.sql(COUNT, epsilon=1).release()
            return
        charges = session.spent.charges
        with pytest.raises(dp.Refused, match="columns of table 't' changed since"):
            session.sql(COUNT, epsilon=1).release()
        assert session.spent.charges == charges


@pytest.mark.parametrize("change", ["renamed", "fewer", "types"])
@pytest.mark.parametrize("name", ["t.parquet", "t.duckdb"])
def test_other_files_with_other_columns_are_refused_or_still_the_old_ones(
    tmp_path: Path, name: str, change: str
) -> None:
    file = tmp_path / name
    FILES[name](ROWS, file)
    long_ago(file)
    with session_of({"t": file}) as session:
        session.sql(COUNT, epsilon=1).release()
        FILES[name](OTHERS[change], tmp_path / f"new{name}")
        os.replace(tmp_path / f"new{name}", file)
        # A database stays open: it is the old one, until the engine is started afresh.
        afresh(session)
        with pytest.raises(dp.Refused, match="columns of table 't' changed since"):
            session.sql(COUNT, epsilon=1).release()


@pytest.mark.parametrize("name", FILES)
def test_more_rows_are_no_change(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    FILES[name](ROWS, file)
    long_ago(file)
    with session_of({"t": file}) as session:
        session.sql(COUNT, epsilon=1).release()
        FILES[name](SWAPPED, tmp_path / f"new{name}")
        os.replace(tmp_path / f"new{name}", file)
        afresh(session)
        assert session.sql(COUNT, epsilon=50).release()["n"][0].value == pytest.approx(PEOPLE * EACH, abs=3)


def afresh(session: dp.Session) -> None:
    worker = session._desk.engine._workers.take()  # type: ignore[attr-defined]
    if worker is not None:
        worker.leave()


def long_ago(file: Path) -> None:
    past = time.time() - 1000
    os.utime(file, (past, past))


def test_a_change_after_the_charge_is_the_constant_failure(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    as_csv(ROWS, file)
    with session_of({"t": file}) as session:
        plan = session.sql(COUNT, epsilon=1)
        engine = session._desk.engine
        stage = plan._asked.priced.stage
        as_csv(OTHERS["reordered"], file)
        with pytest.raises(AnswerFailed) as failed:
            engine.run(stage, deadline=Deadline.after(10))
        assert str(failed.value) == str(AnswerFailed())


def test_a_change_while_rows_are_read_is_the_constant_failure(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    as_csv(ROWS, file)
    with closing(DuckDBEngine({"t": file})) as engine, pytest.raises(AnswerFailed):
        engine._ask(lambda _: as_csv(OTHERS["reordered"], file), ["t"])


def test_a_frame_that_is_changed_before_its_first_read_is_refused() -> None:
    frame = ROWS.to_pandas()
    with session_of({"t": frame}) as session:
        frame["age"] = frame["age"].astype(int)
        with pytest.raises(dp.Refused, match="columns of table 't' changed since"):
            session.sql(COUNT, epsilon=1).release()
        frame["age"] = frame["age"].astype(str)
        session.sql(COUNT, epsilon=1).release()
        frame.drop(columns=["age"], inplace=True)  # It was converted: nothing reads it again.
        session.sql(COUNT, epsilon=1).release()


def test_a_table_of_a_connection_that_is_replaced_before_its_first_read_is_refused() -> None:
    with duckdb.connect() as connection:
        connection.register("given", ROWS)
        connection.execute("CREATE TABLE t AS SELECT * FROM given")
        with session_of({"t": connection}) as session:
            connection.execute("CREATE OR REPLACE TABLE t AS SELECT uid, age::INTEGER AS age, sex FROM given")
            with pytest.raises(dp.Refused, match="columns of table 't' changed since"):
                session.sql(COUNT, epsilon=1).release()


@pytest.mark.parametrize("name", FILES)
def test_a_public_table_that_changes_at_all_is_refused(tmp_path: Path, name: str) -> None:
    """What is known of it was read at the opening: a key with duplicates now would multiply rows at no price."""
    file = tmp_path / name
    listed = pa.table({"sex": ["f", "m"], "label": ["x", "y"]})
    FILES[name](listed, file)
    tables = {"p": ROWS, "t": dp.public(file)}
    asked = "SELECT COUNT(*) AS n FROM p JOIN t ON p.sex = t.sex"
    with session_of(tables, unit="row") as session:
        session.sql(asked, epsilon=1).release()
        FILES[name](pa.concat_tables([listed] * 3), tmp_path / f"new{name}")
        os.replace(tmp_path / f"new{name}", file)
        with pytest.raises(dp.Refused, match="public table 't' changed since"):
            session.sql(asked, epsilon=1).release()


def test_parquet_files_of_two_schemas_are_refused_at_the_opening(tmp_path: Path) -> None:
    pq.write_table(ROWS, tmp_path / "a.parquet")
    pq.write_table(OTHERS["types"], tmp_path / "b.parquet")
    with pytest.raises(dp.InvalidParameter, match="differ in names or types"):
        DuckDBEngine({"t": str(tmp_path / "*.parquet")})
    pq.write_table(OTHERS["reordered"], tmp_path / "b.parquet")  # Columns are found by name.
    DuckDBEngine({"t": str(tmp_path / "*.parquet")}).close()


def test_stored_answers_are_given_when_files_are_gone(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    as_csv(ROWS, file)
    with session_of({"t": file}, version="1") as session:
        first = session.sql(COUNT, epsilon=1).release()
        file.unlink()
        assert session.sql(COUNT, epsilon=1).release().to_json() == first.to_json()
        with pytest.raises(dp.Refused, match="columns of table 't' changed since"):
            session.sql(COUNT, epsilon=2).release()


def test_frames_of_every_kind_keep_the_types_they_were_opened_with() -> None:
    frame = pd.DataFrame(
        {
            "uid": range(3),
            "c": pd.Categorical(["a", "b", None]),
            "n": pd.Categorical([1, 2, 1]),
            "f": pd.Series([1, 2, 3], dtype="float32"),
            "t": pd.to_datetime(["2020-01-01"] * 3).tz_localize("Asia/Tokyo"),
            "i": pd.Series([1, None, 3], dtype="Int8"),
            "s": pd.Series(["a", None, "b"], dtype="string"),
        }
    )
    with session_of({"t": frame}) as session:
        session.sql(COUNT, epsilon=1).release()


class TwoFiles:
    """A table in two files whose columns change while the files look the same, as right after they were written."""

    paths = ("old.csv", "fresh.csv")
    columns: Schemas = frozenset({frozenset({("id", "VARCHAR")})})

    def columns_now(self, connection: object, name: str) -> Schemas:
        return self.columns


def test_columns_are_looked_at_again_as_long_as_any_file_is_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    written = {"old.csv": 0, "fresh.csv": time.time_ns()}
    monkeypatch.setattr(unchanged, "_stat", lambda path: (1, 1, 1, written[path], written[path]))
    held = TwoFiles()
    table = unchanged.OpenedTable(held, "t", public=False)
    assert table.begin(None) == 1
    assert table.is_unchanged(None)
    held.columns = frozenset({frozenset({("name", "VARCHAR")})})
    assert not table.is_unchanged(None)
