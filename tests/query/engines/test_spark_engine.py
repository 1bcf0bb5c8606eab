"""Spark counts to the last number what one machine counts, refuses what could differ from run to run, tells no key."""

from __future__ import annotations

import logging
import shutil
from contextlib import closing
from fractions import Fraction
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from agreement_questions import few, worlds
from engine_contract import EngineContract
from engine_small import SMALL, small_source, small_world
from engine_trees import column, field, plain, run, stage, table
from engines_agree import agree
from recorded import Recorded, replayed
from spark_faults import loses_rows, routes_by_rows, vanishes, weighs
from spark_questions import frames, session_on
from spark_session import spark_table
from system_parts import needs_spark

import discreet as dp
from discreet.errors import AnswerFailed, Refused
from discreet.query.ast import Join, JoinKind, UnionAll
from discreet.query.engine import Deadline, Stage
from discreet.query.engines.duckdb import DuckDBEngine
from discreet.query.policy import PublicTable
from discreet.query.spark import spark_engine
from discreet.query.spark.plan_rules import check_cluster
from discreet.query.spark.spark_engine import SparkEngine
from discreet.schema.columns import Kind

pytestmark = needs_spark
WHO, X = field("who", Kind.INTEGER), field("x", Kind.INTEGER)
OF_UNITS, OF_ROWS = (stage(table("t", WHO, X, unit=unit), unit=unit) for unit in ("who", None))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path


