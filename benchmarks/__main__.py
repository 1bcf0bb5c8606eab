"""Run topics, print one table each, and write benchmarks/results/<topic>.json."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from benchmarks import bench_accounting, bench_imports, bench_noise
from benchmarks.environments import ROOT
from benchmarks.results import Results
from benchmarks.table import Table

__all__ = ["TOPICS", "main"]


@dataclass(frozen=True, slots=True)
class Topic:
    """How to measure a topic and how to show it."""

    measure: Callable[..., Results]
    table: Callable[[Results], Table]


TOPICS: Final = {
    "noise": Topic(bench_noise.measure, bench_noise.table),
    "accounting": Topic(bench_accounting.measure, bench_accounting.table),
    "imports": Topic(bench_imports.measure, bench_imports.table),
}


def main() -> None:
    """Run what the command line names, everything if it names nothing."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("topics", nargs="*", metavar="topic", help=f"of {', '.join(TOPICS)}; all if none")
    parser.add_argument("--quick", action="store_true", help="fewer samples; the docs never quote these")
    options = parser.parse_args()
    if unknown := set(options.topics) - set(TOPICS):
        parser.error(f"unknown topic {', '.join(sorted(unknown))}; there are {', '.join(TOPICS)}")
    for name in options.topics or TOPICS:
        results = TOPICS[name].measure(quick=options.quick)
        written = results.write().relative_to(ROOT)
        print(f"\n{TOPICS[name].table(results).text()}\n\n  written: {written}\n", flush=True)


if __name__ == "__main__":
    main()
