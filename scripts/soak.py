"""Repeat what chance decides, with other seeds in every round, until time is over: kills, races, fuzz and properties.

Run it as `make soak MINUTES=60`. Each run is one file of tests, with a number of its own: it seeds hypothesis, and
`searching.searched` makes other seeds of it. So a failure is told with the command that repeats it; where a kill or
a race was the cause, repeat it a few times.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
SELECTED = "soak or hypothesis"
AT_ONCE = 2  # Files; as many as the cores that the tests are meant for.
MOST = 10**9  # Numbers of rounds: two runs hardly ever have the same.
NOTHING_SELECTED = 5  # What pytest returns.


@dataclass(frozen=True)
class Ran:
    """One file of tests, run once with one number."""

    file: str
    number: int
    seconds: float
    failed: tuple[str, ...]
    output: str


def command(test: str, number: int) -> list[str]:
    """Return what runs a file, or repeats one of its tests."""
    return [sys.executable, "-m", "pytest", "-q", "-rfE", "-m", SELECTED, f"--hypothesis-seed={number}", test]


def run(file: str, number: int) -> Ran:
    begun = time.monotonic()
    ended = subprocess.run(
        command(file, number),
        cwd=ROOT,
        env={**os.environ, "DISCREET_SEARCH": str(number)},
        capture_output=True,
        text=True,
        check=False,
    )
    # Without the names of cases, in which anything may stand.
    failed = set(re.findall(r"^(?:FAILED|ERROR) ([^\s\[]+)", ended.stdout, re.MULTILINE))
    if ended.returncode not in (0, NOTHING_SELECTED) and not failed:
        failed = {file}  # The process itself ended badly.
    return Ran(file, number, time.monotonic() - begun, tuple(sorted(failed)), ended.stdout + ended.stderr)


def files(places: Sequence[str]) -> list[str]:
    """Return the files that have a test to repeat."""
    listing = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", SELECTED, *places]
    found = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=False)
    return sorted({line.partition("::")[0] for line in found.stdout.splitlines() if "::" in line})


def rounds(chosen: list[str], end: float) -> Iterator[Ran]:
    """Run all files again and again, each time in another order."""
    chance = random.SystemRandom()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        while time.monotonic() < end:
            order = chance.sample(chosen, len(chosen))
            begun = [pool.submit(run_in_time, file, chance.randrange(1, MOST), end) for file in order]
            yield from (ran for ended in as_completed(begun) if (ran := ended.result()) is not None)


def run_in_time(file: str, number: int, end: float) -> Ran | None:
    """Run a file, unless time is over."""
    return run(file, number) if time.monotonic() < end else None


def tell(ran: Ran) -> None:
    print(f"{ran.seconds:7.1f} s  {'FAILED' if ran.failed else 'passed'}  {ran.file}", flush=True)
    if ran.failed:
        print(ran.output)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("places", nargs="*", default=["tests"], help="files or folders; all tests if none is named")
    given = parser.parse_args()
    chosen = files(given.places)
    if not chosen:
        parser.error(f"no test there is marked {SELECTED}")
    runs, failures = 0, list[Ran]()
    for ran in rounds(chosen, time.monotonic() + 60 * given.minutes):
        tell(ran)
        runs, failures = runs + 1, failures + [ran] * bool(ran.failed)
    print(f"{runs} runs of {len(chosen)} files, {len(failures)} failed")
    for ran in failures:
        for test in ran.failed:
            print(f"  DISCREET_SEARCH={ran.number} {shlex.join(command(test, ran.number))}")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
