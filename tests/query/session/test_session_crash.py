"""Killed at any step: what was released is on record, a key replays bit by bit, is charged once and read once."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from searching import searched
from session_crash import QUERY, STEPS
from session_data import charges, opened

import discreet as dp
from discreet.errors import InvalidParameter
from discreet.query.workers.worker_engine import WorkerEngine

FOLDER = Path(__file__).parent
CHARGED = [step for step in STEPS if step not in ("before looking", "before the charge")]
UNANSWERED = [step for step in CHARGED if step not in ("after storing", "nowhere")]


def run(folder: Path, step: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(FOLDER / "session_crash.py"), str(folder), step]
    return subprocess.run(command, capture_output=True, text=True, check=False)


SOON = ("before the charge", "after the charge", "after the draw", "after storing")
LATER = [pytest.param(step, marks=pytest.mark.slow) for step in STEPS if step not in SOON]


@pytest.mark.long
@pytest.mark.parametrize("step", [*SOON, *LATER])
def test_a_kill_at_any_step_loses_no_charge_and_reads_nothing_twice(step, tmp_path, monkeypatch):
    died = run(tmp_path, step)
    assert died.returncode == (0 if step == "nowhere" else -signal.SIGKILL), died.stderr
    with opened(tmp_path) as session:
        assert charges(session) == (step in CHARGED)
        plan = session.sql(QUERY, epsilon=1, idempotency_key="the one")
        if step in UNANSWERED:
            with monkeypatch.context() as watched:
                watched.setattr(WorkerEngine, "run_all", lambda *given, **named: pytest.fail("it was read again"))
                with pytest.raises(dp.AnswerFailed):
                    plan.release()
            (claim,) = session.ledger.claims()
            session.ledger.release_claim(claim.charge, reason="the power failed", principal="custodian")
        assert session.ledger.claims() == ()
        first = plan.release()
        assert plan.release().to_json() == first.to_json()
        assert charges(session) == 1
    if step == "nowhere":
        assert died.stdout.strip() == first.to_json()


@pytest.mark.soak
def test_kills_at_any_time_leave_every_released_answer_on_record(tmp_path):
    released: dict[str, str] = {}
    moments = random.Random(searched(40))
    for kill in range(40):
        command = [sys.executable, str(FOLDER / "session_crash.py"), str(tmp_path), "any", str(1000 * kill)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            first = child.stdout.readline()
            time.sleep(moments.uniform(0, 0.15))
            child.kill()
            lines = [first, *child.stdout.read().splitlines()]
        # The last line may have been cut by the kill.
        whole = [line.split(" ", 1) for line in lines if line.rstrip().endswith("}")]
        released |= {key: answer.rstrip() for key, answer in whole}
        with opened(tmp_path) as session, suppress(InvalidParameter):  # It says so if no read was cut short.
            session.ledger.reopen("ana", reason="killed by a test", principal="custodian")
    assert len(released) >= 40
    with opened(tmp_path) as session:
        session._desk.ledger.verify()
        before = charges(session)
        assert before >= len(released)
        for key, answer in released.items():
            assert session.sql(QUERY, epsilon="0.01", idempotency_key=key).release().to_json() == answer
        assert charges(session) == before
