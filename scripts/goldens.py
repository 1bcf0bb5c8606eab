"""Record outputs of every flow under recorded bytes, or compare with those that are kept in tests/goldens.

    python scripts/goldens.py compare [FAMILY …]
    python scripts/goldens.py record [FAMILY …]
    python scripts/goldens.py compare queries --full /tmp/after   # also writes every text, for a diff of two folders

Each family runs in a process of its own. `compare` ends with 1 if anything differs.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))
_SLOW = 2.0
_BACK = "\r" if sys.stderr.isatty() else ""
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "COLUMNS": "100", "NO_COLOR": "1"}


def main() -> int:
    """Do what the arguments say, family by family."""
    from goldens.keeping import FAMILIES

    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("do", choices=["record", "compare"])
    parser.add_argument("families", nargs="*", metavar="FAMILY", help=", ".join(FAMILIES))
    parser.add_argument("--full", type=Path, help="a folder for the whole texts")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if unknown := set(asked.families) - set(FAMILIES):
        parser.error(f"no such family: {', '.join(sorted(unknown))}")
    if asked.here:
        return _done(asked.do, asked.families[0], asked.full)
    codes = [_apart(asked.do, family, asked.full) for family in asked.families or FAMILIES]
    print("all equal" if asked.do == "compare" and not any(codes) else "done" if not any(codes) else "NOT EQUAL")
    return int(any(codes))


def _apart(do: str, family: str, full: Path | None) -> int:
    """Run a family in a fresh process."""
    more = [] if full is None else ["--full", str(full)]
    command = [sys.executable, __file__, do, family, "--here", *more]
    return subprocess.run(command, env={**os.environ, **ONE_THREAD}, check=False).returncode


def _done(do: str, family: str, full: Path | None) -> int:
    from goldens.keeping import differences, kept, outputs, write

    found: dict[str, dict[str, str]] = {}
    slow, before = [], _seconds()
    for name, texts in outputs(family):
        found[name] = texts
        used, before = _seconds() - before, _seconds()
        slow += [f"  {name} took {used:.1f} CPU seconds"] if used > _SLOW else []
        if sys.stderr.isatty():
            print(f"{_BACK}{family}: {len(found)}", end="", file=sys.stderr)
        if full is not None:
            _keep(full / family, name, texts)
    new = kept(found, family)
    lines = [] if do == "record" else differences(new, family)
    if do == "record":
        write(new, family)
    print(f"{_BACK}{family}: {len(found)} flows, {_seconds():.1f} CPU seconds, {len(lines)} differ", flush=True)
    print(*slow, *lines, sep="\n", end="\n" if slow + lines else "", flush=True)
    return int(bool(lines))


def _keep(folder: Path, name: str, texts: dict[str, str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    safe = "".join(letter if letter.isalnum() else "_" for letter in name)[:150]
    for kind, text in texts.items():
        (folder / f"{safe}.{kind}").write_text(text + "\n", "utf-8")


def _seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


if __name__ == "__main__":
    sys.exit(main())
