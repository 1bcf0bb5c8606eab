"""Run a script within limits of CPU time and resident memory, and say what it took, seen from outside.

Whoever passes a limit is stopped, and that is an outcome like any other: the tables print "> 10 min".
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final

__all__ = ["Limits", "Outcome", "run_limited"]

_TICK: Final = 0.25  # seconds between two looks at a process
_STARTED_AT: Final = 11  # the place of user time in /proc/<pid>/stat after the name; system time is next


@dataclass(frozen=True, slots=True)
class Limits:
    """What one script may take: CPU seconds of all its threads, and resident gigabytes."""

    seconds: float
    gigabytes: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a script printed and took; `stopped` says which limit it passed, `failed` its last line if it broke."""

    process_cpu: float  # seconds, with imports
    peak_mb: float
    rows: list[dict[str, Any]] = field(default_factory=list)
    stopped: str = ""  # "time" or "memory"
    failed: str = ""


def run_limited(command: list[str], folder: Path, variables: dict[str, str], limits: Limits) -> Outcome:
    """Run a command alone and look at it now and then."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as wrong:
        process = subprocess.Popen(command, cwd=folder, env=os.environ | variables, stdout=out, stderr=wrong)
        stopped = _watch(process.pid, limits)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        cpu, peak = used.ru_utime + used.ru_stime, used.ru_maxrss / 1024
        if stopped or process.returncode:
            why = "" if stopped else (_last_line(wrong) or f"exit {process.returncode}")
            return Outcome(cpu, peak, stopped=stopped, failed=why)
        return Outcome(cpu, peak, rows=[json.loads(line) for line in _lines(out) if line.startswith("{")])


def _watch(pid: int, limits: Limits) -> str:
    """Wait until a process ends, or end it when it passes a limit."""
    while True:
        time.sleep(_TICK)
        look = _look(pid)
        if look is None:
            return ""
        seconds, gigabytes = look
        if seconds > limits.seconds or gigabytes > limits.gigabytes:
            os.kill(pid, 9)
            return "time" if seconds > limits.seconds else "memory"


def _look(pid: int) -> tuple[float, float] | None:
    """Return the CPU seconds and the resident gigabytes of a child, None once it has ended."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    if fields[0] == "Z":
        return None
    ticks = int(fields[_STARTED_AT]) + int(fields[_STARTED_AT + 1])
    resident = int(fields[21]) * os.sysconf("SC_PAGE_SIZE")
    return ticks / os.sysconf("SC_CLK_TCK"), resident / 1e9


def _lines(file: IO[str]) -> list[str]:
    file.seek(0)
    return file.read().splitlines()


def _last_line(file: IO[str]) -> str:
    return next((line.strip()[:160] for line in reversed(_lines(file)) if line.strip()), "")
