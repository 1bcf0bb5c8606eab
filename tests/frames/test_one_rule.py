"""Each type of column gives the same Arrow array and the same objects, whatever library holds it.

The table below is the rule. A row of it names the type, what each library has of it, the safe Arrow type (None: the
column is left out of SQL) with its values, and what mechanisms see.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from discreet.frames import arrow, cells, tables
from discreet.frames.cells import is_missing
from discreet.frames.column import as_column
from discreet.frames.tables import arrow_column, arrow_schema, arrow_table, column_names, table_columns
from discreet.mechanisms.grid import nearest_floats, number_rows

ID = UUID("00000000-0000-0000-0000-00000000000a")
NOON, FAR = datetime(2024, 2, 29, 12), 10**12  # seconds after 1970: the year 33658
SECONDS = 1_709_208_000  # of noon
ZONED = datetime(2024, 2, 29, 12, tzinfo=UTC)
FINE = "2024-02-29T12:00:00.000000001"
NOT_UTF8 = pa.Array.from_buffers(
    pa.string(), 2, [None, pa.py_buffer(np.array([0, 1, 3], np.int32)), pa.py_buffer("a\xff\xfe".encode("latin-1"))]
)


def arrow_dtype(array: pa.Array) -> pd.Series:
    return pd.Series(array, dtype=pd.ArrowDtype(array.type))


def counted(counts: list[Any], kind: pa.DataType) -> pa.Array:
    return pa.array(counts, pa.int32() if kind == pa.date32() else pa.int64()).view(kind)


def polars_counted(counts: list[Any], kind: Any) -> pl.Series:
    return pl.Series(counts, dtype=pl.Int32 if kind == pl.Date else pl.Int64).cast(kind)


Row = tuple[dict[str, Any], pa.DataType | None, list[Any] | None, list[Any]]
RULE: dict[str, Row] = {
    "whole numbers": (
        {
            "pandas": pd.Series([1, None], dtype="Int64"),
            "pandas of Arrow": arrow_dtype(pa.array([1, None])),
            "polars": pl.Series([1, None]),
            "arrow": pa.array([1, None]),
            "numpy": np.ma.array([1, 5], mask=[False, True]),
            "dictionary": pa.array([1, None]).dictionary_encode(),
        },
        pa.int64(),
        [1, None],
        [1, None],
    ),
    "whole numbers of one byte": (
        {"polars": pl.Series([1, None], dtype=pl.Int8), "arrow": pa.array([1, None], pa.int8())},
        pa.int8(),
        [1, None],
        [1, None],
    ),
    "unsigned beyond 63 bits": (
        {
            "pandas": pd.Series([2**64 - 1, None], dtype="UInt64"),
            "polars": pl.Series([2**64 - 1, None], dtype=pl.UInt64),
            "arrow": pa.array([2**64 - 1, None], pa.uint64()),
            "numpy": np.ma.array([2**64 - 1, 5], mask=[False, True], dtype=np.uint64),
        },
        pa.uint64(),
        [2**64 - 1, None],
        [2**64 - 1, None],
    ),
    "whole numbers beyond 64 bits": (
        {"polars": pl.Series([2**100, 1, None], dtype=pl.Int128)},
        pa.int64(),
        [None, 1, None],
        [2**100, 1, None],
    ),
    "real numbers": (
        {
            "pandas": pd.Series([0.5, None]),
            "sparse": pd.Series(pd.arrays.SparseArray([0.5, np.nan])),
            "polars": pl.Series([0.5, None]),
            "arrow": pa.array([0.5, None]),
            "numpy": np.array([0.5, np.nan]),
            "NaN of polars": pl.Series([0.5, math.nan]),
            "NaN of arrow": pa.array([0.5, math.nan]),
            "another NaN": np.array([0x3FE0000000000000, 0xFFF8000000000123], np.uint64).view(np.float64),
        },
        pa.float64(),
        [0.5, None],
        [0.5, None],
    ),
    "single precision": (
        {
            "pandas": pd.Series([0.5, None], dtype="float32"),
            "polars": pl.Series([0.5, None], dtype=pl.Float32),
            "arrow": pa.array([0.5, None], pa.float32()),
            "numpy": np.array([0.5, np.nan], np.float32),
        },
        pa.float32(),
        [0.5, None],
        [0.5, None],
    ),
    "half precision": (
        {
            "pandas": pd.Series(np.array([0.5, np.nan], np.float16)),
            "numpy": np.array([0.5, np.nan], np.float16),
            "arrow": pa.array([0.5, None], pa.float16()),
        },
        pa.float64(),
        [0.5, None],
        [0.5, None],
    ),
    "truth values": (
        {
            "pandas": pd.Series([True, None], dtype="boolean"),
            "polars": pl.Series([True, None]),
            "arrow": pa.array([True, None]),
            "numpy": np.ma.array([True, True], mask=[False, True]),
        },
        pa.bool_(),
        [True, None],
        [True, None],
    ),
    "decimals": (
        {
            "pandas": arrow_dtype(pa.array([Decimal("1.5"), None], pa.decimal128(4, 1))),
            "arrow": pa.array([Decimal("1.5"), None], pa.decimal128(4, 1)),
            "narrow": pa.array([Decimal("1.5"), None], pa.decimal32(4, 1)),
            "wide": pa.array([Decimal("1.5"), None], pa.decimal256(4, 1)),
        },
        pa.decimal128(4, 1),
        [Decimal("1.5"), None],
        [Decimal("1.5"), None],
    ),
    "dates": (
        {
            "pandas": arrow_dtype(counted([19782, None, 10**8], pa.date32())),
            "arrow": counted([19782, None, 10**8], pa.date32()),
            "polars": polars_counted([19782, None, 10**8], pl.Date),
            "milliseconds": counted([19782 * 86_400_000, 1, FAR * 1000], pa.date64()),
            "numpy": np.array([19782, "NaT", 10**8], "M8[D]"),
        },
        pa.date32(),
        [date(2024, 2, 29), None, None],
        [date(2024, 2, 29), None, None],
    ),
    "moments": (
        {
            "pandas": pd.Series(np.array([SECONDS, "NaT", FAR], "M8[s]")),
            "numpy": np.array([SECONDS, "NaT", FAR], "M8[s]"),
            "milliseconds": np.array([SECONDS * 1000, "NaT", FAR * 1000], ">M8[ms]"),
            "polars": polars_counted([SECONDS * 1000, None, FAR * 1000], pl.Datetime("ms")),
            "arrow": counted([SECONDS, None, FAR], pa.timestamp("s")),
            "pandas of Arrow": arrow_dtype(counted([SECONDS, None, FAR], pa.timestamp("s"))),
        },
        pa.timestamp("us"),
        [NOON, None, None],
        [NOON, None, None],
    ),
    "moments of nanoseconds": (
        {
            "pandas": pd.Series(np.array([SECONDS * 10**9, "NaT", SECONDS * 10**9 + 1], "M8[ns]")),
            "numpy": np.array([SECONDS * 10**9, "NaT", SECONDS * 10**9 + 1], "M8[ns]"),
            "polars": polars_counted([SECONDS * 10**9, None, SECONDS * 10**9 + 1], pl.Datetime("ns")),
            "arrow": counted([SECONDS * 10**9, None, SECONDS * 10**9 + 1], pa.timestamp("ns")),
        },
        pa.timestamp("ns"),
        None,
        [NOON, None, FINE],
    ),
    "moments of a zone": (
        {
            "pandas": pd.Series(np.array([SECONDS, "NaT"], "M8[s]")).dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo"),
            "polars": polars_counted([SECONDS * 10**6, None], pl.Datetime("us", "Asia/Tokyo")),
            "arrow": counted([SECONDS, None], pa.timestamp("s", "Asia/Tokyo")),
            "no such zone": counted([SECONDS, None], pa.timestamp("s", "Nowhere/Town")),
        },
        pa.timestamp("us"),
        [NOON, None],
        [ZONED, None],
    ),
    "texts": (
        {
            "pandas": pd.Series(["a", None], dtype="string"),
            "objects": pd.Series(["a", None], dtype=object),
            "polars": pl.Series(["a", None]),
            "arrow": pa.array(["a", None]),
            "large": pa.array(["a", None], pa.large_string()),
            "view": pa.array(["a", None], pa.string_view()),
            "not UTF-8": NOT_UTF8,
            "labels": pd.Series(["a", None], dtype="category"),
            "labels of polars": pl.Series(["a", None], dtype=pl.Categorical),
            "numpy": np.array(["a", "\ud800"]),
            "dictionary": pa.array(["a", None]).dictionary_encode(),
            "list": ["a", None],
            "half a pair": ["a", "\ud800"],
            "a label not UTF-8": pa.DictionaryArray.from_arrays(pa.array([0, 1]), NOT_UTF8),
        },
        pa.string(),
        ["a", None],
        ["a", None],
    ),
    "UUIDs": (
        {
            "objects": pd.Series([ID, None], dtype=object),
            "polars": pl.Series([ID, None], dtype=pl.Object),
            "list": [ID, None],
            "arrow": pa.ExtensionArray.from_storage(pa.uuid(), pa.array([ID.bytes, None], pa.binary(16))),
        },
        pa.string(),
        [str(ID), None],
        [str(ID), None],
    ),
    "nothing": (
        {
            "polars": pl.Series([None, None]),
            "arrow": pa.nulls(2),
            "list": [None, None],
            "objects": pd.Series([None, None], dtype=object),
        },
        pa.string(),
        [None, None],
        [None, None],
    ),
    "objects": (
        {
            "list": [1, 2.0, "a", True, Decimal("1.5"), NOON, b"b", [1]],
            "pandas": pd.Series([1, 2.0, "a", True, Decimal("1.5"), NOON, b"b", [1]], dtype=object),
            "polars": pl.Series([1, 2.0, "a", True, Decimal("1.5"), NOON, b"b", [1]], dtype=pl.Object),
        },
        pa.string(),
        ["1", "2", "a", "true", "1.5", "2024-02-29 12:00:00", None, None],
        [1, 2.0, "a", True, Decimal("1.5"), NOON, b"b", [1]],
    ),
    "durations": (
        {
            "pandas": pd.Series(np.array([60, "NaT", 10 * FAR], "m8[s]")),
            "numpy": np.array([60, "NaT", 10 * FAR], "m8[s]"),
            "arrow": counted([60, None, 10 * FAR], pa.duration("s")),
            "polars": polars_counted([60_000, None, 10 * FAR * 1000], pl.Duration("ms")),
        },
        None,
        None,
        [timedelta(minutes=1), None, None],
    ),
    "bytes": ({"polars": pl.Series([b"\xff", None]), "arrow": pa.array([b"\xff", None])}, None, None, [b"\xff", None]),
    "clock times": (
        {"polars": pl.Series([time(1), None]), "arrow": pa.array([time(1), None])},
        None,
        None,
        [time(1), None],
    ),
    "lists": ({"polars": pl.Series([[1], None]), "arrow": pa.array([[1], None])}, None, None, [[1], None]),
    "records": (
        {"polars": pl.Series([{"a": 1}, None]), "arrow": pa.array([{"a": 1}, None])},
        None,
        None,
        [{"a": 1}, None],
    ),
    "complex numbers": ({"pandas": pd.Series([1j]), "numpy": np.array([1j])}, None, None, [1j]),
    "more than double precision": (
        {"pandas": pd.Series(np.array([0.5], np.longdouble)), "numpy": np.array([0.5], np.longdouble)},
        None,
        None,
        [0.5],
    ),
}
PAIRS = [(kind, library) for kind, row in RULE.items() for library in row[0]]


def values_of(column: Any) -> list[Any]:
    """The values, with NaN as the missing value that it is."""
    return [None if is_missing(value) else value for value in column.to_pylist()]


def kind_of(column: Any) -> Any:
    """The type, texts as one: they may be labels, and their offsets may be long."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    return pa.string() if arrow.is_text(kind) else kind


