"""Killed at any step: what was released is on record, a key replays bit by bit, and is charged once."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from session_crash import QUERY, STEPS
from session_data import charges, opened

FOLDER = Path(__file__).parent
CHARGED = [step for step in STEPS if step not in ("before looking", "before the charge")]


def run(folder: Path, step: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(FOLDER / "session_crash.py"), str(folder), step]
    return subprocess.run(command, capture_output=True, text=True, check=False)


SOON = ("before the charge", "after the charge", "after the draw", "after storing")
LATER = [pytest.param(step, marks=pytest.mark.slow) for step in STEPS if step not in SOON]


@pytest.mark.parametrize("step", [*SOON, *LATER])
def test_a_kill_at_any_step_loses_no_charge_and_releases_nothing_twice(step, tmp_path):
    died = run(tmp_path, step)
    assert died.returncode == (0 if step == "nowhere" else -signal.SIGKILL), died.stderr
    with opened(tmp_path) as session:
        assert charges(session) == (step in CHARGED)
        plan = session.sql(QUERY, epsilon=1, key="the one")
        first = plan.release()
        assert plan.release().to_json() == first.to_json()
        assert charges(session) == 1
    if step == "nowhere":
        assert died.stdout.strip() == first.to_json()
