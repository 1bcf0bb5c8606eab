"""One row that is odd, very long or no text at all, costs what it is: not all the others as objects, nor its length."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from engine_trees import computed, field, table

from discreet.frames.tables import arrow_table
from discreet.query.engines.duckdb import DuckDBEngine
from discreet.schema.columns import LONGEST_TEXT, Kind

ROWS = 100_000
BAD = b"\xff\xfe"


def ten_letters(rows: int, bad: list[int], kind: pa.DataType) -> pa.Array:
    """Make texts of ten letters, some of which are none."""
    data = bytearray(b"abcdefghij" * rows)
    for place in bad:
        data[place * 10 : place * 10 + 2] = BAD
    offsets = np.arange(rows + 1, dtype=np.int64 if kind == pa.large_string() else np.int32) * 10
    plain_kind = pa.string() if kind == pa.string_view() else kind
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(bytes(data))]
    return pa.Array.from_buffers(plain_kind, rows, buffers).cast(kind)


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
@pytest.mark.parametrize("bad", [[], [0], [ROWS - 1], [7, 8, 5_000, 70_000]])
def test_what_is_no_text_is_missing_and_nothing_else_is(kind: pa.DataType, bad: list[int]) -> None:
    found = arrow_table(pa.table({"x": ten_letters(ROWS, bad, kind)})).column("x")
    assert found.type == kind
    assert len(found) == ROWS
    assert np.flatnonzero(np.asarray(found.is_null())).tolist() == bad
    assert found.drop_null().unique().to_pylist() == ["abcdefghij"]


def test_a_row_that_is_no_text_makes_no_objects_of_all_others() -> None:
    table_of = pa.table({"x": ten_letters(ROWS, [77], pa.string())})
    tracemalloc.start()
    try:
        arrow_table(table_of)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 10 * ROWS  # Less than one byte for each letter; as objects they took 14.


def test_labels_are_there_once_whether_one_of_them_is_missing_or_not() -> None:
    labels = pa.array(["a" * 5_000, None, "b"])
    indices = pa.array(np.arange(ROWS) % 3, pa.int32())
    table_of = pa.table({"x": pa.DictionaryArray.from_arrays(indices, labels)})
    usual = pa.default_memory_pool()
    watched = pa.proxy_memory_pool(usual)
    pa.set_memory_pool(watched)
    try:
        missing = arrow_table(table_of).column("x").null_count  # Nothing may outlive the pool that it is in.
    finally:
        pa.set_memory_pool(usual)
    assert missing == len(range(1, ROWS, 3))
    assert watched.max_memory() < 100 * ROWS  # The texts of all rows take 1,667 bytes a row.


@pytest.mark.parametrize(("kind", "short", "read"), [
    (Kind.INTEGER, "5", 5), (Kind.REAL, "5", 5.0), (Kind.BOOLEAN, "true", True),
    (Kind.DATE, "2020-02-03", None), (Kind.TIMESTAMP, "2020-02-03 04:05:06", None)])  # fmt: skip
def test_texts_are_read_as_something_else_as_far_as_a_cast_reads_them(kind: Kind, short: str, read: object) -> None:
    blanks = " " * (LONGEST_TEXT - len(short))
    texts = [short, blanks + short, " " + blanks + short, short + 3 * blanks]
    engine = DuckDBEngine({"t": pa.table({"who": range(len(texts)), "x": texts})})
    who, x = field("who", Kind.INTEGER), field("x", kind)
    found = [row[0] for _, row in sorted(computed(engine, table("t", who, x, unit="who"), who, [x]).items())]
    assert found[0] is not None
    assert read is None or found[0] == read
    assert found[0] == found[1] == found[3]
    # Its last character is not looked at.
    assert found[2] is None or found[2] != found[0]


@pytest.mark.parametrize("values", [[1.0, 2.0, 3.0], [1.0, np.nan, 3.0]])
def test_sparse_columns_of_a_frame_are_read_as_others_are(values: list[float]) -> None:
    frame = pd.DataFrame({"who": range(3), "x": pd.arrays.SparseArray(values)})
    who, x = field("who", Kind.INTEGER), field("x", Kind.REAL)
    engine = DuckDBEngine({"t": frame})
    found = [row[0] for _, row in sorted(computed(engine, table("t", who, x, unit="who"), who, [x]).items())]
    assert found == [None if value != value else value for value in values]
