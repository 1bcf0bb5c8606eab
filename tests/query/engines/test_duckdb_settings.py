"""Settings of the engine hold on every connection that runs a query, wherever and in whatever language it runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

ZONES = ("UTC", "Asia/Tokyo", "America/Los_Angeles")
LOCALES = ("C", "C.UTF-8", "POSIX")
EXPECTED = {
    "TimeZone": "UTC",
    "Calendar": "gregorian",
    "default_collation": "",
    "threads": 3,
    "max_temp_directory_size": "18.6 GiB",
    "python_enable_replacements": False,
    "autoload_known_extensions": False,
    "autoinstall_known_extensions": False,
    "allow_community_extensions": False,
    "allow_persistent_secrets": False,
    "preserve_insertion_order": False,
    "error_on_division_by_zero": False,
    "ieee_floating_point_ops": True,
    "integer_division": False,
    "default_order": "ASCENDING",
    "default_null_order": "NULLS_LAST",
    "enable_external_access": False,
    "lock_configuration": True,
}
ASKED = """
import json, locale, sys, threading
from contextlib import closing, suppress

with suppress(locale.Error):
    locale.setlocale(locale.LC_ALL, "")

import discreet as dp
from discreet.query.engine import Deadline
from discreet.query.engines.duckdb import DuckDBEngine
from discreet.query.plan.draft import Spend
from discreet.query.plan.planner import plan
from discreet.query.parse.select import read
from discreet.query.session.catalogue_builder import build_catalogue

paths, names = json.loads(sys.argv[1]), json.loads(sys.argv[2])


def settings(connection):
    return [connection.execute(f"SELECT current_setting('{name}')").fetchone()[0] for name in names]


def counts(path):
    tables, unit = {"t": path}, dp.Unit("row")
    with closing(DuckDBEngine(tables, threads=3)) as engine:
        found = [engine._ask(settings, ["t"])]
        other = threading.Thread(target=lambda: found.append(engine._ask(settings, ["t"])))
        other.start()
        other.join()
        assert found[0] == found[1]
        catalogue = build_catalogue(engine, tables, unit=unit, columns={})
        numbers = []
        for sql in (
            "SELECT COUNT(*) AS n FROM t WHERE CAST(at AS DATE) = DATE '2026-03-08'",
            "SELECT COUNT(*) AS n FROM t WHERE EXTRACT(hour FROM at) = 2",
            "SELECT COUNT(*) AS n FROM t WHERE at < TIMESTAMP '2026-03-08 12:00:00'",
            "SELECT COUNT(*) AS n FROM t WHERE CAST(CAST(at AS DATE) AS VARCHAR) = '2026-03-08'",
            "SELECT COUNT(*) AS n FROM t WHERE x = 1.5",
        ):
            question = read(sql, catalogue).question
            stage = plan(question, catalogue, Spend(epsilon=1), pure=True).stage
            numbers.append(int(engine.run(stage, deadline=Deadline.after(60)).tally.rows[0]))
    return found[0], numbers


print(json.dumps([counts(path) for path in paths]))
"""


def asked(paths: list[str], zone: str, language: str) -> Any:
    environment = dict(os.environ, TZ=zone, LC_ALL=language)
    command = [sys.executable, "-c", ASKED, json.dumps(paths), json.dumps(list(EXPECTED))]
    return json.loads(subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """A stored moment with a zone, in a Parquet file and in a database: every hour of two days, by UTC."""
    folder: Path = tmp_path_factory.mktemp("zones")
    start = 1772841600 * 10**6  # 2026-03-07; zones with summer time change on the day after.
    moments = pa.array([start + hour * 3600 * 10**6 for hour in range(48)]).view(pa.timestamp("us", "UTC"))
    table = pa.table({"at": moments, "x": pa.array([1.5] * 48)})
    pq.write_table(table, folder / "t.parquet")
    with duckdb.connect(str(folder / "t.duckdb")) as connection:
        connection.register("given", table)
        connection.execute("CREATE TABLE t AS SELECT * FROM given")
    return [str(folder / "t.parquet"), str(folder / "t.duckdb")]


@pytest.mark.long
@pytest.mark.parametrize(("zone", "language"), list(zip(ZONES, LOCALES, strict=True)))
def test_settings_hold_on_the_connection_that_runs_a_query(files: list[str], zone: str, language: str) -> None:
    for settings, counts in asked(files, zone, language):
        assert dict(zip(EXPECTED, settings, strict=True)) == EXPECTED
        assert counts == [24, 2, 36, 24, 48]
