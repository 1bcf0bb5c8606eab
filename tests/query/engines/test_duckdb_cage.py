"""The second wall: a connection reads what was named, within limits, and says nothing about what went wrong."""

from __future__ import annotations

import gc
import json
import logging
import resource
import threading
import time
import traceback
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from engine_contract import SOURCE, special_table
from engine_small import SMALL, small_source, small_world
from engine_specials import CANARY, ROW, cases, deep
from engine_trees import column, computed, field, plain, run, stage, table

from discreet.errors import AnswerFailed
from discreet.query.ast import Field, Join, JoinKind, Named, Operator, Project
from discreet.query.engine import Deadline, StageColumn, Wants
from discreet.query.engines.duckdb import DuckDBEngine
from discreet.query.engines.duckdb_sandbox import Sandbox
from discreet.query.engines.sql_queries import write_stage
from discreet.query.engines.sql_writer import Writer
from discreet.query.functions.constants import literal
from discreet.query.functions.expressions import apply
from discreet.schema.columns import Kind

# What the statements that we write may consist of, by the names of DuckDB's own parser.
CLASSES = {
    "CONSTANT", "COLUMN_REF", "FUNCTION", "OPERATOR", "COMPARISON", "CONJUNCTION", "CAST", "CASE", "BETWEEN",
    "PARAMETER", "STAR", "LAMBDA", "TYPE", "COLLATE",
}  # fmt: skip
FROM = {"SELECT_NODE", "SET_OPERATION_NODE", "SUBQUERY", "BASE_TABLE", "JOIN", "TABLE_FUNCTION", "EMPTY"}
FUNCTIONS = {
    "+", "-", "*", "/", "//", "%", "~~", "~~*", "||", "abs", "sign", "floor", "ceil", "round", "sqrt", "ln", "exp",
    "least", "greatest", "isfinite", "lower", "upper", "length", "trim", "substring", "left", "right", "replace",
    "starts_with", "contains", "nfc_normalize", "list_transform", "list_value", "array_extract", "year", "quarter",
    "month", "week", "day", "dayofweek", "dayofyear", "hour", "minute", "second", "date_trunc", "to_days", "to_months",
    "epoch_us", "make_timestamp", "regexp_full_match", "chr", "try_strptime", "epoch_ns", "trunc", "strlen", "count",
    "count_star", "sum", "min", "max", "read_parquet", "read_csv", "unpack",
}  # fmt: skip


def nodes(tree: Any) -> Any:
    """Visit all objects of a parsed statement."""
    if isinstance(tree, dict):
        yield tree
        for value in tree.values():
            yield from nodes(value)
    elif isinstance(tree, list):
        for value in tree:
            yield from nodes(value)


def test_statements_are_made_of_known_parts_only() -> None:
    import duckdb

    engine = DuckDBEngine({"special": special_table()})
    parse = duckdb.connect()
    for start in range(0, len(cases()), 20):
        keys = [(case, None) for case in cases()[start : start + 20]]
        scan = write_stage(stage(SOURCE, unit="row", keys=keys), engine, Writer())
        text = f"SELECT {', '.join(scan.keys)} FROM {scan.origin}"
        (parsed,) = parse.execute("SELECT json_serialize_sql($text)", {"text": text}).fetchone() or ("",)
        tree = json.loads(parsed)
        assert not tree["error"]
        assert len(tree["statements"]) == 1
        for node in nodes(tree["statements"]):
            assert node.get("class", "STAR") in CLASSES
            assert "from_table" not in node or node["from_table"]["type"] in FROM
            if node.get("class") == "FUNCTION":
                assert node["function_name"].lower() in FUNCTIONS


def test_no_literal_of_a_question_is_in_a_statement() -> None:
    engine = DuckDBEngine(small_world())
    texts = ["'; DROP TABLE t1; --", "it's", "%_", "\0", "$p1", CANARY]
    keys = [(apply(Operator.CONCAT, SMALL["city"], literal(text)), None) for text in texts]
    scan = write_stage(stage(small_source("who"), unit="who", keys=keys), engine, Writer())
    assert list(scan.parameters.values()) == texts
    assert not any(text in scan.origin for text in texts if text != "$p1")


