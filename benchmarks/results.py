"""What one run of one topic found, with all that is needed to judge it later."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Self

from benchmarks.environments import ROOT, Environment, Failed, prepare

__all__ = ["FOLDER", "Gathering", "Goal", "Results", "gather"]

FOLDER: Final = ROOT / "benchmarks" / "results"


@dataclass(frozen=True, slots=True)
class Goal:
    """A promise about a figure; `reached` is None where the peer it needs could not be measured."""

    text: str
    reached: bool | None

    def __str__(self) -> str:
        return f"{self.text}: {({True: 'yes', False: 'NO', None: 'not measured'})[self.reached]}"


@dataclass(frozen=True, slots=True)
class Results:
    """The rows of every subject, and who is missing and why."""

    topic: str
    quick: bool
    commit: str
    machine: dict[str, Any]
    versions: dict[str, dict[str, str]]
    rows: list[dict[str, Any]]
    failures: dict[str, str] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)  # what a reader must know about how it was run

    def write(self) -> Path:
        """Write the JSON; a quick run is kept apart, where neither git nor the docs look."""
        folder = ROOT / ".bench" if self.quick else FOLDER
        folder.mkdir(exist_ok=True)
        path = folder / f"{self.topic}.json"
        path.write_text(self._text(), encoding="utf-8")
        return path

    def _text(self) -> str:
        """Write the facts a value a line, and every row on a line of its own."""
        facts = asdict(self) | {"rows": []}
        rows = ",\n  ".join(json.dumps(row, ensure_ascii=False) for row in self.rows)
        return json.dumps(facts, indent=1, ensure_ascii=False).replace('"rows": []', f'"rows": [\n  {rows}\n ]') + "\n"

    @classmethod
    def read(cls, topic: str) -> Self:
        """Read back what the last full run wrote."""
        return cls(**json.loads((FOLDER / f"{topic}.json").read_text(encoding="utf-8")))

    def find(self, **wanted: object) -> dict[str, Any] | None:
        """Return the first row with these values."""
        return next((row for row in self.rows if wanted.items() <= row.items()), None)

    def figure(self, name: str, **wanted: object) -> float | None:
        """Return one figure of the first row with these values."""
        row = self.find(**wanted)
        return None if row is None or row.get(name) is None else float(row[name])

    def missing(self) -> tuple[str, ...]:
        """Name loudly who could not be measured, and what was not as it should be."""
        absent = [f"**{subject}: {reason}**" for subject, reason in sorted(self.failures.items())]
        return (*absent, *(f"**{remark}**" for remark in self.remarks))


class Gathering:
    """Collects rows and failures while the subjects run, one after the other."""

    def __init__(self, *, quick: bool) -> None:
        self.quick = quick
        self.commit, self.machine = _commit(), _machine()  # As they are when the run starts.
        self.rows: list[dict[str, Any]] = []
        self.failures: dict[str, str] = {}
        self.versions: dict[str, dict[str, str]] = {}

    def environment(self, subject: str) -> Environment | None:
        """Prepare a subject's environment, or note why there is none; what failed once is not tried again."""
        if subject in self.failures:
            return None
        made = prepare(subject)
        if isinstance(made, Failed):
            self.failures[subject] = made.reason
            return None
        self.versions[subject] = made.versions()
        return made

    def run(self, environment: Environment, script: str, *arguments: str, **labels: object) -> None:
        """Run one script and keep its rows, labelled; or note why it broke."""
        self.say(f"{environment.name}: {script} {' '.join(arguments)}")
        rows = environment.run(script, *arguments, *(["--quick"] if self.quick else []))
        if isinstance(rows, Failed):
            self.failures[" ".join((environment.name, script, *arguments))] = f"failed: {rows.reason}"
            return
        self.rows.extend({"subject": environment.name} | labels | row for row in rows)

    def say(self, text: str) -> None:
        """Tell whoever waits what is measured now."""
        print(f"  {time.strftime('%H:%M:%S')} {text}", flush=True)

    def results(self, topic: str) -> Results:
        """Return what was gathered, with the commit and the machine."""
        return Results(topic, self.quick, self.commit, self.machine, self.versions, self.rows, self.failures)


def gather(*, quick: bool) -> Gathering:
    """Start an empty gathering."""
    return Gathering(quick=quick)


def _commit() -> str:
    """Return the commit that was measured, and whether the library had been changed since."""
    head = _git("rev-parse", "--short=12", "HEAD")
    return f"{head} with changes" if _git("status", "--porcelain", "--", "src") else head


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() or ("unknown" if done.returncode else "")


def _machine() -> dict[str, Any]:
    """Describe the machine without naming it."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gb": round(memory / 1e9),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "load_at_start": round(os.getloadavg()[0], 2),
        "date": time.strftime("%Y-%m-%d"),
    }


def _processor() -> str:
    """Return the model as Linux names it, or what Python knows elsewhere."""
    listing = Path("/proc/cpuinfo")
    lines = listing.read_text().splitlines() if listing.exists() else []
    models = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(models, platform.processor())
