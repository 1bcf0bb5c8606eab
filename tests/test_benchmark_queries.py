"""The benchmarks of private SQL measure what they say: their rows, their scaling and their limits."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest

from benchmarks import bench_queries, bench_spread, crowd
from benchmarks.crowd_names import CITIES, JOBS
from benchmarks.results import Results


@pytest.fixture
def rows(tmp_path, monkeypatch):
    monkeypatch.setattr("benchmarks.crowd.folder", lambda: tmp_path)
    return lambda kind: pq.read_table(crowd.crowd(kind, 50_000)).to_pydict()


def test_often_has_ten_rows_a_user_in_known_cities(rows):
    found = rows("often")
    assert len(found["user_id"]) == 50_000
    assert 4_000 <= len(set(found["user_id"])) <= 5_000
    assert set(found["city"]) <= set(range(CITIES))


def test_once_has_planted_duplicates_and_few_of_them(rows):
    users = rows("once")["user_id"]
    assert 0.98 * len(users) < len(set(users)) < len(users)


def results(*found):
    return Results("queries", False, "", {}, {}, list(found))


def test_a_smaller_job_is_scaled_up():
    small = results({"subject": "pipeline-dp", "job": JOBS[0].name, "rows": 200_000, "cpu": 2.0, "wall": 3.0})
    assert bench_queries.seconds(small, "pipeline-dp", JOBS[0]) == 100.0


@pytest.mark.parametrize(("ours", "reached"), [(0.7, True), (0.71, False)])
def test_goal_compares_with_plain_duckdb(ours, reached):
    found = results(
        {"subject": "discreet", "job": JOBS[0].name, "rows": 10**7, "cpu": ours, "wall": ours},
        {"subject": "duckdb", "job": JOBS[0].name, "rows": 10**7, "cpu": 0.2, "wall": 0.2},
    )
    plain, opendp, _ = bench_queries.goals(found, JOBS[0])
    assert plain.reached is reached
    assert opendp.reached is None  # It was not measured.


ROW = {"predicted": 3.0, "low": 2.9, "high": 3.1, "thresholded": False, "covered": 1_900, "cells": 2_000}


@pytest.mark.parametrize(("change", "fits"), [({}, True), ({"predicted": 3.2}, False), ({"predicted": None}, None)])
def test_a_prediction_outside_of_its_limits_is_rejected(change, fits):
    assert bench_spread.fits(ROW | change) is fits


@pytest.mark.parametrize(("covered", "enough"), [(1_900, True), (1_870, True), (1_860, False)])
def test_coverage_below_binomial_limits_is_rejected(covered, enough):
    assert bench_spread.covers(ROW | {"covered": covered}) is enough
