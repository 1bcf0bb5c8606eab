"""One environment for each subject, below .bench/, made from the pinned lists in benchmarks/peers/*.txt.

A peer that cannot be installed is an outcome, not an error: the tables name it as "not installed: …".
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Final

__all__ = ["ONE_THREAD", "OURS", "PEERS", "ROOT", "Environment", "Failed", "prepare"]

ROOT: Final = Path(__file__).resolve().parents[1]
LISTS: Final = ROOT / "benchmarks" / "peers"
OURS: Final = "discreet"
PEERS: Final = ("opendp", "python-dp", "diffprivlib", "dp-accounting", "prv-accountant", "opacus")

# One thread for everybody: CPU time adds up over threads, and a thread that waits in a loop is no work.
ONE_THREAD: Final = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


@dataclass(frozen=True, slots=True)
class Failed:
    """A subject that could not be installed or whose script broke; `reason` is one line."""

    reason: str


@dataclass(frozen=True, slots=True)
class Environment:
    """A virtual environment that holds one subject and what it needs, not even pip."""

    name: str

    @property
    def folder(self) -> Path:
        """Where it lives."""
        return ROOT / ".bench" / self.name

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / "bin" / "python"

    @property
    def packages(self) -> Path:
        """Its site-packages."""
        return next((self.folder / "lib").glob("python*/site-packages"))

    def fingerprint(self) -> str:
        """Depend on all that decided what is installed."""
        return (self.folder / "ready").read_text()

    def versions(self) -> dict[str, str]:
        """Name every installed distribution and its version."""
        found = metadata.distributions(path=[str(self.packages)])
        return dict(sorted((item.metadata["Name"], item.version) for item in found))

    def megabytes(self) -> float:
        """Add up the files of all installed packages."""
        return sum(path.lstat().st_size for path in self.packages.rglob("*") if path.is_file()) / 1e6

    def run(self, script: str, *arguments: str) -> list[dict[str, Any]] | Failed:
        """Run `benchmarks.peers.<script>` here, alone, and read the rows it prints."""
        command = [str(self.python), "-W", "ignore", "-m", f"benchmarks.peers.{script}", *arguments]
        done = subprocess.run(
            command, cwd=ROOT, env=os.environ | ONE_THREAD, capture_output=True, text=True, check=False
        )
        if done.returncode:
            return Failed(_last_line(done.stderr) or f"exit {done.returncode}")
        return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def prepare(name: str) -> Environment | Failed:
    """Make the environment of a subject unless it is there and its list has not changed."""
    environment = Environment(name)
    stamp = environment.folder / "ready"
    wanted = _fingerprint(name)
    if stamp.exists() and stamp.read_text() == wanted:
        return environment
    print(f"  installing {name} below .bench/", flush=True)
    shutil.rmtree(environment.folder, ignore_errors=True)
    for command in (_make(environment), _install(environment)):
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode:
            return Failed(f"not installed: {_last_line(done.stderr)}")
    stamp.write_text(wanted)
    return environment


def _make(environment: Environment) -> list[str]:
    return [sys.executable, "-m", "venv", "--without-pip", str(environment.folder)]


def _install(environment: Environment) -> list[str]:
    pip = [sys.executable, "-m", "pip", "--python", str(environment.python), "install", "--quiet"]
    if environment.name == OURS:
        return [*pip, "--constraint", str(ROOT / "constraints.txt"), "--editable", str(ROOT)]
    return [*pip, "--requirement", str(LISTS / f"{environment.name}.txt")]


def _fingerprint(name: str) -> str:
    """Depend on all that decides what is installed."""
    ours = (ROOT / "pyproject.toml", ROOT / "constraints.txt")
    files = ours if name == OURS else (LISTS / f"{name}.txt",)
    digest = hashlib.sha256(sys.version.encode())
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()


def _last_line(text: str) -> str:
    """Return the line that says what went wrong: pip and Python both put it last."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR")]
    return (errors or lines or [""])[-1][:160]
