"""Tables in every form people have them in: the same specials give the same answers, and none an error."""

from __future__ import annotations

import csv as csv_writer
import decimal
from contextlib import closing
from datetime import date, datetime
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from engine_contract import special_table
from engine_specials import BOUNDED, FIELDS
from engine_trees import column, computed, field, plain, run, stage, table

from discreet.errors import InvalidParameter
from discreet.query.ast import Table, TableColumn
from discreet.query.engine import Deadline
from discreet.query.engines.duckdb import DuckDBEngine
from discreet.query.engines.tables import FILES, InMemory, hold
from discreet.query.policy import public
from discreet.query.workers.worker_engine import WorkerEngine
from discreet.schema.columns import Kind, time_number
from discreet.schema.csv_file import csv

WHO = field("who", Kind.INTEGER)


def as_arrow(data: pa.Table, folder: Path) -> Any:
    return data


def as_pandas(data: pa.Table, folder: Path) -> Any:
    """The default types of pandas, and objects where it has none for such dates."""
    frame = pd.DataFrame(
        {name: data.column(name).to_pylist() for name in data.column_names if name != "who"}, dtype=object
    )
    frame.insert(0, "who", data.column("who").to_numpy())
    return frame


def as_pandas_arrow(data: pa.Table, folder: Path) -> Any:
    return data.to_pandas(types_mapper=pd.ArrowDtype)


def as_polars(data: pa.Table, folder: Path) -> Any:
    return pl.from_arrow(data)


def as_parquet(data: pa.Table, folder: Path) -> Any:
    pq.write_table(data, folder / "one.parquet")
    return folder / "one.parquet"


def as_many_parquet(data: pa.Table, folder: Path) -> Any:
    half = data.num_rows // 2
    pq.write_table(data.slice(0, half), folder / "part-1.parquet")
    pq.write_table(data.slice(half), folder / "part-2.parquet")
    return [folder / "part-1.parquet", folder / "part-2.parquet"]


def as_pattern(data: pa.Table, folder: Path) -> Any:
    as_many_parquet(data, folder)
    return str(folder / "part-*.parquet")


