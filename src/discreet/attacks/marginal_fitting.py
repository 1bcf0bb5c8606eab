"""The people behind some tables: whole numbers of each kind whose tables are those that were published, or nearest.

Integer programming, by HiGHS. Exact tables have at least one answer; noisy ones usually none, and the answer is the
block whose tables are least off in sum of absolute differences.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.attacks.marginals import Marginals
from discreet.attacks.vectors import Floats, Integers
from discreet.errors import Refused

__all__ = ["certain", "fitted", "nearest"]

_SECONDS = 60.0  # For one program over a small block; those of this size take a hundredth.


def fitted(plan: Marginals, cells: Integers) -> Integers:
    """Return how many people of each kind there may be, if these tables are exact."""
    matrix, possible = _possible(plan, cells)
    people = np.zeros(plan.kinds, dtype=np.int64)
    people[possible] = _solved(np.zeros(len(possible)), matrix, cells, cells)[: len(possible)]
    return people


def certain(plan: Marginals, cells: Integers, people: Integers) -> Integers:
    """Return how many people of each kind every block has that fits exact tables, `people` among them."""
    matrix, possible = _possible(plan, cells)
    surely = np.zeros(plan.kinds, dtype=np.int64)
    for place, kind in enumerate(possible):
        if people[kind]:
            one = np.zeros(len(possible))
            one[place] = 1
            surely[kind] = _solved(one, matrix, cells, cells)[place]
    return surely


def nearest(plan: Marginals, cells: Floats, *, people: int, gap: float = 0.02) -> Integers:
    """Return so many people whose tables are off by at most a part `gap` more than those of the nearest such block."""
    from scipy.sparse import csr_array, eye_array, hstack, vstack

    count = len(cells)
    # Sums of kinds plus too little minus too much are the published cells; the last row counts everybody.
    published: Any = hstack([plan.matrix(), eye_array(count), -eye_array(count)])
    everybody = csr_array(np.concatenate([np.ones(plan.kinds), np.zeros(2 * count)])[None, :])
    whole: Any = vstack([published, everybody]).tocsr()
    sums = np.concatenate([cells, [people]])
    costs = np.concatenate([np.zeros(plan.kinds), np.ones(2 * count)])
    return _solved(costs, whole, sums, sums, whole_numbers=plan.kinds, gap=gap)[: plan.kinds]


def _possible(plan: Marginals, cells: Integers) -> tuple[Any, Integers]:
    """Keep the kinds that no table excludes: each of its cells counts somebody."""
    matrix = plan.matrix()
    shown = np.asarray(matrix.T @ (cells > 0)).round()
    possible = np.flatnonzero(shown == len(plan.tables))
    return matrix.tocsc()[:, possible].tocsr(), possible


def _solved(
    costs: Floats, matrix: Any, low: Any, high: Any, *, whole_numbers: int | None = None, gap: float = 0.0
) -> Integers:
    from scipy.optimize import Bounds, LinearConstraint, milp

    integral = np.zeros(len(costs), dtype=np.int64)
    integral[: len(costs) if whole_numbers is None else whole_numbers] = 1
    result = milp(
        costs,
        constraints=LinearConstraint(matrix, low, high),
        integrality=integral,
        bounds=Bounds(0, np.inf),
        options={"time_limit": _SECONDS, "mip_rel_gap": gap},
    )
    if result.x is None:
        raise Refused(
            "no block of people fits these tables",
            reason="they contradict each other, or there are too many kinds of people to try",
            way_out="attack noisy tables with their mechanism, or take fewer columns",
        )
    return np.asarray(result.x).round().astype(np.int64)
