"""OpenDP's mbi extras on the synthetic tables: MST as it comes, and AIM of pairs.

AIM of triples, its default, was still at work on nltcs, the smallest table, after ten minutes of CPU time.

Columns are given by cut points between the codes: keys would add a cell for missing values to each. Budgets are rho,
the largest that its own conversion turns into (epsilon, delta), less about a part in 10^10 where MST needs that: it
cuts its budget into parts whose sum, rounded up, is often a little above it, and then refuses itself. It has two ways
of drawing rows: by default (mbi 1.1) it orders rows within groups of equal parents, which ties columns together that
are not; the other draws one by one.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import opendp.prelude as dp  # type: ignore[import-not-found]
import polars as pl
from numpy.typing import NDArray

from benchmarks.synth_jobs import DELTA, Sampler, asked, report
from benchmarks.synth_sets import Coded

dp.enable_features("contrib")
METHODS: dict[str, Any] = {"mst": lambda: dp.mbi.MST(), "aim": lambda: dp.mbi.AIM(queries=2)}


def rho(epsilon: float) -> float:
    """Return the largest rho whose approximate privacy at delta is within epsilon."""
    space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)

    def converted(scale: float) -> Any:
        return dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(dp.m.make_gaussian(*space, scale)), delta=float(DELTA))

    scale = dp.binary_search_param(converted, d_in=1.0, d_out=(epsilon, float(DELTA)))
    return float(dp.m.make_gaussian(*space, scale).map(1.0))


def accepted(budget: float, parts: int) -> float:
    """Return the budget, or one hardly smaller, whose share for choosing edges MST can cut into so many parts."""
    tried = (budget * (1 - step * 2.0**-40) for step in range(10_000))
    return next(budget for budget in tried if _fits(budget, parts))


def _fits(budget: float, parts: int) -> bool:
    share = _before(_before(budget - budget * 0.5))
    choosing = _before(_before(share - share * 0.9))
    part, total = _before(choosing / parts), Fraction(0)
    for _ in range(parts):
        total = _up(total + Fraction(part))
    return total <= choosing


def _before(value: float) -> float:
    return math.nextafter(value, -math.inf)


def _up(value: Fraction) -> Fraction:
    nearest = float(value)
    return Fraction(nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf))


def fit(table: Coded, method: str, epsilon: str) -> Sampler:
    """Fit, and return what draws."""
    names = [f"c{place}" for place in range(len(table.sizes))]
    frame = pl.DataFrame({name: table.codes[:, place].astype(np.int64) for place, name in enumerate(names)})
    budget = accepted(rho(float(epsilon)), len(names) - 1)
    context = dp.Context.compositor(
        data=frame.lazy(), privacy_unit=dp.unit_of(contributions=1), privacy_loss=dp.loss_of(rho=budget)
    )
    cuts = {name: list(range(size - 1)) for name, size in zip(names, table.sizes, strict=True)}
    made = context.query(rho=budget).contingency_table(cuts=cuts, algorithm=METHODS[method]()).release()

    def sample(way: str) -> NDArray[Any]:
        drawn = made.synthesize(rows=len(frame), method="round" if way == "as it comes" else "sample")
        return np.asarray(drawn.select(names).to_numpy().astype(np.int32))

    return sample


def main() -> None:
    """Make one table."""
    table, method, epsilon, out = asked()
    report(lambda: fit(table, method, epsilon), ("independent rows", "as it comes"), out)


if __name__ == "__main__":
    main()
