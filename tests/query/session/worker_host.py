"""A process that asks and will be killed: `python worker_host.py folder`. It prints the number of its worker."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

from session_data import opened

from discreet.query.workers.worker_engine import Worker

ask = Worker.ask


def in_the_middle(self, said, deadline, **named):
    """Stop the worker before it is asked, so that it is busy for ever."""
    if "do" in said:
        os.kill(self.process, signal.SIGSTOP)
        print(self.process, flush=True)
    return ask(self, said, deadline, **named)


if __name__ == "__main__":
    Worker.ask = in_the_middle
    with opened(Path(sys.argv[1])) as session:
        session.sql("SELECT COUNT(*) AS n FROM orders", epsilon=1).release()
    time.sleep(600)
