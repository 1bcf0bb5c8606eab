"""The benchmark of robustness judges as it says."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks import bench_robustness
from benchmarks.results import Results


def covered(least: float) -> dict[str, Any]:
    return {"part": "coverage", "runs": 2000, "least": least}


def moved(private: float) -> dict[str, Any]:
    return {"part": "outliers", "exact_move": 0.09, "private_move": private, "noise": 0.004}


@pytest.mark.parametrize(
    ("least", "reached"), [(0.99, True), (0.93, True), (0.913, True), (0.911, False), (0.8, False)]
)
def test_coverage_is_judged_up_to_what_chance_does(least: float, reached: bool) -> None:
    """Of 2,000 samples, 0.93 falls below 0.9124 once in a thousand times."""
    assert bench_robustness.goals(covered(least)).reached is reached


@pytest.mark.parametrize(("private", "reached"), [(0.08, True), (0.0939, True), (-0.0939, True), (0.0941, False)])
def test_moves_are_judged_up_to_the_noise(private: float, reached: bool) -> None:
    assert bench_robustness.goals(moved(private)).reached is reached


def test_the_last_run_reached_every_goal() -> None:
    rows = Results.read("robustness").rows
    assert len([row for row in rows if row["part"] == "coverage"]) == 16
    assert len([row for row in rows if row["part"] == "outliers"]) == 18
    assert all(bench_robustness.goals(row).reached for row in rows)
