"""Run topics, print one table each, and write benchmarks/results/<topic>.json."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks import (
    bench_accounting,
    bench_accuracy,
    bench_attacks,
    bench_attacks_identity,
    bench_audit,
    bench_corpus,
    bench_diffusion,
    bench_engines,
    bench_estimators,
    bench_imports,
    bench_learning,
    bench_ledger,
    bench_ledger_server,
    bench_merf,
    bench_noise,
    bench_people,
    bench_people_regression,
    bench_population,
    bench_profile,
    bench_quantile_intervals,
    bench_quantiles_at_once,
    bench_queries,
    bench_release,
    bench_release_speed,
    bench_robustness,
    bench_running,
    bench_speed,
    bench_spread,
    bench_synth_auto,
    bench_synth_tables,
    bench_totals,
    bench_training_speed,
    bench_units,
    bench_workload,
)
from benchmarks.environments import ROOT
from benchmarks.results import Results
from benchmarks.table import Table

__all__ = ["TOPICS", "main"]


@dataclass(frozen=True, slots=True)
class Topic:
    """How to measure a topic and how to show it."""

    measure: Callable[..., Results]
    tables: Callable[[Results], tuple[Table, ...]]
    needs_data: bool = False
    counts_runs: bool = False
    needs_scratch: bool = False

    def text(self, results: Results) -> str:
        """Return the tables, one below the other."""
        return "\n\n".join(table.text() for table in self.tables(results))


def one(table: Callable[[Results], Table]) -> Callable[[Results], tuple[Table, ...]]:
    """Show a topic by a single table."""
    return lambda results: (table(results),)


TOPICS: Final = {
    "noise": Topic(bench_noise.measure, one(bench_noise.table)),
    "accounting": Topic(bench_accounting.measure, one(bench_accounting.table)),
    "imports": Topic(bench_imports.measure, one(bench_imports.table)),
    "ledger": Topic(bench_ledger.measure, one(bench_ledger.table)),
    "ledger_server": Topic(bench_ledger_server.measure, one(bench_ledger_server.table)),
    "speed": Topic(bench_speed.measure, one(bench_speed.table)),
    "accuracy": Topic(bench_accuracy.measure, bench_accuracy.tables, needs_data=True),
    "quantile_intervals": Topic(bench_quantile_intervals.measure, bench_quantile_intervals.tables, needs_data=True),
    "quantiles_at_once": Topic(bench_quantiles_at_once.measure, one(bench_quantiles_at_once.table), counts_runs=True),
    "population": Topic(bench_population.measure, bench_population.tables, needs_data=True),
    "workload": Topic(bench_workload.measure, one(bench_workload.table)),
    "robustness": Topic(bench_robustness.measure, bench_robustness.tables),
    "queries": Topic(bench_queries.measure, bench_queries.tables),
    "engines": Topic(bench_engines.measure, bench_engines.tables, needs_scratch=True),
    "corpus": Topic(bench_corpus.measure, bench_corpus.tables, needs_data=True),
    "profile": Topic(bench_profile.measure, one(bench_profile.table)),
    "spread": Topic(bench_spread.measure, one(bench_spread.table), needs_data=True),
    "release_speed": Topic(bench_release_speed.measure, one(bench_release_speed.table)),
    "running": Topic(bench_running.measure, bench_running.tables),
    "units": Topic(bench_units.measure, bench_units.tables),
    "totals": Topic(bench_totals.measure, bench_totals.tables, needs_data=True),
    "release": Topic(bench_release.measure, bench_release.tables, needs_data=True),
    "attacks": Topic(bench_attacks.measure, bench_attacks.tables, needs_data=True),
    "audit": Topic(bench_audit.measure, one(bench_audit.table)),
    "training_speed": Topic(bench_training_speed.measure, one(bench_training_speed.table)),
    "people": Topic(bench_people.measure, one(bench_people.table)),
    "people_regression": Topic(
        bench_people_regression.measure, one(bench_people_regression.table), needs_data=True, counts_runs=True
    ),
    "learning": Topic(bench_learning.measure, one(bench_learning.table), needs_data=True),
    "trees": Topic(bench_learning.measure_trees, one(bench_learning.trees_table), needs_data=True),
    "estimators": Topic(bench_estimators.measure, bench_estimators.tables, needs_data=True),
    "attacks_identity": Topic(bench_attacks_identity.measure, bench_attacks_identity.tables, needs_data=True),
    "merf": Topic(bench_merf.measure, bench_merf.tables, needs_data=True),
    "diffusion": Topic(bench_diffusion.measure, one(bench_diffusion.table), needs_data=True),
    "synth_tables": Topic(bench_synth_tables.measure, bench_synth_tables.tables, needs_data=True, counts_runs=True),
    "synth_auto": Topic(bench_synth_auto.measure, bench_synth_auto.tables, needs_data=True),
}


def main() -> None:
    """Run what the command line names, everything if it names nothing."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("topics", nargs="*", metavar="topic", help=f"of {', '.join(TOPICS)}; all if none")
    parser.add_argument("--quick", action="store_true", help="fewer samples; the docs never quote these")
    parser.add_argument(
        "--data", type=Path, help="a folder with the real data sets; without it only synthetic ones run"
    )
    parser.add_argument(
        "--scratch",
        type=Path,
        help="a folder with 20 GB of room, for rows that memory does not hold; else they are left out",
    )
    parser.add_argument("--runs", type=int, help="simulations of a cell, where a topic says how many it takes")
    options = parser.parse_args()
    if unknown := set(options.topics) - set(TOPICS):
        parser.error(f"unknown topic {', '.join(sorted(unknown))}; there are {', '.join(TOPICS)}")
    for name in options.topics or TOPICS:
        given = {"data": options.data} if TOPICS[name].needs_data else {}
        given |= {"scratch": options.scratch} if TOPICS[name].needs_scratch else {}
        given |= {"runs": options.runs} if TOPICS[name].counts_runs else {}
        results = TOPICS[name].measure(quick=options.quick, **given)
        written = results.write().relative_to(ROOT)
        print(f"\n{TOPICS[name].text(results)}\n\n  written: {written}\n", flush=True)


if __name__ == "__main__":
    main()
