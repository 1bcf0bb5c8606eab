"""Discreet: errors of nine deciles that are released together, beside those of one decile at the whole budget.

Each release is drawn by the code that releases; the rows are read and sorted once.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import discreet as dp
from benchmarks.datasets import SEED
from benchmarks.peers.arrays import Floats
from benchmarks.peers.protocol import emit, is_quick
from discreet.mechanisms.grid import Grid
from discreet.mechanisms.joint_quantiles import Quantiles
from discreet.mechanisms.order_statistics import Ranked, SortedRun
from discreet.mechanisms.quantile import Quantile
from discreet.query.engines.duckdb import DuckDBEngine
from discreet.query.parse.select import read
from discreet.query.plan.choices import quantile_of, quantiles_of
from discreet.query.plan.draft import QuantilePick, QuantilesPick, Spend
from discreet.query.plan.planner import plan
from discreet.query.session.catalogue_builder import build_catalogue

SIZE = 10_000
DECILES = tuple(Fraction(tenth, 10) for tenth in range(1, 10))
EPSILONS = ("0.1", "1")
Ints = NDArray[np.int64]
Way = tuple[str, bool, Quantiles, list[Quantile]]


def _peaks(chance: np.random.Generator, size: int) -> Floats:
    sides = np.where(chance.random(size) < 0.5, 200.0, 800.0)
    return sides + chance.normal(0, 30, size)


# What is drawn, the bounds and the step: whole numbers are counted by their step in SQL, others more finely.
COLUMNS: dict[str, tuple[Any, int, int, str]] = {
    "even": (lambda chance, size: chance.random(size) * 1000, 0, 1000, "0.001"),
    "normal": (lambda chance, size: chance.normal(500, 100, size), 0, 1000, "0.001"),
    "lognormal": (lambda chance, size: chance.lognormal(3, 1, size), 0, 10_000, "0.01"),
    "two peaks": (_peaks, 0, 1000, "0.001"),
    "ages, whole years": (lambda chance, size: np.floor(np.clip(chance.normal(40, 18, size), 0, 99)), 0, 120, "1"),
}


def one_call(name: str, epsilon: Fraction) -> Iterator[Way]:
    """Choose as `dp.quantiles` and `dp.quantile` do: by a pure epsilon, and by the rho that this range is worth."""
    _, low, high, step = COLUMNS[name]
    grid = Grid.between(low, high, step=step)
    for relation, pure in product(dp.Relation, (True, False)):
        asked: dict[str, Any] = {"quantiles": DECILES, "grid": grid, "relation": relation}
        nine = Quantiles.for_epsilon(epsilon, **asked) if pure else Quantiles.for_rho(epsilon**2 / 8, **asked)
        ones = [Quantile(quantile=q, epsilon=epsilon, grid=grid, relation=relation, flips=pure) for q in DECILES]
        yield f"dp.quantiles, {relation.value}", pure, nine, ones


def sql(name: str, epsilon: Fraction) -> Iterator[Way]:
    """Choose as `session.sql` does, where people have up to three rows."""
    _, low, high, step = COLUMNS[name]
    declared = dp.between(low, high, whole=step == "1")
    table = pa.table({"unit": [1, 2], "x": [low, high] if step == "1" else [float(low), float(high)]})
    unit = dp.Unit("unit", max_rows_per_group=3)
    with closing(DuckDBEngine({"t": table})) as engine:
        catalogue = build_catalogue(engine, {"t": None}, unit=unit, columns={"t": {"x": declared}})
        for pure in (True, False):
            spend = Spend(epsilon=epsilon) if pure else Spend(rho=epsilon**2 / 8)

            def planned(share: str, spend: Spend = spend, pure: bool = pure) -> Any:
                text = f"SELECT PERCENTILE_CONT({share}) WITHIN GROUP (ORDER BY x) FROM t"
                return plan(read(text, catalogue).question, catalogue, spend, pure=pure).draft

            many = planned("[" + ", ".join(str(float(one)) for one in DECILES) + "]")
            [among], [chooser] = many.picks, many.choosers
            assert isinstance(among, QuantilesPick)
            yield "SQL, three rows a person", pure, quantiles_of(many, among, chooser), list(_alone(planned))


def _alone(planned: Any) -> Iterator[Quantile]:
    for decile in DECILES:
        draft = planned(str(float(decile)))
        [pick] = draft.picks
        assert isinstance(pick, QuantilePick)
        yield quantile_of(draft, pick, draft.choosers[0])


def errors(grid: Grid, ordered: Ints, points: Ints) -> tuple[float, float]:
    """Return how many ranks points are off on average, and how far from the deciles they are."""
    wanted = np.array([float(one) for one in DECILES]) * ordered.size
    below, upto = np.searchsorted(ordered, points, "left"), np.searchsorted(ordered, points, "right")
    ranks = np.maximum(0, np.maximum(below - wanted, wanted - upto))
    truth = ordered[np.ceil(wanted - 1e-9).astype(int) - 1]
    return float(ranks.mean()), float(np.abs(points - truth).mean() * float(grid.step))


def show(name: str, way: Way, values: Floats, epsilon: str, runs: int) -> None:
    """Report one cell."""
    told, pure, nine, ones = way
    ordered = np.sort(nine.grid.indices(values))
    sample = Ranked(ordered, nine.grid.first, nine.grid.last, _sorted=[SortedRun(1, ordered)])
    many = np.array([nine.choose(ordered) for _ in range(runs)])
    alone = np.array([[int(one.release(sample).value / one.grid.step) for one in ones] for _ in range(runs)])  # type: ignore[arg-type]
    together, apart = errors(nine.grid, ordered, many), errors(nine.grid, ordered, alone)
    emit(
        data=name,
        way=told,
        pure=pure,
        epsilon=epsilon,
        runs=runs,
        steps=len(nine.epsilons),
        ranks=together[0],
        ranks_alone=apart[0],
        off=together[1],
        off_alone=apart[1],
    )


def main() -> None:
    """Report every cell of one column, so many releases each."""
    name, runs = sys.argv[1], int(sys.argv[2]) // (20 if is_quick() else 1)
    values = COLUMNS[name][0](np.random.default_rng((SEED, len(name))), SIZE)
    for epsilon in EPSILONS:
        for way in (*one_call(name, Fraction(epsilon)), *sql(name, Fraction(epsilon))):
            show(name, way, values, epsilon, max(runs, 1))


if __name__ == "__main__":
    main()
