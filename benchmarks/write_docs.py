"""Write docs/benchmarks/, its picture and the table of attacks from the results: `python -m benchmarks.write_docs`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from benchmarks import bench_attacks, bench_engines
from benchmarks.__main__ import TOPICS
from benchmarks.environments import ROOT
from benchmarks.results import FOLDER, Results
from benchmarks.scoreboard import HEADLINES, limits_reached, scoreboard
from benchmarks.table import Table
from discreet import plots

__all__ = ["LAB", "PAGES", "main", "pages", "with_table"]

PAGES: Final = ROOT / "docs" / "benchmarks"
LAB: Final = ROOT / "docs" / "attacks" / "table.md"
_START: Final = "<!-- table of attacks: written by `python -m benchmarks.write_docs` -->\n"
_END: Final = "<!-- end of the table of attacks -->"
# Tables of a topic that have a page of their own, because one page of all would be twenty screens long.
_APART: Final = {"accuracy": slice(3, 12)}
# The picture above the tables of a topic, which is drawn from the same results.
_PICTURES: Final = {
    "engines": "![Seconds against rows, both by powers of ten: straight lines](../pictures/engines.svg)",
}
# Wide tables take the place of the table of contents; who searches for a word wants its own page before a benchmark.
_WIDE: Final = "---\nhide:\n  - toc\nsearch:\n  boost: 0.2\n---\n\n"
SCOREBOARD: Final = """# Benchmarks

One line a topic, quoted from its page: our figure, the best peer's, the limit that we set ourselves, and whether it
was reached. {reached} of {judged} limits are reached; every page names those that are not.

{lines}

*peer ÷ ours* says how many times as much the best peer takes or errs: above 1 ours is better; where more is better, as
for accuracy, there is no ratio. *all limits* counts every limit of the topic, not only that of the line. Figures are
those of one row of a table: the pages have all rows.

## How it is measured

```
make bench                    # all topics
make bench ONLY=noise         # one of them
make bench DATA=/some/folder  # with real data sets, where a topic has them
make bench ONLY=engines SCRATCH=/some/folder  # with a billion rows, which need 20 GB of disk
python -m benchmarks --quick  # a few minutes, not for quoting
```

Each library gets its own environment below `.bench/`, from the pinned lists in `benchmarks/peers/*.txt`. All
are measured in one run on one machine, one process at a time, with one thread (DuckDB and Polars use all cores).
Figures are CPU time of the process, the minimum over repetitions; the JSON has the wall clock beside it. Peers get
the settings that are fastest for them. A peer that could not be installed or that broke is named below its table.

The topics are {topics}.

These pages are written by `python -m benchmarks.write_docs` from `benchmarks/results/*.json`, and not by hand.
"""


def pages() -> dict[str, str]:
    """Return the text of each page by its name: the scoreboard, and a page for every topic that was measured."""
    measured = [topic for topic in TOPICS if (FOLDER / f"{topic}.json").exists()]
    tables = {topic: TOPICS[topic].tables(Results.read(topic)) for topic in measured}
    texts = {"index.md": _scoreboard(tables)}
    for topic, found in tables.items():
        name, apart = topic.replace("_", "-"), found[_APART[topic]] if topic in _APART else ()
        texts[f"{name}.md"] = _topic(
            topic, [table for table in found if table not in apart], f"{name}-cells.md" * bool(apart)
        )
        if apart:
            texts[f"{name}-cells.md"] = _cells(topic, apart)
    return texts


def _scoreboard(tables: Mapping[str, Sequence[Table]]) -> str:
    verdicts = [limits_reached(found) for found in tables.values()]
    reached, judged = (sum(counts) for counts in zip(*verdicts, strict=True))
    named = ", ".join(f"`{topic}`" for topic in tables)
    return _WIDE + SCOREBOARD.format(reached=reached, judged=judged, lines=scoreboard(tables), topics=named)


def _topic(topic: str, tables: Sequence[Table], rest: str) -> str:
    way = f"Topic `{topic}` of the [benchmarks](index.md): `make bench ONLY={topic}`."
    further = f" [Every cell]({rest}) has a page of its own." if rest else ""
    head = f"{_WIDE}# Benchmark: {HEADLINES[topic].title}\n\n{way}{further}"
    shown = "\n\n".join([*([_PICTURES[topic]] if topic in _PICTURES else []), _shown(tables)])
    return f"{head}\n\n{shown}\n\n{_facts(Results.read(topic))}\n"


def _cells(topic: str, tables: Sequence[Table]) -> str:
    title, name = HEADLINES[topic].title, topic.replace("_", "-")
    back = f"What was asked, of whom and how it is summed up is on the page of the [topic]({name}.md)."
    return f"{_WIDE}# Benchmark: {title}, cell by cell\n\n{back}\n\n{_shown(tables)}\n\n{_facts(Results.read(topic))}\n"


def _shown(tables: Sequence[Table]) -> str:
    return "\n\n".join(table.text().replace(f"**{table.title}**", f"## {table.title}", 1) for table in tables)


def _facts(results: Results) -> str:
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
    return f"Commit `{results.commit}`; {machine}." + (f" {versions}." if versions else "")


def _distribution(subject: str, found: Mapping[str, str]) -> str:
    """Return what an environment is about: opendp for opendp-polars, which is OpenDP with an extra."""
    return subject if subject in found else subject.rpartition("-")[0]


def with_table(text: str) -> str:
    """Return the page of the attack lab with the table of the last full run."""
    before, rest = text.split(_START)
    after = rest.split(_END)[1]
    return f"{before}{_START}\n{bench_attacks.table(Results.read('attacks')).text()}\n\n{_END}{after}"


def main() -> None:
    """Write all pages."""
    PAGES.mkdir(exist_ok=True)
    for name, text in pages().items():
        (PAGES / name).write_text(text, encoding="utf-8")
    curves = bench_engines.seconds_by_rows(Results.read("engines"))
    chart = plots.lines(curves, across="rows", up="seconds on the wall", log_x=True, log_y=True)
    plots.save(chart, PAGES.parent / "pictures" / "engines.svg")
    LAB.write_text(with_table(LAB.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
