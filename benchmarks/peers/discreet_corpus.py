"""Discreet: the corpus. The largest epsilon that may be asked for is lifted: the judge wants hardly any noise."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from benchmarks.corpus.names import DELTA, HUGE, Trial
from benchmarks.corpus.policies import Dataset
from benchmarks.corpus.queries import Query
from benchmarks.peers.asking import Ask, ask_all, world
from benchmarks.peers.discreet_session import opened
from discreet.query.plan import draft


def start(dataset: Dataset, trial: Trial) -> Ask:
    """Open one data set."""
    session = opened(
        dataset,
        world(trial, dataset),
        max_groups=trial.max_groups,
        max_rows=trial.max_rows,
        epsilon=HUGE * 1_000,
    )

    def ask(query: Query, sql: str) -> Sequence[Sequence[Any]]:
        delta = DELTA if query.unknown_keys else None
        return rows(session.sql(widened(sql, trial), epsilon=HUGE, delta=delta).release())

    return ask


def widened(sql: str, trial: Trial) -> str:
    """Let the options of a query ask for as little noise as the trial, and cut no more than it."""
    rules = {
        r"epsilon = 1\b": f"epsilon = {HUGE}",
        r"max_groups_contributed = \d+": f"max_groups_contributed = {trial.max_groups}",
        r"\(0, 100000\)": "(0, 10000000)",
    }
    for pattern, words in rules.items():
        sql = re.sub(pattern, words, sql)
    return sql


def rows(answer: Any) -> Sequence[Sequence[Any]]:
    """Return keys and values, without the columns of their errors."""
    return [[_plain(column[row].value) for column in answer.columns] for row in range(len(answer))]


def _plain(value: Any) -> Any:
    return float(value) if isinstance(value, Fraction) else value


if __name__ == "__main__":
    draft.MOST_EPSILON = Fraction(HUGE)
    ask_all("discreet", start)