@pytest.mark.parametrize(("kind", "library"), PAIRS)
def test_every_library_gives_the_same_arrow_array(kind: str, library: str) -> None:
    columns, safe_type, values, _ = RULE[kind]
    found = arrow_column(columns[library])
    if safe_type is None:
        assert found is None
        return
    assert kind_of(found) == safe_type
    if values is None:
        values, found = [SECONDS * 10**9, None, SECONDS * 10**9 + 1], found.combine_chunks().view(pa.int64())
    assert values_of(found) == values


@pytest.mark.parametrize(("kind", "library"), PAIRS)
def test_every_library_gives_the_same_objects(kind: str, library: str) -> None:
    columns, _, _, objects = RULE[kind]
    found = [None if is_missing(value) else cells.plain_value(value) for value in as_column(columns[library]).objects()]
    assert found == objects
    assert [type(value) for value in found] == [
        type(value) for value in objects
    ] or kind == "more than double precision"


def tables_of(column: Any) -> list[Any]:
    if isinstance(column, pd.Series):
        return [pd.DataFrame({"x": column})]
    if isinstance(column, pl.Series):
        return [pl.DataFrame({"x": column})]
    return [pa.table({"x": column}), pa.record_batch({"x": column})] if isinstance(column, pa.Array) else []


@pytest.mark.parametrize(("kind", "library"), PAIRS)
def test_the_schema_follows_from_the_types_alone(kind: str, library: str) -> None:
    for table in tables_of(RULE[kind][0][library]):
        assert column_names(table) == ("x",)
        assert len(table_columns(table)) == 1
        found = arrow_table(table)
        assert arrow_schema(table) == found.schema
        assert found.column_names == ([] if RULE[kind][1] is None else ["x"])


