"""Discreet: every answerable query of the corpus at epsilon 1 on the real data; orders are drawn, twenty times more."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import discreet as dp
from benchmarks.corpus.names import DELTA
from benchmarks.corpus.policies import DATASETS, Dataset
from benchmarks.corpus.queries import Query, queries
from benchmarks.corpus.real import real_tables
from benchmarks.corpus.standins import standin
from benchmarks.peers.discreet_session import opened
from benchmarks.peers.protocol import emit

EPSILON = 1


def tables(dataset: Dataset, data: Path) -> Any:
    """Return the real tables of a data set, or drawn ones where there are none."""
    if all(table.file is None for table in dataset.private):
        return standin(dataset, times=20)
    return real_tables(dataset, data, Path(".bench") / "corpus" / "real" / dataset.name)


def answered(session: dp.Session, query: Query) -> bool:
    """Ask once."""
    try:
        session.sql(query.sql, epsilon=EPSILON, delta=DELTA if query.unknown_keys else None).release()
    except dp.DiscreetError:
        return False
    return True


def main() -> None:
    """Report every query."""
    for dataset in DATASETS.values():
        session = opened(dataset, tables(dataset, Path(sys.argv[1])), max_groups=3, max_rows=4, epsilon=10_000)
        for query in queries():
            if query.dataset == dataset.name and query.answerable:
                emit(trial="real", query=query.id, answered=answered(session, query))


if __name__ == "__main__":
    main()
