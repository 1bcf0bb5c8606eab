"""Random queries that try to make one person's row costly end alike with and without that row.

Each is asked of two sessions through their worker processes: the outcome must be the same, the peak of the worker's
memory of one class, and the answer, or the failure, there at the deadline.
"""

from __future__ import annotations

import random
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from row_work_bombs import BOMBS, tables
from searching import searched

import discreet as dp
from discreet.query import Resources
from discreet.query.workers import worker_engine
from discreet.query.workers.worker_engine import Worker

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the peak of a process is read from /proc")

_SECONDS = 30
_SLACK = 10.0  # Seconds, for a machine that is busy.
_CLASS = 100 << 20  # Bytes by which peaks may differ: the documented most is 60 MB.


@dataclass(frozen=True)
class Ending:
    """How a question ended."""

    outcome: str
    peak: int
    seconds: float


def random_bomb(chance: random.Random) -> str:
    """Take one of the shapes at a size from harmless to far beyond the bound, perhaps with a filter or twice."""
    shape, largest = chance.choice(list(BOMBS.items()))
    size = max(1, round(largest * chance.choice([0.1, 0.5, 0.9, 0.98, 1, 1.02, 1.5, 5])))
    query = shape(min(size, 2000))
    if chance.random() < 0.3 and query.startswith("SELECT COUNT"):
        query += (" AND " if " WHERE " in query else " WHERE ") + chance.choice(["one = 1", "name LIKE '%l%'"])
    return query


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> list[Worker]:
    seen: list[Worker] = []
    start = worker_engine.start_worker

    def started() -> Worker:
        seen.append(start())
        return seen[-1]

    monkeypatch.setattr("discreet.query.workers.worker_engine.start_worker", started)
    return seen


def ending(query: str, workers: list[Worker], *, alice: bool) -> Ending:
    session = dp.Session(
        tables(alice=alice),
        unit=dp.Unit("who"),
        budget=dp.Budget(epsilon=10, delta=1e-5),
        columns={"p": {"one": dp.between(0, 9)}, "q": {}},
        ledger="memory",
        dataset="people",
        principal="mallory",
        resources=Resources(memory=1_000_000_000, seconds=_SECONDS),
    )
    with session:
        workers.clear()
        begun = time.monotonic()
        outcome = outcome_of(session, query)
        return Ending(outcome, max((peak(worker) for worker in workers), default=0), time.monotonic() - begun)


def outcome_of(session: dp.Session, query: str) -> str:
    try:
        session.sql(query, epsilon=0.001, delta=1e-8).release()
    except dp.Refused as refused:
        return f"refused: {refused}"
    except dp.AnswerFailed:
        return "failed"
    return "answered"


def peak(worker: Worker) -> int:
    """Return the most memory that a worker ever had, in bytes; none if it is gone."""
    status = Path(f"/proc/{worker.process}/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM")), 0)


def complaint(query: str, workers: list[Worker]) -> str | None:
    one, other = (ending(query, workers, alice=alice) for alice in (True, False))
    if one.outcome != other.outcome:
        return f"{one.outcome} and {other.outcome}"
    if abs(one.peak - other.peak) > _CLASS:
        return f"{one.peak >> 20} MB and {other.peak >> 20} MB"
    late = max(one.seconds, other.seconds) - _SECONDS
    return f"{late:.1f} s late" if late > _SLACK else None


def survey(workers: list[Worker], seed: str, many: int) -> dict[str, Any]:
    chance = random.Random(seed)
    found = {query: complaint(query, workers) for query in (random_bomb(chance) for _ in range(many))}
    return {query[:300]: why for query, why in found.items() if why is not None}


def test_random_bombs_end_alike_with_and_without_the_row(workers: list[Worker]) -> None:
    assert survey(workers, "day", 6) == {}


@pytest.mark.soak
def test_two_hundred_random_bombs_end_alike_with_and_without_the_row(workers: list[Worker]) -> None:
    assert survey(workers, f"night {searched(0)}", 200) == {}
