"""A process that dies by its own signal at one step of an answer: `python session_crash.py folder step`.

With the step "any" it asks question after question, each under a key of its own, and prints answers until it is killed.
"""

from __future__ import annotations

import os
import signal
import sys
from itertools import count
from pathlib import Path

from session_data import opened

from discreet.ledger import Ledger
from discreet.query.plan.planner import PricedQuery
from discreet.query.release_table import ReleaseTable
from discreet.query.workers.worker_engine import WorkerEngine

QUERY = "SELECT city, COUNT(*) AS n FROM orders GROUP BY city"
STEPS = {
    "before looking": (Ledger, "stored", True),
    "before the charge": (Ledger, "claim", True),
    "after the charge": (Ledger, "claim", False),
    "before reading": (WorkerEngine, "run_all", True),
    "after reading": (WorkerEngine, "run_all", False),
    "before the draw": (PricedQuery, "draw", True),
    "after the draw": (PricedQuery, "draw", False),
    "while storing": (ReleaseTable, "to_json", False),
    "after storing": (Ledger, "store", False),
    "nowhere": None,
}


def die(*given: object, **named: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def arm(step: str) -> None:
    """Die before or after a method is called."""
    if (place := STEPS[step]) is None:
        return
    owner, method, before = place
    original = getattr(owner, method)

    def fatal(self, *given, **named):
        if before:
            die()
        original(self, *given, **named)
        die()

    setattr(owner, method, fatal)


def ask_on(folder: Path, first: int) -> None:
    """Ask until killed; a line is printed once an answer has left the session."""
    with opened(folder) as session:
        for number in count(first):
            answer = session.sql(QUERY, epsilon="0.01", idempotency_key=str(number)).release()
            print(number, answer.to_json(), flush=True)


if __name__ == "__main__" and sys.argv[2] == "any":
    ask_on(Path(sys.argv[1]), int(sys.argv[3]))
elif __name__ == "__main__":
    with opened(Path(sys.argv[1])) as session:
        plan = session.sql(QUERY, epsilon=1, idempotency_key="the one")
        arm(sys.argv[2])
        print(plan.release().to_json())
