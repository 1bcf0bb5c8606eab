"""A process that publishes and dies by a signal, again and again: `python publishing_crash.py`.

It has everything imported, reads lines of a folder and a step or seconds, lets a copy of itself publish what is in that
folder, which dies at that step or is killed after so many seconds, and answers with how it ended and how long it took.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from publishing_world import JANUARY, SMALLER, world

from discreet.ledger import Ledger
from discreet.query import execute
from discreet.query.session.requests import BatchRequest
from discreet.query.workers.worker_engine import WorkerEngine
from discreet.release import price, read_release_plan, release_order
from discreet.release.bundle import bundle_writer

# Whose method is fatal, before or after it is called, at which of its calls, and with a last argument that ends so.
STEPS: dict[str, tuple[Any, str, bool, int, str]] = {
    "before looking": (Ledger, "stored", True, 1, ""),
    "before the charge": (Ledger, "claim", True, 1, ""),
    "after the charge": (Ledger, "claim", False, 1, ""),
    "before reading": (WorkerEngine, "run_all", True, 1, ""),
    "after reading": (WorkerEngine, "run_all", False, 1, ""),
    "after the first draw": (execute, "_drawn", False, 1, ""),
    "after the last draw": (BatchRequest, "draw", False, 1, ""),
    "after storing": (Ledger, "store", False, 1, ""),
    "before tidying": (release_order, "tidy_tables", True, 1, ""),
    "after tidying": (release_order, "tidy_tables", False, 1, ""),
    "before the first file": (bundle_writer, "_write", True, 1, ""),
    "among the files": (bundle_writer, "_write", False, 9, ""),
    "before the bundle has its name": (os, "rename", True, 1, "stays-2026-01"),
    "after the bundle has its name": (os, "rename", False, 1, "stays-2026-01"),
    "before the archive has its name": (os, "rename", True, 1, ".zip"),
    "after the archive has its name": (os, "rename", False, 1, ".zip"),
}
CHARGED = tuple(STEPS)[2:]
ANSWERED = tuple(STEPS)[7:]
NAMED = tuple(STEPS)[13:]


def die(*given: object, **named: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def arm(step: str) -> None:
    """Die before or after a call."""
    owner, name, before, turn, ending = STEPS[step]
    original, calls = getattr(owner, name), [0]

    def fatal(*given: Any, **named: Any) -> Any:
        calls[0] += str(given[-1]).endswith(ending) if given else not ending
        if before and calls[0] == turn:
            die()
        result = original(*given, **named)
        if calls[0] == turn:
            die()
        return result

    setattr(owner, name, fatal)


def publish(folder: Path, step: str) -> None:
    if step in STEPS:
        arm(step)
    release_order.publish(read_release_plan(folder / "plan.toml"), principal="ana", period=JANUARY)


def born(work: Callable[[], None]) -> int:
    """Let a copy of this process do some work; return its id."""
    child = os.fork()
    if child:
        return child
    try:
        work()
        os._exit(0)
    finally:
        os._exit(1)


def lived(folder: Path, how: str) -> tuple[int, float]:
    """Publish, be killed, and tell how it ended."""
    began = time.perf_counter()
    child = born(lambda: publish(folder, how))
    if how not in (*STEPS, "nowhere"):
        time.sleep(float(how))
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), time.perf_counter() - began


def warm(folder: Path) -> None:
    """Price once: what was computed is known to all copies, and no thread has begun."""
    world(folder, *SMALLER)
    price(read_release_plan(folder / "plan.toml"), JANUARY)


if __name__ == "__main__":
    import duckdb  # noqa: F401
    import pyarrow.parquet  # noqa: F401

    warm(Path(sys.argv[1]))
    print("ready", flush=True)
    for line in sys.stdin:
        place, _, how = line.strip().partition("\t")
        print(*lived(Path(place), how), flush=True)
