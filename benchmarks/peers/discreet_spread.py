"""Discreet: how far releases on real data are from the exact bounded answer, and how far they were said to be.

A question is bounded and added up once, as a release does; then noise is drawn many times by the code that releases.
"""

from __future__ import annotations

import math
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

import discreet as dp
from benchmarks.corpus.policies import DATASETS
from benchmarks.corpus.queries import Query, queries
from benchmarks.corpus.real import real_tables
from benchmarks.peers.discreet_session import opened
from benchmarks.peers.protocol import emit, is_quick
from benchmarks.spread_names import ASKED, CONFIDENCE, DELTA, EPSILON, LIMITS, Z
from discreet.query.engine import Deadline, ExactCounts
from discreet.query.execute import exact_numbers
from discreet.query.plan.answers import ReleasedNumbers, predicted
from discreet.query.plan.output_columns import columns_of
from discreet.query.plan.planner import PricedQuery

RUNS = 2_000


def tallied(session: dp.Session, priced: PricedQuery) -> ExactCounts:
    """Bound and add up once."""
    return session._desk.engine.run(priced.stage, deadline=Deadline.after(600))


def exact(priced: PricedQuery, tally: ExactCounts, shown: list[int]) -> dict[str, Any]:
    """Answer without noise, for the custodian's eyes: the same computation on exact numbers."""
    numbers = tuple(column[np.array(shown, dtype=np.int64)] for column in exact_numbers(priced.draft, tally.tally))
    keys = tuple(zip(*tally.keys(shown), strict=True)) if priced.question.keys else ()
    columns, _ = columns_of(priced.draft, ReleasedNumbers(numbers, (), keys, len(shown)))
    return {column.name: column for column in columns}


def compare(session: dp.Session, query: Query) -> None:
    """Report every measured column of one question."""
    delta = DELTA if query.unknown_keys else None
    priced = session.sql(query.sql, epsilon=EPSILON, delta=delta)._asked.priced
    tally = tallied(session, priced)
    draws = [priced.draw(tally) for _ in range(RUNS // 20 if is_quick() else RUNS)]
    truth = exact(priced, tally, list(range(tally.groups)))
    keys = [column.name for column in draws[0].columns if not column.measured]
    for output in priced.question.outputs:
        if output.name in keys:
            continue
        said = predicted(priced.draft, output, None)
        emit(
            dataset=query.dataset,
            query=query.id,
            column=output.name,
            thresholded=query.unknown_keys,
            **_compared(draws, truth, keys, output.name, said),
        )


def _compared(draws: list[Any], truth: dict[str, Any], keys: list[str], name: str, said: Fraction | None) -> Any:
    """Count how often the interval holds the exact answer, and find the 95 % quantile of the errors."""
    true = {_key(truth, keys, row): truth[name].values[row] for row in range(len(truth[name]))}
    seen = _cells(draws, keys, name)
    always = [key for key, cells in seen.items() if len(cells) == len(draws)]
    cells = [(cell, true[key]) for key in always for cell in seen[key]]
    covered = sum(cell.low <= value <= cell.high for cell, value in cells)
    errors = np.sort([abs(float(cell.value - value)) for cell, value in cells])
    spread = Z * math.sqrt(len(cells) * CONFIDENCE * (1 - CONFIDENCE))
    middle = CONFIDENCE * len(cells)
    ends = [errors[min(max(round(middle + side * spread), 0), len(cells) - 1)] for side in (-1, 1)]
    return {
        "groups": len(always),
        "draws": len(draws),
        "predicted": None if said is None else float(said),
        "low": ends[0],
        "high": ends[1],
        "covered": covered,
        "cells": len(cells),
    }


def _cells(draws: list[Any], keys: list[str], name: str) -> dict[Any, list[Any]]:
    seen: dict[Any, list[Any]] = {}
    for draw in draws:
        columns = {column.name: column for column in draw.columns}
        for row in range(len(draw)):
            seen.setdefault(_key(columns, keys, row), []).append(columns[name][row])
    return seen


def _key(columns: dict[str, Any], keys: list[str], row: int) -> tuple[Any, ...]:
    return tuple(columns[key].values[row] for key in keys)


def main() -> None:
    """Report every question of every data set in the folder that the command line names."""
    data = Path(sys.argv[1])
    asked = {query.id: query for query in queries()}
    for name, ids in ASKED.items():
        dataset = DATASETS[name]
        folder = real_tables(dataset, data, Path(".bench") / "corpus" / "real" / name)
        groups, rows = LIMITS[name]
        session = opened(dataset, folder, max_groups=groups, max_rows=rows, epsilon=1000)
        for query in ids:
            compare(session, asked[query])


if __name__ == "__main__":
    main()
