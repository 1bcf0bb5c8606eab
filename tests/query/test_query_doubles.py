"""Where rows are units, no row is counted twice: public keys that differ where they are stored but not where they meet.

A public table must have each key once, or a row that matches twice counts twice. What counts is the value that the join
compares: a long decimal becomes a double, a number beyond 64 bits the largest of them, and nanoseconds microseconds.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from review_sql import counted, planned

import discreet as dp
from discreet.query.engines.sql_expressions import coded
from discreet.query.engines.sql_writer import Writer
from discreet.schema.columns import ExpressionFacts, Kind

MERGING: dict[str, tuple[Any, Any]] = {
    "decimals that are one double": (
        pa.array([Decimal("10000000000.0000000001"), Decimal("10000000000.0000000002")], pa.decimal128(38, 10)),
        pa.array([1e10]),
    ),
    "numbers beyond 64 bits": (pa.array([2**63 + 5, 2**63 + 6], pa.uint64()), pa.array([2**63 - 1])),
    "nanoseconds of one microsecond": (
        pa.array([1, 2], pa.int64()).view(pa.timestamp("ns")),
        pa.array([0], pa.int64()).view(pa.timestamp("us")),
    ),
}


@pytest.mark.parametrize("stored", [True, False], ids=["file", "memory"])
@pytest.mark.parametrize("name", list(MERGING))
def test_keys_that_meet_as_one_are_no_keys(name: str, stored: bool, tmp_path: Path) -> None:
    keys, rows = MERGING[name]
    public: Any = pa.table({"k": keys, "region": ["a", "b"]})
    if stored:
        pq.write_table(public, tmp_path / "public.parquet")
        public = tmp_path / "public.parquet"
    tables = {"t": pa.table({"k": rows}), "p": dp.public(public)}
    with pytest.raises(dp.Refused, match="each key once"):
        planned("SELECT COUNT(*) AS n FROM t JOIN p ON t.k = p.k", tables)


def test_keys_that_differ_are_still_keys() -> None:
    public = pa.table({"k": pa.array([1, 2, None, None], pa.int64()), "d": pa.array([Decimal("1.5")] * 4)})
    tables = {"t": pa.table({"k": [1, 1, 2, 3]}), "p": dp.public(public)}
    assert counted("SELECT COUNT(*) AS n FROM t JOIN p ON t.k = p.k", tables).numbers == ([3],)


def test_a_key_that_is_listed_twice_takes_a_row_once() -> None:
    moment = datetime(2020, 1, 1)
    twice = [moment, pd.Timestamp("2020-01-01 00:00:00.000000001")]
    tables = {"t": pa.table({"k": pa.array([moment], pa.timestamp("us"))})}
    found = counted("SELECT k, COUNT(*) AS n FROM t GROUP BY k", tables, keys={"k": twice})
    assert sum(found.numbers[0]) == 1


@pytest.mark.parametrize("unit", [dp.Unit("row"), dp.Unit("u")])
def test_one_accent_written_in_two_ways_is_one_key(unit: dp.Unit) -> None:
    both = ["caf\u00e9", "cafe\u0301"]
    tables = {"t": pa.table({"u": [1, 2, 3], "k": [*both, "tea"]})}
    found = counted("SELECT k, COUNT(*) AS n FROM t GROUP BY k", tables, unit=unit, keys={"k": both})
    assert sum(found.numbers[0]) == max(found.numbers[0]) == 2


def test_moments_with_a_zone_are_no_keys() -> None:
    moment = datetime(2020, 1, 1)
    tables = {"t": pa.table({"k": pa.array([moment], pa.timestamp("us"))})}
    with pytest.raises(dp.InvalidParameter, match="must be of its kind"):
        planned("SELECT k, COUNT(*) AS n FROM t GROUP BY k", tables, keys={"k": [moment, moment.replace(tzinfo=UTC)]})


def test_the_engine_takes_every_moment_once() -> None:
    """The second wall: whatever reaches the engine as members, no two rows of its table are equal."""
    moment = datetime(2020, 1, 1)
    members = [moment, date(2020, 1, 1), moment.replace(tzinfo=UTC), pd.Timestamp(moment) + timedelta(microseconds=1)]
    lookup = coded("x", ExpressionFacts(kind=Kind.TIMESTAMP), members, Writer()).lookup
    assert lookup is not None
    assert lookup.table.column("v").to_pylist() == [moment, moment + timedelta(microseconds=1)]
