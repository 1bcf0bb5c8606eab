"""The demo: short, private, and its table can be made again."""

from __future__ import annotations

import csv
import re
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

from discreet import demo

ROOT = Path(__file__).parents[2]


def test_the_demo_prints_answers_with_errors_and_costs(capsys) -> None:
    demo.main()
    text = capsys.readouterr().out
    assert text.count("ε = ") >= 5
    assert text.count("±") >= 8
    assert "All answers together" in text
    assert "docs/quickstart.md" in text
    assert (ROOT / "docs" / "quickstart.md").exists()
    assert len(text.splitlines()) < 25


def test_the_demo_does_not_print_the_exact_numbers(capsys) -> None:
    """Fresh noise every time: over five runs no number is always the same, as an exact one would be."""
    runs = []
    for _ in range(5):
        demo.main()
        runs.append(re.findall(r"^  \w[\w ]+?\s+(-?[\d,]+) ±", capsys.readouterr().out, re.MULTILINE))
    assert all(len(run) == len(demo.CLINICS) for run in runs)
    assert all(len(set(column)) > 1 for column in zip(*runs, strict=True))


def test_the_table_can_be_made_again() -> None:
    made = subprocess.run(
        [sys.executable, ROOT / "scripts" / "make_visits.py"], capture_output=True, check=True, text=True
    ).stdout
    kept = (files("discreet") / "data" / "visits.csv").read_text(encoding="utf-8")
    assert made == kept
    rows = list(csv.DictReader(kept.splitlines()))
    assert len(rows) == 2000
    assert {row["clinic"] for row in rows} == set(demo.CLINICS)
