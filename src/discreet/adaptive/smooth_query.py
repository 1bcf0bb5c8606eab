"""Queries whose noise may follow the data: a value, and a smooth bound on how far one unit moves it.

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

from discreet.adaptive.exponential_maximum import Peak
from discreet.exact import nonnegative
from discreet.mechanisms.fields import read_relation, settle
from discreet.mechanisms.grid import Grid
from discreet.privacy.relation import Relation

if TYPE_CHECKING:
    from flint import arb

__all__ = [
    "Bound",
    "DistanceQuery",
    "Highest",
    "ReadsOnce",
    "SmoothQuery",
    "SmoothlyBounded",
    "SmoothlyBoundedQuery",
    "clamped",
]

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
    """

    evaluate: Callable[[Any], Fraction]  # in grid steps
    bound: Callable[[Any, Fraction], Bound]  # of the data and of beta, in grid steps
    grid: Grid
    relation: Relation
    relative_error: Fraction = Fraction(0)  # of the bound
    value_error: Fraction = Fraction(0)  # of the value, in grid steps

    def __post_init__(self) -> None:
        read_relation(self.relation)
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
    """

    evaluate: Callable[[Any], Fraction]  # in grid steps
    local_sensitivity_at_distance: Callable[[Any, int], Fraction]  # in grid steps
    grid: Grid
    relation: Relation
    value_error: Fraction = Fraction(0)  # of the value, in grid steps

    def __post_init__(self) -> None:
        read_relation(self.relation)
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
