"""Discreet: how often intervals of quantiles hold the quantile of the sample, and how wide they are beside an oracle's.

Each release is drawn by the code that releases; the rows are read and sorted once. The oracle knows the law of the
released point on these very data, and states the shortest interval around the point that covers as often: once for the
point as it was released, with two fifths of epsilon, and once for a point that has all of it.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import discreet as dp
from benchmarks.interval_columns import COLUMNS, EPSILONS, QUANTILES, RUNS, SIZES, RealColumn
from benchmarks.peers.arrays import Floats
from benchmarks.peers.discreet_draws import quantile_points
from benchmarks.peers.protocol import emit, is_quick
from discreet.mechanisms.grid import Grid
from discreet.mechanisms.joint_quantiles import QuantileInterval
from discreet.mechanisms.order_statistics import Ranked, SortedRun
from discreet.query.engine import Deadline
from discreet.query.engines.duckdb import DuckDBEngine
from discreet.query.parse.select import read
from discreet.query.plan.choices import interval_of
from discreet.query.plan.draft import QuantilePick, Spend
from discreet.query.plan.planner import plan
from discreet.query.session.catalogue_builder import build_catalogue

CONFIDENCE = 0.95
DRAWS = 20_000  # of the oracle
Ends = tuple[int, int]
Drawn = tuple[QuantileInterval, Callable[[], Ends]]


def one_call(column: RealColumn, values: Floats, q: str, epsilon: str) -> Iterator[tuple[str, Drawn]]:
    """Draw as `dp.quantile(…, confidence=…)` does, in a ledger that adds up epsilons and in one that composes."""
    grid = Grid.between(column.low, column.high, step=column.step)
    for way, relation, flips in (
        ("dp.quantile", dp.Relation.ADD_REMOVE, True),
        ("dp.quantile, composed", dp.Relation.REPLACE_ONE, False),
    ):
        mechanism = QuantileInterval(
            quantile=Fraction(q), epsilon=Fraction(epsilon), grid=grid, relation=relation, flips=flips
        )
        yield way, (mechanism, _releases(mechanism, _ranked(grid, values)))


def _ranked(grid: Grid, values: Floats) -> Ranked:
    ordered = np.sort(grid.indices(values))
    return Ranked(ordered, grid.first, grid.last, _sorted=[SortedRun(1, ordered)])


def _releases(mechanism: QuantileInterval, sample: Ranked) -> Callable[[], Ends]:
    def draw() -> Ends:
        low, high = mechanism.release(sample).interval()  # type: ignore[arg-type]
        return int(low / mechanism.grid.step), int(high / mechanism.grid.step)

    return draw


def sql(column: RealColumn, values: Floats, q: str, epsilon: str) -> Iterator[tuple[str, Drawn]]:
    """Draw as `session.sql(…, quantile_intervals=True)` does; a row is a unit's only one."""
    table = pa.table(
        {"unit": np.arange(len(values)), "x": values.astype(np.int64) if column.whole else np.asarray(values)}
    )
    bounds = (int(column.low), int(column.high)) if column.whole else (float(column.low), float(column.high))
    declared = dp.between(*bounds, whole=column.whole)
    with closing(DuckDBEngine({"t": table})) as engine:
        catalogue = build_catalogue(engine, {"t": None}, unit=dp.Unit("unit"), columns={"t": {"x": declared}})
        question = read(f"SELECT PERCENTILE_CONT({q}) WITHIN GROUP (ORDER BY x) AS v FROM t", catalogue).question
        for way, spend in (
            ("SQL", Spend(epsilon=Fraction(epsilon), quantile_intervals=True)),
            # A choice of bounded range epsilon costs epsilon² / 8.
            ("SQL, composed", Spend(rho=Fraction(epsilon) ** 2 / 8, quantile_intervals=True)),
        ):
            priced = plan(question, catalogue, spend, pure=way == "SQL")
            counted = engine.run(priced.stage, deadline=Deadline.after(600))
            [pick] = priced.draft.picks
            assert isinstance(pick, QuantilePick)
            yield way, (interval_of(priced.draft, pick, priced.draft.choosers[0]), _answers(priced, counted, pick))


def _answers(priced: Any, counted: Any, pick: QuantilePick) -> Callable[[], Ends]:
    def draw() -> Ends:
        cell = priced.draw(counted).single()
        return int(cell.low / pick.grid.step), int(cell.high / pick.grid.step)

    return draw


def oracle(mechanism: QuantileInterval, values: Floats, *, whole: bool) -> int:
    """Return how many grid points the shortest interval around the point has that covers as often as is asked for."""
    point = replace(mechanism.point, epsilon=mechanism.epsilon) if whole else mechanism.point
    drawn = np.sort(quantile_points(point, point.pieces(values), DRAWS))
    most = math.ceil(CONFIDENCE * DRAWS)
    return int((drawn[most - 1 :] - drawn[: DRAWS - most + 1]).min()) + 1


def exact(mechanism: QuantileInterval, values: Floats) -> Ends:
    """Return the least and the greatest of the quantile's usual definitions, in steps."""
    steps, q = mechanism.grid.indices(values), float(mechanism.quantile)
    found = [np.quantile(steps, q, method=how) for how in ("inverted_cdf", "linear", "lower", "higher")]
    return math.floor(min(found)), math.ceil(max(found))


def show(column: RealColumn, values: Floats) -> None:
    """Report every cell of one size."""
    runs = RUNS // 10 if is_quick() else RUNS
    for (q, epsilon), asked in product(product(QUANTILES, EPSILONS), (one_call, sql)):
        for way, (mechanism, draw) in asked(column, values, q, epsilon):
            low, high = exact(mechanism, values)
            found = [draw() for _ in range(runs)]
            emit(
                way=way,
                data=column.name,
                size=len(values),
                quantile=q,
                epsilon=epsilon,
                runs=runs,
                covered=sum(least <= low and high <= most for least, most in found),
                points=float(np.mean([most - least + 1 for least, most in found])),
                oracle=oracle(mechanism, values, whole=False),
                oracle_whole=oracle(mechanism, values, whole=True),
                step=float(mechanism.grid.step),
            )


def main() -> None:
    """Report every cell of one column: its place in the list, and the folder of data."""
    column, folder = COLUMNS[int(sys.argv[1])], Path(sys.argv[2])
    for size in SIZES[:3] if is_quick() else SIZES:
        show(column, column.sample(folder, size))


if __name__ == "__main__":
    main()
