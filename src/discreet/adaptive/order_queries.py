"""Medians, quantiles, trimmed and Winsorised means as queries whose noise may follow the data.

Each has a value and a smooth bound, in grid steps. A bound never falls below a public part of a step: then the ranks
that it depends on lie within a public distance, and so does the work.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, TypeAlias, final

from discreet.adaptive import order_statistics, winsorised
from discreet.adaptive.exponential_maximum import RELATIVE_ERROR, Peak
from discreet.errors import InvalidParameter
from discreet.exact import Number, integer, positive_integer, probability
from discreet.mechanisms.column import Data
from discreet.mechanisms.fields import read_relation, settle
from discreet.mechanisms.grid import Grid, exact_sum
from discreet.mechanisms.mean import check_length, check_size
from discreet.mechanisms.ranked import Ranked
from discreet.privacy.relation import Relation

__all__ = [
    "AddRemoveQuantileQuery",
    "CentralMeanQuery",
    "LowerMedianQuery",
    "OrderQuery",
    "WinsorisedMeanQuery",
    "farthest",
    "median_query",
    "quantile_query",
    "trimmed_mean_query",
    "winsorised_mean_query",
]

_PARTS_OF_A_STEP = 256  # A smooth bound below one of them is not followed: the release is rounded to steps.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CentralMeanQuery:
    """The mean of x_lower, …, x_upper of a public number of values: one rank, two middle ones, or all but the ends."""

    relation: ClassVar[Relation] = Relation.REPLACE_ONE
    relative_error: ClassVar[Fraction] = RELATIVE_ERROR
    value_error: ClassVar[Fraction] = Fraction(0)

    grid: Grid
    size: int
    lower: int  # ranks count from one
    upper: int

    def __post_init__(self) -> None:
        size = positive_integer(self.size, name="size")
        lower, upper = integer(self.lower, name="lower"), integer(self.upper, name="upper")
        if not 1 <= lower <= upper <= size:
            raise InvalidParameter("ranks must lie between 1 and size, lower not above upper")
        settle(self, size=size, lower=lower, upper=upper)  # Plain ones: NumPy's wrap around.

    def read(self, data: Data) -> Ranked:
        """Rank the data once for all that is asked of them. This is private."""
        return _ranked(data, self.grid, self.size)

    def value(self, data: Data | Ranked) -> Fraction:
        """Return the mean, in grid steps. This is private."""
        central = _ranked(data, self.grid, self.size).between(self.lower, self.upper)
        return Fraction(exact_sum(central), self.upper - self.lower + 1)

    def smooth_bound(self, data: Data | Ranked, beta: Fraction) -> Peak:
        """Return the smooth sensitivity, or a small public number if that is larger. This is private."""
        sample, far = _ranked(data, self.grid, self.size), farthest(self.grid, beta)
        return order_statistics.central_mean(sample, self.lower, self.upper, beta, farthest=far)

    def smooth_sensitivity(self, data: Data, beta: Fraction) -> Peak:
        """Return the smooth sensitivity itself, in grid steps. This is private."""
        return order_statistics.central_mean(_ranked(data, self.grid, self.size), self.lower, self.upper, beta)

    def local_sensitivity(self, data: Data, distance: int = 0) -> Fraction:
        """Return the worst local sensitivity at a distance, in grid steps. This is private."""
        sample = _ranked(data, self.grid, self.size)
        return order_statistics.local_central_mean(sample, self.lower, self.upper, distance)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class WinsorisedMeanQuery:
    """The mean once the `moved` smallest and largest of a public number of values are moved inward to the next rank.

    Its bounds are upper bounds; there is no simple exact form.
    """

    relation: ClassVar[Relation] = Relation.REPLACE_ONE
    relative_error: ClassVar[Fraction] = RELATIVE_ERROR
    value_error: ClassVar[Fraction] = Fraction(0)

    grid: Grid
    size: int
    moved: int

    def __post_init__(self) -> None:
        _check_ends(self.size, self.moved, name="moved")
        settle(self, size=int(self.size), moved=int(self.moved))

    def read(self, data: Data) -> Ranked:
        """Rank the data once for all that is asked of them. This is private."""
        return _ranked(data, self.grid, self.size)

    def value(self, data: Data | Ranked) -> Fraction:
        """Return the mean, in grid steps. This is private."""
        central = _ranked(data, self.grid, self.size).between(self.moved + 1, self.size - self.moved)
        ends = int(central[0]) + int(central[-1])
        return Fraction(exact_sum(central) + self.moved * ends, self.size)

    def smooth_bound(self, data: Data | Ranked, beta: Fraction) -> Peak:
        """Return a smooth bound, or a small public number if that is larger. This is private."""
        sample, far = _ranked(data, self.grid, self.size), farthest(self.grid, beta)
        return winsorised.winsorised_mean(sample, self.moved, beta, farthest=far)

    def smooth_sensitivity(self, data: Data, beta: Fraction) -> Peak:
        """Return a smooth bound, in grid steps. This is private."""
        return winsorised.winsorised_mean(_ranked(data, self.grid, self.size), self.moved, beta)

    def local_sensitivity(self, data: Data, distance: int = 0) -> Fraction:
        """Bound the local sensitivity at a distance, in grid steps. This is private."""
        return winsorised.local_winsorised_mean(_ranked(data, self.grid, self.size), self.moved, distance)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LowerMedianQuery:
    """x_ceil(n/2) under add-remove; of nothing, the lower bound."""

    relation: ClassVar[Relation] = Relation.ADD_REMOVE
    relative_error: ClassVar[Fraction] = RELATIVE_ERROR
    value_error: ClassVar[Fraction] = Fraction(0)

    grid: Grid

    def read(self, data: Data) -> Ranked:
        """Rank the data once for all that is asked of them. This is private."""
        return _ranked(data, self.grid, None)

    def value(self, data: Data | Ranked) -> Fraction:
        """Return the lower median, in grid steps. This is private."""
        sample = _ranked(data, self.grid, None)
        middle = (sample.size + 1) // 2
        return Fraction(int(sample.between(middle, middle)[0]))

    def smooth_bound(self, data: Data | Ranked, beta: Fraction) -> Peak:
        """Return the smooth sensitivity, or a small public number if that is larger. This is private."""
        sample, far = _ranked(data, self.grid, None), farthest(self.grid, beta)
        return order_statistics.lower_median_add_remove(sample, beta, farthest=far)

    def smooth_sensitivity(self, data: Data, beta: Fraction) -> Peak:
        """Return the smooth sensitivity itself, in grid steps. This is private."""
        return order_statistics.lower_median_add_remove(_ranked(data, self.grid, None), beta)

    def local_sensitivity(self, data: Data, distance: int = 0) -> Fraction:
        """Return the worst local sensitivity at a distance, in grid steps. This is private."""
        sample = _ranked(data, self.grid, None)
        return Fraction(order_statistics.local_lower_median_add_remove(sample, distance))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AddRemoveQuantileQuery:
    """x_m under add-remove with m = max(1, ceil(q n)); of nothing, the lower bound.

    Its bounds are upper bounds, about twice the smooth sensitivity; for q = 1/2 `LowerMedianQuery` has the exact one.
    """

    relation: ClassVar[Relation] = Relation.ADD_REMOVE
    relative_error: ClassVar[Fraction] = RELATIVE_ERROR
    value_error: ClassVar[Fraction] = Fraction(0)

    grid: Grid
    q: Fraction

    def __post_init__(self) -> None:
        settle(self, q=probability(self.q, name="q"))

    def read(self, data: Data) -> Ranked:
        """Rank the data once for all that is asked of them. This is private."""
        return _ranked(data, self.grid, None)

    def value(self, data: Data | Ranked) -> Fraction:
        """Return the quantile, in grid steps. This is private."""
        sample = _ranked(data, self.grid, None)
        wanted = self._rank(sample) if sample.size else 0
        return Fraction(int(sample.between(wanted, wanted)[0]))

    def smooth_bound(self, data: Data | Ranked, beta: Fraction) -> Peak:
        """Return a smooth bound, or a small public number if that is larger. This is private."""
        sample, far = _ranked(data, self.grid, None), farthest(self.grid, beta)
        return order_statistics.quantile_add_remove(sample, self._rank(sample), beta, farthest=far)

    def smooth_sensitivity(self, data: Data, beta: Fraction) -> Peak:
        """Return a smooth bound, in grid steps. This is private."""
        sample = _ranked(data, self.grid, None)
        return order_statistics.quantile_add_remove(sample, self._rank(sample), beta)

    def local_sensitivity(self, data: Data, distance: int = 0) -> Fraction:
        """Bound the local sensitivity at a distance, in grid steps. This is private."""
        sample = _ranked(data, self.grid, None)
        return Fraction(order_statistics.local_quantile_add_remove(sample, self._rank(sample), distance))

    def _rank(self, sample: Ranked) -> int:
        return _rank_of(self.q, sample.size)


OrderQuery: TypeAlias = CentralMeanQuery | WinsorisedMeanQuery | LowerMedianQuery | AddRemoveQuantileQuery


def median_query(*, grid: Grid, relation: Relation, size: int | None = None) -> CentralMeanQuery | LowerMedianQuery:
    """Under replace-one the middle value, or the mean of the two; under add-remove the lower of the two."""
    known = check_size(read_relation(relation), size)
    if known is None:
        return LowerMedianQuery(grid=grid)
    return CentralMeanQuery(grid=grid, size=known, lower=(known + 1) // 2, upper=known // 2 + 1)


def quantile_query(
    *, grid: Grid, relation: Relation, rank: int | None = None, q: Number | None = None, size: int | None = None
) -> CentralMeanQuery | LowerMedianQuery | AddRemoveQuantileQuery:
    """The value of a public rank, counted from one, or of the rank max(1, ceil(q n))."""
    known = check_size(read_relation(relation), size)
    if (rank is None) == (q is None):
        raise InvalidParameter("say which value is wanted: either rank, counted from 1, or q, from 0 to 1")
    if rank is not None:
        if known is None:
            raise InvalidParameter("a rank has no meaning where the number of rows is private: give q")
        return CentralMeanQuery(grid=grid, size=known, lower=rank, upper=rank)
    part = probability(q or 0, name="q")
    if known is None:
        return LowerMedianQuery(grid=grid) if part == Fraction(1, 2) else AddRemoveQuantileQuery(grid=grid, q=part)
    wanted = _rank_of(part, known)
    return CentralMeanQuery(grid=grid, size=known, lower=wanted, upper=wanted)


def trimmed_mean_query(*, grid: Grid, size: int, trimmed: int) -> CentralMeanQuery:
    """The mean without the `trimmed` smallest and largest values, under replace-one."""
    _check_ends(size, trimmed, name="trimmed")
    return CentralMeanQuery(grid=grid, size=size, lower=trimmed + 1, upper=size - trimmed)


def winsorised_mean_query(*, grid: Grid, size: int, moved: int) -> WinsorisedMeanQuery:
    """The mean with the `moved` smallest and largest values moved inward, under replace-one."""
    return WinsorisedMeanQuery(grid=grid, size=size, moved=moved)


def farthest(grid: Grid, beta: Fraction) -> int:
    """Return a distance at which the whole range has faded below a public part of a step."""
    return math.ceil(math.log(_PARTS_OF_A_STEP * grid.width) / float(beta))


def _rank_of(q: Fraction, size: int) -> int:
    return max(1, math.ceil(q * size))


def _check_ends(size: int, ends: int, *, name: str) -> None:
    if not 0 <= 2 * integer(ends, name=name) < positive_integer(size, name="size"):
        raise InvalidParameter(f"{name} must not be negative and must leave at least one of the values")


def _ranked(data: Data | Ranked, grid: Grid, size: int | None) -> Ranked:
    if size is not None and not isinstance(data, Ranked):
        check_length(data, size)
    return Ranked.of(data, grid)
