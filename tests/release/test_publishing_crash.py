"""Killed anywhere: one charge, one draw, no half-written bundle, and the same bytes as if nothing had happened."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from publishing_crash import ANSWERED, CHARGED, NAMED, STEPS
from publishing_world import JANUARY, SMALLER, answers, entries, files_of, world
from searching import searched

from discreet.errors import AnswerFailed
from discreet.ledger import Account, Ledger
from discreet.privacy import Relation
from discreet.release import publish, verify_bundle
from discreet.release.plan import ReleasePlan

FOLDER = Path(__file__).parent


class Nursery:
    """A process whose copies publish and die."""

    def __init__(self, folder: Path) -> None:
        paths = os.pathsep.join((str(FOLDER.parent), str(FOLDER), *sys.path))  # The same code as here.
        self._process = subprocess.Popen(
            [sys.executable, str(FOLDER / "publishing_crash.py"), str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": paths},
        )
        assert self._answer() == "ready"

    def _answer(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def run(self, folder: Path, how: str | float) -> tuple[int, float]:
        """Publish in a copy that dies at a step, or after some seconds; return how it ended and how long it took."""
        self.begin(folder, how)
        return self.ended()

    def begin(self, folder: Path, how: str | float) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{folder}\t{how}\n")
        self._process.stdin.flush()

    def ended(self) -> tuple[int, float]:
        code, seconds = self._answer().split()
        return int(code), float(seconds)

    def close(self) -> None:
        self._process.communicate()


@pytest.fixture(scope="module")
def nursery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nursery]:
    made = Nursery(tmp_path_factory.mktemp("nursery"))
    yield made
    made.close()


def check_what_is_there(plan: ReleasePlan) -> str:
    """Whatever is there under its final name is whole; tell how far the release came."""
    charges, stored = entries(plan), answers(plan)
    assert len(charges) <= 1
    assert len(stored) <= len(charges)
    there = list(plan.output.folder.glob("stays-*")) if plan.output.folder.exists() else []
    assert {path.name for path in there} <= {"stays-2026-01", "stays-2026-01.zip"}
    for path in there:
        checked = verify_bundle(path, ledger=plan.policy.ledger)
        assert checked.ok, str(checked)
    assert not there or stored
    names = ("before the charge", "charged", "answered", "in the folder", "all of it")
    return names[len(charges) + len(stored) + len(there)]


def release_claims(plan: ReleasePlan) -> None:
    """Do what a custodian does after a kill: what was read without an answer is read again only then."""
    policy = plan.policy
    account = Account(policy.dataset, policy.unit.column, Relation.ADD_REMOVE, policy.budget)
    with Ledger.open(policy.ledger, account) as book:
        for claim in book.claims():
            with pytest.raises(AnswerFailed):
                publish(plan, principal="ana", period=JANUARY)
            book.release_claim(claim.charge, reason="killed", principal="custodian")


def check_resumed(plan: ReleasePlan) -> None:
    """Going on pays nothing more, draws nothing again, and writes what a run without a kill writes."""
    charged, before = [entry.hash for entry in entries(plan)], answers(plan)
    release_claims(plan)
    publish(plan, principal="ana", period=JANUARY)
    assert check_what_is_there(plan) == "all of it"
    assert [entry.hash for entry in entries(plan)][: len(charged)] == charged
    assert before in ([], answers(plan))
    assert len(entries(plan, "answer")) == 1
    resumed = files_of(plan.output.folder)
    shutil.rmtree(plan.output.folder)
    publish(plan, principal="ana", period=JANUARY)
    assert files_of(plan.output.folder) == resumed
    assert len(entries(plan)) == len(entries(plan, "answer")) == 1
    assert not [path for path in plan.output.folder.iterdir() if path.name.startswith(".")]


def check_died_at(plan: ReleasePlan, step: str, nursery: Nursery, folder: Path) -> None:
    """Die at a step, and be there as far as that."""
    release_claims(plan)
    code, _ = nursery.run(folder, step)
    assert code == -signal.SIGKILL, step
    assert len(entries(plan)) == (step in CHARGED)
    assert len(answers(plan)) == (step in ANSWERED)
    assert (plan.output.folder / "stays-2026-01").exists() == (step in NAMED)
    check_what_is_there(plan)


@pytest.mark.long
def test_a_release_that_dies_at_every_step_is_finished_for_one_charge(nursery, tmp_path):
    plan, stored = world(tmp_path, *SMALLER), set()
    for step in STEPS:
        check_died_at(plan, step, nursery, tmp_path)
        stored |= set(answers(plan))
    assert stored == set(answers(plan))
    check_resumed(plan)


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS)
def test_a_kill_at_any_step_pays_once_draws_once_and_leaves_nothing_half(step, nursery, tmp_path):
    plan = world(tmp_path, *SMALLER)
    check_died_at(plan, step, nursery, tmp_path)
    check_resumed(plan)


def killed_at_random(nursery: Nursery, folder: Path, times: int) -> Counter[str]:
    """Kill at moments between the beginning and a little after the end; count how far the releases came."""
    came, chosen = Counter[str](), random.Random(searched(20261116))
    plan = world(folder / "whole", *SMALLER)
    code, seconds = nursery.run(folder / "whole", "nowhere")
    assert code == 0
    assert check_what_is_there(plan) == "all of it"
    for turn in range(times):
        plan = world(folder / f"killed {turn}", *SMALLER)
        code, _ = nursery.run(folder / f"killed {turn}", chosen.uniform(0, 1.1 * seconds))
        assert code in (0, -signal.SIGKILL)
        came[check_what_is_there(plan)] += 1
        check_resumed(plan)
        shutil.rmtree(folder / f"killed {turn}")
    return came


@pytest.mark.long
def test_kills_at_some_moments_pay_once_draw_once_and_leave_nothing_half(nursery, tmp_path):
    assert killed_at_random(nursery, tmp_path, 3).total() == 3


@pytest.mark.soak
def test_kills_at_many_moments_pay_once_draw_once_and_leave_nothing_half(nursery, tmp_path):
    came = killed_at_random(nursery, tmp_path, 50)
    print(f"\n50 kills: {dict(came.most_common())}")
    assert came.total() == 50
    assert len(came) >= 3


@pytest.mark.soak
@pytest.mark.parametrize("step", ["after the charge", "after reading", "among the files"])
def test_two_processes_at_once_of_which_one_dies_pay_once(step, nursery, tmp_path):
    plan, other = world(tmp_path / "both", *SMALLER), Nursery(tmp_path)
    other.begin(tmp_path / "both", "nowhere")
    nursery.run(tmp_path / "both", step)
    code = other.ended()[0]
    other.close()
    # Whose read was claimed by the one that died is told so: nothing is read twice under one charge.
    assert code in ((0,) if step == "among the files" else (0, 1))
    assert code or check_what_is_there(plan) == "all of it"
    check_resumed(plan)
