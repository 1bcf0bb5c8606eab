"""Cells that nobody declared, found privately: values that enough rows share, and bins at about equal counts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from discreet.adaptive.truncated_histogram import TruncatedHistogram
from discreet.mechanisms.column import Column, is_missing
from discreet.mechanisms.grid import Grid
from discreet.mechanisms.parameters import settle
from discreet.mechanisms.quantile import Quantile
from discreet.privacy.events import ApproxDP, BoundedRange, Repeated
from discreet.privacy.relation import Relation
from discreet.synth.domain.category import LONGEST, OTHER, Category, text_of
from discreet.synth.domain.coding import TableRows
from discreet.synth.domain.domain import Declared, Domain
from discreet.synth.domain.numeric import Numeric

__all__ = ["CellSearch", "QuantileBins"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CellSearch:
    """Find the values of unlisted categories and the bins of numbers, from one row of each unit.

    Guarantee   (epsilon, delta), shared evenly between the columns that are found; one row a unit is looked at.
    Theorem     A truncated histogram for each category [KKMN09, Vad17], medians of medians for each numeric column
                [KSS22], and the sum of their epsilons and deltas.
    Utility     a value is found if about (columns / epsilon) ln(columns / delta) rows have it.
    """

    domain: Domain
    epsilon: Fraction
    delta: Fraction
    relation: Relation

    @property
    def event(self) -> ApproxDP:
        """What is spent."""
        return ApproxDP(self.epsilon, self.delta)

    @property
    def largest(self) -> Domain:
        """A public domain with as many cells as could be found, to plan with."""
        return self._with({name: _largest(self.domain.columns[name]) for name in self._open})

    def settled(self, rows: TableRows) -> Domain:
        """Find what is open. This reads; the charge is the caller's."""
        columns = rows.columns()
        return self._with({name: self._found(self.domain.columns[name], columns[name]) for name in self._open})

    @property
    def _open(self) -> list[str]:
        return [name for name, column in self.domain.columns.items() if not column.is_settled]

    def _with(self, columns: dict[str, Declared]) -> Domain:
        domain = Domain({**self.domain.columns, **columns})
        settle(domain, impossible=self.domain.impossible)  # No rule is about a column that was open.
        return domain

    def _found(self, column: Declared, values: Column) -> Declared:
        epsilon, delta = self.epsilon / len(self._open), self.delta / len(self._open)
        if isinstance(column, Numeric):
            finder = QuantileBins(column=column, epsilon=epsilon, relation=self.relation)
            return column.with_edges(finder.edges(values))
        histogram = TruncatedHistogram.laplace(epsilon, delta, relation=self.relation)
        return _kept(column, histogram.measure(_texts(values)))


def _kept(column: Category, found: tuple[tuple[str, int], ...]) -> Category:
    """Keep the most frequent values, in the order of their names."""
    named = (one for one in found if one[0] != OTHER and len(one[0]) <= LONGEST)
    ranked = sorted(named, key=lambda one: (-one[1], one[0]))
    return Category(sorted(text for text, _ in ranked[: column.most]), other=True, null=column.null)


def _texts(column: Column) -> list[str | None]:
    """Return what a category of texts would see of each row, None where there is no such value."""
    return [None if is_missing(value) else text_of(value) for value in column.objects()]


def _largest(column: Declared) -> Declared:
    if isinstance(column, Numeric):
        edges = np.linspace(float(column.low), float(column.high), QuantileBins.bins + 1)[1:-1]
        inner = sorted({Fraction(edge) for edge in edges if column.low < Fraction(edge) <= column.high})
        return column.with_edges(inner)
    return Category([f"value {place}" for place in range(column.most or 1)], other=True, null=column.null)


# --- quantile_bins: Bins of about equal counts: the median first, then the medians of both halves, and so on. ---


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
