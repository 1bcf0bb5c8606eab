"""Synthetic tables are compared by the distances that are named, and no limit is passed unnoticed."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.bench_synth_auto import tables
from benchmarks.environments import ROOT
from benchmarks.limited import Limits, run_limited
from benchmarks.marginal_distances import mean_distances
from benchmarks.results import Results
from benchmarks.synth_sets import Coded, keep, kept

WIDE = Limits(seconds=60, gigabytes=4)


def run(code, limits=WIDE):
    return run_limited([sys.executable, "-S", "-c", code], ROOT, {}, limits)


def test_distances_are_half_the_l1_norm_of_shares():
    real = np.array([[0, 0, 0], [0, 0, 1], [1, 1, 0], [1, 1, 1]])
    synthetic = np.array(
        [[0, 1, 0], [0, 1, 1], [1, 0, 0], [1, 0, 1]]
    )  # Each column is right, the first two never meet.
    found = mean_distances(real, synthetic, (2, 2, 2))
    assert found == {"tvd1": 0.0, "tvd2": pytest.approx(1 / 3), "tvd3": 1.0}


def test_tables_of_different_lengths_are_compared_by_shares():
    real = np.array([[0, 1], [1, 0], [1, 1]])
    assert mean_distances(real, np.repeat(real, 5, axis=0), (2, 2))["tvd2"] == pytest.approx(0.0)


def test_large_marginals_are_left_out():
    rows = np.array([[0, 0, 0], [999, 999, 1]])
    other = np.array([[0, 999, 0], [999, 0, 1]])  # Of three pairs, two differ; one of these has a million cells.
    assert mean_distances(rows, other, (1000, 1000, 2))["tvd2"] == pytest.approx(0.5)


def test_what_is_hard_in_one_way_is_shown_below_the_tables_where_it_was_measured():
    none = Results("synth_auto", quick=True, commit="", machine="", versions={}, rows=[], failures={})
    assert len(tables(none)) == 1
    rows = [
        {"reach": "label", "epsilon": "1", "runs": 1, "real": 0.6, "without": 0.5, "with": 0.595},
        {"reach": "values", "epsilon": "1", "runs": 1, "found": 12.0, "listed": 50},
        {"reach": "columns", "columns": 45, "rows": 8000, "cpu": 41.0},
    ]
    shown = tables(replace(none, rows=rows))[1].rows
    assert [row[-1] for row in shown] == ["yes", "", "no"]
    assert shown[0][2:5] == ("0.595", "0.500", "0.600")


def test_rows_and_costs_of_a_script_are_told():
    outcome = run("print('{\"a\": 1}'); print('said')")
    assert outcome.rows == [{"a": 1}]
    assert (outcome.stopped, outcome.failed) == ("", "")
    assert min(outcome.process_cpu, outcome.peak_mb) > 0


def test_scripts_that_break_say_why():
    assert run("raise SystemExit('no such table')").failed == "no such table"


def test_scripts_that_take_too_long_are_stopped():
    outcome = run("while True: pass", Limits(seconds=0.2, gigabytes=4))
    assert outcome.stopped == "time"
    assert outcome.process_cpu < 30


def test_scripts_that_take_too_much_memory_are_stopped():
    outcome = run("import time; held = b'x' * 300_000_000; time.sleep(60)", Limits(seconds=60, gigabytes=0.1))
    assert outcome.stopped == "memory"


def test_kept_tables_come_back(tmp_path):
    table = Coded(("age", "sex"), (3, 2), np.array([[2, 1], [0, 0]], dtype=np.int32), ("age",))
    keep(table, tmp_path / "small.npz")
    back = kept(tmp_path / "small.npz")
    assert (back.names, back.sizes, back.ordered) == (table.names, table.sizes, table.ordered)
    assert (back.codes == table.codes).all()