def test_statements_grow_with_the_tree_and_no_faster() -> None:
    engine = DuckDBEngine({"special": special_table()})
    lengths = []
    for levels in (10, 20, 30):
        scan = write_stage(stage(SOURCE, unit="row", keys=[(deep(levels), None)]), engine, Writer())
        lengths.append(len(scan.origin))
    assert lengths[2] - lengths[1] <= 1.1 * (lengths[1] - lengths[0])
    assert len(computed(engine, SOURCE, ROW, [deep(30)])) == special_table().num_rows


@pytest.fixture
def cage(tmp_path: Path) -> Any:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "named.parquet")
    pq.write_table(pa.table({"a": [CANARY]}), tmp_path / "other.parquet")
    made = Sandbox([str(tmp_path / "named.parquet")], memory=1 << 28, threads=2)
    yield made
    made.close()


def test_only_named_files_can_be_read(cage: Sandbox, tmp_path: Path) -> None:
    connection = cage.connection()
    assert connection.execute(f"SELECT * FROM read_parquet('{tmp_path}/named.parquet')").fetchall() == [(1,)]
    table_in_python = pa.table({"a": [1]})
    assert table_in_python.num_rows == 1
    import duckdb

    for text in (
        f"SELECT * FROM read_parquet('{tmp_path}/other.parquet')",
        f"SELECT * FROM read_parquet('{tmp_path}/*.parquet')",
        f"SELECT * FROM read_csv('{tmp_path}/other.parquet')",
        "SELECT * FROM read_text('/etc/hostname')",
        "SELECT * FROM glob('/etc/*')",
        f"COPY (SELECT 1) TO '{tmp_path}/out.csv'",
        f"ATTACH '{tmp_path}/new.duckdb'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "SET lock_configuration = false",
        "SET memory_limit = '100GB'",
        "SET threads = 64",
        "SELECT * FROM table_in_python",
        "EXPORT DATABASE 'x'",
    ):
        with pytest.raises(duckdb.Error):
            connection.execute(text).fetchall()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["named.parquet", "other.parquet"]


def bomb(rows: int = 100_000) -> tuple[dict[str, Any], Any]:
    """Return a question that pairs every row with every other."""
    who, other = field("who", Kind.INTEGER), field("o.who", Kind.INTEGER)
    one = literal(1)
    private = table("t", who, unit="who")
    public_side = table("p", other, private=False, prefix="o.")
    joined = Join(private, public_side, JoinKind.INNER, ((one, one),))
    data = pa.table({"who": pa.array(range(rows))})
    return {"t": data, "p": data}, joined


def test_work_ends_at_the_deadline_and_the_next_question_is_served() -> None:
    tables, joined = bomb()
    engine = DuckDBEngine(tables)
    asked = stage(joined, unit="who", keys=[(field("who", Kind.INTEGER), None)], max_rows=10**6)
    started = time.monotonic()
    with pytest.raises(AnswerFailed):
        engine.run(asked, deadline=Deadline.after(0.5))
    assert time.monotonic() - started < 5  # Half a second, on a machine that is not busy.
    who = field("who", Kind.INTEGER)
    assert plain(run(engine, stage(table("t", who, unit="who"), unit="who")))[()]["units"] == 100_000


@pytest.mark.parametrize("operator", [Operator.CONCAT, Operator.REPLACE])
def test_texts_that_grow_and_grow_are_cut(operator: Operator) -> None:
    who, s = field("who", Kind.INTEGER), field("s", Kind.TEXT)
    source: Any = table("t", who, s, unit="who")
    unit = who
    for level in range(30):
        others = (s,) if operator is Operator.CONCAT else (literal("x"), literal("xx" * 50))
        longer = apply(operator, s, *others)
        s, owner = Field(f"s{level}", longer.facts), Field(f"who{level}", who.facts)
        source = Project(source, (Named(owner, unit), Named(s, longer)), owner.name)
        unit = owner
    engine = DuckDBEngine({"t": pa.table({"who": range(10), "s": ["x"] * 10})})
    found = computed(engine, source, unit, [apply(Operator.LENGTH, s)])
    assert set(found.values()) == {(10_000,)}


