"""Write docs/benchmarks.md from the results: `python -m benchmarks.write_docs`."""

from __future__ import annotations

from typing import Final

from benchmarks.__main__ import TOPICS
from benchmarks.environments import ROOT
from benchmarks.results import FOLDER, Results

__all__ = ["main", "page"]

PAGE: Final = ROOT / "docs" / "benchmarks.md"
HEAD: Final = """# Benchmarks

Written by `python -m benchmarks.write_docs` from `benchmarks/results/*.json`; do not edit by hand.

```
make bench                    # all topics
make bench ONLY=noise         # one of {topics}
make bench DATA=/some/folder  # with the real data sets of accuracy, corpus and spread
python -m benchmarks --quick  # a few minutes, not for quoting
```

Each library gets its own environment below `.bench/`, from the pinned lists in `benchmarks/peers/*.txt`. All
are measured in one run on one machine, one process at a time, with one thread (DuckDB and Polars use all cores).
Figures are CPU time of the process, the minimum over repetitions; the JSON has the wall clock beside it. Peers get
the settings that are fastest for them. A peer that could not be installed or that broke is named below its table.
"""


def page() -> str:
    """Return the page for the results that exist."""
    sections = [_section(topic) for topic in TOPICS if (FOLDER / f"{topic}.json").exists()]
    return "\n".join([HEAD.format(topics=", ".join(TOPICS)), *sections])


def _section(topic: str) -> str:
    results = Results.read(topic)
    machine = ", ".join(
        (
            results.machine["processor"],
            f"{results.machine['cores']} cores",
            f"{results.machine['memory_gb']} GB",
            f"Python {results.machine['python']}",
            f"load {results.machine['load_at_start']} at the start",
            results.machine["date"],
        )
    )
    named = ((name.removesuffix("-polars"), found) for name, found in results.versions.items())
    versions = ", ".join(f"{name} {found[name]}" for name, found in named if name in found)
    facts = f"Commit `{results.commit}`; {machine}. {versions}."
    return f"## {topic.capitalize()}\n\n{TOPICS[topic].text(results)}\n\n{facts}\n"


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
