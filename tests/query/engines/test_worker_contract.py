"""An engine whose reading is done by workers keeps the laws of all engines, to the last number."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import closing
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engine_contract import EngineContract
from engine_small import SMALL, small_source, small_world
from engine_together import TogetherContract, family, together
from engine_trees import column, plain, run, stage
from recorded import replayed

from discreet.errors import InvalidParameter
from discreet.query.bounding.aggregation import MeasureTally, Tally
from discreet.query.engine import Engine, ExactCounts, RowEngine
from discreet.query.engines.duckdb import DuckDBEngine
from discreet.query.engines.tables import Csv, Database, Parquet
from discreet.query.workers import worker_engine
from discreet.query.workers.messages import ByteBlocks, decoded, encoded, read_tallied, write_tallied
from discreet.query.workers.worker_engine import WorkerEngine, _settings


class TestWorkers(EngineContract):
    @classmethod
    def make(cls, tables: dict[str, Any], **options: Any) -> WorkerEngine:
        return WorkerEngine(tables, **options)


class TestWorkersTogether(TogetherContract):
    @classmethod
    def make(cls, tables: dict[str, Any], **options: Any) -> WorkerEngine:
        return WorkerEngine(tables, **options)


def unlisted(max_groups: int) -> Any:
    keys = [(SMALL["city"], None), (SMALL["day"], None)]
    columns = [column(SMALL["amount"], -50, 50)]
    return stage(small_source("who"), unit="who", keys=keys, columns=columns, max_groups=max_groups, max_rows=1)


def test_a_worker_draws_nothing_of_its_own() -> None:
    """The same recorded bytes here choose the same rows there: all secrets are drawn by the one that asks."""

    def chosen(engine: Engine) -> tuple[list[Any], Any, int]:
        with closing(engine), replayed("workers") as recording:
            stages = [*family(max_groups=1, max_rows=1), unlisted(1)]
            return [plain(one) for one in together(engine, stages)], plain(run(engine, unlisted(2))), recording.used

    here = chosen(DuckDBEngine(small_world()))
    assert chosen(WorkerEngine(small_world())) == here
    assert chosen(WorkerEngine(small_world())) == here
    assert here[2] > 0


@pytest.mark.parametrize(
    ("choices", "left_out"),
    [
        ({"X86_V3", "X86_V4", "AVX512_ICL"}, "X86_V4 AVX512_ICL"),
        ({"AVX2", "AVX512_SKX"}, "AVX512_SKX"),
        (set(), ""),  # built for AVX-512 and nothing else: it would not load without it
    ],
)
def test_workers_sort_by_avx2_on_processors_that_are_slow_at_avx_512(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, choices: set[str], left_out: str
) -> None:
    """What they choose is the same either way: the test above compares a worker with this process."""
    monkeypatch.setattr(worker_engine, "_chosen_among", lambda: choices)
    facts = tmp_path / "cpuinfo"
    told = {}
    for vendor in ("AuthenticAMD", "GenuineIntel"):
        facts.write_text(f"processor : 0\nvendor_id : {vendor}\n")
        told[vendor] = _settings(str(facts)).get("NPY_DISABLE_CPU_FEATURES", "")
    assert told["AuthenticAMD"] == left_out
    assert told["GenuineIntel"] == _settings(str(tmp_path / "none")).get("NPY_DISABLE_CPU_FEATURES", "") == ""


def test_numpy_loads_without_what_it_chooses_among() -> None:
    names = " ".join(worker_engine._chosen_among())
    command = [sys.executable, "-c", "import numpy"]
    subprocess.run(command, env={**os.environ, "NPY_DISABLE_CPU_FEATURES": names}, check=True, timeout=60)


def test_both_engines_hand_over_rows() -> None:
    with closing(WorkerEngine(small_world())) as one, closing(DuckDBEngine(small_world())) as other:
        assert isinstance(one, RowEngine)
        assert isinstance(other, RowEngine)


MEMBERS = (
    *(None, True, False, 0, -1, 1 << 61, 1 << 62, -(1 << 200), 0.1, -0.0, float("inf"), "", "é", "\ud800", "x" * 9999),
    *(Fraction(1, 3), Fraction(-(1 << 200), 3), Decimal("1.50"), date(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 1)),
)


def spelled(value: Any) -> str:
    """Tell apart what is equal, such as 1 and True; members of a set come in any order."""
    if isinstance(value, frozenset):
        return f"set of {sorted(map(spelled, value))}"
    return f"({', '.join(map(spelled, value))})" if type(value) is tuple else repr(value)


@pytest.mark.parametrize("value", [*MEMBERS, MEMBERS, (), ((1, (2,)), frozenset({"a", "b"})), unlisted(3)])
def test_values_come_back_as_they_were(value: Any) -> None:
    import json

    back = decoded(json.loads(json.dumps(encoded(value))))
    assert back == value
    assert spelled(back) == spelled(value)


@pytest.mark.parametrize(
    "held", [Parquet(("/a", "/b'")), Csv(("/c.csv",), ("a", 'b"'), ","), Database("/d.duckdb", "t")]
)
def test_files_come_back_as_they_were(held: Any) -> None:
    assert decoded(encoded(held)) == held


def test_members_of_other_kinds_are_what_they_stand_for() -> None:
    east = timezone(timedelta(hours=2))
    given = (np.int64(3), np.float64(0.5), np.str_("a"), np.bool_(True), datetime(2026, 1, 1, 2, tzinfo=east))
    back = decoded(encoded(given))
    assert back == (3, 0.5, "a", True, datetime(2026, 1, 1, 0, tzinfo=UTC))
    assert [type(one) for one in back] == [int, float, str, bool, datetime]


def test_what_is_no_part_of_a_question_is_not_written() -> None:
    for value in (object(), lambda: None, {"a": 1}, b"x", [1], int):
        with pytest.raises(InvalidParameter, match="cannot be handed"):
            encoded(value)
    for nodes in ([["open", "/etc/passwd"]], [["tuple", [0]]], [["Stage", 1]], []):
        with pytest.raises((KeyError, IndexError, ValueError)):
            decoded(nodes)


def test_what_occurs_in_many_places_is_written_once() -> None:
    many = tuple(range(10_000))
    assert len(encoded((many,) * 50)) <= 4


def test_sums_of_any_size_come_back() -> None:
    large = np.array([0, 1, -1, 1 << 61, 1 << 62, -(1 << 62), 1 << 139, -(1 << 139), (1 << 200) - 7], object)
    none = np.zeros(large.size, np.int64)
    measure = MeasureTally(counts=none, total=large, squares=-large, distinct=None, values=None)
    known = stage(small_source("who"), unit="who", keys=[(SMALL["shop"], tuple(range(large.size)))])
    blocks = ByteBlocks()
    tallied = ExactCounts(groups=large.size, tally=Tally(units=none, rows=none, measures=(measure,)), keys=lambda _: [])
    back = read_tallied(write_tallied(tallied, known, blocks), [bytes(block) for block in blocks.all], known)
    (found,) = back.tally.measures
    assert found.total is not None
    assert found.squares is not None
    assert found.total.tolist() == large.tolist()
    assert found.squares.tolist() == (-large).tolist()
    assert {type(value) for value in found.total} == {int}
    assert back.keys([2]) == [(2,)]
