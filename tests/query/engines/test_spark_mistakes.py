"""Mistakes that are planted into a real Spark: none of them becomes an answer (check C43).

What tasks do wrong is planted in test_spread_contract.py, where tasks run in this process; here it is what Spark itself
could do wrong: where rows go, and which results of tasks arrive how often.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from engine_small import check_many, many_rows
from engine_trees import column, field, plain, run, stage, table
from spark_session import spark_table
from system_parts import needs_spark

from discreet.errors import AnswerFailed
from discreet.query.spark import spark_engine
from discreet.query.spark.partition_reports import Report
from discreet.query.spark.spark_engine import SparkEngine
from discreet.schema.columns import Kind

pytestmark = [needs_spark, pytest.mark.slow]

PEOPLE = pa.table({"who": [str(number % 60) for number in range(180)], "x": range(180)})
WHO, X = field("who", Kind.TEXT), field("x", Kind.INTEGER)


def count(spark: Any, folder: Path, unit: str | None) -> Any:
    asked = stage(table("t", WHO, X, unit=unit), unit=unit, columns=[column(X, 0, 200)], max_rows=2)
    with closing(SparkEngine({"t": spark_table(spark, folder, "t", PEOPLE)}, parts=4)) as engine:
        return plain(run(engine, asked))[()]


@pytest.mark.parametrize("unit", ["who", None])
def test_without_a_mistake_all_are_counted(spark: Any, tmp_path: Path, unit: str | None) -> None:
    assert count(spark, tmp_path, unit)["units"] == (60 if unit else 180)


@pytest.mark.parametrize("rule", ["round robin", "by table", "one of them empty"])
def test_a_wrong_partitioner_is_found(spark: Any, tmp_path: Path, rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyspark.sql import DataFrame

    by_id = DataFrame.repartitionById
    wrong: dict[str, Callable[[Any, int, Any], Any]] = {
        "round robin": lambda frame, parts, _: frame.repartition(parts),
        "by table": lambda frame, parts, _: frame.repartition(parts, "place"),
        "one of them empty": lambda frame, parts, key: by_id(frame.where("part <> 2"), parts, key),
    }
    monkeypatch.setattr(type(spark.range(1)), "repartitionById", wrong[rule])
    with pytest.raises(AnswerFailed):
        count(spark, tmp_path, "who")


@pytest.mark.parametrize("unit", ["who", None])
@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda reports: reports[1:], id="a dropped partition"),
        pytest.param(
            lambda reports: [one for one in reports if one.parts != reports[-1].parts], id="the last partition dropped"
        ),
        pytest.param(lambda reports: [*reports, reports[0]], id="a task run twice and counted twice"),
        pytest.param(lambda reports: [reports[0], reports[0], *reports[2:]], id="one in the place of another"),
    ],
)
def test_results_that_are_lost_or_doubled_are_found(
    spark: Any,
    tmp_path: Path,
    unit: str | None,
    spoil: Callable[[list[Report]], list[Report]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("check_parts", "check_sources"):
        check = getattr(spark_engine, name)
        monkeypatch.setattr(spark_engine, name, lambda reports, *more, check=check: check(spoil(reports), *more))
    with pytest.raises(AnswerFailed):
        count(spark, tmp_path, unit)


@pytest.mark.slow
def test_sums_of_ten_million_rows_are_exact(spark: Any, tmp_path: Path) -> None:
    pyarrow.parquet.write_table(many_rows(), tmp_path / "many.parquet", row_group_size=1 << 20)
    with closing(SparkEngine({"many": spark.read.parquet(str(tmp_path / "many.parquet"))})) as engine:
        for unit in ("who", None):
            check_many(engine, unit)
