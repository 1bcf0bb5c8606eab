"""A folder as a custodian has it, and ways to run a command in it: in a process of its own, and on a terminal."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
import time
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

POLICY = """\
dataset = "clinics"
ledger = "clinics.ledger"

[unit]
column = "row"

[budget]
epsilon = 4

[[quotas]]
principal = "*"
window = "day"
epsilon = 3

[tables.visits]
source = "visits.csv"

[tables.visits.columns]
age = { low = 0, high = 120, whole = true }
clinic = { categories = ["Harbour", "Hillside", "Market", "Old Mill", "Station"] }
satisfied = { kind = "text" }
"""
PLAN = (
    'name = "clinics"\ntitle = "Visits to clinics"\n'
    + POLICY
    + """
[release]
epsilon = 1

[output]
folder = "published"

[[publish]]
name = "visits"
from = "visits"
groupings = [[], ["clinic"]]
measures = { visits = "COUNT(*)" }
expected = { "*" = 400 }
"""
)
ASK = ("query", "SELECT COUNT(*) AS n FROM visits", "--policy", "policy.toml", "--epsilon", "0.5")


def prepare(folder: Path) -> Path:
    """Put the bundled table, a policy and a release plan into a folder."""
    (folder / "visits.csv").write_bytes((files("discreet") / "data" / "visits.csv").read_bytes())
    (folder / "policy.toml").write_text(POLICY, encoding="utf-8")
    (folder / "plan.toml").write_text(PLAN, encoding="utf-8")
    return folder


@dataclass(frozen=True)
class Ran:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def environment(**more: str) -> dict[str, str]:
    keep = {name: value for name, value in os.environ.items() if not name.startswith("DISCREET_")}
    return {**keep, "COLUMNS": "100", **more}


def process(*arguments: str, folder: Path, given: str | None = None, **more: str) -> Ran:
    """Run a command in a process of its own, without a terminal."""
    done = subprocess.run(
        [sys.executable, "-m", "discreet", *arguments],
        cwd=folder,
        env=environment(**more),
        input=given,
        stdin=subprocess.DEVNULL if given is None else None,
        capture_output=True,
        text=True,
        timeout=120,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def on_terminal(*arguments: str, folder: Path, answers: tuple[tuple[str, str], ...] = (), **more: str) -> Ran:
    """Run a command on a pseudo-terminal, and answer each prompt when it appears after the answer before.

    Everything that was on the screen comes back in `out`.
    """
    child, screen = pty.fork()
    if child == 0:
        os.chdir(folder)
        os.execve(sys.executable, [sys.executable, "-m", "discreet", *arguments], environment(TERM="xterm", **more))
    seen, place, waiting, until = "", 0, list(answers), time.monotonic() + 100
    interrupted = 0.0  # when; not if 0
    while time.monotonic() < until:
        if select.select([screen], [], [], 0.2)[0]:
            try:
                seen += os.read(screen, 65536).decode(errors="replace")
            except OSError:  # The other end is gone.
                break
        if waiting and (found := seen.find(waiting[0][0], place)) >= 0:
            place = found + len(waiting[0][0])
            answer, interrupted = waiting.pop(0)[1], 0.0
            if answer == "\x03":  # What is echoed may not have been read yet, and an interrupt is for whoever reads it.
                time.sleep(0.5)
                interrupted = time.monotonic()
            os.write(screen, answer.encode())
        elif interrupted and time.monotonic() > interrupted + 10:  # It came just before Python waited for a key.
            os.write(screen, b"\x03")
            interrupted = time.monotonic()
    os.close(screen)
    assert not waiting, f"never asked {waiting[0][0]!r}: {seen}"
    return Ran(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), seen, "")