ODD: dict[str, Any] = {
    "half a pair of surrogates": "\ud800",
    "bytes": b"b",
    "a list": [1],
    "NaN": math.nan,
    "a decimal that is none": Decimal("sNaN"),
    "5000 digits": 10**5000,
    "NaT of NumPy": np.datetime64("NaT"),
    "NaT of pandas": pd.NaT,
    "NA": pd.NA,
    "an object": object(),
    "the year 33658": pd.Timestamp(10**12, unit="s"),
    "the year 0 in UTC": datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=2))),
    "a day of NumPy": np.datetime64(10**9, "D"),
}


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
@pytest.mark.parametrize("usual", ["a", 1, 0.5, True, NOON, ZONED, ID, date(2024, 2, 29)], ids=repr)
def test_an_odd_row_leaves_the_others_alone(usual: Any, odd: Any) -> None:
    """As objects: no library has a type for such a column, and pandas takes one for the others without the odd row."""
    (alone,) = {repr(row) for row in plain(pd.Series([usual] * 3))}
    for made in ([usual, odd, usual], pd.Series([usual, odd, usual], dtype=object)):
        first, _, last = plain(made)
        assert {repr(first), repr(last)} == {alone}
        first, _, last = arrow_column(made).to_pylist()
        assert first == last == cells.cell_text(usual)


