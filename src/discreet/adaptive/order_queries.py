"""Medians, quantiles, trimmed and Winsorised means as queries with smooth sensitivity.

Each has a value and a smooth bound, in grid steps. A bound never falls below a public part of a step: then the ranks
that it depends on lie within a public distance, and so does the work.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.adaptive.smooth_query import RELATIVE_ERROR, Peak, highest, tallest
from discreet.errors import InvalidParameter
from discreet.exact import Number, integer, positive_integer, probability
from discreet.formatting import record
from discreet.frames.column import Data
from discreet.mechanisms.grid import Grid, exact_sum
from discreet.mechanisms.mean import check_length, check_size
from discreet.mechanisms.order_statistics import Ranked
from discreet.mechanisms.parameters import settle
from discreet.privacy.relation import Relation, read_relation

__all__ = [
    "AddRemoveQuantileQuery",
    "CentralMeanQuery",
    "LowerMedianQuery",
    "OrderQuery",
    "WinsorisedMeanQuery",
    "central_mean",
    "farthest",
    "local_central_mean",
    "local_lower_median_add_remove",
    "local_quantile_add_remove",
    "local_winsorised_mean",
    "lower_median_add_remove",
    "median_query",
    "midpoint_median",
    "quantile_add_remove",
    "quantile_query",
    "rank",
    "trimmed_mean",
    "trimmed_mean_query",
    "winsorised_mean",
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
    public_rows: int
    lower: int  # ranks count from one
    upper: int

    def __post_init__(self) -> None:
        size = positive_integer(self.public_rows, name="public_rows")
        lower, upper = integer(self.lower, name="lower"), integer(self.upper, name="upper")
        if not 1 <= lower <= upper <= size:
            raise InvalidParameter("ranks must lie between 1 and size, lower not above upper")
        settle(self, public_rows=size, lower=lower, upper=upper)  # Plain ones: NumPy's wrap around.

    def read(self, data: Data) -> Ranked:
        """Rank the data once for all that is asked of them. This is private."""
        return _ranked(data, self.grid, self.public_rows)

    def value(self, data: Data | Ranked) -> Fraction:
        """Return the mean, in grid steps. This is private."""
        central = _ranked(data, self.grid, self.public_rows).between(self.lower, self.upper)
        return Fraction(exact_sum(central), self.upper - self.lower + 1)

    def smooth_bound(self, data: Data | Ranked, beta: Fraction) -> Peak:
        """Return the smooth sensitivity, or a small public number if that is larger. This is private."""
        sample, far = _ranked(data, self.grid, self.public_rows), farthest(self.grid, beta)
        return central_mean(sample, self.lower, self.upper, beta, farthest=far)

    def smooth_sensitivity(self, data: Data, beta: Fraction) -> Peak:
        """Return the smooth sensitivity itself, in grid steps. This is private."""
        return central_mean(_ranked(data, self.grid, self.public_rows), self.lower, self.upper, beta)

    def local_sensitivity(self, data: Data, distance: int = 0) -> Fraction:
        """Return the worst local sensitivity at a distance, in grid steps. This is private."""
        sample = _ranked(data, self.grid, self.public_rows)
        return local_central_mean(sample, self.lower, self.upper, distance)


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
    public_rows: int
    moved: int

    def __post_init__(self) -> None:
        _check_ends(self.public_rows, self.moved, name="moved")
        settle(self, public_rows=int(self.public_rows), moved=int(self.moved))

    def read(self, data: Data) -> Ranked:
        """Rank the data once for all that is asked of them. This is private."""
        return _ranked(data, self.grid, self.public_rows)

    def value(self, data: Data | Ranked) -> Fraction:
        """Return the mean, in grid steps. This is private."""
        central = _ranked(data, self.grid, self.public_rows).between(self.moved + 1, self.public_rows - self.moved)
        ends = int(central[0]) + int(central[-1])
        return Fraction(exact_sum(central) + self.moved * ends, self.public_rows)

    def smooth_bound(self, data: Data | Ranked, beta: Fraction) -> Peak:
        """Return a smooth bound, or a small public number if that is larger. This is private."""
        sample, far = _ranked(data, self.grid, self.public_rows), farthest(self.grid, beta)
        return winsorised_mean(sample, self.moved, beta, farthest=far)

    def smooth_sensitivity(self, data: Data, beta: Fraction) -> Peak:
        """Return a smooth bound, in grid steps. This is private."""
        return winsorised_mean(_ranked(data, self.grid, self.public_rows), self.moved, beta)

    def local_sensitivity(self, data: Data, distance: int = 0) -> Fraction:
        """Bound the local sensitivity at a distance, in grid steps. This is private."""
        return local_winsorised_mean(_ranked(data, self.grid, self.public_rows), self.moved, distance)


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
        return lower_median_add_remove(sample, beta, farthest=far)

    def smooth_sensitivity(self, data: Data, beta: Fraction) -> Peak:
        """Return the smooth sensitivity itself, in grid steps. This is private."""
        return lower_median_add_remove(_ranked(data, self.grid, None), beta)

    def local_sensitivity(self, data: Data, distance: int = 0) -> Fraction:
        """Return the worst local sensitivity at a distance, in grid steps. This is private."""
        sample = _ranked(data, self.grid, None)
        return Fraction(local_lower_median_add_remove(sample, distance))


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

    __repr__ = record

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
        return quantile_add_remove(sample, self._rank(sample), beta, farthest=far)

    def smooth_sensitivity(self, data: Data, beta: Fraction) -> Peak:
        """Return a smooth bound, in grid steps. This is private."""
        sample = _ranked(data, self.grid, None)
        return quantile_add_remove(sample, self._rank(sample), beta)

    def local_sensitivity(self, data: Data, distance: int = 0) -> Fraction:
        """Bound the local sensitivity at a distance, in grid steps. This is private."""
        sample = _ranked(data, self.grid, None)
        return Fraction(local_quantile_add_remove(sample, self._rank(sample), distance))

    def _rank(self, sample: Ranked) -> int:
        return _rank_of(self.q, sample.size)


OrderQuery: TypeAlias = CentralMeanQuery | WinsorisedMeanQuery | LowerMedianQuery | AddRemoveQuantileQuery


def median_query(
    *, grid: Grid, relation: Relation | str, public_rows: int | None = None
) -> CentralMeanQuery | LowerMedianQuery:
    """Under replace-one the middle value, or the mean of the two; under add-remove the lower of the two.

    Args:
        grid: The public bounds and step of the answers.
        relation: The neighbouring relation.
        public_rows: The public number of rows, under replace-one.

    Returns:
        The query, with its smooth sensitivity.

    Examples:
        >>> query = dp.adaptive.median_query(
        ...     grid=dp.mechanisms.Grid.between(0, 120, step=1), relation=dp.Relation.REPLACE_ONE, public_rows=3
        ... )
        >>> query.value([1, 2, 9])
        Fraction(2, 1)
    """
    relation = read_relation(relation)
    known = check_size(relation, public_rows)
    if known is None:
        return LowerMedianQuery(grid=grid)
    return CentralMeanQuery(grid=grid, public_rows=known, lower=(known + 1) // 2, upper=known // 2 + 1)


def quantile_query(
    *,
    grid: Grid,
    relation: Relation | str,
    rank: int | None = None,
    q: Number | None = None,
    public_rows: int | None = None,
) -> CentralMeanQuery | LowerMedianQuery | AddRemoveQuantileQuery:
    """The value of a public rank, counted from one, or of the rank max(1, ceil(q n)).

    Args:
        grid: The public bounds and step of the answers.
        relation: The neighbouring relation.
        rank: The rank of the value, from 1; under replace-one only. Say this or `q`.
        q: The share of rows below the value, from 0 to 1.
        public_rows: The public number of rows, under replace-one.

    Returns:
        The query, with its smooth sensitivity; under add-remove, but for the median, with a smooth bound above it.

    Raises:
        InvalidParameter: If not one of `rank` and `q` is said, or a rank where the number of rows is private.

    Examples:
        >>> query = dp.adaptive.quantile_query(
        ...     grid=dp.mechanisms.Grid.between(0, 120, step=1), q=0.9, relation=dp.Relation.ADD_REMOVE
        ... )
        >>> query.value(list(range(1, 101)))
        Fraction(90, 1)
    """
    relation = read_relation(relation)
    known = check_size(relation, public_rows)
    if (rank is None) == (q is None):
        raise InvalidParameter("say which value is wanted: either rank, counted from 1, or q, from 0 to 1")
    if rank is not None:
        if known is None:
            raise InvalidParameter("a rank has no meaning where the number of rows is private: give q")
        return CentralMeanQuery(grid=grid, public_rows=known, lower=rank, upper=rank)
    part = probability(q or 0, name="q")
    if known is None:
        return LowerMedianQuery(grid=grid) if part == Fraction(1, 2) else AddRemoveQuantileQuery(grid=grid, q=part)
    wanted = _rank_of(part, known)
    return CentralMeanQuery(grid=grid, public_rows=known, lower=wanted, upper=wanted)


def trimmed_mean_query(*, grid: Grid, public_rows: int, trimmed: int) -> CentralMeanQuery:
    """The mean without the `trimmed` smallest and largest values, under replace-one.

    Args:
        grid: The public bounds and step of the values.
        public_rows: The public number of rows.
        trimmed: How many values are left out on each side; at least one value is left.

    Returns:
        The query, with its smooth sensitivity.

    Raises:
        InvalidParameter: If no value would be left.

    Examples:
        >>> query = dp.adaptive.trimmed_mean_query(
        ...     grid=dp.mechanisms.Grid.between(0, 120, step=1), public_rows=5, trimmed=1
        ... )
        >>> query.value([1, 20, 30, 40, 119])
        Fraction(30, 1)
    """
    _check_ends(public_rows, trimmed, name="trimmed")
    return CentralMeanQuery(grid=grid, public_rows=public_rows, lower=trimmed + 1, upper=public_rows - trimmed)


def winsorised_mean_query(*, grid: Grid, public_rows: int, moved: int) -> WinsorisedMeanQuery:
    """The mean with the `moved` smallest and largest values moved inward, under replace-one.

    Args:
        grid: The public bounds and step of the values.
        public_rows: The public number of rows.
        moved: How many values on each side are moved to the next one inward; at least one value is left in place.

    Returns:
        The query, with a smooth upper bound on its sensitivity.

    Raises:
        InvalidParameter: If no value would be left in place.

    Examples:
        >>> query = dp.adaptive.winsorised_mean_query(
        ...     grid=dp.mechanisms.Grid.between(0, 120, step=1), public_rows=5, moved=1
        ... )
        >>> query.value([1, 20, 30, 40, 119])
        Fraction(30, 1)
    """
    return WinsorisedMeanQuery(grid=grid, public_rows=public_rows, moved=moved)


def farthest(grid: Grid, beta: Fraction) -> int:
    """Return a distance at which the whole range has faded below a public part of a step."""
    return math.ceil(math.log(_PARTS_OF_A_STEP * grid.width) / float(beta))


def _rank_of(q: Fraction, size: int) -> int:
    return max(1, math.ceil(q * size))


def _check_ends(size: int, ends: int, *, name: str) -> None:
    if not 0 <= 2 * integer(ends, name=name) < positive_integer(size, name="public_rows"):
        raise InvalidParameter(f"{name} must not be negative and must leave at least one of the values")


def _ranked(data: Data | Ranked, grid: Grid, size: int | None) -> Ranked:
    if size is not None and not isinstance(data, Ranked):
        check_length(data, size)
    return Ranked.of(data, grid)


# --- order_statistics: Local and smooth sensitivity of order statistics, exactly and without sorting everything. ---
#
# All of these are facts about private data: they set the scale of noise and are never released. `x_i` is the i-th
# smallest value; it is the lower bound for i < 1 and the upper one for i > n. [NRS07]


_FIRST_WINDOW = 16  # Ranks, over beta: by then the whole range has faded to 1e-7 of itself.


def rank(sample: Ranked, m: int, beta: Fraction) -> Peak:
    """Smooth sensitivity of x_m under replace-one: max over i <= m <= j of (x_j - x_i) e^(-beta (j - i - 1)).

    Theorem     At distance k the local sensitivity is max over t of x_(m+t) - x_(m+t-k-1). [NRS07]
    """
    return central_mean(sample, m, m, beta)


def midpoint_median(sample: Ranked, beta: Fraction) -> Peak:
    """The same for the mean of the two middle values of an even number of them. [NRS07]"""
    m = sample.size // 2
    return central_mean(sample, m, m + 1, beta)


def trimmed_mean(sample: Ranked, trimmed: int, beta: Fraction) -> Peak:
    """The same for the mean without the `trimmed` smallest and largest values. [BS19]"""
    return central_mean(sample, trimmed + 1, sample.size - trimmed, beta)


def central_mean(sample: Ranked, lower: int, upper: int, beta: Fraction, *, farthest: int | None = None) -> Peak:
    """Smooth sensitivity of the mean of x_lower, …, x_upper under replace-one.

    With `farthest`, what is more than that many steps away is taken as the whole range: the larger of the smooth
    sensitivity and of a public constant is as smooth, and ranks beyond need not be looked at.

    Theorem     Replacing k + 1 values, k of them before, moves the sum of the central values by at most the largest
                x_(upper+t) - x_(lower-s) with t + s = k + 1. [NRS07, BS19]
    """

    def within(reach: int) -> Peak:
        if upper - lower <= reach:  # One selection instead of two.
            window = sample.between(lower - reach, upper + reach)
            below, above = window[: reach + 1][::-1], window[upper - lower + reach :]
        else:
            below, above = sample.between(lower - reach, lower)[::-1], sample.between(upper, upper + reach)
        return highest(above - below[0], below[0] - below, float(beta))

    peak = _widened(sample, within, beta, farthest)
    return Peak(peak.height / (upper - lower + 1), peak.distance)


def _widened(sample: Ranked, within: Callable[[int], Peak], beta: Fraction, farthest: int | None) -> Peak:
    """Look at ranks ever farther away until what lies beyond cannot be higher than what was found."""
    decay, last = float(beta), sample.size + 1
    if farthest is not None:
        last = min(last, farthest + 2)
    reach = min(math.ceil(_FIRST_WINDOW / min(decay, 1.0)), last)
    while True:
        peak = within(reach)
        needed = _reach_needed(sample.spread, peak, decay)
        if reach >= min(needed, last):
            break
        reach = int(min(max(2 * reach, needed), last))
    if farthest is None:
        return peak
    return max(peak, Peak(Fraction(sample.spread), farthest), key=lambda found: found.logarithm(decay))


def _reach_needed(spread: int, peak: Peak, beta: float) -> float:
    """Return a distance beyond which even the whole range, faded, is below the peak."""
    return max(0.0, (math.log(spread) - peak.logarithm(beta)) / beta) + 3


def local_central_mean(sample: Ranked, lower: int, upper: int, distance: int = 0) -> Fraction:
    """Local sensitivity of the same mean, the worst at a distance, in grid steps."""
    # Ranks beyond the first and the last are all alike.
    reach = min(distance + 1, 2 * sample.size + 2)
    above, below = sample.between(upper, upper + reach), sample.between(lower - reach, lower)
    return Fraction(int((above - below).max()), upper - lower + 1)


def lower_median_add_remove(sample: Ranked, beta: Fraction, *, farthest: int | None = None) -> Peak:
    """Smooth sensitivity of x_ceil(n/2) under add-remove (of nothing: the lower bound). [NRS07]

    Theorem     max over 0 <= i < j <= n + 1 of (x_j - x_i) e^(-beta ((j-i-1) + max(0, D-1, -D))), D = n+1-j-i.
                For D >= 1 the exponent is n - 1 - 2i, so j = n - i is best; for D <= 0 it is 2j - n - 2, so
                i = n + 1 - j is. Only pairs of mirrored ranks are left.
    """
    n = sample.size

    def within(reach: int) -> Peak:
        first = max(0, (n + 1) // 2 - reach)
        ranked = sample.between(first, n + 1 - first)
        return tallest(*_mirrored(ranked, n, first), float(beta))

    return _widened(sample, within, beta, farthest)


def _mirrored(ranked: NDArray[np.int64], n: int, first: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the differences of mirrored values and their distances; `ranked` begins with the rank `first`."""
    lower = np.arange(first, (n + 1) // 2)  # i < n / 2, with j = n - i
    upper = np.arange((n + 1) // 2 + 1, n + 2 - first)  # j > (n + 1) / 2, with i = n + 1 - j
    inner = ranked[n - lower - first] - ranked[lower - first]
    outer = ranked[upper - first] - ranked[n + 1 - upper - first]
    return np.concatenate([inner, outer]), np.concatenate([n - 1 - 2 * lower, 2 * upper - n - 2])


def local_lower_median_add_remove(sample: Ranked, distance: int = 0) -> int:
    """Local sensitivity of x_ceil(n/2) under add-remove, the worst at a distance, in grid steps."""
    n = sample.size
    first = max(0, (n + 1) // 2 - min(distance, n) // 2 - 1)
    heights, distances = _mirrored(sample.between(first, n + 1 - first), n, first)
    return int(heights[distances <= distance].max())


def quantile_add_remove(sample: Ranked, m: int, beta: Fraction, *, farthest: int | None = None) -> Peak:
    """A smooth upper bound for x_m under add-remove, where m = max(1, ceil(q n)) follows the private n.

    Theorem     A value that comes or goes moves m by 0 or 1 and the values by 0 or 1 ranks, in opposite directions:
                what has the rank m + c afterwards lies between x_(m+c-1) and x_(m+c+1). So after k of them one more
                moves the quantile by at most A_k = max(x_(m+k+1) - x_(m-k), x_(m+k) - x_(m-k-1)), and A_k of a data
                set is at most A_(k+1) of its neighbour. [NRS07]
    """

    def within(reach: int) -> Peak:
        ranked = sample.between(m - reach, m + reach)
        return tallest(_nested(ranked), np.arange(reach), float(beta))

    return _widened(sample, within, beta, farthest)


def _nested(ranked: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return A_0, A_1, … from x_(m-r), …, x_(m+r)."""
    centre = ranked.size // 2
    above, below = ranked[centre:], ranked[: centre + 1][::-1]
    largest: NDArray[np.int64] = np.maximum(above[1:] - below[:-1], above[:-1] - below[1:])
    return largest


def local_quantile_add_remove(sample: Ranked, m: int, distance: int = 0) -> int:
    """Bound the local sensitivity of such a quantile at a distance, in grid steps: A_k above."""
    reach = min(distance + 1, sample.size + 2)
    return int(_nested(sample.between(m - reach, m + reach))[-1])


# --- winsorised: A smooth bound for the mean of values whose extremes were moved inward to a rank. ---


def winsorised_mean(sample: Ranked, moved: int, beta: Fraction, *, farthest: int | None = None) -> Peak:
    """A smooth upper bound, under replace-one, for the mean with `moved` values at each end moved inward.

    With `farthest`, what is more than that many steps away is taken as the whole range, as for a central mean.

    Theorem     One more replacement after k moves x_(m+1) and x_(n-m), each of which stands for m + 1 values, and
                the mean of those between as it does that of a trimmed mean. The largest of each at distance k, added
                as if all happened at once, is at least the local sensitivity and at most what it is at k + 1 for a
                neighbour. [NRS07, BS19]
    """
    decay, end = float(beta), 2 * sample.size + 2
    last = end if farthest is None else min(end, farthest)
    windows = _Windows(sample, moved, last + 1)
    best = Peak(windows.largest, end if farthest is None else farthest)
    for distance in range(last):
        if math.log(windows.largest) - decay * distance < best.logarithm(decay):
            break
        found = Peak(windows.at(distance), distance)
        best = max(best, found, key=lambda peak: peak.logarithm(decay))
    return best


def local_winsorised_mean(sample: Ranked, moved: int, distance: int = 0) -> Fraction:
    """Bound the local sensitivity of the same mean at a distance, in grid steps."""
    near = min(distance, 2 * sample.size + 2)
    return _Windows(sample, moved, near + 1).at(near)


class _Windows:
    """The values around the two ranks at which extremes are cut off."""

    __slots__ = ("_lower", "_moved", "_reach", "_size", "_upper", "largest")

    def __init__(self, sample: Ranked, moved: int, reach: int) -> None:
        low, high = moved + 1, sample.size - moved
        self._lower = sample.between(low - reach, low + reach)
        self._upper = sample.between(high - reach, high + reach)
        self._moved, self._size, self._reach = moved, sample.size, reach
        self.largest = Fraction(sample.spread * (2 * moved + 1), sample.size)

    def at(self, distance: int) -> Fraction:
        """Return the sum of what each of the three moves at most after so many replacements."""
        edges = self._gap(self._lower, self._lower, distance) + self._gap(self._upper, self._upper, distance)
        return Fraction(self._moved * edges + self._gap(self._upper, self._lower, distance), self._size)

    def _gap(self, above: NDArray[np.int64], below: NDArray[np.int64], distance: int) -> int:
        """Return the largest above_(t) - below_(-s) with t + s = distance + 1."""
        centre, steps = self._reach, distance + 1
        return int((above[centre : centre + steps + 1] - below[centre - steps : centre + 1]).max())
