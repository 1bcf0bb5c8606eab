"""Whatever dies and whenever: what the world has heard is in the record, and the record is whole."""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from searching import searched
from system_parts import COMPILER, needs_compiler

from discreet.errors import DiscreetError, LedgerUnavailable
from discreet.ledger import Account, Budget, Ledger
from discreet.privacy import PureDP
from discreet.privacy.relation import Relation

ADD = Relation.ADD_REMOVE
MILLIONTH = PureDP("1e-6")
ACCOUNT = Account("people", "row", ADD, Budget(1))
HERE = Path(__file__).parent
PATIENCE = 30.0  # Seconds, for a machine that has other things to do.
WRONG = (
    "answers before it stores",
    "anchors before it commits",
    "has no transactions",
    "does not flush",
    "claims after it reads",
)


def faults(folder: Path, stride: int, *wrong: str) -> dict[str, Any]:
    """Run every `stride`-th fault point in processes whose writes can fail."""
    library = folder / "faults.so"
    assert COMPILER is not None
    subprocess.run([COMPILER, "-shared", "-fPIC", "-O1", "-o", library, HERE / "faults.c", "-ldl"], check=True)
    command = [sys.executable, HERE / "fault_points.py", folder, str(stride), *wrong]
    run = subprocess.run(
        command, env={**os.environ, "LD_PRELOAD": str(library)}, capture_output=True, text=True, check=True
    )
    return json.loads(run.stdout)  # type: ignore[no-any-return]


def check_every_point(folder: Path, stride: int) -> None:
    found = faults(folder, stride)
    assert found["violations"] == []
    assert found["points"] > 100
    assert sum(found["runs"].values()) >= found["points"] // stride * len(found["runs"])


@pytest.mark.long
@needs_compiler
def test_a_fault_at_a_write_or_flush_loses_nothing_that_was_told(quick_folder: Path) -> None:
    check_every_point(quick_folder, 11)


@pytest.mark.slow
@needs_compiler
def test_a_fault_at_every_write_and_flush_loses_nothing_that_was_told(quick_folder: Path) -> None:
    check_every_point(quick_folder, 1)


@pytest.mark.long
@needs_compiler
@pytest.mark.parametrize("wrong", WRONG)
def test_a_ledger_in_the_wrong_order_is_caught(wrong: str, quick_folder: Path) -> None:
    assert faults(quick_folder, 6, wrong)["violations"]


def spend_and_tell(path: Path, outlet: int, life: int) -> None:
    """Charge and answer until killed; the world hears of a charge or an answer only when the ledger has returned."""
    with Ledger.open(path, ACCOUNT) as book:
        for number in range(10**6):
            key = f"{life}-{number}"
            charge = book.charge(
                MILLIONTH, relation=ADD, purpose="question", idempotency_key=key, plan=key, version="v"
            )
            text = book.store(charge, lambda: os.urandom(8).hex())
            os.write(outlet, f"{key} {charge.id} {text}\n".encode())


def killed_after(path: Path, seconds: float, life: int) -> list[list[str]]:
    """Run a spender in a child, kill it, and return what the world heard."""
    inlet, outlet = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(inlet)
            spend_and_tell(path, outlet, life)
        finally:
            os._exit(1)
    os.close(outlet)
    if life % 4:  # Every fourth one dies while it opens the ledger.
        select.select([inlet], [], [], PATIENCE)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    with os.fdopen(inlet) as pipe:
        heard = [line.split() for line in pipe if line.endswith("\n")]
    os.waitpid(child, 0)
    return heard


def survive(path: Path, kills: int) -> tuple[int, float]:
    """Kill again and again; return how much the world heard and the longest recovery in seconds."""
    heard: list[list[str]] = []
    longest = 0.0
    for life in range(kills):
        # Pauses from nothing to a few charges, spread evenly: no seed is needed to be irregular.
        heard += killed_after(path, 0.02 * (searched(life) * 0.6180339887 % 1), life)
        start = time.perf_counter()
        with Ledger.open(path, ACCOUNT) as book:
            book.left()
        longest = max(longest, time.perf_counter() - start)
    with Ledger.open(path, ACCOUNT) as book:
        book.verify()
        charges = sum(entry.kind == "charge" for entry in book.history())
        assert book.spent().epsilon == MILLIONTH.epsilon * charges
        for key, index, text in heard:
            stored = book.stored(idempotency_key=key, plan=key, principal="", version="v")
            assert stored is not None
            assert (stored.charge.id, stored.text) == (int(index), text)
    return len(heard), longest


@pytest.mark.long
def test_a_killed_process_loses_nothing_that_was_told(quick_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    heard, longest = survive(quick_folder / "ledger", 40)
    assert heard >= 30
    with capsys.disabled():
        print(f"\n40 kills: {heard} answers told, none lost; longest recovery {longest:.3f} s")


@pytest.mark.soak
def test_two_hundred_kills_lose_nothing_that_was_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lives = [survive(tmp_path / f"ledger {number}", 50) for number in range(4)]
    heard, longest = sum(told for told, _ in lives), max(seconds for _, seconds in lives)
    assert heard >= 150
    with capsys.disabled():
        print(f"\n200 kills: {heard} answers told, none lost; longest recovery {longest:.3f} s")


def test_a_key_is_charged_once_across_a_crash(tmp_path: Path) -> None:
    """Killed between the charge and the answer, the same key goes on under the same charge."""
    path = tmp_path / "ledger"
    child = os.fork()
    if child == 0:
        book = Ledger.open(path, ACCOUNT)
        charge = book.charge(MILLIONTH, relation=ADD, purpose="question", idempotency_key="k", plan="p", version="v")
        book.store(charge, lambda: os._exit(9))  # type: ignore[arg-type, return-value]
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    answers = set()
    for _ in range(20):
        with Ledger.open(path, ACCOUNT) as book:
            charge = book.charge(
                MILLIONTH, relation=ADD, purpose="question", idempotency_key="k", plan="p", version="v"
            )
            answers.add(book.store(charge, lambda: os.urandom(8).hex()))
            assert book.spent().charges == 1
    assert len(answers) == 1


def test_a_file_that_may_not_grow_refuses_and_recovers(tmp_path: Path) -> None:
    """The limit of the operating system stands in for a full disk."""
    path = tmp_path / "ledger"
    Ledger.open(path, ACCOUNT).close()
    inlet, outlet = os.pipe()
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))
        try:
            with Ledger.open(path, ACCOUNT) as book:
                for _ in range(1000):
                    os.write(outlet, f"{book.charge(MILLIONTH, relation=ADD, purpose='q').id}\n".encode())
        except LedgerUnavailable:
            os._exit(7)
        finally:
            os._exit(8)
    os.close(outlet)
    with os.fdopen(inlet) as pipe:
        told = {int(line) for line in pipe}
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    with Ledger.open(path, ACCOUNT) as book:
        book.verify()
        assert told
        assert told <= {entry.index for entry in book.history() if entry.kind == "charge"}


def test_a_ledger_that_cannot_be_reached_refuses(tmp_path: Path) -> None:
    for place in (tmp_path / "nowhere" / "ledger", tmp_path):
        with pytest.raises(DiscreetError):
            Ledger.open(place, ACCOUNT)
