"""Bins of about equal counts: the median first, then the medians of both halves, and so on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from discreet.mechanisms.column import Column
from discreet.mechanisms.grid import Grid
from discreet.mechanisms.quantile import Quantile
from discreet.privacy.events import BoundedRange, Repeated
from discreet.privacy.relation import Relation
from discreet.synth.domain.numeric import Numeric

__all__ = ["QuantileBins"]

_HALF = Fraction(1, 2)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class QuantileBins:
    """Find the edges between sixteen bins of about equal counts.

    Guarantee   epsilon: `levels` choices of bounded range, one after the other.
    Theorem     A row is in one part of each level, so one median of a level depends on it; under replace-one two may,
                or one by twice as much, and each choice has half the epsilon. [KSS22, Smi11]
    Utility     ranks are off by about (levels / epsilon) ln(points of the grid) at each level.
    """

    levels: ClassVar[int] = 4
    bins: ClassVar[int] = 1 << levels

    column: Numeric
    epsilon: Fraction
    relation: Relation

    @property
    def choice(self) -> Fraction:
        """The epsilon of one median, for a row more or less."""
        return self.epsilon / self.levels / (1 if self.relation is Relation.ADD_REMOVE else 2)

    @property
    def event(self) -> Repeated:
        """What is spent."""
        return Repeated(BoundedRange(self.epsilon / self.levels), self.levels)

    def edges(self, values: Column) -> tuple[Fraction, ...]:
        """Find the edges. This reads; the charge is the caller's."""
        placed = self.column.placed(values)
        if self.column.null:
            placed = placed[~self.column.absent(values)]
        grid = self.column.grid
        found = set(self._cut(placed, grid.first, grid.last, self.levels))
        return tuple(sorted(edge * grid.step for edge in found if edge > grid.first))

    def _cut(self, placed: NDArray[np.int64], first: int, last: int, levels: int) -> Iterator[int]:
        """Cut the grid points from first to last, with the values among them, into parts."""
        if not levels or first == last:
            return
        places = Grid(low=Fraction(first), high=Fraction(last), step=Fraction(1), default=Fraction(first))
        median = Quantile(quantile=_HALF, epsilon=self.choice, grid=places, relation=Relation.ADD_REMOVE)
        middle = max(first + 1, int(median.release(placed).value))
        yield middle
        yield from self._cut(placed[placed < middle], first, middle - 1, levels - 1)
        yield from self._cut(placed[placed >= middle], middle, last, levels - 1)
