"""The demo: short, private, and its table can be made again."""

from __future__ import annotations

import csv
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest

from discreet import demo
from discreet.mechanisms.accuracy import NoInterval

ROOT = Path(__file__).parents[2]


def test_the_demo_prints_answers_with_errors_and_costs(capsys: pytest.CaptureFixture[str]) -> None:
    demo.main()
    text = capsys.readouterr().out
    assert text.count("ε = ") >= 5
    assert text.count("±") >= 8
    assert "All answers together" in text
    assert "docs/quickstart.md" in text
    assert (ROOT / "docs" / "quickstart.md").exists()
    assert len(text.splitlines()) < 40


def test_the_demo_does_not_print_the_exact_numbers() -> None:
    """Fresh noise every time: twelve equal draws have a chance below 1e-11, an exact number is always the same."""
    table = demo._table()
    runs = [[release for _, release in demo.answers(table)] for _ in range(12)]
    for releases in zip(*runs, strict=True):
        values = [release.value if isinstance(release.value, tuple) else (release.value,) for release in releases]
        if not isinstance(releases[0].accuracy, NoInterval):  # a chosen quantile may well be the same each time
            assert all(len(set(cell)) > 1 for cell in zip(*values, strict=True))


def test_the_table_can_be_made_again() -> None:
    made = subprocess.run(
        [sys.executable, ROOT / "scripts" / "make_visits.py"], capture_output=True, check=True, text=True
    ).stdout
    kept = (files("discreet") / "data" / "visits.csv").read_text(encoding="utf-8")
    assert made == kept
    rows = list(csv.DictReader(kept.splitlines()))
    assert len(rows) == 2000
    assert {row["clinic"] for row in rows} == set(demo.CLINICS)