@pytest.mark.slow
class TestSpark(EngineContract):
    session: Any = None
    folder: Path

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def started(cls, spark: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
        TestSpark.session, TestSpark.folder = spark, tmp_path_factory.mktemp("contract")

    @classmethod
    def make(cls, tables: dict[str, Any], **options: Any) -> SparkEngine:
        return SparkEngine(frames(TestSpark.session, TestSpark.folder, tables))


# --- the same answers ---


@pytest.mark.some(5)
@pytest.mark.parametrize("name", few())
def test_forty_queries_agree(spark: Any, place: Path, name: str) -> None:
    assert agree(worlds()[name], partial(frames, spark, place), every=few()[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", worlds())
def test_all_queries_agree(spark: Any, place: Path, name: str) -> None:
    """Every question of rows is a job: those of other worlds are asked of nasty rows now and then."""
    assert agree(worlds()[name], partial(frames, spark, place), every=4 if name == "nasty row" else 1)


def test_row_units_and_bounded_units_of_one_question_keep_their_secrets(spark: Any, place: Path) -> None:
    stages = [
        stage(small_source(None), columns=[column(SMALL["amount"], -50, 50)]),
        stage(small_source("who"), unit="who", keys=[(SMALL["city"], None)], max_groups=2),
        stage(small_source("who"), unit="who", columns=[column(SMALL["amount"], -50, 50)], max_rows=2),
    ]
    stages.append(stages[1])
    found = []
    for engine in (DuckDBEngine(small_world()), SparkEngine(frames(spark, place, small_world()), parts=5)):
        with closing(engine), replayed("mixed"):
            found.append([plain(one) for one in engine.run_all(stages, deadline=Deadline.after(300))])
    assert found[0] == found[1]


def test_an_empty_table_is_counted(spark: Any, place: Path) -> None:
    world = {"t": pa.table({"who": pa.array([], pa.int64()), "x": pa.array([], pa.int64())})}
    who, x = field("who", Kind.INTEGER), field("x", Kind.INTEGER)
    with closing(SparkEngine(frames(spark, place, world))) as engine:
        for unit in ("who", None):
            asked = stage(table("t", who, x, unit=unit), unit=unit, columns=[column(x, 0, 9)])
            assert plain(run(engine, asked))[()]["rows"] == 0


def test_rows_in_plans_and_single_partitions_are_counted(spark: Any) -> None:
    """Spark may put partitions of several tables together where each has one."""
    other, points = field("o.who", Kind.INTEGER), field("o.x", Kind.INTEGER)
    both = Join(
        table("t", WHO, X, unit="who"),
        table("u", other, points, unit="o.who", prefix="o."),
        JoinKind.INNER,
        ((WHO, other),),
    )
    asked = stage(both, unit="who", columns=[column(points, 0, 9)], max_rows=9)
    every = (table("t", WHO, X), table("u", other, points, prefix="o."))
    united = stage(UnionAll(every, (WHO, X), None), columns=[column(X, 0, 9)])
    few = spark.range(0, 9, 1, 1).selectExpr("id % 3 AS who", "id AS x")
    listed = spark.sql("SELECT * FROM VALUES (0L, 4L), (1L, 5L) AS v(who, x)")
    none = listed.where("who > 7")
    for one, another, rows in ((few, few, 27), (listed, none, 0)):
        with closing(SparkEngine({"t": one, "u": another})) as engine:
            assert plain(run(engine, asked))[()]["rows"] == rows
            assert plain(run(engine, united))[()]["rows"] == (18 if one is few else 2)


TYPES = {
    "byte": pa.array([1, None, -3], pa.int8()),
    "whole": pa.array([2**62, -(2**62), None], pa.int64()),
    "single": pa.array([0.1, float("nan"), None], pa.float32()),
    "double": pa.array([-0.0, float("inf"), 1.5], pa.float64()),
    "money": pa.array([None, 12, -7], pa.int64()).cast(pa.decimal128(24, 2)),
    "text": pa.array(["e\u0301", "\u00e9", " a "]),
    "yes": pa.array([True, False, None]),
    "day": pa.array([0, 18_000, None], pa.date32()),
    "at": pa.array([0, 1_700_000_000_123_456, None], pa.timestamp("us", tz="UTC")),
    "wall": pa.array([0, 1_700_000_000_123_456, None], pa.timestamp("us")),
}


def test_every_type_is_read_as_here(spark: Any, place: Path) -> None:
    world = {"t": pa.table({"who": pa.array([1, 2, 3]), **TYPES})}
    with closing(DuckDBEngine(world)) as here, closing(SparkEngine(frames(spark, place, world))) as there:
        assert dict(there.columns("t")) == dict(here.columns("t"))
        kinds = here.columns("t")
        fields = [field(name, kinds[name]) for name in ("who", *TYPES)]
        asked = stage(
            table("t", *fields, unit="who"), unit="who", keys=[(one, None) for one in fields[1:]], max_groups=9
        )
        assert plain(run(there, asked)) == plain(run(here, asked))


@pytest.mark.slow
def test_one_unit_of_ten_million_rows_is_counted_within_two_gigabytes(
    spark: Any, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All its rows are in one partition, and so in one process."""
    rows = np.arange(10**7)
    world = {"t": pa.table({"who": np.zeros(rows.size, np.int64), "x": rows * 7919 % 1009, "y": rows % 13 / 4})}
    who, x, y = field("who", Kind.INTEGER), field("x", Kind.INTEGER), field("y", Kind.REAL)
    columns = [column(x, 0, 2000, distinct=True), column(y, 0, 4, step=Fraction(1, 4))]
    asked = stage(
        table("t", who, x, y, unit="who"), unit="who", keys=[(y, None)], columns=columns, max_groups=3, max_rows=5
    )
    peaks = place / "peaks"
    peaks.mkdir()
    monkeypatch.setattr(spark_engine, "count_part", partial(weighs, peaks, "count_part"))
    found = []
    for engine in (DuckDBEngine(world), SparkEngine(frames(spark, place, world))):
        with closing(engine), replayed("whale"):
            found.append(plain(engine.run(asked, deadline=Deadline.after(1200))))
    assert found[0] == found[1]
    assert sum(group["units"] for group in found[0].values()) == 3
    peak = max(int(file.read_text()) for file in peaks.iterdir())
    print(f"{peak / 1e9:.2f} GB at most in a process of a task")
    assert peak < 2 << 30


# --- mistakes that are planted ---


@pytest.mark.slow
@pytest.mark.parametrize("fault", [routes_by_rows, loses_rows])
def test_a_wrong_partitioner_and_lost_rows_are_refused(
    spark: Any, place: Path, monkeypatch: pytest.MonkeyPatch, fault: Any
) -> None:
    frame = spark_table(spark, place, "t", pa.table({"who": [1, 2, 3] * 9, "x": list(range(27))}))
    with closing(SparkEngine({"t": frame}, parts=2)) as engine:
        run(engine, OF_UNITS)
        monkeypatch.setattr(spark_engine, "route", fault)
        with pytest.raises(AnswerFailed):
            run(engine, OF_UNITS)


SPOILT = {
    "the first partition is dropped": lambda frame: frame.where("spark_partition_id() > 0"),
    "the last partition is dropped": lambda frame: frame.where("spark_partition_id() < 1"),
    "tasks run twice and are counted twice": lambda frame: frame.selectExpr("explode(array(report, report))"),
}


@pytest.mark.slow
@pytest.mark.parametrize("asked", [OF_UNITS, OF_ROWS], ids=["units", "rows"])
@pytest.mark.parametrize("spoil", SPOILT.values(), ids=SPOILT)
def test_reports_that_are_lost_or_doubled_are_refused(
    view: Any, monkeypatch: pytest.MonkeyPatch, spoil: Any, asked: Stage
) -> None:
    collected = spark_engine._collected
    monkeypatch.setattr(spark_engine, "_collected", lambda counted: collected(spoil(counted)))
    with closing(SparkEngine({"t": view}, parts=2)) as engine, pytest.raises(AnswerFailed):
        run(engine, asked)


@pytest.mark.slow
@pytest.mark.parametrize("adapts", ["true", "false"])
def test_a_source_of_which_nothing_arrives_is_missed(
    spark: Any, view: Any, monkeypatch: pytest.MonkeyPatch, adapts: str
) -> None:
    """Neither its rows nor its word how many there are: all parts agree, and only the number of sources tells."""
    monkeypatch.setattr(spark_engine, "route", vanishes)
    before = spark.conf.get("spark.sql.adaptive.enabled")
    spark.conf.set("spark.sql.adaptive.enabled", adapts)
    try:
        with closing(SparkEngine({"t": view}, parts=2)) as engine, pytest.raises(AnswerFailed):
            run(engine, OF_UNITS)
        monkeypatch.undo()
        with closing(SparkEngine({"t": view}, parts=2)) as engine:
            run(engine, OF_UNITS)
    finally:
        spark.conf.set("spark.sql.adaptive.enabled", before)


# --- refusals ---

SQL = {
    "rand": "SELECT who, rand() AS x FROM v",
    "uuid": "SELECT uuid() AS who, x FROM v",
    "an id": "SELECT monotonically_increasing_id() AS who, x FROM v",
    "limit": "SELECT * FROM v LIMIT 3",
    "sample": "SELECT * FROM v TABLESAMPLE (50 PERCENT)",
    "group": "SELECT max(who) AS who, x FROM v GROUP BY x",
    "window": "SELECT who, sum(x) OVER () AS x FROM v",
    "join": "SELECT a.who, b.x FROM v a JOIN v b ON a.x = b.who",
    "sub-query": "SELECT who, x FROM v WHERE x > (SELECT avg(x) FROM v)",
    "exists": "SELECT who, x FROM v WHERE EXISTS (SELECT 1 FROM v w WHERE w.x = v.who)",
    "distinct": "SELECT DISTINCT who, x FROM v",
    "explode": "SELECT who, explode(array(x, x)) AS x FROM v",
}


@pytest.fixture
def view(spark: Any, place: Path) -> Any:
    frame = spark_table(spark, place, "v", pa.table({"who": [1, 2, 3], "x": [1, 2, 3]}))
    frame.createOrReplaceTempView("v")
    return frame


@pytest.mark.parametrize("sql", SQL.values(), ids=SQL)
def test_plans_that_may_mix_people_or_differ_are_refused(spark: Any, view: Any, sql: str) -> None:
    with pytest.raises(Refused, match="table 't'"):
        SparkEngine({"t": spark.sql(sql)})


def test_other_frames_that_may_differ_are_refused(spark: Any, view: Any) -> None:
    from pyspark.sql.functions import input_file_name, udf

    for frame in (
        view.dropDuplicates(["who"]),
        view.withColumn("y", udf(lambda x: x)("x")),
        view.withColumn("y", input_file_name()),
        view.rdd.map(tuple).toDF(["who", "x"]),
        view.repartition(3),
        spark.readStream.format("rate").load(),
    ):
        with pytest.raises(Refused, match="table 't'"):
            SparkEngine({"t": frame})


def test_a_reader_that_fails_at_one_row_is_refused(spark: Any, place: Path) -> None:
    (place / "a.csv").write_text("1,2\nx,3\n")
    frame = spark.read.csv(str(place / "a.csv"), schema="who long, x long", mode="FAILFAST")
    with pytest.raises(Refused, match="FAILFAST"):
        SparkEngine({"t": frame})


@pytest.mark.parametrize(
    ("kind", "options", "word"),
    [
        ("csv", {"multiLine": True}, "multiLine"),
        ("json", {"multiLine": "TRUE"}, "multiLine"),
        ("csv", {"ignoreCorruptFiles": True}, "ignoreCorruptFiles"),
        ("json", {"ignoreMissingFiles": True}, "ignoreMissingFiles"),
    ],
)
def test_readers_in_which_one_row_removes_others_are_refused(
    spark: Any, place: Path, kind: str, options: dict[str, Any], word: str
) -> None:
    """One text that ends with a backslash made 1,000 rows of a file two; one row of many commas, one."""
    (place / f"a.{kind}").write_text("1,2\n" if kind == "csv" else '{"who": 1, "x": 2}\n')
    reader = spark.read.schema("who long, x long")
    SparkEngine({"t": reader.format(kind).load(str(place / f"a.{kind}"))}).close()
    with pytest.raises(Refused, match=word):
        SparkEngine({"t": reader.options(**options).format(kind).load(str(place / f"a.{kind}"))})


@pytest.mark.parametrize("name", ["spark.sql.files.ignoreCorruptFiles", "spark.sql.files.ignoreMissingFiles"])
def test_settings_under_which_one_row_removes_others_are_refused(spark: Any, view: Any, name: str) -> None:
    with closing(SparkEngine({"t": view})) as engine:
        spark.conf.set(name, "true")
        try:
            with pytest.raises(Refused, match=name):
                engine.check_unchanged()
            with pytest.raises(AnswerFailed):
                run(engine, OF_ROWS)
            with pytest.raises(Refused, match=name):
                SparkEngine({"t": view})
        finally:
            spark.conf.unset(name)
        engine.check_unchanged()


def test_types_that_follow_from_names_of_folders_are_not_told(spark: Any, place: Path, view: Any) -> None:
    """One row with another value makes another folder, and texts of all whole numbers."""
    view.write.partitionBy("x").parquet(str(place / "parts"))
    frame = spark.read.parquet(str(place / "parts"))
    with closing(SparkEngine({"t": frame, "u": view})) as engine:
        assert engine.infers_types("t")
        assert not engine.infers_types("u")


def test_loggers_are_off_until_the_last_question_is_done() -> None:
    names = spark_engine._TELLING
    first, second = spark_engine._hushed(), spark_engine._hushed()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert all(logging.getLogger(name).disabled for name in names)
    second.__exit__(None, None, None)
    assert not any(logging.getLogger(name).disabled for name in names)


def test_plain_projections_filters_and_unions_are_taken(spark: Any, view: Any) -> None:
    frame = spark.sql("SELECT who, x + 1 AS x FROM v WHERE who > 1 UNION ALL SELECT who, x FROM v")
    who, x = field("who", Kind.INTEGER), field("x", Kind.INTEGER)
    asked = stage(table("t", who, x, unit="who"), unit="who", columns=[column(x, 0, 9)], max_rows=9)
    with closing(SparkEngine({"t": frame})) as engine:
        assert plain(run(engine, asked))[()]["columns"][0]["values"] == [1, 2, 3, 3, 4]


def test_partitions_that_a_filter_empties_are_counted(view: Any) -> None:
    who, x = field("who", Kind.INTEGER), field("x", Kind.INTEGER)
    with closing(SparkEngine({"t": view.where("who > 2")})) as engine:
        for unit in ("who", None):
            asked = stage(table("t", who, x, unit=unit), unit=unit, columns=[column(x, 0, 9)])
            assert plain(run(engine, asked))[()]["rows"] == 1


@pytest.mark.parametrize("unit", ["who", None])
def test_a_join_that_keeps_public_rows_is_refused(view: Any, unit: str | None) -> None:
    """Every part would have them: they would be counted as often as there are parts."""
    key, who, x = field("p.key", Kind.INTEGER), field("who", Kind.INTEGER), field("x", Kind.INTEGER)
    both = Join(table("p", key, private=False, prefix="p."), table("t", who, x, unit=unit), JoinKind.LEFT, ((key, x),))
    engine = SparkEngine({"t": view, "p": PublicTable(pa.table({"key": [1, 2]}))})
    with closing(engine), pytest.raises(Refused, match="not on Spark yet"):
        engine.check_stages([stage(both, unit=unit)])


def test_files_that_are_not_those_that_were_listed_are_refused(spark: Any, place: Path, view: Any) -> None:
    with closing(SparkEngine({"v": view})) as engine:
        engine.check_unchanged()
        for file in (place / "v").glob("*.parquet"):
            shutil.copy(file, place / "copy")
            file.write_bytes((place / "copy").read_bytes() + b" ")
        with pytest.raises(Refused, match="files of table 'v'"):
            engine.check_unchanged()
        who, x = field("who", Kind.INTEGER), field("x", Kind.INTEGER)
        with pytest.raises(AnswerFailed):
            run(engine, stage(table("v", who, x, unit="who"), unit="who"))


@pytest.mark.parametrize("master", ["spark://a:7077", "yarn", "k8s://https://a", "local-cluster[2,1,1024]"])
def test_a_cluster_in_the_clear_is_refused(master: str) -> None:
    safe = {"spark.authenticate": "true", "spark.network.crypto.enabled": "true"}
    for settings in ({}, *({name: "true"} for name in safe)):
        with pytest.raises(Refused, match="no authentication, or no encryption"):
            check_cluster(SimpleNamespace(master=master, getConf=lambda settings=settings: settings))
    check_cluster(SimpleNamespace(master=master, getConf=lambda: safe))
    check_cluster(SimpleNamespace(master="local[4]", getConf=dict))


def test_executors_with_other_versions_are_refused(spark: Any, view: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_engine, "_TRIED", set())
    monkeypatch.setattr(spark_engine, "versions", lambda: ["numpy 0"])
    with pytest.raises(Refused, match="do not have what the driver has"):
        SparkEngine({"t": view})


def test_what_is_not_spread_yet_is_refused_before_the_charge(view: Any) -> None:
    outer = dp.Unit("who", max_groups=1, max_rows_per_group=1)
    inner = dp.Unit(["who", "x"], name="stay", max_groups=1, max_rows_per_group=1)
    chain = dp.Chain(outer, inner, max_inner=2)
    with session_on(view, chain) as session:
        plan = session.sql("SELECT COUNT(*) AS n FROM v", epsilon=1)
        with pytest.raises(Refused, match="not on Spark yet"):
            plan.release()
        assert "spent: nothing" in repr(session)


# --- nothing is told ---

CANARY = "canary_4711"


def test_a_row_that_fails_is_the_constant_failure(spark: Any, place: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The error of a cast has the value in it; it must not reach whoever asks."""
    rows = pa.table({"who": pa.array([1, 2]), "x": pa.array(["1", CANARY])})
    frame = spark_table(spark, place, "w", rows).selectExpr("who", "CAST(x AS INT) AS x")
    with session_on(frame) as session:
        plan = session.sql("SELECT SUM(x) AS s FROM v", epsilon=1)
        with pytest.raises(AnswerFailed) as failed:
            plan.release()
    assert CANARY not in str(failed.value)
    assert failed.value.__context__ is None
    assert failed.value.__cause__ is None
    assert CANARY not in "".join(capfd.readouterr())


def test_keys_are_in_no_plan_setting_or_event(spark: Any, view: Any) -> None:
    label = "keys in events"
    keys = Recorded(label).read(4096)
    with session_on(view) as session:
        plan = session.sql("SELECT SUM(x) AS s FROM v", epsilon=1)
        with replayed(label) as recording:
            session._desk.engine.run_all(plan._asked.stages, deadline=Deadline.after(300))
        used = recording.used
    assert used >= 128
    context = spark.sparkContext
    told = str(context.getConf().getAll())
    log = Path(context.getConf().get("spark.eventLog.dir").removeprefix("file:"))
    events = b"".join(file.read_bytes() for file in log.rglob("*") if file.is_file())
    assert b"SparkListenerJobEnd" in events
    for start in range(0, used, 32):
        key = keys[start : start + 32]
        for written in (key, key.hex().encode(), repr(key).encode()):
            assert written not in events
            assert written not in told.encode()


def test_time_that_is_up_cancels_the_jobs(spark: Any, view: Any) -> None:
    who, x = field("who", Kind.INTEGER), field("x", Kind.INTEGER)
    asked = stage(table("t", who, x, unit="who"), unit="who")
    with closing(SparkEngine({"t": view})) as engine, pytest.raises(AnswerFailed):
        engine.run(asked, deadline=Deadline.after(0.05))
    assert not list(spark.sparkContext.statusTracker().getActiveJobsIds())


def test_progress_tells_time_and_nothing_else(view: Any) -> None:
    told: list[tuple[float, float]] = []
    who, x = field("who", Kind.INTEGER), field("x", Kind.INTEGER)
    engine = SparkEngine({"t": view}, on_progress=lambda *seconds: told.append(seconds))
    with closing(engine):
        engine.run(stage(table("t", who, x, unit="who"), unit="who"), deadline=Deadline.after(60))
    assert told
    assert all(0 <= gone <= 60 and Fraction(allowed) <= 60 for gone, allowed in told)
