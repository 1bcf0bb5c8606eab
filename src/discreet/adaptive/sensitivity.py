"""What one unit can change, at the data at hand: local and smooth sensitivity, for the custodian's own eyes."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal, TypeAlias

from discreet.adaptive.order_queries import (
    OrderQuery,
    median_query,
    quantile_query,
    trimmed_mean_query,
    winsorised_mean_query,
)
from discreet.adaptive.variance_sensitivity import global_variance, local_variance
from discreet.balls import precision
from discreet.errors import InvalidParameter
from discreet.exact import Number, integer, positive
from discreet.mechanisms.column import Column, Data, column_of
from discreet.mechanisms.fields import read_relation
from discreet.mechanisms.grid import Grid
from discreet.mechanisms.ranked import Ranked
from discreet.privacy.notprivate import NotPrivate
from discreet.privacy.relation import Relation

__all__ = ["Statistic", "local_sensitivity", "smooth_sensitivity"]

Statistic: TypeAlias = Literal["order", "median", "trimmed_mean", "winsorised_mean", "variance"]

_BITS = 96


def smooth_sensitivity(
    values: Data,
    *,
    bounds: tuple[Number, Number],
    beta: Number,
    relation: Relation,
    rank: int | None = None,
    q: Number | None = None,
    statistic: Statistic = "order",
    ends: int | None = None,
    step: Number | None = None,
) -> NotPrivate[float]:
    """Return the beta-smooth sensitivity of a statistic of values clamped to the bounds, in units of the data.

    "order" is the value of a rank, counted from 1, or of the rank max(1, ceil(q n)); "median" the middle value or the
    mean of the two (under add-remove the lower of them); "trimmed_mean" and "winsorised_mean" leave out or move inward
    `ends` values on each side; "variance" has the divisor n. For the Winsorised mean, and for quantiles other than the
    median under add-remove, it is a smooth upper bound; for the variance, the global sensitivity. [NRS07, BS19]
    """
    decay, column = positive(beta, name="beta"), column_of(values)
    if statistic == "variance":
        sample, unit = _variance(column, bounds, relation, step, rank=rank, q=q, ends=ends)
        return NotPrivate(float(unit * global_variance(Fraction(sample.spread), sample.size)))
    query = _query(column, bounds, relation, rank, q, statistic, ends, step)
    peak = query.smooth_sensitivity(column, decay)
    with precision(_BITS):
        return NotPrivate(float(query.grid.step * Fraction(float(peak.enclose(decay)))))


def local_sensitivity(
    values: Data,
    *,
    bounds: tuple[Number, Number],
    relation: Relation,
    rank: int | None = None,
    q: Number | None = None,
    statistic: Statistic = "order",
    ends: int | None = None,
    step: Number | None = None,
    distance: int = 0,
) -> NotPrivate[float]:
    """Return how far one unit can move the same statistics, once `distance` others have changed at their worst.

    Noise of this size is not private: it tells how the data lie.
    """
    if integer(distance, name="distance") < 0:
        raise InvalidParameter("distance must not be negative")
    column = column_of(values)
    if statistic == "variance":
        if distance:
            raise InvalidParameter("the sensitivity of a variance is computed at the data only: leave distance out")
        sample, unit = _variance(column, bounds, relation, step, rank=rank, q=q, ends=ends)
        return NotPrivate(float(unit * local_variance(sample)))
    query = _query(column, bounds, relation, rank, q, statistic, ends, step)
    return NotPrivate(float(query.grid.step * query.local_sensitivity(column, distance)))


def _query(
    column: Column,
    bounds: tuple[Number, Number],
    relation: Relation,
    rank: int | None,
    q: Number | None,
    statistic: Statistic,
    ends: int | None,
    step: Number | None,
) -> OrderQuery:
    low, high = bounds
    grid = Grid.between(low, high, step=step)
    size = len(column) if read_relation(relation) is Relation.REPLACE_ONE else None
    if statistic == "order":
        _refuse(ends=ends)
        return quantile_query(grid=grid, relation=relation, rank=rank, q=q, size=size)
    _refuse(rank=rank, q=q)
    if statistic == "median":
        _refuse(ends=ends)
        return median_query(grid=grid, relation=relation, size=size)
    return _without_ends(grid, statistic, ends, size)


def _without_ends(grid: Grid, statistic: Statistic, ends: int | None, size: int | None) -> OrderQuery:
    if size is None:
        raise InvalidParameter("means without their ends are bounded under REPLACE_ONE only")
    if ends is None:
        raise InvalidParameter("ends, the number of values left out or moved on each side, is needed")
    if statistic == "trimmed_mean":
        return trimmed_mean_query(grid=grid, size=size, trimmed=ends)
    if statistic == "winsorised_mean":
        return winsorised_mean_query(grid=grid, size=size, moved=ends)
    raise InvalidParameter('statistic must be "order", "median", "trimmed_mean", "winsorised_mean" or "variance"')


def _variance(
    column: Column, bounds: tuple[Number, Number], relation: Relation, step: Number | None, **unused: object
) -> tuple[Ranked, Fraction]:
    """Return the values on their grid, and its squared step."""
    _refuse(**unused)
    if read_relation(relation) is not Relation.REPLACE_ONE:
        raise InvalidParameter("the sensitivity of a variance is known under REPLACE_ONE only")
    if not len(column):
        raise InvalidParameter("the variance of nothing has no sensitivity")
    grid = Grid.between(*bounds, step=step)
    return Ranked.of(column, grid), grid.step**2


def _refuse(**unused: object) -> None:
    for name, value in unused.items():
        if value is not None:
            raise InvalidParameter(f"{name} has no meaning for this statistic: leave it out")
