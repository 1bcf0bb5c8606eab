"""Time a new user's path: clone, install, and ask a first private question of one's own CSV file.

    python scripts/time_first_answer.py

The question is the first example of docs/quickstart.md, as it stands there. pip's cache is left out, so that every
library is fetched as it would be on a new machine.
"""

from __future__ import annotations

import os
import re
import resource
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
ROWS = "".join(f"{20 + n % 60},{('Harbour', 'Market')[n % 2]}\n" for n in range(5000))


def first_lines() -> str:
    """The first example of the quickstart that opens a session."""
    text = (ROOT / "docs" / "quickstart.md").read_text(encoding="utf-8")
    return next(block for block in re.findall(r"^```python\n(.*?)^```", text, re.M | re.S) if "dp.Session(" in block)


def timed(step: str, command: list[str], folder: Path) -> float:
    """Do a step and print how long it took, by the clock and in seconds of computing."""
    started, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=folder, env=os.environ | {"PIP_NO_CACHE_DIR": "1"}, check=True)
    gone, after = time.monotonic() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    computed = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"{step:<40}{gone:6.1f} s   {computed:6.1f} s computing", flush=True)
    return gone


def main() -> None:
    """Do all steps in a folder that goes away."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        clone, own = folder / "discreet", folder / "own"
        own.mkdir()
        (own / "visits.csv").write_text("age,clinic\n" + ROWS, encoding="utf-8")
        python = str(clone / ".venv" / "bin" / "python")
        steps: list[tuple[str, list[str], Path]] = [
            ("clone", ["git", "clone", "-q", str(ROOT), str(clone)], folder),
            ("install what the package needs", ["make", "-s", ".venv/.package"], clone),
            ("first private answer", [python, "-c", first_lines()], own),
            ("second private answer", [python, "-c", first_lines()], own),
        ]
        total = sum(timed(name, command, at) for name, command, at in steps)
        lines = sum(bool(line.strip()) for line in first_lines().splitlines())
        print(f"{'all of it':<40}{total:6.1f} s   and {lines} lines")


if __name__ == "__main__":
    main()
