"""A server as a process of its own, `discreet serve`, that can be killed like one; and what its system tells of it."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import httpx

STARTS = 240.0  # seconds that a server has to start: the machine may be busy


def free_port() -> int:
    """A port that nobody gets by asking for any: else a client that tries while the server is down is its own peer."""
    chance = random.SystemRandom()
    while True:
        port = chance.randrange(20_000, 30_000)
        with socket.socket() as bound:
            try:
                bound.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


class ServerProcess:
    """`discreet serve` on a folder of policies, always on the same port."""

    def __init__(
        self,
        folder: Path,
        *,
        answer_after: Mapping[str, float],
        workers: int = 2,
        state: str | None = None,
        mistake: str = "",
    ) -> None:
        self.port = free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        self._folder = folder
        times = [part for name, seconds in answer_after.items() for part in ("--answer-after", f"{name}={seconds}")]
        policies = [part for name in answer_after for part in ("--policy", str(folder / f"{name}.toml"))]
        named = ["--state", state or str(folder / "server.db"), "--port", str(self.port), "--workers", str(workers)]
        script = f"{mistake}\nfrom discreet.cli import main\nmain()"  # A mistake is planted before it begins.
        self.command = [sys.executable, "-c", script, "serve", *policies, *times, *named]
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and return when it answers."""
        with (self._folder / f"server-{self.port}.log").open("ab") as log:
            self.process = subprocess.Popen(
                self.command, cwd=self._folder, env={**os.environ, "DISCREET_DEBUG": "1"}, stdout=log, stderr=log
            )
        until = time.monotonic() + STARTS
        while not self._answers():
            if self.process.poll() is not None or time.monotonic() > until:
                raise AssertionError(f"the server did not start: {self.log[-2000:]}")
            time.sleep(0.05)

    def _answers(self) -> bool:
        try:
            return httpx.get(f"{self.address}/problems", timeout=5).status_code == 200
        except httpx.HTTPError:
            return False

    @property
    def log(self) -> str:
        """Everything that it wrote, over all starts."""
        return (self._folder / f"server-{self.port}.log").read_text()

    def kill(self) -> None:
        """End it at once, as a crash does; what it began ends with it."""
        assert self.process is not None
        children = self.descendants()
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        until = time.monotonic() + 60
        while any(Path(f"/proc/{child}").exists() and not is_zombie(child) for child in children):
            assert time.monotonic() < until, "a worker outlived its server"
            time.sleep(0.01)

    def stop(self) -> int:
        """Ask it to end, and return how it ended."""
        assert self.process is not None
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(STARTS)

    def descendants(self) -> list[int]:
        """The processes that it began, and those began."""
        assert self.process is not None
        return descendants(self.process.pid)

    def resident(self) -> int:
        """How many bytes of memory the process itself has."""
        assert self.process is not None
        return status_bytes(self.process.pid, "VmRSS")

    def __enter__(self) -> ServerProcess:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def descendants(process: int) -> list[int]:
    found, waiting = list[int](), [process]
    while waiting:
        children = Path(f"/proc/{waiting.pop()}/task")
        try:
            own = [int(one) for task in children.iterdir() for one in (task / "children").read_text().split()]
        except OSError:  # It has ended.
            own = []
        found += own
        waiting += own
    return found


def is_zombie(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def status_bytes(process: int, what: str) -> int:
    """A figure of /proc in bytes; none where the process has ended."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith(f"{what}:")), 0)