@pytest.mark.long
def test_memory_is_limited() -> None:
    data = pa.table({"who": pa.array(range(300_000)), "s": [f"{n:0200d}" for n in range(300_000)]})
    engine = DuckDBEngine({"t": data}, memory=1 << 26)
    who, s = field("who", Kind.INTEGER), field("s", Kind.TEXT)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    wanted = StageColumn(expression=s, wants=Wants(distinct=True))
    asked = stage(table("t", who, s, unit=None), columns=[wanted])
    try:
        found = plain(engine.run(asked, deadline=Deadline.after(60)))
        assert found[()]["columns"][0]["distinct"] == 300_000
    except AnswerFailed:
        pass  # Either is fine, as long as the process stays small.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2_000_000  # kilobytes


def test_progress_tells_time_only() -> None:
    tables, joined = bomb()
    seen: list[tuple[float, float]] = []
    engine = DuckDBEngine(tables, on_progress=lambda gone, allowed: seen.append((gone, allowed)))
    seen.clear()
    asked = stage(joined, unit="who", keys=[(field("who", Kind.INTEGER), None)], max_rows=10**6)
    with pytest.raises(AnswerFailed):
        engine.run(asked, deadline=Deadline.after(0.6))
    assert seen
    assert len({allowed for _, allowed in seen}) == 1
    assert all(0 <= gone <= allowed <= 0.6 for gone, allowed in seen)
    assert [gone for gone, _ in seen] == sorted(gone for gone, _ in seen)


def broken_parquet(folder: Path) -> Path:
    """Write a file whose texts are none: the engine's own error shows them."""
    bad = f"{CANARY}\xff".encode("latin-1")
    offsets = pa.py_buffer(b"\0\0\0\0" + len(bad).to_bytes(4, "little"))
    texts = pa.Array.from_buffers(pa.string(), 1, [None, offsets, pa.py_buffer(bad)])
    pq.write_table(pa.table({"who": [1], "s": texts}), folder / "broken.parquet")
    return folder / "broken.parquet"


def test_failures_say_nothing_of_the_data(tmp_path: Path, caplog: Any, capfd: Any) -> None:
    who, s = field("who", Kind.INTEGER), field("s", Kind.TEXT)
    engine = DuckDBEngine({"t": broken_parquet(tmp_path)})
    with caplog.at_level(logging.DEBUG), pytest.raises(AnswerFailed) as caught:
        computed(engine, table("t", who, s, unit="who"), who, [s])
    error = caught.value
    assert str(error) == str(AnswerFailed())
    assert error.__cause__ is None
    assert error.__context__ is None
    told = "".join(traceback.format_exception(error)) + caplog.text + "".join(capfd.readouterr())
    assert CANARY not in told
    # The engine is as good as new.
    assert plain(run(engine, stage(table("t", who, unit="who"), unit="who")))[()]["units"] == 1


def test_many_threads_may_ask_at_once() -> None:
    engine = DuckDBEngine(small_world())
    asked = stage(small_source("who"), unit="who", keys=[(SMALL["city"], None)],
                  columns=[column(SMALL["amount"], -50, 50)], max_groups=100, max_rows=1000)  # fmt: skip
    meant = plain(run(engine, asked))
    found: list[Any] = []
    workers = [threading.Thread(target=lambda: found.append(plain(run(engine, asked)))) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert found == [meant] * 8


def test_scratch_files_are_private_and_go_away() -> None:
    made = Sandbox([], memory=1 << 28, threads=1)
    scratch = Path(made._scratch.folder)
    assert scratch.stat().st_mode & 0o777 == 0o700
    made.connection().close()
    made.close()
    assert not scratch.exists()
    forgotten = Sandbox([], memory=1 << 28, threads=1)
    scratch = Path(forgotten._scratch.folder)
    del forgotten
    gc.collect()
    assert not scratch.exists()


def test_rows_of_specials_never_fail_anywhere() -> None:
    """Each operator of each special is in one answer or another, under a key of its own; none of them raises."""
    engine = DuckDBEngine({"special": special_table()})
    found = computed(engine, SOURCE, ROW, [case for case in cases() if case.facts.kind is Kind.TEXT])
    assert len(found) == special_table().num_rows
