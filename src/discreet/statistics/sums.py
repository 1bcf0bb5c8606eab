"""The total of a bounded column."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from discreet.exact import Number
from discreet.mechanisms.release import Release
from discreet.mechanisms.sum import Sum
from discreet.privacy.payer import Payer
from discreet.privacy.relation import Relation
from discreet.statistics.paying import Bounds, answer, grid_from, noise_from

__all__ = ["sum"]


def sum(
    column: Any,
    *,
    relation: Relation,
    bounds: Bounds | None = None,
    step: Number | None = None,
    missing: Number | None = None,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    population: int | None = None,
    allow_large_delta: bool = False,
    session: Payer | None = None,
) -> Release[Fraction]:
    """Add up a column, each value clamped to `bounds` and rounded to a multiple of `step`.

    The step is a power of ten, about a millionth of the width of the bounds, unless you say another one. What is
    missing counts as `missing`, or as the number nearest to zero within the bounds.
    """
    grid = grid_from(bounds, step=step, missing=missing, toward_zero=True)
    noise = noise_from(
        epsilon=epsilon, delta=delta, rho=rho, population=population, allow_large_delta=allow_large_delta
    )
    mechanism = Sum(grid=grid, relation=relation, noise=noise)
    return answer(mechanism, column, session=session, purpose="sum", noise=noise)
