"""Write docs/benchmarks.md and the table of attacks from the results: `python -m benchmarks.write_docs`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from benchmarks import bench_attacks
from benchmarks.__main__ import TOPICS
from benchmarks.environments import ROOT
from benchmarks.results import FOLDER, Results

__all__ = ["LAB", "PAGE", "main", "page", "with_table"]

PAGE: Final = ROOT / "docs" / "benchmarks.md"
LAB: Final = ROOT / "docs" / "attacks" / "table.md"
_START: Final = "<!-- table of attacks: written by `python -m benchmarks.write_docs` -->\n"
_END: Final = "<!-- end of the table of attacks -->"
HEAD: Final = """# Benchmarks

Written by `python -m benchmarks.write_docs` from `benchmarks/results/*.json`; do not edit by hand.

```
make bench                    # all topics
make bench ONLY=noise         # one of {topics}
make bench DATA=/some/folder  # with the real data sets of accuracy, corpus, spread, release and attacks
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
    named = ((_distribution(subject, found), found) for subject, found in results.versions.items())
    versions = ", ".join(f"{name} {found[name]}" for name, found in named if name in found)
    facts = f"Commit `{results.commit}`; {machine}. {versions}."
    return f"## {topic.capitalize()}\n\n{TOPICS[topic].text(results)}\n\n{facts}\n"


def _distribution(subject: str, found: Mapping[str, str]) -> str:
    """Return what an environment is about: opendp for opendp-polars, which is OpenDP with an extra."""
    return subject if subject in found else subject.rpartition("-")[0]


def with_table(text: str) -> str:
    """Return the page of the attack lab with the table of the last full run."""
    before, rest = text.split(_START)
    after = rest.split(_END)[1]
    return f"{before}{_START}\n{bench_attacks.table(Results.read('attacks')).text()}\n\n{_END}{after}"


def main() -> None:
    """Write both pages."""
    PAGE.write_text(page(), encoding="utf-8")
    LAB.write_text(with_table(LAB.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