def plain(column: Any) -> list[Any]:
    return [None if is_missing(value) else cells.plain_value(value) for value in as_column(column).objects()]


def test_moments_finer_than_microseconds_stay_apart_as_objects_and_in_a_column() -> None:
    fine = [pd.Timestamp(FINE), pd.Timestamp(FINE[:-1] + "2"), pd.Timestamp(FINE).tz_localize("UTC")]
    assert plain(pd.Series(fine[:2])) == plain(fine[:2]) == [FINE, FINE[:-1] + "2"]
    assert plain(pd.Series(fine[2:])) == plain(fine[2:]) == [f"{FINE}+00:00"]


def test_rows_of_any_number_and_chunks_are_read() -> None:
    assert arrow_column(pa.chunked_array([], pa.dictionary(pa.int8(), pa.string()))).type.value_type == pa.string()
    assert arrow_column(pa.chunked_array([], pa.date64())).type == pa.date32()
    assert as_column(pa.chunked_array([[1], [], [None, 2]])).objects() == [1, None, 2]
    assert as_column(pd.Series([], dtype="datetime64[ns]")).objects() == []


@pytest.mark.parametrize("make", [pd.DataFrame, lambda rows: pl.DataFrame(rows, strict=False)])
@pytest.mark.parametrize("odd", [None, "X", math.nan, 2**70])
def test_an_odd_row_of_one_column_leaves_the_others_alone(make: Callable[[Any], Any], odd: Any) -> None:
    """As an array of one type, a missing number in one column rounded the whole numbers of the others, and a text did
    not."""
    large = [2**53 + 1] * 3
    usual, changed = (number_rows(make({"a": large, "b": [1, 2, last]}))[:, 0] for last in (3, odd))
    assert usual.tolist() == changed.tolist() == nearest_floats(large).tolist()


@pytest.mark.parametrize("odd", [None, "X", 2**70, Decimal("Infinity"), object()])
def test_an_odd_row_of_its_own_column_leaves_the_others_alone(odd: Any) -> None:
    """As objects, infinite numbers were read as large ones: with somebody's text all of them became others."""
    floats = [math.inf, -math.inf, -0.0, 5e-324, 0.1, math.nan]
    usual = number_rows(pd.DataFrame({"a": floats}))
    changed = number_rows(pd.DataFrame({"a": pd.Series([*floats, odd], dtype=object)}))[:-1]
    assert usual.tobytes() == changed.tobytes()


# A wrong rule, where it is planted, and the kind of column that shows it.
MUTANTS: dict[str, tuple[Any, str, Callable[..., Any], str, str]] = {
    "texts unchecked": (arrow, "safe_texts", lambda chunk: [chunk], "texts", "not UTF-8"),
    "any moment": (cells, "_MOMENTS", (-(1 << 63), (1 << 63) - 1), "moments", "numpy"),
    "no units": (cells, "_FINER", ("ps",), "moments of nanoseconds", "arrow"),
    "objects by str": (tables, "cell_text", str, "objects", "list"),
    "dates unchecked": (arrow, "_LAST", 1 << 31, "dates", "arrow"),
    "UUIDs left out": (arrow, "is_uuid", lambda kind: False, "UUIDs", "arrow"),
    "lists packed": (tables, "Column", lambda rows: as_column(rows), "nothing", "list"),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_wrong_rule_is_found(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, name, wrong, kind, library = MUTANTS[mutant]
    monkeypatch.setattr(module, name, wrong)
    with pytest.raises((AssertionError, UnicodeDecodeError, OverflowError, AttributeError, TypeError)):
        test_every_library_gives_the_same_arrow_array(kind, library)
