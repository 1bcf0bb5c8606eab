"""Tables that are streamed keep the laws of all engines, to the last number."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet
import pytest
from engine_contract import EngineContract
from engine_small import small_world
from engine_together import TogetherContract, family, together
from engine_trees import plain
from recorded import replayed

import discreet as dp
from discreet.query.engine import Engine
from discreet.query.engines.duckdb import DuckDBEngine
from discreet.query.policy import PublicTable
from discreet.query.workers.worker_engine import WorkerEngine


def streamed(tables: dict[str, Any]) -> dict[str, Any]:
    """Hand over tables as streams of small batches, private ones and public ones."""

    def one(table: Any) -> Any:
        return pyarrow.dataset.dataset(table.to_batches(max_chunksize=37) or [], schema=table.schema)

    return {
        name: PublicTable(one(table.table)) if isinstance(table, PublicTable) else one(table)
        for name, table in tables.items()
    }


class TestStreams(EngineContract):
    @classmethod
    def make(cls, tables: dict[str, Any], **options: Any) -> WorkerEngine:
        return WorkerEngine(streamed(tables), **options)


class TestStreamsTogether(TogetherContract):
    @classmethod
    def make(cls, tables: dict[str, Any], **options: Any) -> WorkerEngine:
        return WorkerEngine(streamed(tables), **options)


@pytest.mark.parametrize("chunk", [1, 37, 1000])
def test_the_same_secret_chooses_the_same_rows_of_a_stream(chunk: int) -> None:
    def chosen(engine: Engine) -> list[Any]:
        with closing(engine), replayed("streams"):
            return [plain(one) for one in together(engine, [*family(max_groups=1, max_rows=1)])]

    def once(table: Any) -> Any:
        return PublicTable(once(table.table)) if isinstance(table, PublicTable) else table.to_reader(chunk)

    readers = {name: once(table) for name, table in small_world().items()}
    assert all(isinstance(one, (pa.RecordBatchReader, PublicTable)) for one in readers.values())
    assert chosen(WorkerEngine(readers)) == chosen(DuckDBEngine(small_world()))


# --- streams that are read once ---

PEOPLE = pa.table({"who": pa.array(range(300)), "v": pa.array([1] * 300)})


def opened(table: Any, *, rows: bool = False) -> dp.Session:
    return dp.Session(
        {"t": table},
        unit=dp.Unit("row") if rows else dp.Unit("who", max_groups=1, max_rows_per_group=1),
        budget=dp.Budget(epsilon=1000),
        ledger="memory",
        dataset="d",
        principal="me",
        columns={"t": {"v": dp.between(0, 1)}},
    )


def test_a_reader_that_another_session_read_is_refused_and_not_empty() -> None:
    reader = PEOPLE.to_reader(37)
    with opened(reader) as first, opened(reader) as second:
        for sql in ("SELECT COUNT(*) AS n FROM t", "SELECT SUM(v) AS n FROM t"):
            found = first.sql(sql, epsilon=99).release().single().value
            assert found == 300
        with pytest.raises(dp.Refused, match="read before"):
            second.sql("SELECT COUNT(*) AS n FROM t", epsilon=99).release()
        assert second.spent.epsilon == 0
    with pytest.raises(dp.Refused, match="read before"):
        opened(reader)


def test_what_is_left_of_a_reader_that_failed_is_no_table() -> None:
    class FailsOnce:
        """Batches, the second of which raises, as a cut connection does; then they go on."""

        def __init__(self) -> None:
            self.turn = 0

        def __iter__(self) -> Iterator[Any]:
            return self

        def __next__(self) -> Any:
            self.turn += 1
            if self.turn == 2:
                raise ValueError
            if self.turn > 3:
                raise StopIteration
            return PEOPLE.slice(100 * (self.turn - 1), 100).to_batches()[0]

    with opened(pa.RecordBatchReader.from_batches(PEOPLE.schema, FailsOnce())) as session:
        with pytest.raises(dp.AnswerFailed):
            session.sql("SELECT COUNT(*) AS n FROM t", epsilon=1).release()
        with pytest.raises(dp.Refused, match="read before"):
            session.sql("SELECT SUM(v) AS n FROM t", epsilon=1).release()
        assert session.spent.epsilon == 1


# --- what is refused when it is handed over ---


def test_files_in_which_one_row_could_fail_are_refused(tmp_path: Path) -> None:
    pyarrow.csv.write_csv(PEOPLE, tmp_path / "a.csv")
    with pytest.raises(dp.InvalidParameter, match="CSV or JSON"):
        opened(pyarrow.dataset.dataset(tmp_path / "a.csv", format="csv"))
    narrow = PEOPLE.cast(pa.schema([("who", pa.int32()), ("v", pa.int64())]))
    pyarrow.parquet.write_table(narrow, tmp_path / "a.parquet")
    wide = pa.table({"who": pa.array([2**40]), "v": pa.array([1])})  # One row that is no whole number of 32 bits.
    pyarrow.parquet.write_table(wide, tmp_path / "b.parquet")
    with pytest.raises(dp.InvalidParameter, match="differ in types"):
        opened(pyarrow.dataset.dataset([tmp_path / "a.parquet", tmp_path / "b.parquet"]))


def test_a_frame_with_columns_called_as_a_source_is_a_frame() -> None:
    """Attributes of a frame are its columns, and its own `describe` reads rows."""
    frame = pd.DataFrame({"who": [1, 2], "v": [1, 1], "identity": ["a", "b"], "server": [1, 2], "snapshot": [3, 4]})
    with opened(frame) as session:
        found = session.sql("SELECT COUNT(*) AS n FROM t", epsilon=99).release().single().value
    assert found == 2
