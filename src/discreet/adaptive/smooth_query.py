"""Queries with a smooth upper bound on their local sensitivity.

Numbers are in steps of the query's public grid. A bound S is beta-smooth if it is never below the change that one
unit makes to the value, and no unit changes S itself by more than a factor e^beta. [NRS07]
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import TYPE_CHECKING, Any, Protocol, final, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from discreet.balls import ball
from discreet.exact import nonnegative
from discreet.formatting import record
from discreet.mechanisms.grid import Grid
from discreet.mechanisms.parameters import settle
from discreet.privacy.relation import Relation, read_relation

if TYPE_CHECKING:
    from flint import arb

__all__ = [
    "RELATIVE_ERROR",
    "Bound",
    "DistanceQuery",
    "Highest",
    "Peak",
    "ReadsOnce",
    "SmoothQuery",
    "SmoothlyBounded",
    "SmoothlyBoundedQuery",
    "clamped",
    "faded",
    "highest",
    "tallest",
]

# --- exponential_maximum ---
# The largest (up[t] + down[s]) exp(-beta (t + s - 1)) over t + s >= 1, in near-linear time.
#
# For one s the best t is where up[t] e^(-beta t) + down[s] e^(-beta t) is largest. The larger down[s], the more the
# fading counts, so the best t falls as s rises: once it is known for some s, the search for those between is narrow.
#
# That also bears rounding. If t was taken for one s though another is better by a share h, then what is passed over for
# all other s because of it is better there by h / (1 - h / beta) at most: so each halving costs little more than one h.


RELATIVE_ERROR = Fraction(1, 10**11)
"""How far below the largest product the one that floats find may lie, for products above e^-100 of a step and a beta
above 1e-10. Logarithms of that size are off by less than 1e-13, and there are fewer than 50 halvings."""


@final
@dataclass(frozen=True, slots=True)
class Peak:
    """The number height * exp(-beta * distance), exactly."""

    height: Fraction  # in grid steps
    distance: int

    def enclose(self, beta: Fraction) -> arb:
        """Enclose it at the working precision."""
        return ball(self.height) * ball(-beta * self.distance).exp()

    def approximate(self, beta: float) -> float:
        return float(self.height) * float(np.exp(-beta * self.distance))

    def logarithm(self, beta: float) -> float:
        return float(faded(np.array([float(self.height)]), np.array([self.distance]), beta)[0])


def faded(heights: NDArray[np.float64], distances: NDArray[np.int64], beta: float) -> NDArray[np.float64]:
    """Return the logarithms of height * exp(-beta * distance), which neither overflow nor vanish."""
    with np.errstate(divide="ignore"):
        logarithms: NDArray[np.float64] = np.log(heights) - beta * distances
    return logarithms


def tallest(heights: NDArray[np.int64], distances: NDArray[np.int64], beta: float) -> Peak:
    """Return the largest of some products."""
    at = int(np.argmax(faded(heights.astype(np.float64), distances, beta)))
    return Peak(Fraction(int(heights[at])), int(distances[at]))


def highest(up: NDArray[np.int64], down: NDArray[np.int64], beta: float) -> Peak:
    """Return the largest product up to RELATIVE_ERROR; both sequences rise and begin at 0 or above."""
    starts = [(0, 1), (1, 0)] if up[0] + down[0] > 0 else [(0, 0)]
    peaks = [_from(up[t:], down[s:], t + s, beta) for t, s in starts if t < up.size and s < down.size]
    return max(peaks, key=lambda peak: peak.logarithm(beta))


def _from(up: NDArray[np.int64], down: NDArray[np.int64], offset: int, beta: float) -> Peak:
    chosen = _best_places(up, down, beta)
    distances = chosen + np.arange(down.size) + (offset - 1)
    return tallest(up[chosen] + down, np.maximum(distances, 0), beta)


def _best_places(up: NDArray[np.int64], down: NDArray[np.int64], beta: float) -> NDArray[np.int64]:
    """Return the best t for each s, by halving: first for every 2^k-th s, then for those in the middle between."""
    # One place more on either side, where the best t is the last and the first.
    known = np.zeros(down.size + 2, np.int64)
    known[0] = up.size - 1
    stride = 1 << down.size.bit_length()
    while stride > 1:
        half = stride // 2
        rows = np.arange(half, down.size + 1, stride)
        most, least = known[rows - half], known[np.minimum(rows + half, down.size + 1)]
        known[rows] = _best_between(up, down[rows - 1], least, most, beta)
        stride = half
    return known[1:-1]


def _best_between(
    up: NDArray[np.int64], down: NDArray[np.int64], least: NDArray[np.int64], most: NDArray[np.int64], beta: float
) -> NDArray[np.int64]:
    """Return, for each entry of `down`, the best t from `least` to `most`; the ranges overlap at their ends only."""
    lengths = most - least + 1
    starts = np.cumsum(lengths) - lengths
    places = np.arange(int(lengths.sum())) + np.repeat(least - starts, lengths)
    heights = (up[places] + np.repeat(down, lengths)).astype(np.float64)
    values = faded(heights, places, beta)
    tops = np.flatnonzero(values == np.repeat(np.maximum.reduceat(values, starts), lengths))
    first: NDArray[np.int64] = places[tops[np.searchsorted(tops, starts)]]
    return first


_ALIKE = 1e-9  # Relative; floats tell two peaks apart by much less.
_LEAST_STEPS = 256  # The part of a step below which a bound need not be followed.


class Bound(Protocol):
    """A bound on the sensitivity as an exact real number."""

    def enclose(self, beta: Fraction) -> arb:
        """Enclose it at the working precision, for the beta that it was computed with."""


class SmoothlyBounded(Protocol):
    """A query with a smooth bound on its sensitivity. Everything but what its methods return is public."""

    @property
    def relation(self) -> Relation: ...

    @property
    def grid(self) -> Grid:
        """The grid of the release; the exact value lies between its bounds."""

    @property
    def relative_error(self) -> Fraction:
        """The h for which what `smooth_bound` returns is within a factor 1 + h of a beta-smooth bound."""

    @property
    def value_error(self) -> Fraction:
        """How far `value` may be from the query that is bounded, in grid steps."""

    def smooth_bound(self, data: Any, beta: Fraction, /) -> Bound:
        """Return a beta-smooth bound, in grid steps. This is private."""


class SmoothQuery(SmoothlyBounded, Protocol):
    """What a smooth-sensitivity mechanism asks of a query with one answer.

    If it `ReadsOnce`, what `read` returns takes the place of the data.
    """

    def value(self, data: Any, /) -> Fraction:
        """Return the answer, in grid steps. This is private."""


@runtime_checkable
class ReadsOnce(Protocol):
    """A query that spares a mechanism a second reading of the data."""

    def read(self, data: Any, /) -> Any:
        """Return what its other methods take in place of the data. This is private."""


@final
@dataclass(frozen=True, slots=True)
class Highest:
    """The largest of some peaks."""

    peaks: tuple[Peak, ...]

    def enclose(self, beta: Fraction) -> arb:
        return reduce(lambda one, other: one.max(other), (peak.enclose(beta) for peak in self.peaks))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SmoothlyBoundedQuery:
    """A query with a beta-smooth bound that its author has proved; `check_smoothness` looks for a counterexample.

    What `evaluate` returns is clamped to the grid, which moves no two answers apart.

    Args:
        evaluate: The function from private data to the value, in grid steps.
        bound: The function from the data and beta to a smooth bound, which its author has proved.
        grid: The public bounds and step of the answers.
        relation: The neighbouring relation.
        relative_error: How far the bound may be off, as a part of it.
        value_error: How far the value may be off, in grid steps.

    Examples:
        >>> grid = dp.mechanisms.Grid.between(0, 120, step=1)
        >>> median = dp.adaptive.median_query(grid=grid, relation=dp.Relation.REPLACE_ONE, public_rows=3)
        >>> query = dp.adaptive.SmoothlyBoundedQuery(
        ...     evaluate=median.value, bound=median.smooth_bound, grid=grid, relation=median.relation,
        ...     relative_error=median.relative_error,
        ... )
        >>> query.value([1, 2, 9])
        Fraction(2, 1)
    """

    evaluate: Callable[[Any], Fraction]  # in grid steps
    bound: Callable[[Any, Fraction], Bound]  # of the data and of beta, in grid steps
    grid: Grid
    relation: Relation
    relative_error: Fraction = Fraction(0)  # of the bound
    value_error: Fraction = Fraction(0)  # of the value, in grid steps

    __repr__ = record

    def __post_init__(self) -> None:
        settle(self, relation=read_relation(self.relation))
        settle(
            self,
            relative_error=nonnegative(self.relative_error, name="relative_error"),
            value_error=nonnegative(self.value_error, name="value_error"),
        )

    def value(self, data: Any) -> Fraction:
        return clamped(self.evaluate(data), self.grid)

    def smooth_bound(self, data: Any, beta: Fraction) -> Bound:
        return self.bound(data, beta)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DistanceQuery:
    """A query with its local sensitivity at a distance.

    `local_sensitivity_at_distance(data, k)` is a bound A_k on the change that one more unit makes to the value once
    k units have changed. It may be an upper bound, if A_k of a data set is at most A_(k+1) of each neighbour.

    Theorem     The largest A_k e^(-beta k) over k >= 0 is then a beta-smooth bound. [NRS07] It stays one if A_k is
                the whole range from some public k on; so the search ends where even the range has faded.

    Args:
        evaluate: The function from private data to the value, in grid steps.
        local_sensitivity_at_distance: A bound on the change by one more unit once k units have changed.
        grid: The public bounds and step of the answers.
        relation: The neighbouring relation.
        value_error: How far the value may be off, in grid steps.

    Examples:
        >>> from fractions import Fraction
        >>> query = dp.adaptive.DistanceQuery(
        ...     evaluate=lambda rows: Fraction(max(rows, default=0)),
        ...     local_sensitivity_at_distance=lambda rows, k: Fraction(120),
        ...     grid=dp.mechanisms.Grid.between(0, 120, step=1),
        ...     relation=dp.Relation.ADD_REMOVE,
        ... )
        >>> query.value([3, 7])
        Fraction(7, 1)
    """

    evaluate: Callable[[Any], Fraction]  # in grid steps
    local_sensitivity_at_distance: Callable[[Any, int], Fraction]  # in grid steps
    grid: Grid
    relation: Relation
    value_error: Fraction = Fraction(0)  # of the value, in grid steps

    __repr__ = record

    def __post_init__(self) -> None:
        settle(self, relation=read_relation(self.relation))
        settle(self, value_error=nonnegative(self.value_error, name="value_error"))

    @property
    def relative_error(self) -> Fraction:
        return Fraction(0)

    def value(self, data: Any) -> Fraction:
        return clamped(self.evaluate(data), self.grid)

    def smooth_bound(self, data: Any, beta: Fraction) -> Highest:
        width, decay = self.grid.width, float(beta)
        last = math.ceil(math.log(_LEAST_STEPS * width) / decay)
        found = [Peak(Fraction(width), last)]
        best = found[0].approximate(decay)
        for distance in range(last):
            if width * math.exp(-decay * distance) < best * (1 - _ALIKE):
                break
            height = min(Fraction(self.local_sensitivity_at_distance(data, distance)), Fraction(width))
            found.append(Peak(height, distance))
            best = max(best, found[-1].approximate(decay))
        return Highest(tuple(peak for peak in found if peak.approximate(decay) >= best * (1 - _ALIKE)))


def clamped(value: Fraction, grid: Grid) -> Fraction:
    """Move a number of grid steps to where the bounds of the grid are."""
    return min(max(Fraction(value), Fraction(grid.first)), Fraction(grid.last))
