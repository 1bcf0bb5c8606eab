"""A real Spark: one session on two cores for a whole run of pytest, made by the first test that asks for it.

A process has one Spark at a time; `xdist_group("spark")` keeps all tests of it in one process.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
    "spark.eventLog.rolling.enabled": "false",
    "spark.sql.ansi.enabled": "true",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
}


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    log = tmp_path_factory.mktemp("events")
    builder = SparkSession.builder.master("local[2]").config("spark.eventLog.dir", log.as_uri())
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


def spark_table(session: Any, folder: Path, name: str, table: pa.Table) -> Any:
    """Write a table to two files and read it with Spark."""
    place = folder / name
    place.mkdir()
    half = max(1, table.num_rows // 2)
    for number, part in enumerate((table.slice(0, half), table.slice(half))):
        pq.write_table(part, place / f"{number}.parquet")
    return session.read.parquet(str(place))
