"""Discreet: how long it takes to read, plan and price each answerable query of the corpus; no row is read."""

from __future__ import annotations

from benchmarks.corpus.names import DELTA, TRIALS
from benchmarks.corpus.policies import DATASETS
from benchmarks.corpus.queries import queries
from benchmarks.peers.asking import world
from benchmarks.peers.discreet_session import opened
from benchmarks.peers.protocol import emit
from benchmarks.timing import fastest

TRIAL = TRIALS[0]


def main() -> None:
    """Report every query: the first time it is asked in this process, and the fastest of a few more."""
    for dataset in DATASETS.values():
        session = opened(dataset, world(TRIAL, dataset), max_groups=3, max_rows=2, epsilon=1000)
        for query in queries():
            if query.dataset == dataset.name and query.answerable:
                delta = DELTA if query.unknown_keys else None
                timing = fastest(lambda: session.sql(query.sql, epsilon=1, delta=delta), repetitions=5, seconds=2)  # noqa: B023
                emit(job="planning", query=query.id, cpu=timing.cpu, wall=timing.wall)


if __name__ == "__main__":
    main()
