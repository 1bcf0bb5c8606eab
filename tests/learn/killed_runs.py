"""Train in child processes that are killed, until a run is done; then say what was drawn, lost and charged.

    python tests/learn/killed_runs.py KILLS | network

torch is loaded once; children are forks of this process, which has no threads.
"""

from __future__ import annotations

import json
import os
import random
import signal
import struct
import sys
import tempfile
import time
import traceback
from collections import Counter
from dataclasses import replace
from pathlib import Path

import torch
from private_runs import model_of, rows
from torch import nn

from discreet.learn.torch import PrivateTraining, make_private
from discreet.learn.torch.checkpoints import RunFolder
from discreet.ledger import Account, Budget, Ledger
from discreet.privacy.relation import Relation

torch.set_num_threads(1)  # Threads of a parent do not live in its forks, which would wait for them.
LOSS = nn.CrossEntropyLoss(reduction="none")


class Journaled:
    """Noise that writes the number of the step down before it is handed out; the page cache outlives a kill."""

    def __init__(self, private: PrivateTraining, inner, journal: Path) -> None:
        self.private, self.inner = private, inner
        self.file = os.open(journal, os.O_CREAT | os.O_APPEND | os.O_WRONLY)

    def released(self, total, unit):
        os.write(self.file, struct.pack("<q", self.private._standing.begun))
        return self.inner.released(total, unit)

    def close(self) -> None:
        self.inner.close()


def small(steps: int) -> dict:
    return {
        "model": model_of(), "data": rows(40), "public_rows": 40, "batch_size": 20, "steps": steps,
        "checkpoint_every": 3, "noise_multiplier": 4,
    }  # fmt: skip


def network() -> dict:
    """The convolutional network of 26,010 parameters for pictures of 28 x 28, on 6,000 that show nothing."""
    model = nn.Sequential(
        nn.Conv2d(1, 16, 8, 2, padding=2), nn.Tanh(), nn.MaxPool2d(2, 1),
        nn.Conv2d(16, 32, 4, 2), nn.Tanh(), nn.MaxPool2d(2, 1), nn.Flatten(),
        nn.Linear(32 * 4 * 4, 32), nn.Tanh(), nn.Linear(32, 10),
    )  # fmt: skip
    pictures = rows(6000, 784)[0].reshape(-1, 1, 28, 28)
    return {
        "model": model, "data": (pictures, torch.arange(6000) % 10), "public_rows": 6000, "batch_size": 256,
        "epochs": 10, "epsilon": 3, "physical_batch": 64,
    }  # fmt: skip


def begun(setup, folder: Path, ledger: Ledger) -> PrivateTraining:
    """Make the run of this folder, or go on with it."""
    chosen = setup()
    model, data = chosen.pop("model"), chosen.pop("data")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    return make_private(
        model, optimizer, data, loss=LOSS, delta=1e-5, session=ledger, checkpoint=folder / "run", **chosen
    )


def open_ledger(folder: Path) -> Ledger:
    account = Account("made-up", budget=Budget(epsilon=100, delta=1e-2), unit="row", relation=Relation.ADD_REMOVE)
    return Ledger.open(folder / "l.ledger", account)


def train(setup, folder: Path, fatal: int | None) -> None:
    """Train to the end in a child; with `fatal`, die by a kill at that call of the operating system."""
    if fatal is not None:
        die_at(fatal)
    with open_ledger(folder) as ledger:
        private = begun(setup, folder, ledger)
        private._parts = replace(private._parts, noise=Journaled(private, private._parts.noise, folder / "journal"))
        private.fit(progress=False)


def die_at(fatal: int) -> None:
    """Kill this process when it is about to touch the disk for that time."""
    calls = 0

    def counted(real):
        def call(*args, **kwargs):
            nonlocal calls
            calls += 1
            if calls == fatal:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*args, **kwargs)

        return call

    for name in ("write", "fdatasync", "fsync", "replace", "unlink", "open"):
        setattr(os, name, counted(getattr(os, name)))


def child(setup, folder: Path, fatal: int | None = None, seconds: float | None = None) -> bool:
    """Fork, train there, kill it after some time if asked to; tell whether it came to the end."""
    process = os.fork()
    if process == 0:
        code = 1
        try:
            train(setup, folder, fatal)
            code = 0
        except Exception:  # noqa: BLE001 - the parent sees the code, and whoever reads the log the reason
            traceback.print_exc()
        finally:
            os._exit(code)
    if seconds is not None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if os.waitpid(process, os.WNOHANG)[0]:
                return True
            time.sleep(0.002)
        os.kill(process, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    if code not in (0, -signal.SIGKILL):
        raise SystemExit(f"a child ended with {code}")
    return code == 0


def account(setup, folder: Path, kills: int) -> dict:
    """What the journal, the folder and the ledger say at the end."""
    journal = folder / "journal"
    drawn = Counter(number for (number,) in struct.iter_unpack("<q", journal.read_bytes()))
    with open_ledger(folder) as ledger:
        private = begun(setup, folder, ledger)
        charges = sum(entry.kind == "charge" for entry in ledger.history())
        whole = private.spent.event == private.plan.event and private.spent.epsilon == private.epsilon
        every, steps, taken = private._every, private.plan.steps, private.steps_taken
    return {
        "kills": kills,
        "steps": steps,
        "twice": sum(times > 1 for times in drawn.values()),
        "charges": charges,
        "same_account": whole and all(1 <= number <= steps for number in drawn),
        "lost": steps - taken,
        "most_lost": kills * every,
        "epsilon": private.epsilon,
    }


def at_calls(setup, folder: Path, calls: list[int]) -> int:
    """Kill runs at one touch of the disk after the other, then let one get to its end."""
    for fatal in calls:
        if child(setup, folder, fatal=fatal):
            raise SystemExit("it ended before it could be killed that often")
    if not child(setup, folder):
        raise SystemExit("it never ended")
    return len(calls)


def at_random(setup, folder: Path, seconds: float) -> int:
    kills = 0
    while not child(setup, folder, seconds=random.uniform(0, seconds) if kills < 8 else None):
        kills += 1
    return kills


def claim_what_is_held() -> None:
    """The wrong neighbour: a step is written down when its checkpoint is safe, not before its noise is drawn."""
    claim, save = RunFolder.claim, RunFolder.save

    def late(self, steps, content):
        self.claimed = 0
        claim(self, steps)
        save(self, steps, content)

    RunFolder.claim = lambda self, steps: setattr(self, "claimed", steps)
    RunFolder.save = late


def warm(setup) -> None:
    """Load everything here, so that children need not."""
    with tempfile.TemporaryDirectory() as name:
        setup_short = lambda: setup() | {"steps": 1, "epochs": None}  # noqa: E731
        with open_ledger(Path(name)) as ledger, begun(setup_short, Path(name), ledger) as private:
            private.fit(progress=False)


def told(setup, kill) -> dict:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        return account(setup, folder, kill(setup, folder))


def main(kind: str) -> None:
    if kind == "network":
        warm(network)
        print(json.dumps(told(network, lambda setup, folder: at_random(setup, folder, 3))))
        return
    warm(lambda: small(1))
    kills = int(kind)
    setup = lambda: small(6 * kills + 30)  # noqa: E731
    ours = told(setup, lambda setup, folder: at_calls(setup, folder, [2 + 11 * place % 37 for place in range(kills)]))
    claim_what_is_held()
    wrong = told(setup, lambda setup, folder: at_calls(setup, folder, [42, 24, 35]))
    print(json.dumps({"ours": ours, "wrong": wrong}))


if __name__ == "__main__":
    main(sys.argv[1])