def as_csv(data: pa.Table, folder: Path) -> Any:
    with open(folder / "one.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv_writer.writer(file)
        writer.writerow(data.column_names)
        for row in zip(*(data.column(name).to_pylist() for name in data.column_names), strict=True):
            writer.writerow(["" if value is None else value for value in row])
    return folder / "one.csv"


def as_database(data: pa.Table, folder: Path) -> Any:
    with duckdb.connect(str(folder / "one.duckdb")) as connection:
        connection.register("given", data)
        connection.execute('CREATE TABLE "t" AS SELECT * FROM given')
    return folder / "one.duckdb"


def as_connection(data: pa.Table, folder: Path) -> Any:
    connection = duckdb.connect()
    connection.register("given", data)
    connection.execute('CREATE TABLE "t" AS SELECT * FROM given')
    return connection


FORMS = [
    as_arrow, as_pandas, as_pandas_arrow, as_polars, as_parquet, as_many_parquet, as_pattern, as_csv, as_database,
    as_connection,
]  # fmt: skip
READ = {name: one for name, one in {**FIELDS, **BOUNDED}.items() if name.endswith("1")}


def specials() -> pa.Table:
    """Return one row for each special value."""
    data = special_table().slice(0).take(pa.array(range(0, 26 * 26, 27)))
    return pa.table({"who": pa.array(range(data.num_rows)), **{name: data.column(name) for name in READ}})


def test_every_kind_of_file_is_tried(tmp_path: Path) -> None:
    assert {type(hold("t", form(specials(), tmp_path))) for form in FORMS} == {InMemory, *FILES}


@pytest.mark.parametrize("form", FORMS)
def test_specials_are_read_alike_in_every_form(form: Any, tmp_path: Path) -> None:
    data = specials()
    source = table("t", WHO, *READ.values(), unit="who")
    meant = computed(DuckDBEngine({"t": data}), source, WHO, list(READ.values()))
    engine = DuckDBEngine({"t": form(data, tmp_path)})
    found = computed(engine, source, WHO, list(READ.values()))
    text = list(READ).index("text1")
    for number, values in meant.items():
        for place, (one, other) in enumerate(zip(found[number], values, strict=True)):
            # An empty line of a CSV file and one that is missing are the same.
            assert one == other or (form is as_csv and place == text and other == "" and one is None), READ
    engine.close()


@pytest.mark.parametrize("form", FORMS)
def test_schema_tells_names_and_kinds(form: Any, tmp_path: Path) -> None:
    kinds = DuckDBEngine({"t": form(specials(), tmp_path)}).columns("t")
    meant = {"who": Kind.INTEGER, **{name: one.facts.kind for name, one in READ.items()}}
    if form is as_csv:
        meant = dict.fromkeys(meant, Kind.TEXT)
    if form is as_pandas:
        meant = {name: Kind.INTEGER if name == "who" else Kind.TEXT for name in meant}
    assert kinds == meant


def test_strange_types_of_arrow_are_read_or_left_out() -> None:
    big = pa.array([0, 2**62, -(2**62), None], pa.int64())
    data = pa.table({
        "who": [1, 2, 3, 4],
        "seconds": big.cast(pa.timestamp("s")), "millis": big.cast(pa.timestamp("ms")),
        "nanos": big.cast(pa.timestamp("ns")), "zone": big.cast(pa.timestamp("us", tz="Europe/Berlin")),
        "date64": pa.array([0, 10**17 // 86_400_000 * 86_400_000, None, 0], pa.int64()).cast(pa.date64()),
        "unsigned": pa.array([0, 2**64 - 1, 2**63, None], pa.uint64()),
        "half": pa.array([0.5, float("nan"), -0.0, None], pa.float16()),
        "decimal": pa.array([decimal.Decimal("1.25"), None, decimal.Decimal("-3.5"), None], pa.decimal128(38, 5)),
        "wide": pa.array([decimal.Decimal(10) ** 50, None, decimal.Decimal(3), None], pa.decimal256(60, 0)),
        "label": pa.array(["x", "y", "x", None]).dictionary_encode(),
        "number label": pa.array([7, 8, 7, None]).dictionary_encode(),
        "view": pa.array(["x", "ü", "", None], pa.string_view()), "none": pa.nulls(4),
        "list": pa.array([[1], [], None, [2]]), "bytes": pa.array([b"\xff", b"", None, b"a"]),
        "clock": pa.array([1, 2, 3, None], pa.int64()).cast(pa.time64("us")),
        "broken": pa.Array.from_buffers(pa.string(), 4, [None, pa.py_buffer(np.array([0, 1, 2, 3, 4], np.int32)),
                                                         pa.py_buffer(b"a\xffb\xc3")]),
    })  # fmt: skip
    kinds = DuckDBEngine({"t": data}).columns("t")
    assert set(data.column_names) - set(kinds) == {"list", "bytes", "clock"}
    fields = {name: field(name, kind) for name, kind in kinds.items() if name != "who"}
    engine = DuckDBEngine({"t": data})
    found = computed(engine, table("t", WHO, *fields.values(), unit="who"), WHO, list(fields.values()))
    rows = {number: dict(zip(fields, values, strict=True)) for number, values in found.items()}
    start = datetime(1970, 1, 1)
    nanos = datetime(2116, 2, 20, 23, 53, 38, 427387)
    assert [rows[n]["seconds"] for n in rows] == [start, None, None, None] == [rows[n]["millis"] for n in rows]
    assert [rows[n]["nanos"] for n in rows] == [start, nanos, datetime(1823, 11, 12, 0, 6, 21, 572612), None]
    assert [rows[n]["zone"] for n in rows] == [start, None, None, None]
    assert [rows[n]["date64"] for n in rows] == [date(1970, 1, 1), None, None, date(1970, 1, 1)]
    assert [rows[n]["unsigned"] for n in rows] == [0, 2**63 - 1, 2**63 - 1, None]
    assert [rows[n]["half"] for n in rows] == [0.5, None, 0.0, None]
    assert [rows[n]["decimal"] for n in rows] == [1.25, None, -3.5, None]
    assert [rows[n]["wide"] for n in rows] == [2**63 - 1, None, 3, None]
    assert [rows[n]["label"] for n in rows] == ["x", "y", "x", None]
    assert [rows[n]["number label"] for n in rows] == [7, 8, 7, None]
    assert [rows[n]["view"] for n in rows] == ["x", "ü", "", None]
    assert [rows[n]["broken"] for n in rows] == ["a", None, "b", None]


def test_objects_of_pandas_become_texts_one_by_one() -> None:
    things = ["x", 3, 2.5, True, None, float("nan"), pd.NaT, pd.NA, decimal.Decimal("1.50"), date(2020, 1, 2),
              object(), datetime(2020, 1, 2, 3), b"bytes", [1], "\ud800", 10**400, decimal.Decimal("NaN"),
              np.int8(4)]  # fmt: skip
    texts = ["x", "3", "2.5", "true", None, None, None, None, "1.50", "2020-01-02", None,
             "2020-01-02 03:00:00", None, None, None, None, None, "4"]  # fmt: skip
    frame = pd.DataFrame({"who": range(len(things)), "thing": pd.Series(things, dtype=object)})
    thing = field("thing", Kind.TEXT)
    found = computed(DuckDBEngine({"t": frame}), table("t", WHO, thing, unit="who"), WHO, [thing])
    assert [found[number][0] for number in range(len(things))] == texts


def test_dtypes_of_pandas_are_kept() -> None:
    frame = pd.DataFrame({
        "who": np.arange(3, dtype=np.int8), "whole": pd.array([1, None, 3], dtype="Int16"),
        "real": pd.array([0.5, None, 2], dtype="Float32"), "yes": pd.array([True, None, False], dtype="boolean"),
        "text": pd.array(["a", None, "c"], dtype="str"), "label": pd.Categorical(["u", None, "v"]),
        "grade": pd.Categorical([3, None, 1]),
        "zone": pd.to_datetime(["2020-01-01T10:00", None, "2021-01-01T00:00"], utc=True),
        "span": pd.to_timedelta(["1h", None, "2h"]), "complex": np.array([1j, 2, 3]),
    })  # fmt: skip
    kinds = DuckDBEngine({"t": frame}).columns("t")
    assert kinds == {"who": Kind.INTEGER, "whole": Kind.INTEGER, "real": Kind.REAL, "yes": Kind.BOOLEAN,
                     "text": Kind.TEXT, "label": Kind.TEXT, "grade": Kind.INTEGER, "zone": Kind.TIMESTAMP}  # fmt: skip
    fields = {name: field(name, kind) for name, kind in kinds.items() if name != "who"}
    found = computed(
        DuckDBEngine({"t": frame}), table("t", WHO, *fields.values(), unit="who"), WHO, list(fields.values())
    )
    assert found[0] == (1, 0.5, True, "a", "u", 3, datetime(2020, 1, 1, 10))
    assert found[1] == (None,) * 7
    assert found[2] == (3, 2.0, False, "c", "v", 1, datetime(2021, 1, 1))


BAD_LINES = (
    b'who,x,s\n1,2,a\n2,,"b ""q"" c"\n3,4\n4,5,c,extra\n5,6,"two\nlines"\n6,7,\xff\xfe\n7,8,"tail" of a text\n'
    b'8,9,ok\n\n9,1e3,\n10,"",""\n11,NaN,inf\n12,1_0,0x1\n13,3,"never closed\n14,1,z\n'
)


def test_no_line_of_a_csv_file_can_fail(tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_bytes(BAD_LINES)
    who, x, s = field("who", Kind.INTEGER), field("x", Kind.INTEGER), field("s", Kind.TEXT)
    file = csv(tmp_path / "bad.csv", line_breaks=False)
    found = computed(DuckDBEngine({"t": file}), table("t", who, x, s, unit="who"), who, [x, s])
    assert found[1] == (2, "a")
    assert found[2] == (None, 'b "q" c')
    assert found[3] == (4, None)
    assert found[8] == (9, "ok")
    assert found[9] == (1000, None)
    assert found[10] == (None, None)
    assert (found[11][0], found[12][0]) == (None, None)
    assert found[6] == (7, None)
    assert found[14] == (1, "z")  # A quote that is not closed ends with its line.
    assert {5, 7, 13}.isdisjoint(found)


def test_a_quoted_field_goes_on_in_the_next_line_where_that_is_declared(tmp_path: Path) -> None:
    (tmp_path / "long.csv").write_bytes(b'who;x\n1;"two ""\n; lines"\n2;"b"\n')
    who, x = field("who", Kind.INTEGER), field("x", Kind.TEXT)
    for declared, meant in ((True, {1: ('two "\n; lines',), 2: ("b",)}), (False, {2: ("b",)})):
        file = csv(tmp_path / "long.csv", delimiter=";", line_breaks=declared)
        found = computed(DuckDBEngine({"t": file}), table("t", who, x, unit="who"), who, [x])
        assert {number: row for number, row in found.items() if number is not None} == meant


WRITTEN = [
    ({"delimiter": ";", "decimal": ","}, "1;2,5;a,b\n2;x;c\n3;1.5;d\n4;;e\n5;1,5,5;f\n",
     {1: (2.5, "a,b"), 2: (None, "c"), 3: (None, "d"), 4: (None, "e"), 5: (None, "f")}),
    ({"delimiter": ";", "decimal": ",", "thousands": "."},
     "1;1.234,5;a\n2;1.5;b\n3;1234,5;c\n4;1.2345;d\n5;-1.000.000;e\n",
     {1: (1234.5, "a"), 2: (None, "b"), 3: (1234.5, "c"), 4: (None, "d"), 5: (-1e6, "e")}),
    ({"delimiter": "|", "thousands": "'"}, "1|1'234.5|a\n2| 12 |'b\n3|1'23|c\n4|1e3|d\n",
     {1: (1234.5, "a"), 2: (12, "'b"), 3: (None, "c"), 4: (1000, "d")}),
    ({"delimiter": "\t", "quote": "'", "encoding": "cp1252"}, "1\t1.5\t'K\xf6ln\t\x80'\n2\t2\t\"b\n",
     {1: (1.5, "Köln\t€"), 2: (2, '"b')}),
    ({"delimiter": ";", "encoding": "latin-1", "thousands": "\u00a0"}, "1;1\xa0234;\xe4\r\n2;5;b\r\n",
     {1: (1234, "ä"), 2: (5, "b")}),
]  # fmt: skip


@pytest.mark.parametrize(("said", "lines", "meant"), WRITTEN)
def test_files_are_read_as_they_are_said_to_be_written(
    tmp_path: Path, said: dict[str, str], lines: str, meant: dict[int, Any]
) -> None:
    file = csv(tmp_path / "a.txt", **said)  # type: ignore[arg-type]
    Path(file.path).write_bytes(f"who{file.delimiter}x{file.delimiter}s\n{lines}".encode("latin-1"))
    who, x, s = field("who", Kind.INTEGER), field("x", Kind.REAL), field("s", Kind.TEXT)
    columns = (TableColumn("who", who), TableColumn("x", x, None, file.number_format), TableColumn("s", s))
    engine = DuckDBEngine({"t": file})
    assert computed(engine, Table("t", True, columns, "who"), who, [x, s]) == meant
    with closing(WorkerEngine({"t": file})) as worker:
        rows = worker.rows("t", ["who", "x"], ["who", "x"], deadline=Deadline.after(60)).to_pylist()
    assert {row["who"]: row["x"] for row in rows} == {number: row[0] for number, row in meant.items()}


def test_tab_separated_and_packed_files_are_read(tmp_path: Path) -> None:
    import gzip

    (tmp_path / "a.tsv").write_text("who\tx\n1\t2,5\n")
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress(b"\xef\xbb\xbfwho,x\n1,2\n"))
    for name, meant in (("a.tsv", "2,5"), ("b.csv.gz", "2")):
        who, x = field("who", Kind.INTEGER), field("x", Kind.TEXT)
        engine = DuckDBEngine({"t": tmp_path / name})
        assert computed(engine, table("t", who, x, unit="who"), who, [x]) == {1: (meant,)}


@pytest.mark.parametrize(
    "tables",
    [
        {"t": pa.table({"a": [1], "A": [2]})},
        {"t": pa.table({"a": [1]}), "T": pa.table({"a": [1]})},
        {"t": pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])},
        {"t": pd.DataFrame([[1, 2]], columns=["a", "A"])},
        {"t": "nowhere.parquet"},
        {"t": "somewhere.xlsx"},
        {"t": [1, 2]},
        {"t": {"a": [1]}},
        {"t": pl.LazyFrame({"a": [1], "A": [2]})},
    ],
)
def test_what_is_no_table_is_refused(tables: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        DuckDBEngine(tables)


def test_views_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "v.duckdb"
    with duckdb.connect(str(file)) as connection:
        connection.execute("CREATE TABLE t (a INTEGER); CREATE VIEW v AS SELECT * FROM t")
    assert DuckDBEngine({"t": file}).columns("t") == {"a": Kind.INTEGER}
    with pytest.raises(InvalidParameter, match="view"):
        DuckDBEngine({"v": file})
    with pytest.raises(InvalidParameter, match="view"):
        DuckDBEngine({"missing": file})
    with duckdb.connect(str(file)) as connection, pytest.raises(InvalidParameter, match="view"):
        DuckDBEngine({"v": connection})


def test_strange_names_are_only_names() -> None:
    names = ['x"; DROP TABLE t1; --', "f1", "u", "select", "名", "a b", "'", "\\", "$p1", "k1"]
    data = pa.table({"who": [1, 2], **{name: [place, None] for place, name in enumerate(names)}})
    fields = {name: field(f"field {place}", Kind.INTEGER) for place, name in enumerate(names)}
    columns = tuple(TableColumn(name, one) for name, one in fields.items())
    engine = DuckDBEngine({'t"; --': data})
    source = Table('t"; --', True, (TableColumn("who", WHO), *columns), "who")
    found = computed(engine, source, WHO, list(fields.values()))
    assert found == {1: tuple(range(len(names))), 2: (None,) * len(names)}


def test_public_tables_tell_what_is_in_them(tmp_path: Path) -> None:
    shops = pa.table({"shop": [1, 2, 2, None], "name": ["a", "b", "a", "b"], "size": [0.5, float("nan"), 2.0, 1.0],
                      "since": [date(2020, 1, 1), date(2021, 1, 1), None, None], "open": [True] * 4})  # fmt: skip
    engine = DuckDBEngine({"shops": public(shops), "private": shops})
    found = engine.public_columns("shops")
    assert {
        name: (one.facts.low, one.facts.high, one.facts.members, one.facts.nullable) for name, one in found.items()
    } == {
        "shop": (1, 2, (1, 2), True),
        "name": (None, None, ("a", "b"), False),
        "size": (0.5, 2, None, True),
        "since": (18262, 18628, (date(2020, 1, 1), date(2021, 1, 1)), True),
        "open": (1, 1, (True,), False),
    }
    assert not engine.public_is_unique("shops", frozenset({"shop"}))
    assert engine.public_is_unique("shops", frozenset({"shop", "name"}))
    assert engine.public_is_unique("shops", frozenset({"since"}))
    for ask in (
        lambda: engine.public_columns("private"),
        lambda: engine.public_is_unique("private", frozenset({"shop"})),
    ):
        with pytest.raises(InvalidParameter):
            ask()


def test_missing_values_are_filled_and_bounds_hold(tmp_path: Path) -> None:
    from fractions import Fraction

    x = field("x", Kind.REAL, 0, 10)
    for kind, values in ((pa.float64(), [1.5, None, float("nan"), float("inf"), 99.0, -4.0]),
                         (pa.string(), ["1.5", "", "x", "inf", "99", "-4"]),
                         (pa.float32(), [1.5, None, float("nan"), float("-inf"), 1e30, -1e30])):  # fmt: skip
        data = pa.table({"who": pa.array(range(6)), "x": pa.array(values, kind)})
        source = Table("t", True, (TableColumn("who", WHO), TableColumn("x", x, Fraction(7))), "who")
        found = computed(DuckDBEngine({"t": data}), source, WHO, [x])
        assert found == {0: (1.5,), 1: (7.0,), 2: (7.0,), 3: (7.0,), 4: (10.0,), 5: (0.0,)}


def test_counts_of_a_file_are_those_of_its_rows(tmp_path: Path) -> None:
    pq.write_table(pa.table({"who": range(1000), "x": [n % 7 for n in range(1000)]}), tmp_path / "n.parquet")
    x = field("x", Kind.INTEGER, 0, 6)
    asked = stage(table("t", WHO, x, unit="who"), unit="who", columns=[column(x, 0, 6, total=True)])
    found = plain(run(DuckDBEngine({"t": tmp_path / "n.parquet"}), asked))
    total = sum(n % 7 for n in range(1000))
    assert found == {(): {"units": 1000, "rows": 1000, "columns": [{"count": 1000, "total": total}]}}


def test_types_of_a_database_are_read_or_left_out(tmp_path: Path) -> None:
    file = tmp_path / "types.duckdb"
    with duckdb.connect(str(file)) as connection:
        connection.execute(
            """CREATE TABLE t (who INTEGER, mood ENUM ('sad', 'glad'), huge HUGEINT, id UUID, sec TIMESTAMP_S,
            milli TIMESTAMP_MS, nano TIMESTAMP_NS, zone TIMESTAMPTZ, price DECIMAL(12, 2), whole DECIMAL(30, 0),
            tiny UTINYINT, single FLOAT, clock TIME, span INTERVAL, list INTEGER[], pair STRUCT(a INTEGER), raw BLOB);
            INSERT INTO t (who, mood, huge, id, sec, milli, nano, zone, price, whole, tiny, single) VALUES
            (1, 'glad', 5, '00000000-0000-0000-0000-000000000001', '2020-01-01', '2020-01-01', '2020-01-01',
             '2020-01-01 00:00:00+00', -3.50, 7, 255, 0.5),
            (2, NULL, 170141183460469231731687303715884105727, NULL, 'infinity', 'infinity', 'infinity', 'infinity',
             9999999999.99, 999999999999999999999999999999, 0, 'nan'),
            (3, 'sad', -170141183460469231731687303715884105727, NULL, '290000-01-01', '290000-01-01', NULL,
             '290000-01-01 00:00:00+00', NULL, -5, NULL, '-inf')"""
        )
    engine = DuckDBEngine({"t": file})
    kinds = engine.columns("t")
    offered = {"who", "mood", "huge", "id", "sec", "milli", "nano", "zone", "price", "whole", "tiny", "single"}
    assert set(kinds) == offered
    fields = {name: field(name, kind) for name, kind in kinds.items() if name != "who"}
    found = computed(engine, table("t", WHO, *fields.values(), unit="who"), WHO, list(fields.values()))
    new_year, end = datetime(2020, 1, 1), 2**63 - 1
    one = "00000000-0000-0000-0000-000000000001"
    assert found[1] == ("glad", 5, one, new_year, new_year, new_year, new_year, -3.5, 7, 255, 0.5)
    assert found[2] == (None, end, None, None, None, None, None, 9999999999.99, end, 0, None)
    assert found[3] == ("sad", -end, None, None, None, None, None, None, -5, None, None)


@pytest.mark.parametrize("form", FORMS)
def test_tables_without_rows_are_tables(form: Any, tmp_path: Path) -> None:
    data = specials().slice(0, 0)
    engine = DuckDBEngine({"t": form(data, tmp_path)})
    source = table("t", WHO, *READ.values(), unit="who")
    assert computed(engine, source, WHO, list(READ.values())) == {}
    text = field("text1", Kind.TEXT)
    asked = stage(table("t", WHO, text, unit=None), keys=[(text, ("a", "b"))])
    assert plain(run(engine, asked)) == {(key,): {"units": 0, "rows": 0, "columns": []} for key in "ab"}


def test_times_are_moved_to_their_bounds() -> None:
    low, high = datetime(2000, 1, 1, 12), datetime(2010, 1, 1)
    day = field("day", Kind.DATE, *(time_number(value.date()) for value in (low, high)))
    at = field("at", Kind.TIMESTAMP, *(time_number(value) for value in (low, high)))
    times = [datetime.min, low, datetime(2005, 6, 7, 8), datetime(2010, 1, 1, 0, 0, 0, 1), datetime.max, None]
    data = pa.table({
        "who": pa.array(range(6)), "at": pa.array(times, pa.timestamp("us")),
        "day": pa.array([None if time is None else time.date() for time in times], pa.date32()),
    })  # fmt: skip
    found = computed(DuckDBEngine({"t": data}), table("t", WHO, day, at, unit="who"), WHO, [day, at])
    clamped = [None if time is None else min(max(time, low), high) for time in times]
    assert found == {n: (None, None) if time is None else (time.date(), time) for n, time in enumerate(clamped)}


def test_two_columns_of_one_name_in_a_file_are_refused(tmp_path: Path) -> None:
    (tmp_path / "twice.csv").write_text("a,A\n1,2\n")
    with pytest.raises(InvalidParameter):
        DuckDBEngine({"t": tmp_path / "twice.csv"})
