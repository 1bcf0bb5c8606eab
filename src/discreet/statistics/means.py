"""Averages and spreads of a bounded column."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from discreet.exact import Number, exact
from discreet.mechanisms.mean import Mean
from discreet.mechanisms.release import Release
from discreet.mechanisms.variance import Variance
from discreet.privacy.payer import Payer
from discreet.privacy.relation import Relation
from discreet.statistics.paying import Bounds, answer, grid_from, noise_from, public_size

__all__ = ["mean", "variance"]


def mean(
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
    count_share: Number = Fraction(1, 2),
    session: Payer | None = None,
) -> Release[Fraction]:
    """Average a column, each value clamped to `bounds` and rounded to a multiple of `step`.

    Under replace-one the number of rows is public. Under add-remove it is private, and the part `count_share` of the
    budget pays for it. What is missing counts as `missing`, or as the middle of the bounds.
    """
    grid = grid_from(bounds, step=step, missing=missing)
    size = public_size(column, relation)
    noise = noise_from(
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        population=size if population is None else population,
        allow_large_delta=allow_large_delta,
    )
    share = exact(count_share, name="count_share")
    mechanism = Mean(grid=grid, relation=relation, noise=noise, size=size, count_share=share)
    return answer(mechanism, column, session=session, purpose="mean", noise=noise)


def variance(
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
    """Release the variance of a column with divisor n, each value clamped to `bounds`.

    Under add-remove the budget is split evenly over a sum of squares, a sum and a count.
    """
    grid = grid_from(bounds, step=step, missing=missing)
    size = public_size(column, relation)
    noise = noise_from(
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        population=size if population is None else population,
        allow_large_delta=allow_large_delta,
    )
    mechanism = Variance(grid=grid, relation=relation, noise=noise, size=size)
    return answer(mechanism, column, session=session, purpose="variance", noise=noise)
