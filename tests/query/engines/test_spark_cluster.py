"""A standalone master with two workers: the numbers of one machine, whoever dies, lags or runs twice meanwhile."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from agreement_questions import worlds
from engine_trees import column, field, plain, run, stage, table
from engines_agree import agree
from recorded import replayed
from spark_faults import kills, lags
from spark_questions import frames, session_on
from spark_session import SAFE, SparkSessions, paths, spark_table, standalone
from system_parts import needs_spark

from discreet.errors import AnswerFailed, Refused
from discreet.query.engine import Deadline
from discreet.query.engines.duckdb import DuckDBEngine
from discreet.query.spark import spark_engine
from discreet.query.spark.spark_engine import SparkEngine
from discreet.schema.columns import Kind

pytestmark = [needs_spark, pytest.mark.slow]
WHO, X = field("who", Kind.INTEGER), field("x", Kind.INTEGER)
ROWS = pa.table({"who": [number % 997 for number in range(9_970)], "x": [number % 10 for number in range(9_970)]})
COUNT = stage(
    table("v", WHO, X, unit="who"), unit="who", keys=[(X, None)], columns=[column(X, 0, 9)], max_groups=2, max_rows=3
)

OF_EXECUTORS = {
    "spark.executor.memory": "640m",
    "spark.executor.cores": "1",
    "spark.cores.max": "2",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",  # Both executors are there before the first task.
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "120s",
}
SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "20ms",
    "spark.speculation.multiplier": "1.01",
    "spark.speculation.quantile": "0.01",
    "spark.speculation.minTaskRuntime": "10ms",
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, dict[str, str]]]:
    """Run a master and two workers that trust and read each other only by a secret; say how to ask them."""
    safe = {**SAFE, "spark.authenticate.secret": secrets.token_hex(32)}
    with standalone(tmp_path_factory.mktemp("cluster"), safe, workers=2) as master:
        yield master, {**safe, **OF_EXECUTORS, "spark.executorEnv.PYTHONPATH": paths()}


@pytest.fixture
def spark_cluster(spark_sessions: SparkSessions, cluster: tuple[str, dict[str, str]]) -> Any:
    master, settings = cluster
    return spark_sessions.on(master, settings)


@pytest.fixture
def spark_speculating(spark_sessions: SparkSessions, cluster: tuple[str, dict[str, str]]) -> Any:
    master, settings = cluster
    return spark_sessions.on(master, settings | SPECULATION)


def meant() -> Any:
    """Return the numbers of one machine."""
    with closing(DuckDBEngine({"v": ROWS})) as engine, replayed("cluster"):
        return plain(run(engine, COUNT))


def counted(frame: Any) -> Any:
    """Return the numbers of the cluster, in two parts at least."""
    with closing(SparkEngine({"v": frame})) as engine, replayed("cluster"):
        return plain(engine.run(COUNT, deadline=Deadline.after(300)))


def planted(monkeypatch: pytest.MonkeyPatch, step: str, fault: Any, *words: Any) -> None:
    monkeypatch.setattr(spark_engine, step, partial(fault, *words, step))


@pytest.mark.parametrize("name", worlds())
def test_all_queries_agree(spark_cluster: Any, tmp_path: Path, name: str) -> None:
    assert agree(worlds()[name], partial(frames, spark_cluster, tmp_path), every=4 if name == "nasty row" else 1)


def test_both_executors_count(spark_cluster: Any, tmp_path: Path) -> None:
    assert counted(spark_table(spark_cluster, tmp_path, "v", ROWS)) == meant()
    executors = spark_cluster.sparkContext._jsc.sc().statusTracker().getExecutorInfos()
    assert len(executors) == 1 + 2  # The driver is one of them.


@pytest.mark.parametrize("step", ["route", "count_part"])
def test_a_killed_executor_changes_no_number(
    spark_cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """With it go the files of its shuffle, so that tasks which were done run again."""
    frame, folder = spark_table(spark_cluster, tmp_path, "v", ROWS), tmp_path / "killed"
    folder.mkdir()
    planted(monkeypatch, step, kills, folder, 1)
    assert counted(frame) == meant()
    assert len(list(folder.iterdir())) == 1


@pytest.mark.parametrize(("times", "answers"), [(1, True), (99, False)])
def test_a_question_whose_executors_are_killed_is_charged_once(
    spark_cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int, answers: bool
) -> None:
    frame, folder = spark_table(spark_cluster, tmp_path, "v", ROWS), tmp_path / "killed"
    folder.mkdir()
    with session_on(frame) as session:
        plan = session.sql("SELECT SUM(x) AS s FROM v", epsilon=1)
        planted(monkeypatch, "count_part", kills, folder, times)
        if answers:
            plan.release()
        else:
            with pytest.raises(AnswerFailed):
                plan.release()
        assert (session.spent.epsilon, session.spent.charges) == (1, 1)
    killed = len(list(folder.iterdir()))
    assert killed == 1 if answers else killed >= 4  # as often as Spark tries a task


@pytest.mark.parametrize("ends", [True, False])
@pytest.mark.parametrize("step", ["route", "count_part"])
def test_a_task_that_runs_twice_counts_once(
    spark_speculating: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, ends: bool
) -> None:
    frame, folder = spark_table(spark_speculating, tmp_path, "v", ROWS), tmp_path / "attempts"
    folder.mkdir()
    planted(monkeypatch, step, lags, folder, ends)
    assert counted(frame) == meant()
    told = {file.name for file in folder.iterdir()}
    assert told >= {"0 began", "1 began", "1 ended"} | ({"0 ended"} if ends else set())


def test_a_cluster_in_the_clear_is_refused(spark_sessions: SparkSessions, tmp_path: Path) -> None:
    """A real one: its executors would have counted."""
    with standalone(tmp_path / "cluster", {}, workers=1) as master:
        session = spark_sessions.on(master, {"spark.executor.memory": "640m"})
        frame = spark_table(session, tmp_path, "v", ROWS)
        assert frame.count() == ROWS.num_rows
        with pytest.raises(Refused, match="no authentication, or no encryption"):
            SparkEngine({"v": frame})
        spark_sessions.stop()
